package main

import (
	"remote-agent/internal/app"
)

// memoryCommand is about what is remembered.
type memoryCommand struct {
	Status memoryStatusCommand `cmd:"" help:"Show how memories are found and why, how many there are, and whether the embeddings API works."`
}

type memoryStatusCommand struct{}

func (memoryStatusCommand) Run(p *program) error { return p.care(app.MemoryStatus) }
