//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// fileWithData returns the path of a closed SQLite database of a few hundred pages.
func fileWithData(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	storetest.SQLiteFile(t, dir)
	s, err := store.Open(t.Context(), store.Options{DataDir: dir, Log: storetest.Log(t), Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	b := bundle{s}
	for chat := range 20 {
		c := b.conversation(t, fmt.Sprint(chat))
		session := b.session(t, c.ID)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for i := range 20 {
				text := fmt.Sprintf("chat %d message %d %s", chat, i, strings.Repeat("word ", 60))
				if _, err := tx.Messages().AppendMessages(ctx, session.ID, fmt.Sprint("r", i), messages.NewText(messages.RoleUser, text)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "bot.db")
}

// scribble puts random bytes over n whole pages of a file, never the first.
func scribble(t *testing.T, path string, seed uint64, n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // repeatable
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // a test
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	page := make([]byte, 4096)
	for range n {
		for i := range page {
			page[i] = byte(r.Uint32())
		}
		if _, err := f.WriteAt(page, (1+r.Int64N(info.Size()/4096-1))*4096); err != nil {
			t.Fatal(err)
		}
	}
}

func overwrite(t *testing.T, path string, at int64, data []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(data, at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// Whoever opens a pipe waits for a writer.
func TestAPipeIsNoDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "bot.db"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), store.Options{DataDir: dir, Log: storetest.Log(t), Exclusive: true})
	if err == nil {
		_ = s.Close()
	}
	if !strings.HasPrefix(fault.Public(err), "Cannot use the database file") {
		t.Errorf("it says %q, %v", fault.Public(err), err)
	}
}

func TestAFileOfAnotherUserIsNamedAtStart(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may open every file")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "bot.db")
	if err := os.WriteFile(path, nil, 0o000); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), store.Options{DataDir: dir, Log: storetest.Log(t)})
	if err == nil {
		_ = s.Close()
	}
	if text := fault.Public(err); !strings.HasPrefix(text, "Cannot use the database file "+path+": permission denied; ") {
		t.Errorf("an operator reads %q", text)
	}
}

func TestDamagedFileIsNamedAtStart(t *testing.T) {
	t.Parallel()
	whole := fileWithData(t)
	content, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]func(t *testing.T, path string){
		"header":             func(t *testing.T, path string) { overwrite(t, path, 0, []byte(strings.Repeat("\xa7", 100))) },
		"first bytes":        func(t *testing.T, path string) { overwrite(t, path, 0, []byte("NOT A DATABASE!!")) },
		"page size":          func(t *testing.T, path string) { overwrite(t, path, 16, []byte{0x13, 0x37}) },
		"first page":         func(t *testing.T, path string) { overwrite(t, path, 100, []byte(strings.Repeat("\x5c", 3996))) },
		"truncated":          func(t *testing.T, path string) { truncate(t, path, int64(len(content))/2) },
		"truncated in a row": func(t *testing.T, path string) { truncate(t, path, int64(len(content))*2/3-1234) },
		"ends in its header": func(t *testing.T, path string) { truncate(t, path, 60) },
	}
	for seed := range uint64(8) {
		tests[fmt.Sprintf("four pages, seed %d", seed)] = func(t *testing.T, path string) { scribble(t, path, seed, 4) }
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "bot.db")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			damage(t, path)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s, err := store.Open(t.Context(), store.Options{DataDir: filepath.Dir(path), Log: storetest.Log(t), Exclusive: true})
			if err == nil {
				_ = s.Close()
			}
			if public := fault.Public(err); !fault.Is(err, fault.Damaged) || public != path+" is damaged" {
				t.Errorf("it says %q, %v", public, err)
			}
			after, err := os.ReadFile(path)
			if err != nil || string(before) != string(after) {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
	t.Run("whole", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "bot.db")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(t.Context(), store.Options{DataDir: filepath.Dir(path), Log: storetest.Log(t), Exclusive: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

// A start that is stopped does not say of a small database that it is too large to be examined.
func TestAStoppedStartSaysNothingOfTheSize(t *testing.T) {
	t.Parallel()
	path := fileWithData(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var log strings.Builder
	if s, err := store.Open(ctx, store.Options{DataDir: filepath.Dir(path), Log: slog.New(slog.NewTextHandler(&log, nil)), Exclusive: true}); err == nil {
		_ = s.Close()
	}
	if log.Len() > 0 {
		t.Errorf("it says: %s", &log)
	}
}

func TestCheckWritesSaysWhatWasNotStoredAndRecovers(t *testing.T) {
	t.Parallel()
	b := bundleOf(t)
	c := b.conversation(t, "chat")
	if err := b.CheckWrites(t.Context()); err != nil {
		t.Fatalf("a sound database: %v", err)
	}
	if err := store.LimitPages(t.Context(), b.Store, 0); err != nil {
		t.Fatal(err)
	}
	fill := func() error {
		return b.try(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Deliveries().AddDelivery(ctx, &messages.Delivery{ConversationID: c.ID, Text: strings.Repeat("y", 60_000)})
		})
	}
	failed := fill()
	wantKind(t, failed, fault.Disk)
	if text := b.Explain(failed).Error(); text != "The database cannot be used: the disk is full, or the file may not grow; make room." {
		t.Errorf("an operator reads %q", text)
	}
	if own := (&fault.Error{Kind: fault.Disk, Public: "The folder is full.", Err: failed}); !errors.Is(b.Explain(own), own) {
		t.Errorf("what says why is explained: %v", b.Explain(own))
	}
	// A write that needs no room succeeds on such a disk, and then it is healthy.
	if err := b.CheckWrites(t.Context()); err != nil || !b.DoubtsWrites() {
		t.Errorf("a small write: %v, in doubt %v", err, b.DoubtsWrites())
	}
	wantKind(t, fill(), fault.Disk)
	if err := store.Failed(b.Store); err == nil || !strings.Contains(fault.Public(err), "The last write failed: the disk is full") {
		t.Errorf("after a failed write: %v", err)
	}
	if err := store.LimitPages(t.Context(), b.Store, 1_000_000); err != nil {
		t.Fatal(err)
	}
	if err := b.CheckWrites(t.Context()); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if err := fill(); err != nil {
		t.Error(err)
	}
}

// daemonsFile is a database that is open as the daemon has it.
func daemonsFile(t *testing.T) (path string, s *store.Store) {
	t.Helper()
	path = fileWithData(t)
	s = storetest.Open(t, store.Options{DataDir: filepath.Dir(path), Exclusive: true})
	return path, s
}

// A file that somebody took away is still written and read, and is lost with the process.
func TestCheckWritesNoticesThatTheFileIsGone(t *testing.T) {
	t.Parallel()
	path, s := daemonsFile(t)
	look := func(when string, gone bool) {
		t.Helper()
		err := s.CheckWrites(t.Context())
		if gone != strings.Contains(fault.Public(err), path+" was removed or replaced") || gone != errors.Is(err, store.ErrGone) || gone != (err != nil) || gone != s.DoubtsWrites() {
			t.Errorf("%s: %v, in doubt %v", when, err, s.DoubtsWrites())
		}
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	look("as it was", false)
	move(path, path+".away")
	look("removed", true)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	look("another in its place", true)
	move(path+".away", path)
	look("back again", false)
}

// A database that another program holds is no fault of the disk.
func TestCheckWritesNamesAnotherProgramThatHoldsTheDatabase(t *testing.T) {
	t.Parallel()
	path, s := daemonsFile(t)
	write := func(statement string) error {
		return s.InTx(t.Context(), func(tx *store.Tx) error { return store.Exec(t.Context(), tx, statement) })
	}
	if err := write(`PRAGMA busy_timeout(0)`); err != nil { // nobody will let go
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close() //nolint:errcheck // a test
	held, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantKind(t, write(`UPDATE service_state SET id = id`), fault.Unavailable)
	if public := fault.Public(s.CheckWrites(t.Context())); public != "The last write failed: another program holds the database; end it." {
		t.Errorf("it says %q", public)
	}
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := s.CheckWrites(t.Context()); err != nil {
		t.Errorf("when the other let go: %v", err)
	}
}

// A connection that is refused later is explained as at the start.
func TestExplainNamesWhyThereIsNoConnection(t *testing.T) {
	t.Parallel()
	s := storetest.Postgres(t)(t)
	_, err := pgconn.Connect(t.Context(), "postgres://x@127.0.0.1:1/x?sslmode=disable")
	text := s.Explain(fmt.Errorf("say that this process lives: %w", fault.Wrap(err, fault.Unavailable, "connect"))).Error()
	if !strings.HasPrefix(text, "DATABASE_URL: PostgreSQL at ") || !strings.Contains(text, "does not accept the connection: nothing listens on port") {
		t.Errorf("an operator reads %q", text)
	}
	if err := fault.Wrap(errors.New("away"), fault.Unavailable, "ask"); s.Explain(err) != err { //nolint:errorlint // the same
		t.Errorf("what is not the database's is explained: %v", s.Explain(err))
	}
}

// A server that only reads, such as a standby, does answer.
func TestCheckWritesNamesAServerThatOnlyReads(t *testing.T) {
	t.Parallel()
	b := bundle{storetest.Postgres(t)(t)}
	wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
		if err := store.Exec(ctx, tx, `SET TRANSACTION READ ONLY`); err != nil {
			return err
		}
		return store.Exec(ctx, tx, `UPDATE service_state SET id = id`)
	}), fault.Unavailable)
	if public := fault.Public(store.Failed(b.Store)); public != "The last write failed: the database server only reads; use the one that writes." {
		t.Errorf("it says %q", public)
	}
}

// A full disk of PostgreSQL still takes a small write where it refuses a message.
func TestCheckWritesKnowsThatTheDiskOfPostgreSQLIsFull(t *testing.T) {
	t.Parallel()
	b := bundle{storetest.Postgres(t)(t)}
	if err := b.CheckWrites(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
		return store.Exec(ctx, tx, `DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$`)
	}), fault.Disk)
	if err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
		return store.Exec(ctx, tx, `UPDATE service_state SET id = id`)
	}); err != nil {
		t.Fatal(err)
	}
	if public := fault.Public(b.CheckWrites(t.Context())); public != "The last write failed: the disk is full, or the file may not grow; make room." {
		t.Errorf("it says %q", public)
	}
	synctest.Test(t, func(t *testing.T) {
		w := store.NewWrites()
		w.Begin()
		w.End(&fault.Error{Kind: fault.Disk})
		w.Begin()
		w.End(nil)
		time.Sleep(19 * time.Second)
		if w.Full() == nil {
			t.Error("after 19 s it is forgotten")
		}
		time.Sleep(time.Second)
		if err := w.Full(); err != nil {
			t.Errorf("after 20 s: %v", err)
		}
	})
}

func TestCheckWritesNoticesThatNothingIsStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := store.NewWrites()
		w.Begin()
		time.Sleep(9 * time.Second)
		if err := w.Stalled(); err != nil {
			t.Errorf("after 9 s: %v", err)
		}
		w.Begin()
		w.End(context.DeadlineExceeded) // who waits no longer proves nothing
		time.Sleep(2 * time.Second)
		if err := w.Stalled(); err == nil || !strings.Contains(fault.Public(err), "Nothing has been stored for 11 s") {
			t.Errorf("after 11 s: %v", err)
		}
		w.End(fault.New(fault.Conflict, "somebody was faster")) // the database works
		if err := w.Stalled(); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		w.Begin()
		time.Sleep(time.Minute)
		w.End(nil)
		if err := w.Stalled(); err != nil {
			t.Errorf("after a slow write: %v", err)
		}
	})
}

func TestCheckIntegrityNoticesDamageAndItsEnd(t *testing.T) {
	t.Parallel()
	path := fileWithData(t)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := storetest.Open(t, store.Options{DataDir: filepath.Dir(path), Exclusive: true})
	if err := s.CheckIntegrity(t.Context()); err != nil {
		t.Fatalf("a sound database: %v", err)
	}
	scribble(t, path, 3, 4)
	store.LookAgain(s)
	wantKind(t, s.CheckIntegrity(t.Context()), fault.Damaged)
	overwrite(t, path, 0, content)
	store.LookAgain(s)
	if err := s.CheckIntegrity(t.Context()); err != nil {
		t.Errorf("after it was mended: %v", err)
	}
}

