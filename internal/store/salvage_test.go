//nolint:thelper // these run tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

func salvage(t *testing.T, path string) (r store.Salvaged, to string, err error) {
	t.Helper()
	to = filepath.Join(filepath.Dir(path), "new.db")
	r, err = store.Salvage(t.Context(), path, to, "The database was damaged.", storetest.Log(t))
	return r, to, err
}

// TestSalvageCopiesWhatCanBeRead damages databases in all ways that the start
// recognizes: what comes out is sound, can be used, and copied and lost rows are all
// rows there were.
func TestSalvageCopiesWhatCanBeRead(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(fileWithData(t))
	if err != nil {
		t.Fatal(err)
	}
	const rows = 400 // messages
	type damaged struct {
		damage func(t *testing.T, path string)
		most   int64 // messages that may be lost
	}
	tests := map[string]damaged{
		"nothing":    {func(*testing.T, string) {}, 0},
		"header":     {func(t *testing.T, path string) { overwrite(t, path, 0, []byte(strings.Repeat("\xa7", 100))) }, 0},
		"page size":  {func(t *testing.T, path string) { overwrite(t, path, 16, []byte{0x13, 0x37}) }, 0},
		"first page": {func(t *testing.T, path string) { overwrite(t, path, 0, []byte(strings.Repeat("\x5c", 1024))) }, 0},
		"truncated":  {func(t *testing.T, path string) { truncate(t, path, int64(len(content))*3/4) }, rows},
	}
	for seed := range uint64(12) {
		tests[fmt.Sprintf("four pages, seed %d", seed)] = damaged{func(t *testing.T, path string) { scribble(t, path, seed, 4) }, rows}
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "bot.db")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			tt.damage(t, path)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			r, to, err := salvage(t, path)
			if err != nil {
				t.Fatal(err)
			}
			if after, err := os.ReadFile(path); err != nil || string(before) != string(after) {
				t.Errorf("the damaged file was changed: %v", err)
			}
			if version, err := store.CheckFile(t.Context(), to); err != nil || version != store.LatestSchema() {
				t.Errorf("what came out has version %d: %v", version, err)
			}
			for _, table := range r.Tables {
				if table.Lost > 0 {
					t.Logf("%+v", table)
				}
				if table.Name == "agent_messages" && (table.Lost > tt.most || table.Known && table.Copied+table.Lost != rows) {
					t.Errorf("of %d messages %d were copied and %d lost", rows, table.Copied, table.Lost)
				}
			}
			if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".salvage-*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			opens(t, to)
		})
	}
}

// opens starts a store on a salvaged file and works with it.
func opens(t *testing.T, path string) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + path, Log: storetest.Log(t), Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // a test
	if err := s.CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
	b := bundle{s}
	b.session(t, b.conversation(t, "afterwards").ID)
	b.accept(t, "afterwards", "1")
}

// TestSalvageReportsWhatItLost puts random bytes over one page of messages: those of
// that page are lost, and nothing else.
func TestSalvageReportsWhatItLost(t *testing.T) {
	t.Parallel()
	path := fileWithData(t)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := int(content[16])<<8 | int(content[17])
	at := strings.Index(string(content), "chat 11 message 7 ") / size * size
	gone := strings.Count(string(content[at:at+size]), "chat 1")
	r := rand.New(rand.NewPCG(5, 5)) //nolint:gosec // repeatable
	page := make([]byte, size)
	for i := range page {
		page[i] = byte(r.Uint32())
	}
	overwrite(t, path, int64(at), page)
	found, _, err := salvage(t, path)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range found.Tables {
		switch {
		case table.Name == "agent_messages" && (table.Lost == 0 || table.Lost > int64(2*gone) || !table.Known || table.Copied+table.Lost != 400):
			t.Errorf("%+v: the page had %d", table, gone)
		case table.Name != "agent_messages" && table.Lost > 0:
			t.Errorf("%+v was not damaged", table)
		}
	}
}

// TestSalvageDropsTheTurnsOfLostSessions loses a session, but not its turns, whose table
// has no rowids.
func TestSalvageDropsTheTurnsOfLostSessions(t *testing.T) {
	t.Parallel()
	path := fileWithData(t)
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=foreign_keys(0)")
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`INSERT INTO agent_runs (session_id, number, entry_id, started_ms) SELECT id, n.number, id || n.number, 1 FROM remote_agent_sessions, (SELECT 1 AS number UNION SELECT 2) n`,
		`DELETE FROM remote_agent_sessions WHERE id = (SELECT min(id) FROM remote_agent_sessions)`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	r, to, err := salvage(t, path)
	if err != nil {
		t.Fatal(err)
	}
	if version, err := store.CheckFile(t.Context(), to); err != nil || version != store.LatestSchema() {
		t.Errorf("what came out has version %d: %v", version, err)
	}
	for _, table := range r.Tables {
		if table.Name == "agent_runs" && (table.Copied != 38 || table.Lost != 2) {
			t.Errorf("%+v, want the turns of 19 sessions", table)
		}
	}
	opens(t, to)
}

func TestSalvageRefuses(t *testing.T) {
	t.Parallel()
	path := fileWithData(t)
	to := filepath.Join(filepath.Dir(path), "new.db")
	try := func(from, to string) error {
		_, err := store.Salvage(t.Context(), from, to, "x", storetest.Log(t))
		return err
	}
	wantKind(t, try(path+".none", to), fault.NotFound)
	wantKind(t, try(path, path), fault.Conflict)
	s, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + path, Log: storetest.Log(t), Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	wantKind(t, try(path, to), fault.Conflict)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	noise := filepath.Join(t.TempDir(), "noise.db")
	if err := os.WriteFile(noise, []byte(strings.Repeat("no database", 5000)), 0o600); err != nil {
		t.Fatal(err)
	}
	wantKind(t, try(noise, to), fault.Damaged)
	if _, err := os.Lstat(to); err == nil {
		t.Error("a refusal left a file")
	}
}
