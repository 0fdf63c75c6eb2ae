package main

import (
	"remote-agent/internal/app"
)

// salvageCommand copies what can be read of a damaged database.
type salvageCommand struct {
	To string `arg:"" optional:"" help:"The new file. Default: bot.salvaged.db next to the damaged one." placeholder:"FILE"`
}

func (c salvageCommand) Run(p *program) error { return with(p, app.Salvage, c.To) }
