//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/commit"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// asks is a message that asks for calls of a tool.
func asks(ids ...string) messages.Message {
	m := messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{messages.Text{Text: "I will look."}}}
	for _, id := range ids {
		m.Blocks = append(m.Blocks, messages.ToolCall{ID: id, Name: "shell", Arguments: `{"of":"` + id + `"}`})
	}
	return m
}

// adds stores messages to the session of a turn, as the turn does.
func (b bundle) adds(t *testing.T, a admitted, twice bool, msgs ...messages.Message) error {
	t.Helper()
	_, err := b.Commit(t.Context(), a.lease, commit.Changes{Session: &commit.Session{ID: a.session.ID, Run: a.entry.ID, Messages: msgs, Twice: twice}})
	return err
}

// calls returns what is on record of the calls of a session, and the block that asked for each.
func (b bundle) calls(t *testing.T, session string) (list []string) {
	t.Helper()
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		all, err := tx.Calls().ToolCalls(ctx, session)
		list = nil
		for _, c := range all {
			data, err := store.String(ctx, tx, `SELECT m.data_json FROM agent_tool_calls c JOIN agent_messages m ON m.id = c.message_id WHERE c.id = $1`, c.ID)
			var asked struct {
				ID string `json:"tool_call_id"`
			}
			if err != nil || json.Unmarshal([]byte(data), &asked) != nil {
				t.Errorf("call %s belongs to %q, %v", c.CallID, data, err)
			}
			if c.SessionID != session || c.Name != "shell" || c.Request != `{"of":"`+asked.ID+`"}` || time.Since(c.CreatedAt) > time.Minute {
				t.Errorf("on record: %+v", c)
			}
			if ended := c.Status == sessions.ToolCompleted || c.Status == sessions.ToolFailed; ended == c.CompletedAt.IsZero() {
				t.Errorf("%s has ended at %v", c.CallID, c.CompletedAt)
			}
			list = append(list, fmt.Sprintf("%s of %s in %d: %s %s%s", c.CallID, asked.ID, c.MessageSeq, c.Status, c.Response, c.Error))
		}
		return err
	})
	return list
}

func TestCallsAreOnRecordWithTheirMessages(t *testing.T) {
	each(t, func(t *testing.T, b bundle) {
		a, other := b.admit(t, "1", "a"), b.admit(t, "2", "b")
		for _, one := range []admitted{a, other} {
			if err := b.adds(t, one, false, messages.NewText(messages.RoleUser, "question"), asks("done", "failed", "begun", "waits")); err != nil {
				t.Fatal(err)
			}
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				_, _, err := tx.Calls().BeginToolCall(ctx, one.session.ID, "begun")
				return err
			})
		}
		results := messages.NewToolResult("done", "ok \"yes\"", false)
		results.Blocks = append(results.Blocks,
			messages.ToolResult{CallID: "failed", Content: "exit 1", IsError: true}, messages.ToolResult{CallID: "nobody's", Content: "what?"})
		if err := b.adds(t, a, false, results, messages.NewToolResult("done", "too late", false)); err != nil {
			t.Fatal(err)
		}
		want := []string{
			`done of done in 2: completed "ok \"yes\""`, `failed of failed in 2: failed "exit 1"exit 1`,
			"begun of begun in 2: executing ", "waits of waits in 2: pending ",
		}
		if diff := cmp.Diff(want, b.calls(t, a.session.ID)); diff != "" {
			t.Errorf("after the results (-want +got):\n%s", diff)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			open, err := tx.Calls().OpenCalls(ctx, a.session.ID)
			if len(open) != 2 || open[0].CallID != "begun" || open[0].Status != sessions.ToolExecuting || open[1].CallID != "waits" || open[1].Status != sessions.ToolPending {
				t.Errorf("open: %+v", open)
			}
			return err
		})
		if _, err := b.Commit(t.Context(), a.lease, commit.Changes{Session: &commit.Session{ID: a.session.ID, Over: true}}); err != nil {
			t.Fatal(err)
		}
		want[2], want[3] = "begun of begun in 2: failed interrupted, may have run", "waits of waits in 2: failed not run: the turn ended before"
		if diff := cmp.Diff(want, b.calls(t, a.session.ID)); diff != "" {
			t.Errorf("after the turn (-want +got):\n%s", diff)
		}
		want = []string{
			"done of done in 2: pending ", "failed of failed in 2: pending ", "begun of begun in 2: executing ", "waits of waits in 2: pending ",
		}
		if diff := cmp.Diff(want, b.calls(t, other.session.ID)); diff != "" {
			t.Errorf("in another session (-want +got):\n%s", diff)
		}
	})
}

