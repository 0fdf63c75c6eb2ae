//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package backup_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/apikey"
	"remote-agent/internal/backup"
	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/tool/projectdb"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func environ() []string { return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"} }

// world is a data directory with a store in it.
type world struct {
	store   *store.Store
	url     string // of PostgreSQL
	dir     string
	session string
}

func (w world) source() backup.Source {
	return backup.Source{Store: w.store, Tools: backup.Postgres{URL: w.url, Environ: environ()}, Projects: filepath.Join(w.dir, "projects"), Bot: "test"}
}

// each runs a test with a store that has an answered message, one that waits, an
// answer on its way, and a project database.
func each(t *testing.T, test func(t *testing.T, w world)) {
	t.Helper()
	run := func(t *testing.T, url string) {
		w := world{url: url, dir: t.TempDir()}
		s := storetest.Open(t, store.Options{URL: url, DataDir: w.dir, Exclusive: true})
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.store = s
		if err := s.InTx(t.Context(), func(tx *store.Tx) error { return fill(t.Context(), tx, &w.session) }); err != nil {
			t.Fatal(err)
		}
		db, err := projectdb.Open(filepath.Join(w.dir, "projects", "p.db"))
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		test(t, w)
	}
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); run(t, "") })
	t.Run("Postgres", func(t *testing.T) { t.Parallel(); run(t, storetest.PostgresURL(t)) })
}

func fill(ctx context.Context, tx *store.Tx, session *string) error {
	key := messages.ConversationKey{Platform: "test", ID: "1"}
	c, _, err := tx.Conversations().GetOrCreateConversation(ctx, key, "demo")
	if err != nil {
		return err
	}
	s, err := tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: c.ID, Assistant: "demo"})
	if err != nil {
		return err
	}
	*session = s.ID
	for _, k := range []apikey.Key{{ID: "valid", Name: "valid", Hash: strings.Repeat("1", 64)}, {ID: "ended", Name: "ended", Hash: strings.Repeat("2", 64)}} {
		k.CreatedAt = now
		if err := tx.SignIn().InsertAPIKey(ctx, k); err != nil {
			return err
		}
	}
	if _, _, err := tx.SignIn().RevokeAPIKey(ctx, "ended"); err != nil {
		return err
	}
	for i, state := range []sessions.EntryState{sessions.EntryDone, sessions.EntryWaiting} {
		e := sessions.Entry{ConversationID: c.ID, State: state, In: messages.Inbound{Event: messages.EventID(fmt.Sprint(i)), Conversation: key, Text: "hello"}}
		if _, err := tx.Inbox().InsertEntry(ctx, &e); err != nil {
			return err
		}
		d := messages.Delivery{ConversationID: c.ID, EventID: e.ID, Text: "old answer", Final: true}
		if err := tx.Deliveries().AddDelivery(ctx, &d); err != nil {
			return err
		}
	}
	return nil
}

// elsewhere is an empty place to restore to.
func (w world) elsewhere(t *testing.T) (backup.Target, store.Options) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	to := backup.Target{DataDir: dir, Projects: filepath.Join(dir, "projects"), Log: storetest.Log(t), Tools: backup.Postgres{Environ: environ()}}
	if w.url == "" {
		to.Path = filepath.Join(dir, "bot.db")
		return to, store.Options{DataDir: dir, Log: to.Log, Exclusive: true}
	}
	to.Tools.URL = storetest.PostgresURL(t)
	return to, store.Options{URL: to.Tools.URL, DataDir: dir, Log: to.Log}
}

