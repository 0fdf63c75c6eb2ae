package main

import "remote-agent/internal/app"

// migrateCommand is about the schema of the database.
type migrateCommand struct {
	Action string `arg:"" default:"status" enum:"status,up" help:"status shows which migrations are applied; up applies the rest."`
}

// Run implements the command.
func (c migrateCommand) Run(p *program) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	log, closeLog, err := p.newLogger(cfg, false)
	if err != nil {
		return err
	}
	defer closeLog()
	return app.Migrate(p.ctx, cfg, p.env(log, false), c.Action == "up")
}
