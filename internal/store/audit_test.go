//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/commit"

	"remote-agent/internal/audit"
	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

func entry(action, effect string) sessions.AuditEntry {
	return sessions.AuditEntry{Actor: "test/42", Action: action, ConversationID: "c-1", Target: "x\x00y", Detail: `{"n":1}`, Effect: effect}
}

func (b bundle) audit(tb testing.TB, entries ...sessions.AuditEntry) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) error {
		for _, e := range entries {
			if err := tx.Audit(ctx, e); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b bundle) verify(tb testing.TB, anchors ...store.AuditAnchor) (store.AuditReport, []store.AuditAnchor, error) {
	tb.Helper()
	return b.VerifyAudit(tb.Context(), anchors)
}

// unguarded runs a statement as somebody who owns the database can: without the
// triggers.
func (b bundle) unguarded(tb testing.TB, statements ...string) {
	tb.Helper()
	off := []string{`DROP TRIGGER audit_log_no_update`, `DROP TRIGGER audit_log_no_delete`}
	if b.Dialect() == "postgres" {
		off = []string{`ALTER TABLE audit_log DISABLE TRIGGER USER`}
	}
	b.do(tb, func(ctx context.Context, tx *store.Tx) error {
		for _, s := range append(off, statements...) {
			if err := store.Exec(ctx, tx, s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
}

// TestFinding7TheAuditIsAChain writes from many callers at once: the rows chain in
// the order in which they were committed, and an effect has one row.
func TestFinding7TheAuditIsAChain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		const callers = 24
		rolledBack := errors.New("changed my mind")
		errs := together(callers, func(i int) error {
			err := b.InTx(t.Context(), func(tx *store.Tx) error {
				for _, e := range []sessions.AuditEntry{entry("tool.run", ""), entry("branch.push", "push:same"), entry("file.send", fmt.Sprintf("file:%d", i))} {
					if err := tx.Audit(t.Context(), e); err != nil {
						return err
					}
				}
				if i%4 == 0 {
					return rolledBack
				}
				return nil
			})
			if i%4 == 0 && errors.Is(err, rolledBack) {
				return nil
			}
			return err
		})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		report, _, err := b.verify(t)
		if want := int64(callers*3/4*2 + 1); err != nil || report.Head.Seq != want {
			t.Errorf("after %d callers: head %v, %v; want %d rows", callers, report.Head, err, want)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			rows, err := tx.AuditLog().Rows(ctx, store.AuditFilter{Action: "branch", Limit: 10})
			if len(rows) != 1 || rows[0].Effect != "push:same" || rows[0].Target != "x\uFFFDy" {
				t.Errorf("the push that everybody wrote down: %+v", rows)
			}
			return err
		})
	})
}

func TestVerifyNamesTheRowThatSomebodyChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		statement string
		row       int64
	}{
		"changed":       {`UPDATE audit_log SET actor = 'nobody' WHERE seq = 3`, 3},
		"removed":       {`DELETE FROM audit_log WHERE seq = 2`, 2},
		"cut off":       {`DELETE FROM audit_log WHERE seq = 5`, 5},
		"hash replaced": {`UPDATE audit_log SET hash = 'abc' WHERE seq = 4`, 4},
		"put behind":    {`INSERT INTO audit_log (at_ms, actor, action, seq, hash) VALUES (1, 'a', 'b', 6, 'c')`, 6},
		"put aside":     {`INSERT INTO audit_log (at_ms, actor, action) VALUES (1, 'a', 'b')`, 0},
		"before all":    {`INSERT INTO audit_log (at_ms, actor, action, seq, hash) VALUES (1, 'a', 'b', 0, 'c')`, 0},
		"hidden":        {`INSERT INTO audit_log (at_ms, actor, action, seq, hash) VALUES (1, 'a', 'b', -7, 'c')`, 0},
		"under all":     {`INSERT INTO audit_log (id, at_ms, actor, action) VALUES (-1, 1, 'a', 'b')`, 0},
		"head moved":    {`UPDATE audit_head SET seq = 9`, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b bundle) {
				for range 5 {
					b.audit(t, entry("tool.run", ""))
				}
				if report, _, err := b.verify(t); err != nil || report.Head.Seq != 5 {
					t.Fatalf("before: %+v %v", report, err)
				}
				statement := c.statement
				if b.Dialect() == "postgres" { // else it chooses the number of a row itself
					statement = strings.Replace(statement, ") VALUES", ") OVERRIDING SYSTEM VALUE VALUES", 1)
				}
				b.unguarded(t, statement)
				_, _, err := b.verify(t)
				broken, is := errors.AsType[*audit.Break](err)
				if !is || broken.Seq != c.row {
					t.Errorf("verify: %v, want a break at row %d", err, c.row)
				}
			})
		})
	}
}

