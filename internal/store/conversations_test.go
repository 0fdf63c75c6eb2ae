//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"remote-agent/internal/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

func TestGetOrCreateConversationGivesConcurrentCallersOneRow(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		var mu sync.Mutex
		ids, creations := map[string]bool{}, 0
		errs := together(50, func(int) error {
			var id string
			var created bool
			err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
				c, fresh, err := tx.Conversations().GetOrCreateConversation(ctx, key("chat"), "demo")
				id, created = c.ID, fresh
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			ids[id] = true
			if created {
				creations++
			}
			return err
		})
		if len(errs) > 0 {
			t.Fatalf("%d callers failed, first: %v", len(errs), errs[0])
		}
		if len(ids) != 1 || creations != 1 {
			t.Errorf("%d ids and %d creations, want 1 and 1", len(ids), creations)
		}
	})
}

func TestConversationKeepsItsAssistant(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c := b.conversation(t, "chat")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			again, created, err := tx.Conversations().GetOrCreateConversation(ctx, key("chat"), "openai")
			if created || again.Assistant != "demo" {
				t.Errorf("created %v with assistant %q, want the old row with demo", created, again.Assistant)
			}
			return err
		})
		err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `UPDATE remote_agent_conversations SET ai_assistant_type = 'openai' WHERE id = $1`, c.ID)
		})
		wantKind(t, err, fault.Invalid)
		if err == nil || !strings.Contains(err.Error(), "locked at creation") {
			t.Errorf("the database said %v", err)
		}
	})
}

func TestConversationIsArchivedUnderAnotherKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		old := b.conversation(t, "chat")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			archive := key("chat#archived-1")
			if err := tx.Conversations().UpdateConversation(ctx, old.ID, sessions.ConversationUpdate{Key: &archive}); err != nil {
				return err
			}
			fresh, created, err := tx.Conversations().GetOrCreateConversation(ctx, key("chat"), "openai")
			if err != nil {
				return err
			}
			if !created || fresh.ID == old.ID || fresh.Assistant != "openai" {
				t.Errorf("got %+v, created %v", fresh, created)
			}
			return nil
		})
		err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Conversations().UpdateConversation(ctx, old.ID, sessions.ConversationUpdate{Key: new(key("chat"))})
		})
		wantKind(t, err, fault.Conflict)
	})
}

func TestForksFollowAConversationThatMoves(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		from, to := key("1"), key("-1001")
		homes := map[string]string{"fork": from.String(), "other": key("2").String(), "plain": ""}
		for id, home := range homes {
			c := b.conversation(t, id)
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Conversations().UpdateConversation(ctx, c.ID, sessions.ConversationUpdate{Settings: &sessions.Settings{Home: home, Mode: "ask"}})
			})
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Conversations().MoveHome(ctx, from, to) })
		homes["fork"] = to.String()
		for id, home := range homes {
			if got, want := b.conversation(t, id).Settings, (sessions.Settings{Home: home, Mode: "ask"}); got != want {
				t.Errorf("%s has %+v, want %+v", id, got, want)
			}
		}
	})
}

func TestUpdateConversationChangesOnlyWhatIsGiven(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		c := b.conversation(t, "chat")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			code, err := tx.Registry().Create(ctx, sessions.Codebase{Name: "app", DefaultCwd: "/w/app"})
			if err != nil {
				return err
			}
			if err := tx.Conversations().UpdateConversation(ctx, c.ID, sessions.ConversationUpdate{CodebaseID: &code.ID, Cwd: new("/w/app")}); err != nil {
				return err
			}
			got, err := tx.Conversations().Conversation(ctx, c.ID)
			if err != nil {
				return err
			}
			want := c
			want.CodebaseID, want.Cwd = code.ID, "/w/app"
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(sessions.Conversation{}, "UpdatedAt")); diff != "" {
				t.Errorf("conversation (-want +got):\n%s", diff)
			}
			if err := tx.Conversations().UpdateConversation(ctx, c.ID, sessions.ConversationUpdate{CodebaseID: new("")}); err != nil {
				return err
			}
			got, err = tx.Conversations().FindConversation(ctx, c.Key)
			if got.CodebaseID != "" || got.Cwd != "/w/app" {
				t.Errorf("codebase %q and directory %q, want none and /w/app", got.CodebaseID, got.Cwd)
			}
			return err
		})
	})
}

