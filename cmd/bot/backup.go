package main

import (
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

// Run implements the command.
func (backupCreateCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error { return app.BackupCreate(p.ctx, cfg, env) })
}

type backupVerifyCommand struct {
	Backup string `arg:"" help:"Backup folder, or its name in BACKUP_DIR."`
}

// Run implements the command.
func (c backupVerifyCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error { return app.BackupVerify(p.ctx, cfg, env, c.Backup) })
}

type backupRestoreCommand struct {
	Backup   string `arg:"" help:"Backup folder, or its name in BACKUP_DIR."`
	Replaces string `help:"The database being replaced: its SQLite file, or a file with its postgres:// address. Its newer audit entries are kept." placeholder:"FILE"`
}

// Run implements the command.
func (c backupRestoreCommand) Run(p *program) error {
	replaced, err := addressIn(c.Replaces)
	if err != nil {
		return err
	}
	return p.care(func(cfg config.Config, env app.Env) error {
		return app.BackupRestore(p.ctx, cfg, env, c.Backup, replaced)
	})
}

type backupListCommand struct{}

// Run implements the command.
func (backupListCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error { return app.BackupList(p.ctx, cfg, env) })
}

// retentionCommand removes what RETENTION_* says is too old.
type retentionCommand struct {
	DryRun bool `help:"Show what would be removed; change nothing." name:"dry-run"`
}

// Run implements the command.
func (c retentionCommand) Run(p *program) error {
	return p.care(func(cfg config.Config, env app.Env) error { return app.Retention(p.ctx, cfg, env, c.DryRun) })
}
