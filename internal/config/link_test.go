package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"remote-agent/internal/config"
)

// A link to a database is its file: the log, the lock and what is hidden from agents are
// beside that.
func TestALinkToADatabaseIsItsFile(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, link := filepath.Join(dir, "real.db"), filepath.Join(dir, "link.db")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink("real.db", link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link} {
		c, err := config.Load(config.Source{Environ: []string{"DATABASE_URL=sqlite:" + path}})
		if err != nil || c.Database.Path != file {
			t.Errorf("%s: the database is %q, %v", path, c.Database.Path, err)
		}
	}
}

// A link to a database that is not there, as where it was moved away to restore a backup, is
// the place of that database all the same.
func TestALinkToNoDatabaseIsItsPlace(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "disk"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "disk", "real.db")
	for name, to := range map[string]string{"absolute.db": file, "relative.db": "disk/real.db"} {
		link := filepath.Join(dir, name)
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Source{Environ: []string{"DATABASE_URL=sqlite:" + link}})
		if err != nil || c.Database.Path != file {
			t.Errorf("%s: the database is %q, %v", name, c.Database.Path, err)
		}
	}
}