// TestRowsFromBeforeTheChainAreVouchedFor migrates a log of the version before.
func TestRowsFromBeforeTheChainAreVouchedFor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		old := func(actor string) string {
			return fmt.Sprintf(`INSERT INTO audit_log (at_ms, actor, action, target) VALUES (7, '%s', 'session.reset', 's')`, actor)
		}
		b.unguarded(t, old("ann"), old("bob")) // as a binary of before writes them
		for range 2 {                          // a second start adds nothing
			if _, err := b.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		b.audit(t, entry("tool.run", ""))
		b.unguardedAgain(t, old("a replica that still runs"))
		if _, err := b.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		report, _, err := b.verify(t)
		rows := int64(3)
		if b.Dialect() == "sqlite" { // one process works there, so that somebody put it in
			if broken, is := errors.AsType[*audit.Break](err); !is || broken.Seq != 0 || strings.Contains(err.Error(), "adopts") {
				t.Errorf("a row was put in while the bot was off, and verify says %v", err)
			}
			b.unguardedAgain(t, `DELETE FROM audit_log WHERE actor LIKE 'a replica%'`)
			rows = 2
			report, _, err = b.verify(t)
		}
		if err != nil || report.Older != rows || report.Head.Seq != rows {
			t.Fatalf("report %+v, %v; want %d rows from before and %d of the chain", report, err, rows, rows)
		}
		b.unguardedAgain(t, `UPDATE audit_log SET actor = 'eve' WHERE actor = 'bob'`)
		_, _, err = b.verify(t)
		if broken, is := errors.AsType[*audit.Break](err); !is || broken.Seq != 1 {
			t.Errorf("an old row was changed and verify says %v", err)
		}
	})
}

// SQLite takes any text for the place of a row in the chain.
func TestVerifyNamesARowWhosePlaceIsNoNumber(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"'x'", "1.5", "x'31'"} {
		b := bundle{storetest.SQLite(t)(t)}
		b.audit(t, entry("tool.run", ""))
		b.unguarded(t, `INSERT INTO audit_log (id, at_ms, actor, action, seq, hash) VALUES (77, 1, 'a', 'b', `+place+`, 'c')`)
		_, _, err := b.verify(t)
		if broken, is := errors.AsType[*audit.Break](err); !is || broken.Seq != 0 || !strings.Contains(err.Error(), "number 77 is no number") {
			t.Errorf("%s: verify says %v", place, err)
		}
	}
}

func (b bundle) unguardedAgain(tb testing.TB, statement string) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) error { return store.Exec(ctx, tx, statement) })
}

