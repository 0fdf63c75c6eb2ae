//go:build unix

package backup_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"remote-agent/internal/backup"
)

// TestRootLeavesBackupsToTheOwner: a backup that root makes or restores can be read by the
// daemon, which runs as the owner of the folder.
func TestRootLeavesBackupsToTheOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	const nobody = 65534
	each(t, func(t *testing.T, w world) {
		t.Helper()
		data := t.TempDir()
		if err := os.Chown(data, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		dir, _, err := backup.Create(t.Context(), w.source(), filepath.Join(data, "far", "backups"), now)
		if err != nil {
			t.Fatal(err)
		}
		target, _ := w.elsewhere(t)
		if err := errors.Join(os.Mkdir(target.DataDir, 0o700), os.Chown(target.DataDir, nobody, nobody)); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(t.Context(), dir, target); err != nil {
			t.Fatal(err)
		}
		allOf(t, nobody, data, 5)
		allOf(t, nobody, target.DataDir, 1)
	})
}

// allOf fails the test unless all in a folder, and at least so much, belongs to a user.
func allOf(t *testing.T, user uint32, folder string, least int) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != user || stat.Gid != user {
			t.Errorf("%s belongs to %d", path, stat.Uid)
		}
		found++
		return nil
	})
	if err != nil || found < least {
		t.Errorf("%d files and folders, %v", found, err)
	}
}