func TestMissingRowsAreNotFound(t *testing.T) {
	t.Parallel()
	const none = "01900000-0000-7000-8000-000000000000"
	reads := map[string]func(ctx context.Context, tx *store.Tx) error{
		"Conversation": func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Conversations().Conversation(ctx, none)
			return err
		},
		"FindConversation": func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Conversations().FindConversation(ctx, key("x"))
			return err
		},
		"Session":  func(ctx context.Context, tx *store.Tx) error { _, err := tx.Sessions().Session(ctx, none); return err },
		"Entry":    func(ctx context.Context, tx *store.Tx) error { _, err := tx.Inbox().Entry(ctx, none); return err },
		"Codebase": func(ctx context.Context, tx *store.Tx) error { _, err := tx.Registry().Codebase(ctx, none); return err },
		"UpdateSession": func(ctx context.Context, tx *store.Tx) error {
			return tx.Sessions().UpdateSession(ctx, none, sessions.SessionUpdate{AgentName: new("x")})
		},
		"DeactivateSession": func(ctx context.Context, tx *store.Tx) error {
			return tx.Sessions().DeactivateSession(ctx, none, "")
		},
		"StopEntries": func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Inbox().StopEntries(ctx, none, 1)
			return err
		},
		"CreateSession": func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: none, Assistant: "demo"})
			return err
		},
	}
	each(t, func(t *testing.T, b bundle) {
		for name, read := range reads {
			if err := b.try(t, read); !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: error %v, want not_found", name, err)
			}
		}
	})
}

func TestTooLongValuesAreInvalid(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
			_, _, err := tx.Conversations().GetOrCreateConversation(ctx, key(strings.Repeat("é", 256)), "demo")
			return err
		})
		wantKind(t, err, fault.Invalid)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, _, err := tx.Conversations().GetOrCreateConversation(ctx, key(strings.Repeat("é", 255)), "demo")
			return err
		})
	})
}

func TestDeletingCascades(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1")
		s := b.session(t, e.ConversationID)
		b.fill(t, e, s)
		if got, want := b.counts(t), (counts{1, 1, 2, 1, 1, 1}); got != want {
			t.Fatalf("before: %+v, want %+v", got, want)
		}
		other := b.accept(t, "other", "2")
		b.fill(t, other, b.session(t, other.ConversationID))
		if got := b.work(t); got != 8 {
			t.Fatalf("before: %d plans, numbers, buttons and checkpoints, want 8", got)
		}

		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `DELETE FROM agent_messages WHERE session_id = $1`, s.ID)
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			calls, err := tx.Calls().ToolCalls(ctx, s.ID)
			if len(calls) != 1 || calls[0].MessageSeq != 0 {
				t.Errorf("after deleting messages: %+v, want one call without message", calls)
			}
			return err
		})

		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Conversations().DeleteConversation(ctx, e.ConversationID)
		})
		if got, want := b.counts(t), (counts{1, 1, 2, 1, 1, 2}); got != want {
			t.Errorf("after: %+v, want %+v", got, want)
		}
		if got := b.work(t); got != 4 {
			t.Errorf("after: %d plans, numbers, buttons and checkpoints, want the 4 of the other", got)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Inbox().Entry(ctx, e.ID)
			if got.In.Text != "" || got.State != sessions.EntryStopped {
				t.Errorf("the event still says %q in state %s", got.In.Text, got.State)
			}
			return err
		})
		if _, fresh, err := b.tryAccept(t, "chat", "1"); fresh || err != nil {
			t.Errorf("redelivery after deletion: fresh %v, %v", fresh, err)
		}
	})
}

// work counts what belongs to plans and to going back.
func (b bundle) work(tb testing.TB) (n int) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		n, err = store.Count(ctx, tx, `
			SELECT (SELECT count(*) FROM plans) + (SELECT count(*) FROM plan_numbers)
				+ (SELECT count(*) FROM buttons) + (SELECT count(checkpoint_seq) FROM inbound_events)`)
		return err
	})
	return n
}

// fill stores two messages, a tool call, a plan with a button, a checkpoint and
// a delivery.
func (b bundle) fill(tb testing.TB, e sessions.Entry, s sessions.Session) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) error {
		seqs, err := tx.Messages().AppendMessages(ctx, s.ID, e.ID, sampleMessages()[:2]...)
		if err != nil {
			return err
		}
		if err := storetest.Calls(ctx, tx, sessions.ToolCall{
			SessionID: s.ID, MessageSeq: seqs[1], CallID: "call_1", Name: "shell", Request: `{}`,
		}); err != nil {
			return err
		}
		p := plan.Plan{ConversationID: e.ConversationID, SessionID: s.ID, EntryID: e.ID, Text: "1. look"}
		if err := tx.Proposals().InsertPlan(ctx, &p); err != nil {
			return err
		}
		if err := tx.Buttons().SaveButton(ctx, command.Button{ID: "b" + e.ID, ConversationID: e.ConversationID, Number: p.Number}); err != nil {
			return err
		}
		if err := tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{Checkpoint: &sessions.Checkpoint{SessionID: s.ID, Seq: seqs[0]}}); err != nil {
			return err
		}
		return tx.Deliveries().AddDelivery(ctx, delivery(e, "hello"))
	})
}

