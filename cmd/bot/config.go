package main

import (
	"remote-agent/internal/app"
	"remote-agent/internal/config"
)

// configCommand is about options.
type configCommand struct {
	Show    configShowCommand    `cmd:"" help:"Print every option in effect and its source; secrets are masked."`
	Example configExampleCommand `cmd:"" help:"Print an example .env file."`
}

type configShowCommand struct{}

func (configShowCommand) Run(p *program) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	return cfg.Show(p.stdout)
}

type configExampleCommand struct{}

func (configExampleCommand) Run(p *program) error {
	return config.WriteExample(p.stdout, app.Sections()...)
}
