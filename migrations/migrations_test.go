package migrations_test

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/migrations"
)

func names(t *testing.T, dialect migrations.Dialect) (fs.FS, []string) {
	t.Helper()
	files := migrations.Files(dialect)
	list, err := fs.Glob(files, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	return files, list
}

func TestBothDialectsHaveTheSameContiguousVersions(t *testing.T) {
	t.Parallel()
	_, sqlite := names(t, migrations.SQLite)
	_, postgres := names(t, migrations.Postgres)
	if diff := cmp.Diff(sqlite, postgres); diff != "" {
		t.Errorf("files (-sqlite +postgres):\n%s", diff)
	}
	if len(sqlite) == 0 {
		t.Fatal("there are no migrations")
	}
	for i, name := range sqlite {
		if want := fmt.Sprintf("%05d_", i+1); !strings.HasPrefix(name, want) {
			t.Errorf("file %d is %s, want %s...", i+1, name, want)
		}
	}
	if latest := migrations.Latest(); latest != int64(len(sqlite)) {
		t.Errorf("the latest is %d, and there are %d", latest, len(sqlite))
	}
}

func TestFilesAreForwardOnlyAndInOneTransaction(t *testing.T) {
	t.Parallel()
	for _, dialect := range []migrations.Dialect{migrations.SQLite, migrations.Postgres} {
		files, list := names(t, dialect)
		for _, name := range list {
			text, err := fs.ReadFile(files, name)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(text), "\n")
			if want := "-- " + name[:5] + ", works with binaries from "; !strings.HasPrefix(first, want) {
				t.Errorf("%s for %s begins %q, want %q", name, dialect, first, want)
			}
			for _, word := range []string{"+goose Down", "NO TRANSACTION"} {
				if strings.Contains(string(text), word) {
					t.Errorf("%s for %s has %q", name, dialect, word)
				}
			}
		}
	}
}

func TestSQLiteTextHasNoWordsOfPostgres(t *testing.T) {
	t.Parallel()
	foreign := regexp.MustCompile(`\b(UUID|JSONB|TIMESTAMPTZ|BYTEA|VARCHAR|IDENTITY|gen_random_uuid|extract)\b|::`)
	files, list := names(t, migrations.SQLite)
	for _, name := range list {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "--") && foreign.MatchString(line) {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

// TestOtherProgramsCanReadTheSchema: the parser of sqlite3, as distributions have it, gives up
// at a hundred symbols that are open at once, of which each call takes three.
func TestOtherProgramsCanReadTheSchema(t *testing.T) {
	t.Parallel()
	text, _ := migrations.Schema(migrations.SQLite)
	for statement := range strings.SplitSeq(text, migrations.SchemaSeparator) {
		open := 0
		for _, letter := range statement {
			switch letter {
			case '(':
				if open++; open == 16 {
					t.Errorf("this is too deep for others:\n%s", statement)
				}
			case ')':
				open--
			}
		}
	}
}
