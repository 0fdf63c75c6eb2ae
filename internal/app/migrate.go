package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"remote-agent/internal/config"
	"remote-agent/internal/store"
)

// Migrate shows the state of the schema on env.Stdout and, with apply, brings it
// up to date first.
func Migrate(ctx context.Context, cfg config.Config, env Env, apply bool) error {
	if apply {
		if err := makeDataDir(cfg.DataDir); err != nil {
			return err
		}
		if done, err := inDaemon(ctx, cfg, env, callMigrate, nil); done { // which has applied them when it started
			return err
		}
	}
	s, err := openStore(ctx, cfg, env, apply)
	if err != nil {
		return err
	}
	return errors.Join(s.Explain(showMigrations(ctx, s, env.Stdout, apply)), s.Close())
}

func showMigrations(ctx context.Context, s *store.Store, out io.Writer, apply bool) error {
	if apply {
		if _, err := s.Migrate(ctx); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
	}
	list, err := s.MigrationStatus(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's state: %w", err)
	}
	pending := 0
	for _, m := range list {
		state := "pending"
		if m.Applied {
			state = "applied"
		} else {
			pending++
		}
		fmt.Fprintf(out, "%-8s %s\n", state, m.Name) //nolint:errcheck // a closed terminal
	}
	if pending > 0 {
		fmt.Fprintf(out, "%d pending; run `bot migrate up`, or start the daemon to apply them\n", pending) //nolint:errcheck // as above
	}
	return nil
}
