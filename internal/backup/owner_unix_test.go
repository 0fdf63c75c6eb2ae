//go:build unix

package backup_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"remote-agent/internal/backup"
	"remote-agent/internal/fault"
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

// TestRootFollowsNoLinkOfAnother: what root put behind a link would stay root's, where the
// daemon cannot read it, and may be anywhere. The owner follows their own links.
func TestRootFollowsNoLinkOfAnother(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	each(t, func(t *testing.T, w world) {
		t.Helper()
		dir, _, err := backup.Create(t.Context(), w.source(), t.TempDir(), now)
		if err != nil {
			t.Fatal(err)
		}
		add(t, dir, "files/ab/cd", "attached")
		for _, name := range []string{"files", "projects"} {
			to, _ := w.elsewhere(t)
			elsewhere, link := t.TempDir(), filepath.Join(to.DataDir, name)
			if err := errors.Join(os.Mkdir(to.DataDir, 0o700), os.Symlink(elsewhere, link), os.Chown(to.DataDir, 65534, 65534)); err != nil {
				t.Fatal(err)
			}
			if _, err := backup.Restore(t.Context(), dir, to); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Public(err), link+" is a link") {
				t.Errorf("%s is a link: %v, want a conflict", name, err)
			}
			if made, err := os.ReadDir(elsewhere); len(made) > 0 || err != nil {
				t.Errorf("behind the link is %v, %v", made, err)
			}
			if err := os.Chown(to.DataDir, 0, 0); err != nil {
				t.Fatal(err)
			}
			if _, err := backup.Restore(t.Context(), dir, to); err != nil {
				t.Errorf("into a folder of root's own: %v", err)
			}
			if made, err := os.ReadDir(elsewhere); len(made) == 0 || err != nil {
				t.Errorf("nothing is behind the owner's link, %v", err)
			}
		}
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
