package app

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"remote-agent/internal/backup"
	"remote-agent/internal/codebase"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/pages"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// postgresTools is how to copy the PostgreSQL database of cfg.
func postgresTools(cfg config.Config, env Env) backup.Postgres {
	p := backup.Postgres{URL: cfg.Database.URL.Reveal()}
	for _, name := range []string{"PATH", "HOME", "LANG", "LC_ALL", "PGSSLMODE", "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGPASSFILE"} {
		if value, ok := env.lookup(name); ok {
			p.Environ = append(p.Environ, name+"="+value)
		}
	}
	return p
}

// warnBackups says at the start that no backup could be made later.
func warnBackups(ctx context.Context, cfg config.Config, log *slog.Logger) {
	if err := writable(cfg.BackupDir); err != nil {
		found := cannotUse("backup", "BACKUP_DIR", cfg.BackupDir, err)
		log.WarnContext(ctx, "no backup can be made", "err", found.Detail, "fix", found.Fix)
	}
}

// BackupCreate makes a backup in BACKUP_DIR; the daemon may run.
func BackupCreate(ctx context.Context, cfg config.Config, env Env) error {
	return withStore(ctx, cfg, env, false, func(s *store.Store) error {
		dir, m, err := createBackup(ctx, cfg, env, s)
		if err != nil {
			return err
		}
		for _, p := range m.Problems {
			say(env.Stderr, "not copied: %s\n", p)
		}
		say(env.Stdout, "%s  %s, %d bytes\n", dir, wording.Count(len(m.Files), "file", "files"), m.Size())
		return nil
	})
}

func createBackup(ctx context.Context, cfg config.Config, env Env, s *store.Store) (dir string, m backup.Manifest, err error) {
	src := backup.Source{Store: s, Tools: postgresTools(cfg, env), Projects: filepath.Join(cfg.DataDir, "projects"), Bot: env.Version}
	if !s.KeepsBytes() {
		src.Attached = filepath.Join(cfg.DataDir, filesFolder)
	}
	if src.Workspace, err = backupWorkspace(ctx, cfg, env); err != nil {
		return "", m, err
	}
	if src.Workspace != nil {
		defer src.Workspace.Close() //nolint:errcheck // only read
	}
	return backup.Create(ctx, src, cfg.BackupDir, time.Now())
}

// backups are what the pages do with backups.
func (d *daemon) backups() *pages.Backups {
	return &pages.Backups{
		Folder: d.config.BackupDir,
		Create: func(ctx context.Context) (string, backup.Manifest, error) {
			dir, m, err := createBackup(ctx, d.config, d.env, d.store)
			return filepath.Base(dir), m, err
		},
		Verify: func(ctx context.Context, dir string) (backup.Manifest, error) {
			return backup.Verify(ctx, dir, postgresTools(d.config, d.env))
		},
	}
}

// backupWorkspace opens the workspace if there is one and git to read it.
func backupWorkspace(ctx context.Context, cfg config.Config, env Env) (*codebase.Workspace, error) {
	if _, err := os.Stat(cfg.WorkspacePath); err != nil {
		return nil, nil //nolint:nilnil,nilerr // no repositories is no error
	}
	w, err := newWorkspace(ctx, cfg, env.Log, nil)
	if fault.Is(err, fault.Unsupported) {
		say(env.Stderr, "not copied: unpushed commits: %s\n", fault.Public(err))
		return nil, nil //nolint:nilnil // the rest is worth it
	}
	return w, err
}

// backupPath finds a backup by its folder, or by its name in BACKUP_DIR.
func backupPath(cfg config.Config, named string) string {
	if _, err := os.Stat(named); err != nil && filepath.Base(named) == named {
		return filepath.Join(cfg.BackupDir, named)
	}
	return named
}

// BackupVerify examines a backup and changes nothing.
func BackupVerify(ctx context.Context, cfg config.Config, env Env, named string) error {
	m, err := backup.Verify(ctx, backupPath(cfg, named), postgresTools(cfg, env))
	if err != nil {
		return err
	}
	say(env.Stdout, "sound: %s of %s, schema %d, %s, %d bytes\n", m.Database, m.CreatedAt.Format(time.RFC3339), m.Schema, wording.Count(len(m.Files), "file", "files"), m.Size())
	return nil
}

// BackupList prints the backups in BACKUP_DIR, the newest first.
func BackupList(_ context.Context, cfg config.Config, env Env) error {
	list, err := backup.List(cfg.BackupDir)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		say(env.Stdout, "no backups in %s\n", cfg.BackupDir)
	}
	for _, l := range list {
		if l.Err != nil {
			say(env.Stdout, "%s  unusable: %s\n", l.Dir, fault.Public(l.Err))
			continue
		}
		say(env.Stdout, "%s  %s  schema %d  %s, %d bytes\n", l.Dir, l.Manifest.Database, l.Manifest.Schema, wording.Count(len(l.Manifest.Files), "file", "files"), l.Manifest.Size())
	}
	return nil
}

// BackupRestore puts a backup into the empty place that cfg names. replaced is the
// database whose place it takes, an SQLite file or a PostgreSQL address; empty where
// that is gone.
func BackupRestore(ctx context.Context, cfg config.Config, env Env, named, replaced string) error {
	to := backup.Target{
		Path: cfg.Database.Path, Tools: postgresTools(cfg, env), DataDir: cfg.DataDir, Projects: filepath.Join(cfg.DataDir, "projects"), Log: env.Log,
	}
	if cfg.Database.Driver == config.DriverPostgres {
		to.Path = ""
	}
	if replaced != "" {
		from, err := openForeign(ctx, env, replaced)
		if err != nil {
			return blame("--replaces", err)
		}
		defer from.Close() //nolint:errcheck // only read
		to.Replaced = from
	}
	r, err := backup.Restore(ctx, backupPath(cfg, named), to)
	if !r.Made {
		return err
	}
	say(env.Stdout, "restored the backup of %s\n", r.Manifest.CreatedAt.Format(time.RFC3339))
	sayClosed(env.Stdout, r.Settled.Entries, r.Settled.Deliveries, wording.Count(int(r.Settled.Conversations), "conversation gets", "conversations get")+" one notice")
	say(env.Stdout, "roles, removals and a halt are as in the backup: check `bot person list`\n")
	if replaced != "" {
		say(env.Stdout, "kept %s of the database being replaced\n", wording.Count(int(r.Kept), "audit entry", "audit entries"))
	}
	if r.Settled.Keys > 0 {
		say(env.Stdout, "revoked %s, because the backup does not show which were revoked later; create new ones with bot key create\n", count(r.Settled.Keys, "API key"))
	}
	for _, name := range r.Bundles {
		say(env.Stdout, "unpushed commits are in %s; in a clone: git fetch %s 'refs/*:refs/*'\n", name, name)
	}
	return err
}
