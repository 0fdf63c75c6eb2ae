//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/store/storetest"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// talk makes a session of a conversation with so many messages and ends it.
func (b bundle) talk(t *testing.T, conversationID, agent string, msgs int) sessions.Session {
	t.Helper()
	var s sessions.Session
	b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
		s, err = tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: conversationID, Assistant: "demo", AgentName: agent})
		if err != nil {
			return err
		}
		for i := range msgs {
			m := messages.NewText(messages.RoleUser, fmt.Sprintf("%s %d", agent, i+1))
			m.Blocks = append(m.Blocks, messages.Attachment{Name: "a.txt", Text: "content"})
			if _, err := tx.Messages().AppendMessages(ctx, s.ID, "run", m); err != nil {
				return err
			}
		}
		return tx.Sessions().DeactivateSession(ctx, s.ID, "")
	})
	return s
}

// Pages go on although what the last one ended with is deleted.
func TestPagesGoOnBehindWhatIsGone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c := b.conversation(t, "42")
		var made []string
		for i := range 4 {
			made = append(made, b.talk(t, c.ID, fmt.Sprintf("s%d", i), 2).ID)
		}
		slices.Reverse(made)
		var seen []string
		q := store.BrowseSessionsQuery{Limit: 1}
		for range made {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				list, err := tx.Pages().BrowseSessions(ctx, q)
				if err != nil || len(list) != 1 {
					return fmt.Errorf("%d sessions: %w", len(list), err)
				}
				q.After = list[0].Place
				seen = append(seen, list[0].ID)
				_, err = tx.Care().RemoveSession(ctx, list[0].ID)
				return err
			})
		}
		if !slices.Equal(seen, made) {
			t.Errorf("sessions %q, want %q", seen, made)
		}
	})
}

func TestSessionsAreBrowsedByFilter(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c, other := b.conversation(t, "42"), b.conversation(t, "77")
		old := b.talk(t, c.ID, "writer", 1)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `UPDATE remote_agent_sessions SET started_at = '2026-01-02T03:04:05.678Z', status = 'failed' WHERE id = $1`, old.ID)
		})
		second := b.talk(t, other.ID, "writer", 1)
		third := b.session(t, c.ID)
		yes, no := true, false
		day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
		for name, tt := range map[string]struct {
			q    store.BrowseSessionsQuery
			want []string
		}{
			"all":          {store.BrowseSessionsQuery{}, []string{third.ID, second.ID, old.ID}},
			"conversation": {store.BrowseSessionsQuery{ConversationID: c.ID}, []string{third.ID, old.ID}},
			"agent":        {store.BrowseSessionsQuery{Agent: "writer"}, []string{second.ID, old.ID}},
			"failed":       {store.BrowseSessionsQuery{Status: sessions.Failed}, []string{old.ID}},
			"active":       {store.BrowseSessionsQuery{Active: &yes}, []string{third.ID}},
			"not active":   {store.BrowseSessionsQuery{Active: &no}, []string{second.ID, old.ID}},
			"since":        {store.BrowseSessionsQuery{Since: day.AddDate(0, 0, 1)}, []string{third.ID, second.ID}},
			"until":        {store.BrowseSessionsQuery{Until: day.AddDate(0, 0, 1)}, []string{old.ID}},
			"that instant": {store.BrowseSessionsQuery{Since: old.StartedAt.AddDate(-1, 0, 0), Until: day}, nil},
			"two filters":  {store.BrowseSessionsQuery{ConversationID: other.ID, Agent: "x"}, nil},
		} {
			tt.q.Limit = 10
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				list, err := tx.Pages().BrowseSessions(ctx, tt.q)
				var got []string
				for _, s := range list {
					got = append(got, s.ID)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
				return err
			})
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			msgs, calls, err := tx.Pages().CountSession(ctx, old.ID)
			if msgs != 1 || calls != 0 {
				t.Errorf("counted %d messages and %d calls", msgs, calls)
			}
			return err
		})
	})
}

func TestDamagedPlacesAreRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		const id = "0198c2d1-7a3b-7c4d-8e5f-0123456789ab"
		for _, place := range []store.SessionPlace{
			{Started: "yesterday", ID: id}, {Started: "2026-11-21T12:00:00Z", ID: "1"}, {Started: "", ID: id},
			{Started: "0000-01-01T00:00:00Z", ID: id}, {Started: "infinity", ID: id},
		} {
			wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Pages().BrowseSessions(ctx, store.BrowseSessionsQuery{After: place, Limit: 1})
				return err
			}), fault.Invalid)
		}
	})
}

func TestAPageOfLongToolCallsEndsEarly(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		s := b.session(t, b.conversation(t, "42").ID)
		big := strings.Repeat("x", 3<<20)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for i := range 4 {
				if err := storetest.Calls(ctx, tx, sessions.ToolCall{SessionID: s.ID, CallID: fmt.Sprint(i), Name: "bash", Request: big}); err != nil {
					return err
				}
			}
			return nil
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			calls, more, err := tx.Pages().BrowseToolCalls(ctx, s.ID, "", 0, 200)
			if len(calls) != 2 || !more {
				t.Errorf("%d calls, more %v", len(calls), more)
			}
			if err != nil {
				return err
			}
			calls, more, err = tx.Pages().BrowseToolCalls(ctx, s.ID, sessions.ToolPending, calls[1].ID, 200)
			if len(calls) != 2 || more {
				t.Errorf("then %d calls, more %v", len(calls), more)
			}
			return err
		})
	})
}

func TestConversationsAreBrowsedNewestFirst(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		var want []string
		for i := range 5 {
			want = append(want, b.conversation(t, fmt.Sprint(i)).ID)
		}
		slices.Reverse(want)
		var got []string
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for after := ""; ; {
				list, err := tx.Pages().BrowseConversations(ctx, "test", after, 2)
				if err != nil || len(list) == 0 {
					return err
				}
				for _, c := range list {
					got = append(got, c.ID)
				}
				after = got[len(got)-1]
			}
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("conversations (-want +got):\n%s", diff)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			list, err := tx.Pages().BrowseConversations(ctx, "none", "", 2)
			if len(list) != 0 {
				t.Errorf("of a platform that is not there: %+v", list)
			}
			return err
		})
	})
}

// A message that is being accepted while its session is removed is not lost: the
// removal waits and sees it.
func TestRemovingASessionWaitsForAMessageThatComesIn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c := b.conversation(t, "42")
		s := b.session(t, c.ID)
		removed := make(chan error, 1)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if _, _, err := tx.Conversations().GetOrCreateConversation(ctx, c.Key, "demo"); err != nil {
				return err
			}
			go func() {
				removed <- b.InTx(ctx, func(tx *store.Tx) error {
					_, err := tx.Care().RemoveSession(ctx, s.ID)
					return err
				})
			}()
			if err := b.awaitBlocked(ctx, 1, removed); err != nil {
				return err
			}
			e := sessions.Entry{ConversationID: c.ID, In: inbound("42", "1")}
			_, err := tx.Inbox().InsertEntry(ctx, &e)
			return err
		})
		wantKind(t, <-removed, fault.Conflict)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Sessions().Session(ctx, s.ID)
			return err
		})
	})
}

// awaitBlocked returns when n other transactions wait for this one, or one has ended
// without.
func (b bundle) awaitBlocked(ctx context.Context, n int, ended chan error) error {
	if b.Dialect() == "sqlite" {
		store.AwaitQueued(b.Store, n)
		return nil
	}
	for len(ended) == 0 {
		waiting := 0
		if err := b.InRead(ctx, func(tx *store.Tx) (err error) {
			waiting, err = store.Count(ctx, tx, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)
			return err
		}); err != nil || waiting >= n {
			return err
		}
		runtime.Gosched()
	}
	return nil
}