func TestBackupVerifyRestore(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w world) {
		folder := filepath.Join(t.TempDir(), "backups")
		dir, m, err := backup.Create(t.Context(), w.source(), folder, now)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Files) != 2 || m.Schema != store.LatestSchema() || m.Size() == 0 {
			t.Errorf("manifest = %+v", m)
		}
		if _, err := backup.Verify(t.Context(), dir, w.source().Tools); err != nil {
			t.Errorf("verify: %v", err)
		}
		if _, _, err := backup.Create(t.Context(), w.source(), folder, now); !fault.Is(err, fault.Conflict) {
			t.Errorf("a second backup of the same moment: %v", err)
		}
		list, err := backup.List(folder)
		if err != nil || len(list) != 1 || list[0].Err != nil || list[0].Dir != dir {
			t.Errorf("list = %+v, %v", list, err)
		}

		to, options := w.elsewhere(t)
		r, err := backup.Restore(t.Context(), dir, to)
		if err != nil {
			t.Fatal(err)
		}
		if want := (store.Settled{Entries: 1, Deliveries: 2, Conversations: 1, Keys: 1}); r.Settled != want || r.Projects != 1 {
			t.Errorf("restored = %+v, want %+v", r, want)
		}
		s, err := store.Open(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		err = s.InRead(t.Context(), func(tx *store.Tx) error {
			session, err := tx.Sessions().Session(t.Context(), w.session)
			if err != nil {
				return err
			}
			if n, err := tx.Inbox().CountWaiting(t.Context(), session.ConversationID); n != 0 || err != nil {
				t.Errorf("%d messages wait, %v", n, err)
			}
			open, err := tx.Deliveries().OpenDeliveries(t.Context(), session.ConversationID, true)
			if len(open) != 1 || !strings.Contains(open[0].Text, "2026-11-21 12:00 UTC") {
				t.Errorf("notices = %+v", open)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		// Neither over a running daemon nor over what it left.
		if _, err := backup.Restore(t.Context(), dir, to); !fault.Is(err, fault.Conflict) {
			t.Errorf("restore over a running daemon: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := backup.Restore(t.Context(), dir, to); !fault.Is(err, fault.Conflict) {
			t.Errorf("restore over data: %v", err)
		}
	})
}

// What people attached is in a backup where the database does not have it, and back in
// its place after a restore.
func TestBackupHasWhatPeopleAttached(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w world) {
		const name = "ab/ab01"
		src := w.source()
		src.Attached = filepath.Join(t.TempDir(), "files")
		for path, text := range map[string]string{name: "a picture", "incoming/file-1": "is being read"} {
			if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(src.Attached, path)), 0o700), os.WriteFile(filepath.Join(src.Attached, path), []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		dir, m, err := backup.Create(t.Context(), src, filepath.Join(t.TempDir(), "backups"), now)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Files) != 3 {
			t.Errorf("files = %+v", m.Files)
		}
		to, _ := w.elsewhere(t)
		torn := filepath.Join(to.DataDir, "files", name) // of a restore that was killed
		if err := errors.Join(os.MkdirAll(filepath.Dir(torn), 0o700), os.WriteFile(torn, []byte("a pic"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(t.Context(), dir, to); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(to.DataDir, "files", name)); string(got) != "a picture" || err != nil {
			t.Errorf("restored %q, %v", got, err)
		}
	})
}

// A data folder may have any name, also one that means something in a pattern.
func TestBackupHasWhatPeopleAttachedInAFolderOfAnyName(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w world) {
		src := w.source()
		src.Attached = filepath.Join(t.TempDir(), "bot [old]", "files")
		name := filepath.Join(src.Attached, "ab", "ab01")
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("a picture"), 0o600)); err != nil {
			t.Fatal(err)
		}
		_, m, err := backup.Create(t.Context(), src, t.TempDir(), now)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(m.Files, func(f backup.File) bool { return f.Path == "files/ab/ab01" }) {
			t.Errorf("files = %+v, want what was attached among them", m.Files)
		}
	})
}

// add puts a file into a backup, as if it had been made with it.
func add(t *testing.T, dir, name, text string) {
	t.Helper()
	m, err := backup.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Files = append(m.Files, backup.File{Path: name, Size: int64(len(text)), SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(text)))})
	encoded, err := json.Marshal(m)
	path := filepath.Join(dir, filepath.FromSlash(name))
	err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600), os.WriteFile(filepath.Join(dir, "manifest.json"), encoded, 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

// What a restore brought before it failed is gone again, so that the next one is not
// refused because of it.
func TestARestoreThatFailedCanBeRepeated(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w world) {
		dir, _, err := backup.Create(t.Context(), w.source(), t.TempDir(), now)
		if err != nil {
			t.Fatal(err)
		}
		add(t, dir, "bundles/owner__repo.bundle", "# v2 git bundle\n")
		to, _ := w.elsewhere(t)
		mend := obstructed(t, to)
		if r, err := backup.Restore(t.Context(), dir, to); err == nil {
			t.Fatalf("restored = %+v, want an error", r)
		}
		mend()
		r, err := backup.Restore(t.Context(), dir, to)
		if err != nil {
			t.Fatalf("the second restore: %v", err)
		}
		if len(r.Bundles) != 1 || r.Projects != 1 {
			t.Errorf("restored = %+v, want a bundle and a project", r)
		}
	})
}

