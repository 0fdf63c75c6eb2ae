package main

import (
	"remote-agent/internal/app"
	"remote-agent/internal/config"
)

// memoryCommand is about what is remembered.
type memoryCommand struct {
	Status memoryStatusCommand `cmd:"" help:"Show how memories are found and why, how many there are, and whether the embeddings API works."`
}

type memoryStatusCommand struct{}

// Run implements the command.
func (memoryStatusCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error { return app.MemoryStatus(p.ctx, cfg, env) })
}