// TestACallThatComesTwice: servers that count their calls from the start in each answer use
// names again, of calls that have ended. Only an agent may name an open one again.
func TestACallThatComesTwice(t *testing.T) {
	each(t, func(t *testing.T, b bundle) {
		a := b.admit(t, "1", "a")
		if err := b.adds(t, a, false, asks("c"), messages.NewToolResult("c", "one", false), asks("c")); err != nil {
			t.Fatal(err)
		}
		wantKind(t, b.adds(t, a, false, messages.NewText(messages.RoleAssistant, "and again"), asks("d", "c")), fault.Conflict)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			list, err := tx.Messages().MessagesBefore(ctx, a.session.ID, 10, 10)
			if len(list) != 3 {
				t.Errorf("%d messages, want the 3 that were stored before", len(list))
			}
			return err
		})
		var first int64
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			all, err := tx.Calls().ToolCalls(ctx, a.session.ID)
			first = all[0].ID
			return err
		})
		if err := b.adds(t, a, true, asks("d", "c")); err != nil {
			t.Fatal(err)
		}
		want := []string{
			fmt.Sprintf(`c~%d of c in 1: completed "one"`, first), "c of c in 3: pending ", "d of d in 4: pending ",
		}
		if diff := cmp.Diff(want, b.calls(t, a.session.ID)); diff != "" {
			t.Errorf("on record (-want +got):\n%s", diff)
		}
	})
}

func TestALessonIsStoredWithTheEndOfATurn(t *testing.T) {
	each(t, func(t *testing.T, b bundle) {
		a, off := b.admit(t, "1", "a"), b.admit(t, "2", "b")
		now := time.Now()
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Memories().SetMemoryOn(ctx, "test/off", false)
		})
		for range 2 { // the second time changes nothing
			for account, of := range map[string]admitted{"test/ann": a, "test/off": off} {
				_, err := b.Commit(t.Context(), of.lease, commit.Changes{Lessons: []commit.Lesson{{Entry: of.entry.ID, Account: account, Due: now.Add(time.Hour)}}})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			early, err := tx.Lessons().ClaimLessons(ctx, "early", now, now.Add(time.Minute), 10)
			if err != nil || len(early) != 0 {
				t.Errorf("before it is due: %+v, %v", early, err)
			}
			due, err := tx.Lessons().ClaimLessons(ctx, "due", now.Add(2*time.Hour), now.Add(3*time.Hour), 10)
			if len(due) != 1 || due[0].EntryID != a.entry.ID || due[0].Account != "test/ann" || due[0].ConversationID != a.entry.ConversationID {
				t.Errorf("lessons: %+v", due)
			}
			return err
		})
	})
}

func TestALeaseIsGivenUpAnyway(t *testing.T) {
	each(t, func(t *testing.T, b bundle) {
		a := b.admit(t, "1", "a")
		news, err := b.Commit(t.Context(), a.lease, commit.Changes{Release: &commit.Release{Anyway: true}})
		if err != nil || !news.Released {
			t.Errorf("given up: %+v, %v", news, err)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return storetest.Apply(ctx, tx, a.entry.ConversationID, commit.Changes{}) // somebody else can have it
		})
	})
}
