//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// bundleOf returns a store on SQLite, for what only SQLite has.
func bundleOf(tb testing.TB) bundle {
	tb.Helper()
	return bundle{storetest.SQLite(tb)(tb)}
}

func TestOpenRefusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("this is not a database, it only is a file with some text in it"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		options store.Options
		kind    fault.Kind
		says    string
	}{
		"unknown scheme": {store.Options{URL: "mysql://u:secret@h/db"}, fault.Invalid, "DATABASE_URL"},
		"bad port":       {store.Options{URL: "postgres://u:secret@h:port/db"}, fault.Invalid, "DATABASE_URL"},
		"no host there":  {store.Options{URL: "postgres://u:secret@127.0.0.1:1/db"}, fault.Unavailable, "DATABASE_URL"},
		"no file":        {store.Options{URL: "sqlite:"}, fault.Invalid, "DATABASE_URL"},
		"memory":         {store.Options{URL: "sqlite::memory:"}, fault.Invalid, "DATABASE_URL"},
		"nowhere":        {store.Options{}, fault.Invalid, "DATA_DIR"},
		"not a database": {store.Options{URL: "sqlite:" + file, Exclusive: true}, fault.Damaged, file},
		"directory is a file": {
			store.Options{DataDir: filepath.Join(file, "data"), Exclusive: true}, fault.Unavailable, ": not a directory; check DATA_DIR",
		},
		"not there": {store.Options{DataDir: dir}, fault.NotFound, dir},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.options.Log = slog.New(slog.DiscardHandler)
			s, err := store.Open(t.Context(), c.options)
			if err == nil {
				_ = s.Close()
				t.Fatal("it was opened")
			}
			wantKind(t, err, c.kind)
			if !strings.Contains(fault.Public(err), c.says) {
				t.Errorf("the text %q does not name %s", fault.Public(err), c.says)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error %q has the password", err)
			}
		})
	}
}

// What a process that was killed stored last is in the log only. SQLite deletes the log of a
// database that is missing or empty, and with the file back in its place that would be lost.
func TestALogWithoutItsDatabaseIsKept(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(path string) error{
		"moved away": os.Remove,
		"empty":      func(path string) error { return os.Truncate(path, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "bot.db")
			log := path + "-wal"
			if err := errors.Join(os.WriteFile(path, []byte("x"), 0o600), os.WriteFile(log, []byte("stored last"), 0o600), leave(path)); err != nil {
				t.Fatal(err)
			}
			for _, exclusive := range []bool{true, false} {
				s, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + path, Log: slog.New(slog.DiscardHandler), Exclusive: exclusive})
				if err == nil {
					_, err = s.Migrate(t.Context())
					_ = s.Close()
				}
				if !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Public(err), log) {
					t.Errorf("exclusive %v: %v", exclusive, err)
				}
				if kept, err := os.ReadFile(log); string(kept) != "stored last" {
					t.Fatalf("the log is %q, %v", kept, err)
				}
			}
		})
	}
}

func TestSQLiteFilesArePrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "data with ?#% in it")
	s := storetest.Open(t, store.Options{DataDir: dir, Exclusive: true})
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{
		dir: 0o700, filepath.Join(dir, "bot.db"): 0o600, filepath.Join(dir, "bot.db-wal"): 0o600,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Error(err)
		} else if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	options := store.Options{DataDir: dir, Log: storetest.Log(t), Exclusive: true}
	first, err := store.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Open(t.Context(), options)
	wantKind(t, err, fault.Conflict)
	for _, part := range []string{dir, "DATA_DIR", strconv.Itoa(os.Getpid())} {
		if !strings.Contains(fault.Public(err), part) {
			t.Errorf("the text %q does not have %q", fault.Public(err), part)
		}
	}
	if _, err := first.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	look := options
	look.Exclusive = false
	visitor, err := store.Open(t.Context(), look)
	if err != nil {
		t.Fatalf("a command that only looks was refused: %v", err)
	}
	if err := errors.Join(visitor.Ping(t.Context()), visitor.Close(), first.Close(), first.Close()); err != nil {
		t.Fatal(err)
	}
	again, err := store.Open(t.Context(), options)
	if err != nil {
		t.Fatalf("after the first had gone: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestMigrateTwiceAndAtTheSameTime(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		s, err := store.Open(t.Context(), store.Options{DataDir: t.TempDir(), Log: storetest.Log(t), Exclusive: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		migrateOnce(t, []*store.Store{s, s})
	})
	t.Run("Postgres", func(t *testing.T) {
		t.Parallel()
		url := storetest.PostgresURL(t)
		var stores []*store.Store
		for range 3 {
			s, err := store.Open(t.Context(), store.Options{URL: url, Log: storetest.Log(t)})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			stores = append(stores, s)
		}
		migrateOnce(t, stores)
	})
}

// The schema of a new SQLite database is made without a flush for each step, and all
// of it is on the disk before Migrate returns. One with data is never treated so.
func TestANewSchemaIsMadeAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, hurried := range []bool{true, false} {
		off := false
		s, err := store.Open(t.Context(), store.Options{DataDir: dir, Log: storetest.Log(t), Exclusive: true, Trace: func(statement string) {
			off = off || statement == "PRAGMA synchronous = OFF"
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if log, err := os.Stat(filepath.Join(dir, "bot.db-wal")); off != hurried || hurried && (err != nil || log.Size() > 0) {
			t.Errorf("without flushes: %v, want %v; the log: %v %v", off, hurried, log, err)
		}
		if level, err := store.Synchronous(t.Context(), s); level != 2 || err != nil {
			t.Errorf("synchronous is %d afterwards, want 2 (FULL): %v", level, err)
		}
		s.Close()
	}
}

func migrateOnce(t *testing.T, stores []*store.Store) {
	t.Helper()
	status, err := stores[0].MigrationStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range status {
		if m.Applied {
			t.Errorf("%s is applied on an empty database", m.Name)
		}
	}
	applied := make([]int, len(stores))
	errs := together(len(stores), func(i int) error {
		names, err := stores[i].Migrate(t.Context())
		applied[i] = len(names)
		return err
	})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	total := 0
	for _, n := range applied {
		total += n
	}
	if total != len(status) {
		t.Errorf("%v steps applied by each, want %d in all", applied, len(status))
	}
	if again, err := stores[0].Migrate(t.Context()); err != nil || len(again) != 0 {
		t.Errorf("once more: %v, %v", again, err)
	}
	if status, err = stores[0].MigrationStatus(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range status {
		if !m.Applied {
			t.Errorf("%s is not applied", m.Name)
		}
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`)
		})
		_, err := b.Migrate(t.Context())
		wantKind(t, err, fault.Invalid)
		for _, part := range []string{"99999", "newer version", "DATABASE_URL"} {
			if !strings.Contains(fault.Public(err), part) {
				t.Errorf("the text %q does not have %q", fault.Public(err), part)
			}
		}
		_, err = b.MigrationStatus(t.Context())
		wantKind(t, err, fault.Invalid)
	})
}

func TestReadsAreSnapshotsThatCannotWrite(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.conversation(t, "before")
		err := b.InRead(t.Context(), func(tx *store.Tx) error {
			if _, err := tx.Conversations().FindConversation(t.Context(), key("before")); err != nil {
				return err
			}
			b.conversation(t, "during") // a writer is not held up by the reader
			if _, err := tx.Conversations().FindConversation(t.Context(), key("during")); !fault.Is(err, fault.NotFound) {
				t.Errorf("the snapshot sees what came later: %v", err)
			}
			if _, _, err := tx.Conversations().GetOrCreateConversation(t.Context(), key("written"), "demo"); err == nil {
				t.Error("a read-only transaction wrote")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