// obstructed makes the database of a target one that no backup gets into, until mend is
// called.
func obstructed(t *testing.T, to backup.Target) (mend func()) {
	t.Helper()
	if to.Path != "" {
		in := to.Path + ".restoring"
		if err := os.MkdirAll(filepath.Join(in, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := os.RemoveAll(in); err != nil {
				t.Fatal(err)
			}
		}
	}
	run := func(statement string) {
		conn, err := pgx.Connect(t.Context(), to.Tools.URL)
		if err == nil {
			_, err = conn.Exec(t.Context(), statement)
			err = errors.Join(err, conn.Close(t.Context()))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run(`CREATE TABLE agents (id int)`)
	return func() { run(`DROP TABLE agents`) }
}

// What belongs to pgvector is not restored but made again, so that a server without
// it takes the backup as well.
func TestRestoreMakesVectorsAgain(t *testing.T) {
	t.Parallel()
	w := world{dir: t.TempDir(), url: storetest.PostgresURL(t)}
	open := func(url string) *store.Store { return storetest.Open(t, store.Options{URL: url, DataDir: w.dir}) }
	w.store = open(w.url)
	if _, err := w.store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	storetest.WithVectors(t, w.store)
	vector := make(memory.Vector, memory.Dimensions)
	vector[7] = 1
	fact := memory.Fact{Scope: memory.Scope{Person: "test/ann"}, RunID: "01900000-0000-7000-8000-000000000001", Text: "drinks tea",
		Embedding: memory.Embedding{Vector: vector, Model: "m"}}
	err := w.store.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Memories().UpsertFact(t.Context(), fact)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	dir, _, err := backup.Create(t.Context(), w.source(), filepath.Join(t.TempDir(), "backups"), now)
	if err != nil {
		t.Fatal(err)
	}
	to, _ := w.elsewhere(t)
	if _, err := backup.Restore(t.Context(), dir, to); err != nil {
		t.Fatal(err)
	}
	s := open(to.Tools.URL)
	missing, err := s.MissingVectors(t.Context())
	if state, stateErr := s.Vectors(t.Context()); err != nil || stateErr != nil || !state.Ready || missing != 1 {
		t.Errorf("restored: %+v, %d missing, %v, %v", state, missing, err, stateErr)
	}
	if err := s.KeepVectors(t.Context()); err != nil {
		t.Fatal(err)
	}
	if missing, err := s.MissingVectors(t.Context()); err != nil || missing != 0 {
		t.Errorf("%d missing, %v", missing, err)
	}
}

func TestRestoreIsRefusedWhileTheDaemonHasTheDirectory(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w world) {
		dir, _, err := backup.Create(t.Context(), w.source(), t.TempDir(), now)
		if err != nil {
			t.Fatal(err)
		}
		to, _ := w.elsewhere(t)
		want := "has the bot's tables"
		if to.Path != "" {
			to.Path, want = filepath.Join(w.dir, "bot.db"), fmt.Sprintf("Another bot (PID %d) is using the data directory %s", os.Getpid(), w.dir)
		} else {
			to.Tools.URL = w.url
		}
		_, err = backup.Restore(t.Context(), dir, to)
		if !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Public(err), want) {
			t.Errorf("error = %v, want %q", err, want)
		}
		if _, err := os.Stat(to.Projects); err == nil {
			t.Error("a refused restore has left something behind")
		}
	})
}

func TestDamagedAndNewerBackupsAreRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w world) {
		good, m, err := backup.Create(t.Context(), w.source(), t.TempDir(), now)
		if err != nil {
			t.Fatal(err)
		}
		database := m.Files[0].Path
		if database == "projects/p.db" {
			database = m.Files[1].Path
		}
		rewrite := func(change func(m *backup.Manifest)) func(dir string) error {
			return func(dir string) error {
				changed := m
				changed.Files = append([]backup.File(nil), m.Files...)
				change(&changed)
				encoded, err := json.Marshal(changed)
				if err != nil {
					return err
				}
				return os.WriteFile(filepath.Join(dir, "manifest.json"), encoded, 0o600)
			}
		}
		for name, c := range map[string]struct {
			damage func(dir string) error
			want   string
		}{
			"torn":             {func(dir string) error { return os.Truncate(filepath.Join(dir, database), 5000) }, "5000 bytes"},
			"changed":          {func(dir string) error { return flip(filepath.Join(dir, database)) }, "checksum differs"},
			"a pipe":           {func(dir string) error { return pipe(filepath.Join(dir, database)) }, "is missing"},
			"a pipe, manifest": {func(dir string) error { return pipe(filepath.Join(dir, "manifest.json")) }, "is not a backup"},
			"missing":          {func(dir string) error { return os.Remove(filepath.Join(dir, "projects", "p.db")) }, "is missing"},
			"no manifest":      {func(dir string) error { return os.Remove(filepath.Join(dir, "manifest.json")) }, "is not a backup"},
			"torn manifest":    {func(dir string) error { return os.Truncate(filepath.Join(dir, "manifest.json"), 20) }, "damaged"},
			"newer format":     {rewrite(func(m *backup.Manifest) { m.Version++ }), "newer version"},
			"newer schema":     {rewrite(func(m *backup.Manifest) { m.Schema++ }), "schema version"},
			"outside":          {rewrite(func(m *backup.Manifest) { m.Files = append(m.Files, backup.File{Path: "../x"}) }), "outside"},
			"without database": {rewrite(func(m *backup.Manifest) { m.Files = nil }), "has no"},
			"other database":   {rewrite(func(m *backup.Manifest) { m.Database = "oracle" }), "unknown kind of database"},
		} {
			dir := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
				t.Fatal(err)
			}
			if err := c.damage(dir); err != nil {
				t.Fatal(err)
			}
			to, _ := w.elsewhere(t)
			_, err := backup.Restore(t.Context(), dir, to)
			if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), c.want) {
				t.Errorf("%s: error = %v, want invalid with %q", name, err, c.want)
			}
			if _, err := os.Stat(to.DataDir); err == nil {
				t.Errorf("%s: something was restored", name)
			}
		}
	})
}

// A program that opens the file without foreign keys, as sqlite3 does, can leave rows that
// refer to none. The bot works, and a restore would refuse the backup: whoever makes it is
// told, while there is a database to repair.
func TestABackupThatNobodyCouldRestoreSaysSo(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w world) {
		if w.url != "" {
			t.Skip("PostgreSQL has no foreign keys that are off")
		}
		db, err := sql.Open("sqlite", filepath.Join(w.dir, "bot.db"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), `DELETE FROM remote_agent_conversations`); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		dir, _, err := backup.Create(t.Context(), w.source(), t.TempDir(), now)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "a restore would refuse it") || !strings.Contains(fault.Public(err), "bot salvage") {
			t.Errorf("error = %v, want one that names what to do", err)
		}
		to, _ := w.elsewhere(t)
		if _, err := backup.Restore(t.Context(), dir, to); !fault.Is(err, fault.Invalid) {
			t.Errorf("restore = %v, want it refused", err)
		}
	})
}

// What the tables of a project say of each other is the project's own: a row that refers to
// none does not keep everything else from being restored.
func TestRowsOfAProjectWithoutParentsAreRestored(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w world) {
		db, err := sql.Open("sqlite", filepath.Join(w.dir, "projects", "p.db"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.ExecContext(t.Context(), `CREATE TABLE shop_orders (customer REFERENCES shop_customers); INSERT INTO shop_orders VALUES (7)`)
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		dir, _, err := backup.Create(t.Context(), w.source(), t.TempDir(), now)
		if err != nil {
			t.Fatal(err)
		}
		to, _ := w.elsewhere(t)
		if r, err := backup.Restore(t.Context(), dir, to); err != nil || r.Projects != 1 {
			t.Errorf("restored %d projects, %v", r.Projects, err)
		}
	})
}

