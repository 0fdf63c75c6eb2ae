package main

import (
	"remote-agent/internal/app"
	"remote-agent/internal/config"
)

// salvageCommand copies what can be read of a damaged database.
type salvageCommand struct {
	To string `arg:"" optional:"" help:"The new file. Default: bot.salvaged.db next to the damaged one." placeholder:"FILE"`
}

// Run implements the command.
func (c salvageCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error { return app.Salvage(p.ctx, cfg, env, c.To) })
}
