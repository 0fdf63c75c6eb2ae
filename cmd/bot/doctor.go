package main

import (
	"context"
	"errors"
	"log/slog"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
)

// exitUnwell says that a check of bot doctor failed.
const exitUnwell = 5

// errUnwell ends bot doctor after its report was printed.
var errUnwell = errors.New("a check failed")

// doctorCommand examines the installation.
type doctorCommand struct {
	JSON    bool `help:"Print JSON."`
	Offline bool `help:"Make no network requests."`
}

// Help implements commandline.Explained.
func (doctorCommand) Help() string {
	return "Every check proves something or says why it was skipped; each failure says how to fix it. " +
		"The daemon can keep running. Exit code 5 if a check failed."
}

func (c doctorCommand) Run(p *program) error {
	return p.care(func(ctx context.Context, cfg config.Config, env app.Env) error {
		p.levels.screen.Set(max(cfg.Log.Level, slog.LevelWarn)) // the report says the rest
		report := app.Doctor(ctx, cfg, env, c.Offline)
		write := report.Write
		if c.JSON {
			write = report.WriteJSON
		}
		if err := write(env.Stdout); err != nil {
			return err
		}
		if report.Failed > 0 {
			return errUnwell
		}
		return nil
	})
}