// A damaged database of one project keeps nothing else out of a backup, which names it.
func TestADamagedProjectIsLeftOut(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w world) {
		if err := os.WriteFile(filepath.Join(w.dir, "projects", "a.db"), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
		dir, m, err := backup.Create(t.Context(), w.source(), t.TempDir(), now)
		if err != nil || len(m.Problems) != 1 || !strings.HasPrefix(m.Problems[0], "projects/a.db: ") {
			t.Fatalf("problems %q, %v", m.Problems, err)
		}
		to, _ := w.elsewhere(t)
		if r, err := backup.Restore(t.Context(), dir, to); err != nil || r.Projects != 1 {
			t.Errorf("restored %d projects, %v", r.Projects, err)
		}
	})
}

// The checksums of a backup may be right and what it holds wrong, because it was wrong
// when it was copied, or is another file than its name says.
func TestFilesThatAreNotWhatTheirNamesSay(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w world) {
		for name, want := range map[string]string{"projects/q.db": "not a database", "bundles/owner__repo.bundle": "not a git bundle"} {
			dir, _, err := backup.Create(t.Context(), w.source(), t.TempDir(), now)
			if err != nil {
				t.Fatal(err)
			}
			add(t, dir, name, "anything")
			if _, err := backup.Verify(t.Context(), dir, w.source().Tools); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), want) {
				t.Errorf("%s: %v, want invalid with %q", name, err, want)
			}
		}
		if w.url != "" {
			return // a dump says nothing of the schema
		}
		dir, m, err := backup.Create(t.Context(), w.source(), t.TempDir(), now)
		if err != nil {
			t.Fatal(err)
		}
		m.Schema--
		encoded, err := json.Marshal(m)
		if err := errors.Join(err, os.WriteFile(filepath.Join(dir, "manifest.json"), encoded, 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Verify(t.Context(), dir, w.source().Tools); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "but the manifest says") {
			t.Errorf("another schema than the manifest says: %v", err)
		}
	})
}

// A restore goes where nothing is: databases of projects and bundles that are there stay,
// and a backup of one kind of database is none of the other.
func TestARestoreReplacesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w world) {
		dir, _, err := backup.Create(t.Context(), w.source(), t.TempDir(), now)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"projects/other.db": "already contains project databases", "bundles/mine.bundle": "already exists"} {
			to, _ := w.elsewhere(t)
			there := filepath.Join(to.DataDir, filepath.FromSlash(name))
			if err := errors.Join(os.MkdirAll(filepath.Dir(there), 0o700), os.WriteFile(there, []byte("mine"), 0o600)); err != nil {
				t.Fatal(err)
			}
			if _, err := backup.Restore(t.Context(), dir, to); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Public(err), want) {
				t.Errorf("%s is there: %v, want a conflict with %q", name, err, want)
			}
			if text, err := os.ReadFile(there); string(text) != "mine" {
				t.Errorf("%s is %q now, %v", name, text, err)
			}
		}
		to, _ := w.elsewhere(t)
		if to.Path == "" {
			to.Path = filepath.Join(to.DataDir, "bot.db")
		} else {
			to.Path = ""
		}
		if _, err := backup.Restore(t.Context(), dir, to); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "The backup is for") {
			t.Errorf("to the other kind of database: %v", err)
		}
	})
}

