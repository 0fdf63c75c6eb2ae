package main

import (
	"context"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
)

// backupCommand is about copies of everything.
type backupCommand struct {
	Create  backupCreateCommand  `cmd:"" help:"Create a backup in BACKUP_DIR; the daemon can keep running."`
	Verify  backupVerifyCommand  `cmd:"" help:"Check a backup without changing anything."`
	Restore backupRestoreCommand `cmd:"" help:"Restore a backup into an empty DATA_DIR or database; stop the daemon first."`
	List    backupListCommand    `cmd:"" help:"List the backups in BACKUP_DIR."`
}

type backupCreateCommand struct{}

func (backupCreateCommand) Run(p *program) error { return p.care(app.BackupCreate) }

type backupVerifyCommand struct {
	Backup string `arg:"" help:"Backup folder, or its name in BACKUP_DIR."`
}

func (c backupVerifyCommand) Run(p *program) error { return with(p, app.BackupVerify, c.Backup) }

type backupRestoreCommand struct {
	Backup   string `arg:"" help:"Backup folder, or its name in BACKUP_DIR."`
	Replaces string `help:"The database being replaced: its SQLite file, its postgres:// address, or a file with that address. Its newer audit entries are kept." placeholder:"FILE"`
}

func (c backupRestoreCommand) Run(p *program) error {
	var replaced string
	if c.Replaces != "" {
		var err error
		if replaced, err = sourceOf("--replaces", c.Replaces); err != nil {
			return err
		}
	}
	return p.care(func(ctx context.Context, cfg config.Config, env app.Env) error {
		return app.BackupRestore(ctx, cfg, env, c.Backup, replaced)
	})
}

type backupListCommand struct{}

func (backupListCommand) Run(p *program) error { return p.care(app.BackupList) }

// retentionCommand removes what RETENTION_* says is too old.
type retentionCommand struct {
	DryRun bool `help:"Show what would be removed; change nothing." name:"dry-run"`
}

func (c retentionCommand) Run(p *program) error { return with(p, app.Retention, c.DryRun) }