func TestAnAuditOutlivesARestore(t *testing.T) {
	t.Parallel()
	b := bundle{storetest.SQLite(t)(t)}
	b.audit(t, entry("tool.run", ""), entry("branch.push", "push:1"))
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := b.Snapshot(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	b.audit(t, entry("owner.remove", ""), entry("branch.push", "push:2"))
	before, _, err := b.verify(t)
	if err != nil {
		t.Fatal(err)
	}
	open := func() bundle {
		path := filepath.Join(t.TempDir(), "restored.db")
		from, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + copied, Log: storetest.Log(t)})
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close() //nolint:errcheck // only read
		if err := from.Snapshot(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		s := storetest.Open(t, store.Options{URL: "sqlite:" + path})
		return bundle{s}
	}
	restore := func(b bundle, head audit.Head) {
		b.audit(t, sessions.AuditEntry{Actor: "cli", Action: store.ActionRestore,
			Detail: fmt.Sprintf(`{"head":{"seq":%d,"hash":"%s"}}`, head.Seq, head.Hash)})
	}
	noted := store.AuditAnchor{Name: "a later backup", Head: before.Head, At: time.Now().Add(-time.Minute)}

	t.Log("with the replaced database its later rows are kept")
	kept := open()
	n, _, err := kept.KeepAudit(t.Context(), b.Store)
	if err != nil || n != 2 {
		t.Fatalf("kept %d, %v", n, err)
	}
	restore(kept, audit.Head{Seq: 2})
	report, lost, err := kept.verify(t, noted)
	if err != nil || len(lost) > 0 || report.Head.Seq != 5 || len(report.Restores) != 1 {
		t.Errorf("kept: %+v, lost %v, %v", report, lost, err)
	}

	t.Log("without it the restore is on record, and what was noted later is known to be lost")
	without := open()
	if _, _, err := without.verify(t, noted); err == nil {
		t.Error("rows that were noted are gone and nothing says why")
	}
	restore(without, audit.Head{Seq: 2})
	report, lost, err = without.verify(t, noted)
	if err != nil || len(lost) != 1 || report.Head.Seq != 3 {
		t.Errorf("without: %+v, lost %v, %v", report, lost, err)
	}
	if _, _, err := without.verify(t, store.AuditAnchor{Name: "--expect", Head: before.Head}); err == nil {
		t.Error("an expected end is not there and verify says nothing")
	}

	t.Log("the log of another database is not taken")
	other := bundle{storetest.SQLite(t)(t)}
	other.audit(t, entry("a", ""), entry("b", ""), entry("c", ""))
	fresh := open()
	if _, _, err := fresh.KeepAudit(t.Context(), other.Store); !fault.Is(err, fault.Conflict) {
		t.Errorf("another database's log: %v", err)
	}
	short := bundle{storetest.SQLite(t)(t)}
	short.audit(t, entry("a", ""))
	if n, _, err := fresh.KeepAudit(t.Context(), short.Store); !fault.Is(err, fault.Conflict) {
		t.Errorf("another database's log that ends before the backup's: kept %d, %v", n, err)
	}
	b.unguarded(t, `UPDATE audit_log SET actor = 'eve' WHERE seq = 3`)
	if _, _, err := fresh.KeepAudit(t.Context(), b.Store); !fault.Is(err, fault.Conflict) {
		t.Errorf("a log that was changed: %v", err)
	}
	if report, _, err := fresh.verify(t); err != nil || report.Head.Seq != 2 {
		t.Errorf("after refusals: %+v %v", report, err)
	}
}

