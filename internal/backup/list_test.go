package backup_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"remote-agent/internal/backup"
)

// TestTheListHasBackupsAndNothingElse: a folder of something else, such as lost+found of a disk
// of its own, is no backup. One that a person gave a name, or moved to another disk and linked,
// is one, and its age is that of what it holds.
func TestTheListHasBackupsAndNothingElse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w world) {
		t.Helper()
		folder, elsewhere := t.TempDir(), t.TempDir()
		var made []string
		for i := range 3 {
			dir, _, err := backup.Create(t.Context(), w.source(), folder, now.Add(time.Duration(i)*time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, filepath.Base(dir))
		}
		at := func(name string) string { return filepath.Join(folder, name) }
		for _, err := range []error{
			os.Rename(at(made[0]), at("before-the-move")),
			os.Rename(at(made[1]), filepath.Join(elsewhere, made[1])), os.Symlink(filepath.Join(elsewhere, made[1]), at(made[1])),
			os.Mkdir(at("lost+found"), 0o700), os.Mkdir(at("20250101T000000Z"), 0o700), os.Symlink("nowhere", at("gone")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		list, err := backup.List(folder)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, l := range list {
			name := filepath.Base(l.Dir)
			if l.Err != nil {
				name += ", unusable"
			}
			names = append(names, name)
		}
		if want := []string{made[2], made[1], "before-the-move", "20250101T000000Z, unusable"}; !slices.Equal(names, want) {
			t.Errorf("listed %q, want %q", names, want)
		}
	})
}