// SQLite replays a write-ahead log that lies beside a database, whoever wrote it: one
// that an earlier database left would damage the restored one.
func TestARestoreIsRefusedBesideTheLogOfAnEarlierDatabase(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w world) {
		dir, _, err := backup.Create(t.Context(), w.source(), t.TempDir(), now)
		if err != nil {
			t.Fatal(err)
		}
		names := []string{"projects/p.db-wal", "projects/p.db-journal"}
		if w.url == "" {
			names = append(names, "bot.db-wal", "bot.db-journal")
		}
		for _, name := range names {
			to, _ := w.elsewhere(t)
			there := filepath.Join(to.DataDir, filepath.FromSlash(name))
			if err := errors.Join(os.MkdirAll(filepath.Dir(there), 0o700), os.WriteFile(there, []byte("mine"), 0o600)); err != nil {
				t.Fatal(err)
			}
			if _, err := backup.Restore(t.Context(), dir, to); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Public(err), there) {
				t.Errorf("%s is there: %v, want a conflict that names it", name, err)
			}
			if text, err := os.ReadFile(there); string(text) != "mine" {
				t.Errorf("%s is %q now, %v", name, text, err)
			}
		}
	})
}

func TestTheNewestBackupIsListedFirst(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w world) {
		folder := t.TempDir()
		old, _, err := backup.Create(t.Context(), w.source(), folder, now)
		if err != nil {
			t.Fatal(err)
		}
		fresh, _, err := backup.Create(t.Context(), w.source(), folder, now.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		list, err := backup.List(folder)
		if err != nil || len(list) != 2 || list[0].Dir != fresh || list[1].Dir != old {
			t.Errorf("list = %+v, %v", list, err)
		}
	})
}

