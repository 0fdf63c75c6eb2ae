//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// Turns from before 00027 become runs, and the status of their sessions, which said
// only whether a session had ended, follows from the last one.
func TestOldTurnsBecomeRuns(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, b bundle) {
		ctx := t.Context()
		if err := store.MigrateTo(ctx, b.Store, 26); err != nil {
			t.Fatal(err)
		}
		id := func(n int) string { return fmt.Sprintf("01900000-0000-7000-8000-%012d", n) }
		const conversation = 1
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			exec := func(query string, args ...any) {
				if err := store.Exec(ctx, tx, query, args...); err != nil {
					t.Fatal(query, err)
				}
			}
			exec(`INSERT INTO remote_agent_conversations (id, platform_type, platform_conversation_id) VALUES ($1, 'test', '1')`, id(conversation))
			for n, s := range map[int]struct{ active, status string }{
				10: {"false", "completed"}, 11: {"true", "running"}, 12: {"false", "completed"}, 13: {"false", "completed"}, 14: {"false", "failed"},
			} {
				exec(`INSERT INTO remote_agent_sessions (id, conversation_id, ai_assistant_type, active, status, model) VALUES ($1, $2, 'demo', `+s.active+`, $3, 'm')`,
					id(n), id(conversation), s.status)
			}
			for n, e := range map[int]struct {
				session  int
				state    string
				attempts int
			}{
				20: {10, "done", 1}, 21: {10, "failed", 5}, // the last one failed
				22: {11, "failed", 1}, 23: {11, "done", 1}, 24: {11, "done", 0}, // the last of these was part of the one before
				25: {12, "failed", 1}, 26: {12, "stopped", 1},
				27: {13, "running", 2},
				28: {99, "done", 1}, // its session was deleted
			} {
				exec(`INSERT INTO inbound_events (id, platform_type, event_id, conversation_id, seq, state, attempts, session_id, error, accepted_ms)
					VALUES ($1, 'test', $2, $3, $4, $5, $6, $7, 'why', $8)`, id(n), fmt.Sprint(n), id(conversation), n, e.state, e.attempts, id(e.session), 1000*n)
			}
			exec(`INSERT INTO inbound_events (id, platform_type, event_id, conversation_id, seq, lane, state, attempts, session_id, accepted_ms)
				VALUES ($1, 'test', 'c', $2, 40, 'control', 'done', 1, $3, 1)`, id(40), id(conversation), id(10))
			for _, cost := range []string{"30", "NULL"} {
				exec(`INSERT INTO usage_records (event_id, actor, ai_assistant_type, model, input_tokens, output_tokens, cost_micros, at_ms)
					VALUES ($1, 'test/1', 'demo', 'm2', 5, 2, `+cost+`, 20500)`, id(20))
			}
			exec(`INSERT INTO agent_messages (session_id, role, content, created_at, seq, kind, run_id) VALUES ($1, 'user', 'x', 24, 1, 'text', $2)`, id(11), id(22))
			return nil
		})
		if _, err := b.Migrate(ctx); err != nil {
			t.Fatal(err)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			rows, err := store.Rows(ctx, tx, `
				SELECT CAST(session_id AS TEXT), CAST(number AS TEXT), CAST(entry_id AS TEXT), status, CAST(started_ms AS TEXT), CAST(finished_ms AS TEXT),
					model, CAST(input_tokens AS TEXT), CAST(output_tokens AS TEXT), COALESCE(CAST(cost_micros AS TEXT), ''), COALESCE(error, ''), COALESCE(CAST(duration_ms AS TEXT), '')
				FROM agent_runs ORDER BY session_id, number`, 12)
			want := [][]string{
				{id(10), "1", id(20), "completed", "20000", "20500", "m2", "10", "4", "30", "", ""},
				{id(10), "2", id(21), "failed", "21000", "21000", "m", "0", "0", "", "why", ""},
				{id(11), "1", id(22), "failed", "22000", "24000", "m", "0", "0", "", "why", ""},
				{id(11), "2", id(23), "completed", "23000", "23000", "m", "0", "0", "", "", ""},
				{id(12), "1", id(25), "failed", "25000", "25000", "m", "0", "0", "", "why", ""},
				{id(12), "2", id(26), "stopped", "26000", "26000", "m", "0", "0", "", "why", ""},
				{id(13), "1", id(27), "interrupted", "27000", "27000", "m", "0", "0", "", "", ""},
			}
			if diff := cmp.Diff(want, rows); diff != "" {
				t.Errorf("runs (-want +got):\n%s", diff)
			}
			for n, want := range map[int]sessions.Status{
				10: sessions.Failed, 11: sessions.Completed, 12: sessions.Completed, 13: sessions.Completed, 14: sessions.Failed,
			} {
				if s, err := tx.Sessions().Session(ctx, id(n)); err != nil || s.Status != want || s.Active != (n == 11) {
					t.Errorf("session %d is %s, active %v, want %s; %v", n, s.Status, s.Active, want, err)
				}
			}
			return err
		})
	})
}

// eachEmpty runs test on both databases without a schema.
func eachEmpty(t *testing.T, test func(t *testing.T, b bundle)) {
	t.Helper()
	for name, options := range map[string]func(t *testing.T) store.Options{
		"SQLite":   func(t *testing.T) store.Options { return store.Options{DataDir: t.TempDir(), Exclusive: true} },
		"Postgres": func(t *testing.T) store.Options { return store.Options{URL: storetest.PostgresURL(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			o.Log = storetest.Log(t)
			s := storetest.Open(t, o)
			test(t, bundle{s})
		})
	}
}