func TestCheckSchemaKnowsItsOwn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		if err := b.CheckSchema(t.Context()); err != nil {
			t.Errorf("our own: %v", err)
		}
		if err := b.CheckWrites(t.Context()); err != nil {
			t.Errorf("writes: %v", err)
		}
		if err := b.CheckIntegrity(t.Context()); err != nil {
			t.Errorf("integrity: %v", err)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `UPDATE goose_db_version SET version_id = 99999 WHERE version_id = 1`)
		})
		if err := b.CheckSchema(t.Context()); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "a newer version has used it") {
			t.Errorf("a newer one: %v", err)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `ALTER TABLE goose_db_version RENAME COLUMN version_id TO number`)
		})
		if err := b.CheckSchema(t.Context()); err == nil || fault.Is(err, fault.Invalid) {
			t.Errorf("a table of another form: %v", err)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `DROP TABLE goose_db_version`)
		})
		if err := b.CheckSchema(t.Context()); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "no schema of this bot") || errors.Is(err, store.ErrNoTables) {
			t.Errorf("one without its version: %v", err)
		}
	})
}

func TestADatabaseWithoutTables(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{
		"SQLite": func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "bot.db") }, "Postgres": storetest.PostgresURL, //nolint:thelper // makes no check
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := store.Open(t.Context(), store.Options{URL: database(t), Log: storetest.Log(t), Exclusive: true})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			hasNoTables(t, s)
		})
	}
}

func hasNoTables(t *testing.T, s *store.Store) {
	t.Helper()
	err := s.CheckSchema(t.Context())
	if !fault.Is(err, fault.Invalid) || !errors.Is(err, store.ErrNoTables) || !strings.Contains(fault.Public(err), "bot migrate up") {
		t.Errorf("the schema: %v", err)
	}
	if empty, err := s.IsEmpty(t.Context()); err != nil || !empty {
		t.Errorf("empty: %v, %v", empty, err)
	}
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if empty, err := s.IsEmpty(t.Context()); err != nil || empty {
		t.Errorf("with tables: empty: %v, %v", empty, err)
	}
}