type counts struct{ conversations, sessions, messages, calls, deliveries, events int }

func (b bundle) counts(tb testing.TB) (c counts) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		for table, n := range map[string]*int{
			"remote_agent_conversations": &c.conversations, "remote_agent_sessions": &c.sessions,
			"agent_messages WHERE part = 0": &c.messages, "agent_tool_calls": &c.calls,
			"deliveries": &c.deliveries, "inbound_events": &c.events,
		} {
			if *n, err = store.Count(ctx, tx, `SELECT count(*) FROM `+table); err != nil {
				return err
			}
		}
		return nil
	})
	return c
}

// Another program may write what is no time, or no object, into the columns of seed 002. None of
// that decides anything, so a conversation that has it is read as one that has not.
func TestConversationIsReadWhateverAnotherProgramWroteThere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		times := []string{"x", ""}
		if b.Dialect() == "postgres" {
			times = []string{"infinity", "-infinity", "0044-03-15 BC", "294276-01-01"}
		}
		c := b.conversation(t, "chat")
		b.session(t, c.ID)
		for _, at := range times {
			for _, settings := range []string{`[]`, `"x"`, `null`, `{"mode": 1}`} {
				b.do(t, func(ctx context.Context, tx *store.Tx) error {
					return store.Exec(ctx, tx, strings.ReplaceAll(`UPDATE remote_agent_conversations SET created_at = '?', updated_at = '?', settings = $2 WHERE id = $1`, "?", at), c.ID, settings)
				})
				b.do(t, func(ctx context.Context, tx *store.Tx) error {
					return store.Exec(ctx, tx, strings.ReplaceAll(`UPDATE remote_agent_sessions SET started_at = '?', ended_at = '?', metadata = $2 WHERE conversation_id = $1`, "?", at), c.ID, strings.ReplaceAll(settings, "mode", "lastCommand"))
				})
				err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
					got, _, err := tx.Conversations().GetOrCreateConversation(ctx, key("chat"), "demo")
					if err == nil && (got.ID != c.ID || got.Settings.Mode != "" || !got.CreatedAt.IsZero() || !got.UpdatedAt.IsZero()) {
						t.Errorf("read %+v", got)
					}
					if err != nil {
						return err
					}
					s, active, err := tx.Sessions().ActiveSession(ctx, c.ID)
					if err == nil {
						err = tx.Sessions().UpdateSession(ctx, s.ID, sessions.SessionUpdate{Metadata: sessions.Metadata{"k": "v"}})
					}
					if err == nil && (!active || !s.StartedAt.IsZero() || !s.EndedAt.IsZero()) {
						t.Errorf("read %+v", s)
					}
					return err
				})
				if err != nil {
					t.Errorf("times %q, settings %s: %v", at, settings, err)
				}
			}
		}
	})
}

// TestConversationsBelow finds those with work, in the order of their ids, and of one platform.
func TestConversationsBelow(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		for i, id := range []string{"é:2", "é:1", "é", "é:3", "éa:1"} {
			c := b.conversation(t, id)
			state := sessions.EntryWaiting
			if id == "é:3" {
				state = sessions.EntryDone
			}
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Inbox().InsertEntry(ctx, &sessions.Entry{
					ID: fmt.Sprintf("01900000-0000-7000-8000-%012d", i), ConversationID: c.ID, Lane: sessions.LaneTurn, State: state,
					In: messages.Inbound{Event: messages.EventID(id), Kind: messages.KindMessage, Conversation: c.Key}, AcceptedAt: time.Now(),
				})
				return err
			})
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for platform, want := range map[messages.Platform][]string{key("é").Platform: {"é:1", "é:2"}, "other": nil} {
				list, err := tx.Conversations().ConversationsBelow(ctx, platform, "é:")
				if err != nil {
					return err
				}
				var got []string
				for _, c := range list {
					got = append(got, c.Key.ID)
				}
				if !slices.Equal(got, want) {
					t.Errorf("on %s: %q, want %q", platform, got, want)
				}
			}
			return nil
		})
	})
}
