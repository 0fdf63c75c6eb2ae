package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/queue"
	"remote-agent/internal/store"
)

var (
	_ orchestrator.Storage = store.Through[orchestrator.Tx]{}
	_ orchestrator.Tx      = store.Port{}
)

// openStore opens the database, which on SQLite no other daemon may have open.
func (d *daemon) openStore(ctx context.Context) (err error) {
	env := d.env
	env.Trace = func(statement string) {
		d.metrics.Statement(statement)
		if d.env.Trace != nil {
			d.env.Trace(statement)
		}
	}
	if d.store, err = openStore(ctx, d.config, env, true); err != nil {
		return err
	}
	d.files = newFiles(d.config, d.store, d.log)
	d.followChanges()
	return nil
}

// lockFolder claims DATA_DIR for this process. Another one may work there, too, on a database
// that processes share: it is told so, and leaves alone what the first one has there. The lock
// of an SQLite database there is the same one, and refuses it.
func (d *daemon) lockFolder(ctx context.Context) (err error) {
	if db := d.config.Database; db.Driver == config.DriverSQLite && filepath.Base(db.Path) == "bot.db" {
		there, err := os.Stat(filepath.Dir(db.Path))
		if err == nil {
			if here, err := os.Stat(d.config.DataDir); err == nil && os.SameFile(here, there) {
				return nil
			}
		}
	}
	d.unlock, err = store.LockFolder(ctx, d.config.DataDir)
	if fault.Is(err, fault.Conflict) {
		d.programs.guest = true
		d.log.WarnContext(ctx, "another process works on the data directory, so this one has no console there; give each replica a DATA_DIR of its own", "data_dir", d.config.DataDir)
		return nil
	}
	return err
}

// prepareStore brings the schema up to date and takes over what a dead process left.
func (d *daemon) prepareStore(ctx context.Context) (err error) {
	s := d.store
	defer func() { err = s.Explain(err) }()
	applied, err := s.Migrate(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", explainDamage(d.config, err))
	}
	if len(applied) > 0 {
		d.log.InfoContext(ctx, "applied migrations", "count", len(applied), "dialect", s.Dialect())
	}
	if newest, ok := newestBackup(d.config.BackupDir); ok && slices.ContainsFunc(applied, isFirst) {
		d.log.WarnContext(ctx, "the database is new, but BACKUP_DIR has backups; if data was lost, stop and restore the newest one", "restore", "bot backup restore "+newest.Dir)
	}
	if err := s.ClearLeases(ctx); err != nil {
		return fmt.Errorf("clear leases: %w", explainDamage(d.config, err))
	}
	d.queue, err = queue.Open(s.Postgres(), queue.Options{Log: d.log, PollOnly: s.Pooled(), Alone: s.Alone})
	return err
}

// isFirst reports whether a migration is the one that only an empty database lacks.
func isFirst(migration string) bool { return strings.HasPrefix(migration, "00001_") }

// openStore opens the database that cfg names.
func openStore(ctx context.Context, cfg config.Config, env Env, exclusive bool) (*store.Store, error) {
	url := cfg.Database.URL.Reveal()
	if cfg.Database.Driver == config.DriverSQLite {
		url = "sqlite:" + cfg.Database.Path
	}
	s, err := store.Open(ctx, store.Options{URL: url, DataDir: cfg.DataDir, Log: env.Log, Exclusive: exclusive, Trace: env.Trace, Redact: newRedactor(cfg, env).String})
	return s, explainDamage(cfg, err)
}

// Reach says why the database that cfg names cannot be used.
func Reach(ctx context.Context, cfg config.Config, env Env) error {
	s, err := openStore(ctx, cfg, env, false)
	if err != nil {
		return err
	}
	return s.Close()
}

// withStore runs a command on the database: that of the daemon that does it, or one
// that is opened for it. With change no daemon may run then on the same SQLite database
// (see inDaemon), and the schema is brought up to date; without, one may, and the
// schema has to be.
func withStore(ctx context.Context, cfg config.Config, env Env, change bool, fn func(s *store.Store) error) (err error) {
	if env.daemon != nil {
		return fn(env.daemon.store)
	}
	if change {
		if err := makeDataDir(cfg.DataDir); err != nil {
			return err
		}
	}
	s, err := openStore(ctx, cfg, env, change)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(s.Explain(err), s.Close()) }()
	if change {
		if _, err := s.Migrate(ctx); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		newFiles(cfg, s, env.Log)
	} else if err := s.CheckSchema(ctx); err != nil {
		return err
	}
	return fn(s)
}

// withExisting is withStore for a command that deletes: where there is no database it is
// refused. With one made for it, it would say that nothing is left of what lies elsewhere.
func withExisting(ctx context.Context, cfg config.Config, env Env, change bool, fn func(s *store.Store) error) error {
	if db := cfg.Database; env.daemon == nil && db.Driver == config.DriverSQLite {
		if _, err := os.Stat(db.Path); errors.Is(err, fs.ErrNotExist) {
			change = false // opening it says what to do
		}
	}
	return withStore(ctx, cfg, env, change, fn)
}

// readStored returns what fn reads in the database that withStore opens.
func readStored[T any](ctx context.Context, cfg config.Config, env Env, fn func(tx *store.Tx) (T, error)) (T, error) {
	return store.Within(ctx, func(ctx context.Context, read func(tx *store.Tx) error) error {
		return withStore(ctx, cfg, env, false, func(s *store.Store) error { return s.InRead(ctx, read) })
	}, fn)
}
