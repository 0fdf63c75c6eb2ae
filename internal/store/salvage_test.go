//nolint:thelper // these run tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/audit"
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
	execFile(t, path,
		`INSERT INTO agent_runs (session_id, number, entry_id, started_ms) SELECT id, n.number, id || n.number, 1 FROM remote_agent_sessions, (SELECT 1 AS number UNION SELECT 2) n`,
		`DELETE FROM remote_agent_sessions WHERE id = (SELECT min(id) FROM remote_agent_sessions)`)
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

// TestTheAuditLogGoesOnAfterASalvage loses rows in the middle of the chain, and its end, where
// each entry begins. A row says what was lost, the log can be verified behind it, and what
// somebody does to it afterwards is seen as before.
func TestTheAuditLogGoesOnAfterASalvage(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{"unreadable": "", "of another table": "api_keys", "sound": "audit_head"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, anchors := fileWithAudit(t, 40)
			page := make([]byte, 1024)
			if damage != "" {
				page = pageOf(t, path, damage, nil)
			}
			pageOf(t, path, "audit_head", page)
			execFile(t, path, `DROP TRIGGER audit_log_no_delete`, `DROP TRIGGER audit_log_no_update`, `DELETE FROM audit_log WHERE seq IN (4, 5, 6, 39, 40)`,
				`UPDATE audit_log SET target = 'x' WHERE seq = 20`)
			_, to, err := salvage(t, path)
			if err != nil {
				t.Fatal(err)
			}
			s, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + to, Log: storetest.Log(t), Exclusive: true})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close() //nolint:errcheck // a test
			bundle{s}.audit(t, entry("tool.run", ""))
			report, lost, err := s.VerifyAudit(t.Context(), anchors)
			if err != nil || report.Head.Seq != 40 || len(report.Salvages) != 1 || report.Salvages[0].Row.Seq != 39 {
				t.Fatalf("the audit log is %+v: %v", report, err)
			}
			want := ", 4 to 6 are lost, 20 was changed"
			if name == "sound" {
				want += ", 39 to 40 are lost"
			}
			if got := report.Salvages[0].Lost(); got != want {
				t.Errorf("lost%s, want%s", got, want)
			}
			if len(lost) != 2 || lost[0].Head.Seq != 5 || lost[1].Head.Seq != 40 {
				t.Errorf("of the rows that were noted are lost %+v", lost)
			}
			for _, a := range anchors { // noted by somebody who says nothing of when, or after the salvage
				a.At = time.Now().Add(time.Hour)
				if _, _, err := s.VerifyAudit(t.Context(), []store.AuditAnchor{a}); (err == nil) != (a.Head.Seq == 30) {
					t.Errorf("row %d, noted later: %v", a.Head.Seq, err)
				}
			}
			execFile(t, to, `DROP TRIGGER audit_log_no_update`, `UPDATE audit_log SET actor = 'nobody' WHERE seq = 7`)
			if broken, ok := errors.AsType[*audit.Break](errorOf(s.VerifyAudit(t.Context(), nil))); !ok || broken.Seq != 4 {
				t.Errorf("the row behind the gap was changed afterwards: %v", broken)
			}
		})
	}
}

// TestASecondSalvageKeepsWhatTheFirstOneSaid loses more of the chain each time.
func TestASecondSalvageKeepsWhatTheFirstOneSaid(t *testing.T) {
	t.Parallel()
	path, _ := fileWithAudit(t, 20)
	for i, want := range []string{", 4 to 4 are lost", ", 8 to 8 are lost"} {
		execFile(t, path, `DROP TRIGGER audit_log_no_delete`, fmt.Sprintf(`DELETE FROM audit_log WHERE seq = %d`, 4*(i+1)))
		_, to, err := salvage(t, path)
		if err != nil {
			t.Fatal(err)
		}
		path = filepath.Join(t.TempDir(), "bot.db")
		if err := os.Rename(to, path); err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + path, Log: storetest.Log(t), Exclusive: true})
		if err != nil {
			t.Fatal(err)
		}
		report, _, err := s.VerifyAudit(t.Context(), nil)
		if err := errors.Join(err, s.Close()); err != nil || len(report.Salvages) != i+1 || report.Salvages[i].Lost() != want {
			t.Fatalf("after salvage %d: %+v, %v", i+1, report, err)
		}
	}
}

func errorOf(_ store.AuditReport, _ []store.AuditAnchor, err error) error { return err }