// A bot in a schema of its own is backed up and restored, but not to where an address
// looks elsewhere: the bot would find nothing there.
func TestABackupOfASchemaOfItsOwn(t *testing.T) {
	t.Parallel()
	const schema = "mine"
	in := func(address string) string {
		sign := "?"
		if strings.Contains(address, "?") {
			sign = "&"
		}
		return address + sign + "search_path=" + schema
	}
	open := func(address string) *store.Store {
		s, err := store.Open(t.Context(), store.Options{URL: address, DataDir: t.TempDir(), Log: storetest.Log(t)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	address := storetest.PostgresURL(t)
	conn, err := pgx.Connect(t.Context(), address)
	if err == nil {
		_, err = conn.Exec(t.Context(), `CREATE SCHEMA `+schema)
		err = errors.Join(err, conn.Close(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
	s := open(in(address))
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	tools := backup.Postgres{URL: in(address), Environ: environ()}
	dir, _, err := backup.Create(t.Context(), backup.Source{Store: s, Tools: tools, Bot: "test"}, t.TempDir(), now)
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, there := range []bool{true, false} {
		to := backup.Target{DataDir: t.TempDir(), Log: storetest.Log(t), Tools: backup.Postgres{URL: storetest.PostgresURL(t), Environ: environ()}}
		if there {
			to.Tools.URL = in(to.Tools.URL)
		}
		_, err := backup.Restore(t.Context(), dir, to)
		if there && err != nil {
			t.Errorf("to the same schema: %v", err)
		}
		if !there && (!fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "DATABASE_URL")) {
			t.Errorf("to where nothing is looked for: %v", err)
		}
	}
	latin := backup.Target{DataDir: t.TempDir(), Log: storetest.Log(t), Tools: backup.Postgres{URL: in(storetest.PostgresURLIn(t, "LATIN1")), Environ: environ()}}
	if _, err := backup.Restore(t.Context(), dir, latin); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "stores text as LATIN1") {
		t.Errorf("to a database that lacks characters: %v", err)
	}
}

// pipe puts a pipe in place of a file: whoever opens it waits for a writer.
func pipe(name string) error { return errors.Join(os.Remove(name), syscall.Mkfifo(name, 0o600)) }

// flip changes a byte in the middle of a file.
func flip(name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	b[len(b)/2] ^= 1
	return os.WriteFile(name, b, 0o600)
}

func TestUnfinishedBackupsAreNoBackups(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w world) {
		folder := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := backup.Create(ctx, w.source(), folder, now); err == nil {
			t.Error("a canceled backup is complete")
		}
		if list, err := backup.List(folder); err != nil || len(list) != 0 {
			t.Errorf("left behind: %+v, %v", list, err)
		}
		if err := os.Mkdir(filepath.Join(folder, "20261121T120000Z.partial"), 0o700); err != nil {
			t.Fatal(err)
		}
		if list, err := backup.List(folder); err != nil || len(list) != 1 || !fault.Is(list[0].Err, fault.Invalid) {
			t.Errorf("an unfinished one: %+v, %v", list, err)
		}
	})
}

func TestWithoutPgDumpTheErrorSaysSo(t *testing.T) {
	w := world{dir: t.TempDir(), url: storetest.PostgresURL(t)}
	s := storetest.Postgres(t)(t)
	w.store = s
	source := w.source()
	t.Setenv("PATH", t.TempDir())
	_, _, err := backup.Create(t.Context(), source, t.TempDir(), now)
	if !fault.Is(err, fault.Unsupported) || !strings.Contains(fault.Public(err), "pg_dump is not in the PATH") {
		t.Errorf("error = %v", err)
	}
}

// Programs of another version than they are needed in are told from a damaged
// backup, whatever language they speak.
func TestProgramsOfAnotherVersionAreNamed(t *testing.T) {
	w := world{dir: t.TempDir(), url: storetest.PostgresURL(t)}
	w.store = storetest.Postgres(t)(t)
	server, err := w.store.ServerVersion(t.Context())
	if err != nil || server < 10 {
		t.Fatalf("server version = %d, %v", server, err)
	}
	folder := t.TempDir()
	dir, m, err := backup.Create(t.Context(), w.source(), folder, now)
	if err != nil || m.PgDump < server {
		t.Fatalf("made with pg_dump %d for a server %d: %v", m.PgDump, server, err)
	}
	tools := w.source()
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	program := func(name string, version int) {
		script := fmt.Sprintf("#!/bin/sh\ncase $1 in --version) echo '%s (PostgreSQL) %d.4 (Debian %d.4-1)';; *) echo 'Fehler: Version' >&2; exit 1;; esac\n", name, version, version)
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil { //nolint:gosec // it has to run
			t.Fatal(err)
		}
	}
	program("pg_dump", server-1)
	program("pg_restore", server-1)
	_, _, err = backup.Create(t.Context(), tools, folder, now.Add(time.Minute))
	if !fault.Is(err, fault.Unsupported) || !strings.Contains(fault.Public(err), fmt.Sprintf("pg_dump in the PATH has version %d, but the server has %d", server-1, server)) {
		t.Errorf("an old pg_dump: %v", err)
	}
	_, err = backup.Verify(t.Context(), dir, tools.Tools)
	if !fault.Is(err, fault.Unsupported) || !strings.Contains(fault.Public(err), "pg_restore in the PATH") {
		t.Errorf("an old pg_restore: %v", err)
	}
	program("pg_dump", server+1) // newer is fine, so it is run, and fails
	if _, _, err = backup.Create(t.Context(), tools, folder, now.Add(time.Minute)); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Public(err), "Fehler") {
		t.Errorf("a newer pg_dump that fails: %v", err)
	}
	if list, err := backup.List(folder); err != nil || len(list) != 1 {
		t.Errorf("left behind: %+v, %v", list, err)
	}
	if err := os.Remove(filepath.Join(bin, "pg_restore")); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Verify(t.Context(), dir, tools.Tools); !fault.Is(err, fault.Unsupported) || !strings.Contains(fault.Public(err), "pg_restore is not in the PATH") {
		t.Errorf("without pg_restore: %v", err)
	}
}

// Finding 10: a key that was revoked after the backup worked again after its
// restore.
func TestFinding10RestoreRevivesNoKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w world) {
		dir, _, err := backup.Create(t.Context(), w.source(), filepath.Join(t.TempDir(), "backups"), now)
		if err != nil {
			t.Fatal(err)
		}
		to, options := w.elsewhere(t)
		if _, err := backup.Restore(t.Context(), dir, to); err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close() //nolint:errcheck // only read
		err = s.InRead(t.Context(), func(tx *store.Tx) error {
			keys, err := tx.SignIn().APIKeys(t.Context())
			if len(keys) != 2 {
				t.Errorf("%d keys", len(keys))
			}
			for _, k := range keys {
				if k.RevokedAt.IsZero() {
					t.Errorf("the key %s is valid", k.ID)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}
