package main

import (
	"remote-agent/internal/app"
	"remote-agent/internal/config"
)

// ownerLinkCommand lets whoever is at the machine into the pages.
type ownerLinkCommand struct{}

// Run implements the command.
func (ownerLinkCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error { return app.OwnerLink(p.ctx, cfg, env) })
}
