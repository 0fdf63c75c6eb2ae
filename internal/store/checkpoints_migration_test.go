//nolint:thelper // eachEmpty runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// Checkpoints from before 00042 had a table of their own.
func TestOldCheckpointsBecomePartsOfTheirEvents(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, b bundle) {
		ctx := t.Context()
		if err := store.MigrateTo(ctx, b.Store, 41); err != nil {
			t.Fatal(err)
		}
		id := func(n int) string { return fmt.Sprintf("01900000-0000-7000-8000-%012d", n) }
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			exec := func(query string, args ...any) {
				if err := store.Exec(ctx, tx, query, args...); err != nil {
					t.Fatal(query, err)
				}
			}
			exec(`INSERT INTO remote_agent_conversations (id, platform_type, platform_conversation_id, inbox_seq) VALUES ($1, 'test', '1', 9)`, id(1))
			for _, n := range []int{10, 11} {
				exec(`INSERT INTO remote_agent_sessions (id, conversation_id, ai_assistant_type, active, last_seq) VALUES ($1, $2, 'demo', false, 4)`, id(n), id(1))
			}
			for n, session := range map[int]any{1: id(10), 2: id(10), 3: id(11), 4: id(11), 5: nil} {
				exec(`INSERT INTO inbound_events (id, platform_type, event_id, conversation_id, seq, state, session_id, data, accepted_ms)
					VALUES ($1, 'test', $2, $3, $4, 'done', $5, '{"text":"x"}', $6)`, id(20+n), fmt.Sprint(n), id(1), n, session, n)
				if session == nil {
					continue
				}
				exec(`INSERT INTO checkpoints (event_id, conversation_id, session_id, inbox_seq, seq, ref, undone, created_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, 1)`,
					id(20+n), id(1), session, n, 3-n%2*2, map[bool]string{true: "refs/" + fmt.Sprint(n)}[n > 1], n == 4)
			}
			for _, seq := range []int{1, 2, 3} {
				exec(`INSERT INTO agent_messages (session_id, role, content, created_at, seq, kind, run_id) VALUES ($1, 'user', 'x', 24, $2, 'text', 'r')`, id(11), seq)
			}
			exec(`DELETE FROM remote_agent_sessions WHERE id = $1`, id(10))
			return nil
		})
		if _, err := b.Migrate(ctx); err != nil {
			t.Fatal(err)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			rows, err := store.Rows(ctx, tx, `SELECT content, COALESCE(checkpoint_id, '') FROM message ORDER BY id`, 2)
			if diff := cmp.Diff([][]string{{"x", id(23)}, {"x", id(23)}, {"x", id(24)}}, rows); diff != "" {
				t.Errorf("messages and their checkpoints (-want +got):\n%s", diff)
			}
			return err
		})
		for _, want := range []sessions.Checkpoint{
			{EntryID: id(23), SessionID: id(11), Seq: 1, Ref: "refs/3"},
			{EntryID: id(22), Seq: 3, Ref: "refs/2"}, // of a session that was deleted
			{EntryID: id(21), Seq: 1},
		} {
			want.ConversationID = id(1)
			if got, ok := b.last(t, id(1)); !ok || got != want {
				t.Errorf("last checkpoint %+v, %v; want %+v", got, ok, want)
			}
			if _, err := b.undo(t, want); err != nil {
				t.Error(err)
			}
		}
		if got, ok := b.last(t, id(1)); ok {
			t.Errorf("the checkpoint %+v was undone before, or has never been", got)
		}
	})
}
