package main

import (
	"context"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
)

// migrateCommand is about the schema of the database.
type migrateCommand struct {
	Action string `arg:"" default:"status" enum:"status,up" help:"status shows which migrations are applied; up applies the rest."`
}

func (c migrateCommand) Run(p *program) error {
	return p.command(func(ctx context.Context, cfg config.Config, env app.Env) error {
		return app.Migrate(ctx, cfg, env, c.Action == "up")
	})
}
