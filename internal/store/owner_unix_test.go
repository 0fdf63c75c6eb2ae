//go:build unix

package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// TestRootLeavesADatabaseToItsOwner: the daemon can use what root salvaged or looked at while
// it was stopped.
func TestRootLeavesADatabaseToItsOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	const nobody = 65534
	path := fileWithData(t)
	dir := filepath.Dir(path)
	if err := errors.Join(os.Chown(dir, nobody, nobody), os.Chown(path, nobody, nobody), os.RemoveAll(path+".lock")); err != nil {
		t.Fatal(err)
	}
	owned := func(when, dir string) {
		t.Helper()
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) < 2 {
			t.Fatalf("%d files: %v", len(entries), err)
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				t.Fatal(err)
			}
			if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != nobody || stat.Gid != nobody {
				t.Errorf("%s, %s belongs to %d", when, e.Name(), stat.Uid)
			}
		}
	}
	if _, _, err := salvage(t, path); err != nil {
		t.Fatal(err)
	}
	owned("after a salvage", dir)
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	for when, path := range map[string]string{"with a database": path, "with a new one": filepath.Join(dir, "new", "bot.db")} {
		s, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + path, Log: storetest.Log(t), Exclusive: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		owned(when, filepath.Dir(path))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	owned("in the end", dir)
}

// TestRootGivesNothingAwayThatItDidNotMake: what stands under the name of a lock may be root's, by
// another name.
func TestRootGivesNothingAwayThatItDidNotMake(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	path, roots := fileWithData(t), filepath.Join(t.TempDir(), "roots")
	if err := errors.Join(os.WriteFile(roots, nil, 0o600), os.RemoveAll(path+".lock"), os.Link(roots, path+".lock"), os.Chown(filepath.Dir(path), 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	storetest.Open(t, store.Options{URL: "sqlite:" + path, Exclusive: true})
	info, err := os.Stat(roots)
	if err != nil {
		t.Fatal(err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != 0 {
		t.Errorf("root's file belongs to %d", stat.Uid)
	}
}
