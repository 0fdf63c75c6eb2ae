package migrations_test

import (
	"flag"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"
)

var write = flag.Bool("write", false, "write sql.s2")

// TestPackHasTheFiles compares the texts: how they are compressed may differ from one
// version of the library to the next.
func TestPackHasTheFiles(t *testing.T) {
	t.Parallel()
	files, here := make(map[string]string), os.DirFS(".")
	for _, pattern := range []string{"*.sql", "schema/*.sql"} {
		names, err := fs.Glob(here, pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("there are no %s (%v)", pattern, err)
		}
		for _, name := range names {
			text, err := fs.ReadFile(here, name)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = string(text)
		}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		parts = append(parts, name, files[name])
	}
	want := strings.Join(parts, "\x00")
	if *write {
		if err := os.WriteFile("sql.s2", s2.EncodeBest(nil, []byte(want)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	packed, err := os.ReadFile("sql.s2")
	if err != nil {
		t.Fatal(err)
	}
	got, err := s2.Decode(nil, packed)
	if err != nil {
		t.Fatalf("sql.s2 cannot be read (%v): run make generate", err)
	}
	if string(got) != want {
		t.Errorf("sql.s2 is not what is in the folder: run make generate (-folder +sql.s2):\n%s",
			cmp.Diff(parts, strings.Split(string(got), "\x00")))
	}
}