// TestWhatASalvageLostOfBeforeTheChainIsNoBreak: the row of the salvage has on record what was
// left, also where the row that vouches for them is damaged, and a later change is seen.
func TestWhatASalvageLostOfBeforeTheChainIsNoBreak(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"lost":    `DELETE FROM audit_log WHERE actor = 'bob'`,
		"changed": `UPDATE audit_log SET target = 'x' WHERE actor = 'bob'`,
		"voucher": `UPDATE audit_log SET detail = '{' WHERE action = 'audit.begin'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := fileWithData(t)
			execFile(t, path, `INSERT INTO audit_log (at_ms, actor, action, target) VALUES (7, 'ann', 'session.reset', 's'), (7, 'bob', 'session.reset', 's'), (7, 'cat', 'session.reset', 's')`)
			migrated := func(path string) bundle {
				s := storetest.Open(t, store.Options{URL: "sqlite:" + path, Exclusive: true})
				if _, err := s.Migrate(t.Context()); err != nil {
					t.Fatal(err)
				}
				return bundle{s}
			}
			if err := migrated(path).Close(); err != nil {
				t.Fatal(err)
			}
			execFile(t, path, `DROP TRIGGER audit_log_no_delete`, `DROP TRIGGER audit_log_no_update`, damage)
			_, to, err := salvage(t, path)
			if err != nil {
				t.Fatal(err)
			}
			b := migrated(to)
			report, _, err := b.verify(t)
			if err != nil || len(report.Salvages) != 1 || !strings.Contains(report.Salvages[0].Lost(), "rows from before the chain are lost or were changed") {
				t.Fatalf("%+v: %v", report.Salvages, err)
			}
			b.unguarded(t, `UPDATE audit_log SET target = 'y' WHERE actor = 'cat'`)
			if _, _, err := b.verify(t); err == nil {
				t.Error("a row from before the chain was changed after the salvage, and verify says nothing")
			}
		})
	}
}

// TestTheLogOfASalvagedDatabaseOutlivesARestore although it lost the end of what the backup has,
// or rows in the middle: what came later goes on behind the end of the backup.
func TestTheLogOfASalvagedDatabaseOutlivesARestore(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]string{"end": `seq >= 25`, "around the end": `seq BETWEEN 25 AND 35`, "before": `seq = 7`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, noted := fileWithAudit(t, 30)
			open := func(path string) bundle {
				s := storetest.Open(t, store.Options{URL: "sqlite:" + path})
				return bundle{s}
			}
			now, copied := open(path), filepath.Join(t.TempDir(), "copy.db")
			if err := now.Snapshot(t.Context(), copied); err != nil {
				t.Fatal(err)
			}
			for range 10 {
				now.audit(t, entry("later", ""))
			}
			if err := now.Close(); err != nil {
				t.Fatal(err)
			}
			execFile(t, path, `DROP TRIGGER audit_log_no_delete`, `DELETE FROM audit_log WHERE `+lost)
			_, to, err := salvage(t, path)
			if err != nil {
				t.Fatal(err)
			}
			salvaged, backup := open(to), open(copied)
			salvaged.audit(t, entry("since.then", ""))
			after, _, err := salvaged.verify(t)
			if err != nil {
				t.Fatal(err)
			}
			_, behind, err := backup.KeepAudit(t.Context(), salvaged.Store)
			if err != nil {
				t.Fatal(err)
			}
			backup.audit(t, sessions.AuditEntry{Actor: "cli", Action: store.ActionRestore, Detail: fmt.Sprintf(`{"head":{"seq":%d,"hash":"%s"}}`, behind.Seq, behind.Hash)})
			noted = append(noted, store.AuditAnchor{Name: "a backup of the salvaged one", Head: after.Head, At: time.Now().Add(-time.Minute)})
			if _, _, err := backup.verify(t, noted...); err != nil {
				t.Error(err)
			}
			rows, err := store.Within(t.Context(), backup.InRead, func(tx *store.Tx) ([]audit.Row, error) {
				return tx.AuditLog().Rows(t.Context(), store.AuditFilter{Action: "since.then", Limit: 9})
			})
			if err != nil || len(rows) != 1 {
				t.Errorf("what the salvaged database had on record since then: %+v, %v", rows, err)
			}
		})
	}
}

func TestAToolCallBeginsOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		s := b.session(t, b.conversation(t, "1").ID)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if _, _, err := tx.Calls().BeginToolCall(ctx, s.ID, "call-1"); !fault.Is(err, fault.NotFound) {
				t.Errorf("a call that is not there: %v", err)
			}
			if err := storetest.Calls(ctx, tx, sessions.ToolCall{SessionID: s.ID, CallID: "call-1", Name: "bash", Request: `{"command":"ls"}`}); err != nil {
				return err
			}
			for i, want := range []bool{true, false} {
				c, begun, err := tx.Calls().BeginToolCall(ctx, s.ID, "call-1")
				if err != nil || begun != want || want && (c.Name != "bash" || c.Request != `{"command":"ls"}`) {
					t.Errorf("begin %d: %+v %v %v", i+1, c, begun, err)
				}
			}
			if err := storetest.Apply(ctx, tx, s.ConversationID, commit.Changes{Session: &commit.Session{ID: s.ID, Over: true}}); err != nil {
				return err
			}
			if _, _, err := tx.Calls().BeginToolCall(ctx, s.ID, "call-1"); !fault.Is(err, fault.Conflict) {
				t.Errorf("a call that has ended: %v", err)
			}
			return nil
		})
	})
}

func TestActionsAreChosenByTheirFamily(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.audit(t, entry("tool.run", ""), entry("toolbox.open", ""), entry("tool", ""))
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			rows, err := tx.AuditLog().Rows(ctx, store.AuditFilter{Action: "tool", Limit: 10})
			if len(rows) != 2 || rows[0].Action != "tool.run" || rows[1].Action != "tool" {
				t.Errorf("of the family tool: %+v", rows)
			}
			return err
		})
	})
}

// The hash of a row covers its place in the chain and not its id.
func TestRowsAreInTheOrderOfTheChain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for _, seq := range []string{"103", "101", "NULL", "102"} {
				err := store.Exec(ctx, tx, `INSERT INTO audit_log (at_ms, actor, action, seq, hash) VALUES (1, 'test/ann', $1, `+seq+`, '')`, "order."+seq)
				if err != nil {
					return err
				}
			}
			return nil
		})
		for limit, want := range map[int][]string{9: {"order.NULL", "order.101", "order.102", "order.103"}, 2: {"order.102", "order.103"}} {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				rows, err := tx.AuditLog().Rows(ctx, store.AuditFilter{Action: "order", Limit: limit})
				if diff := cmp.Diff(want, lists.Map(rows, func(r audit.Row) string { return r.Action })); diff != "" {
					t.Errorf("limit %d (-want +got):\n%s", limit, diff)
				}
				return err
			})
		}
	})
}
