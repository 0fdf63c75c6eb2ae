package store

import (
	"context"
	"path/filepath"
)

// LockFolder claims a data directory for this process until release is called. Where its own
// SQLite database is used, Options.Exclusive does it. Another process that has claimed it is
// fault.Conflict.
func LockFolder(ctx context.Context, dir string) (release func() error, err error) {
	lock, err := lockFile(ctx, filepath.Join(dir, "bot.db"))
	if err != nil {
		return nil, err
	}
	return lock.release, nil
}