// fileWithAudit returns a database with so many rows of the audit log, and notes of some of them.
func fileWithAudit(t *testing.T, rows int) (path string, noted []store.AuditAnchor) {
	t.Helper()
	path = fileWithData(t)
	s, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + path, Log: storetest.Log(t), Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	b := bundle{s}
	for i := range rows {
		b.audit(t, entry("tool.run", ""))
		if seq := i + 1; seq == 5 || seq == 30 || seq == 40 {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				head, err := tx.AuditLog().Head(ctx)
				noted = append(noted, store.AuditAnchor{Name: "a note", Head: head, At: time.Now()})
				return err
			})
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path, noted
}

// execFile changes a database as another program can.
func execFile(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=foreign_keys(0)")
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// pageOf returns the first page of a table, and puts another one in its place if it is given.
func pageOf(t *testing.T, path, table string, instead []byte) []byte {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	var root, size int64
	err = db.QueryRowContext(t.Context(), `SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = ?`, table).Scan(&root, &size)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if instead != nil {
		overwrite(t, path, (root-1)*size, instead)
	}
	return content[(root-1)*size : root*size]
}

// TestSalvageGivesNoNumberAgain: people know plans and approvals by their numbers, also those
// of a conversation that was deleted since.
func TestSalvageGivesNoNumberAgain(t *testing.T) {
	t.Parallel()
	path := fileWithData(t)
	execFile(t, path,
		`INSERT INTO plan_numbers (number, conversation_id) SELECT 1 + rowid, id FROM remote_agent_conversations`,
		`DELETE FROM plan_numbers WHERE number > 7`,
		`INSERT INTO pairings (number, platform_type, user_id, platform_conversation_id, code, asked_ms) VALUES (30, 'telegram', '42', '42', 'x', 1)`,
		`DELETE FROM pairings`,
		`UPDATE sqlite_sequence SET seq = 9223372036854775807 WHERE name = 'agent_messages'`)
	_, to, err := salvage(t, path)
	if err != nil {
		t.Fatal(err)
	}
	opens(t, to)
	db, err := sql.Open("sqlite", "file:"+to)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // a test
	var plan, pairing, message int
	err = db.QueryRowContext(t.Context(), `
		SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'plan_numbers'), (SELECT seq FROM sqlite_sequence WHERE name = 'pairings'),
			(SELECT seq FROM sqlite_sequence WHERE name = 'agent_messages')`).Scan(&plan, &pairing, &message)
	if err != nil || plan != 21 || pairing != 30 || message != 400 {
		t.Errorf("the last numbers are %d, %d and %d: %v", plan, pairing, message, err)
	}
}

// TestSalvageLeavesOutWhatIsNoJSON damages values that SQLite takes for sound text. A row that is
// of no use without its value is lost; a conversation, with all that was said in it, is not lost
// to its settings.
func TestSalvageLeavesOutWhatIsNoJSON(t *testing.T) {
	t.Parallel()
	path := fileWithData(t)
	s, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + path, Log: storetest.Log(t), Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	b := bundle{s}
	b.accept(t, "3", "sound")
	b.accept(t, "3", "damaged")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	execFile(t, path, `PRAGMA ignore_check_constraints = ON`,
		`UPDATE inbound_events SET data = '{"text":"hel' WHERE event_id = 'damaged'`,
		`UPDATE remote_agent_conversations SET settings = '{"mo' WHERE platform_conversation_id = '3'`,
		`UPDATE remote_agent_sessions SET metadata = CAST(x'7b2261223a22ff227d' AS TEXT) WHERE rowid = 5`,
		`UPDATE agent_messages SET kind = 'tool_call', role = 'assistant', data_json = '{"id":"c1' WHERE rowid = 7`,
		`UPDATE agent_messages SET data_json = 'of another program' WHERE rowid = 8`)
	r, to, err := salvage(t, path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]store.SalvagedTable{
		"inbound_events":             {Copied: 1, Lost: 1},
		"agent_messages":             {Copied: 399, Lost: 1},
		"remote_agent_conversations": {Copied: 20, Emptied: 1},
		"remote_agent_sessions":      {Copied: 20, Emptied: 1},
	}
	for _, table := range r.Tables {
		w := want[table.Name]
		if table.Lost != w.Lost || table.Emptied != w.Emptied || w.Copied > 0 && table.Copied != w.Copied {
			t.Errorf("%+v, want %+v", table, w)
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
