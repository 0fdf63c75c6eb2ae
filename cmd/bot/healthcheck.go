package main

import (
	"remote-agent/internal/web"
)

type healthcheckCommand struct{}

func (healthcheckCommand) Run(p *program) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	return web.Healthy(p.ctx, cfg.ListenAddr)
}
