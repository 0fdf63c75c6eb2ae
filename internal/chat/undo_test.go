//nolint:thelper // EachDialect runs tests, not helpers: Helper would hide the line that failed
package chat

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/work"
)

// idleEngine is an Engine at which nothing runs. What it does not have is not asked for.
type idleEngine struct {
	Engine
	forgot *[]string // sessions; may be nil
}

func (e idleEngine) ForgetSession(id string) {
	if e.forgot != nil {
		*e.forgot = append(*e.forgot, id)
	}
}

// talk makes a conversation with two turns and the entry of a command behind them.
func talk(t *testing.T, db *store.Store) (h *Handler, r command.Request, session sessions.Session) {
	t.Helper()
	ctx := t.Context()
	h, err := New(Config{Storage: db, Work: work.New(work.Config{Store: db, Log: storetest.Log(t)}), Log: storetest.Log(t)})
	if err != nil {
		t.Fatal(err)
	}
	h.Bind(idleEngine{})
	err = db.InTx(ctx, func(tx *store.Tx) error {
		key := messages.ConversationKey{Platform: "test", ID: "1"}
		if r.Conv, _, err = tx.Conversations().GetOrCreateConversation(ctx, key, "demo"); err != nil {
			return err
		}
		if session, err = tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: r.Conv.ID, Assistant: "demo"}); err != nil {
			return err
		}
		for _, event := range []messages.EventID{"turn 1", "turn 2", "undo"} {
			r.Entry = sessions.Entry{
				ID: uuid.Must(uuid.NewV7()).String(), ConversationID: r.Conv.ID, In: messages.Inbound{Kind: messages.KindMessage, Event: event, Conversation: key},
			}
			if _, err := tx.Inbox().InsertEntry(ctx, &r.Entry); err != nil {
				return err
			}
			if event == "undo" {
				continue
			}
			seqs, err := tx.Messages().AppendMessages(ctx, session.ID, r.Entry.ID, messages.NewText(messages.RoleUser, string(event)))
			if err != nil {
				return err
			}
			err = tx.Inbox().UpdateEntry(ctx, r.Entry.ID, sessions.EntryUpdate{Checkpoint: &sessions.Checkpoint{SessionID: session.ID, Seq: seqs[0]}})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return h, r, session
}

// TestUndoAfterACrashTakesOneTurnBack runs /undo twice for one entry, as after a
// crash between taking the turn back and answering.
func TestUndoAfterACrashTakesOneTurnBack(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), storetest.SQLite(t)(t)
	h, r, session := talk(t, db)
	var forgot []string
	h.Bind(idleEngine{forgot: &forgot})
	var err error
	for range 2 {
		if _, err := h.turns.runUndo(ctx, r); err != nil {
			t.Fatal(err)
		}
		err := db.InRead(ctx, func(tx *store.Tx) error {
			r.Entry, err = tx.Inbox().Entry(ctx, r.Entry.ID)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var left []messages.Message
	err = db.InRead(ctx, func(tx *store.Tx) error {
		left, err = tx.Messages().MessagesBefore(ctx, session.ID, 1<<62, 10)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || left[0].PlainText() != "turn 1" {
		t.Errorf("after one /undo that ran twice there is %v", left)
	}
	if len(forgot) != 1 || forgot[0] != session.ID {
		t.Errorf("the engine was told to forget %q", forgot)
	}
}

// TestUndoTakesThePlanAlong: what the turn planned is rejected with it, and its session holds no
// plan for a command of the repository that carries one out.
func TestUndoTakesThePlanAlong(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(t testing.TB) *store.Store) {
		ctx, db := t.Context(), open(t)
		h, r, session := talk(t, db)
		p := plan.Plan{ConversationID: r.Conv.ID, SessionID: session.ID, Text: "1. Pack.", Requester: r.Actor()}
		err := db.InTx(ctx, func(tx *store.Tx) error {
			last, _, err := tx.Messages().LastCheckpoint(ctx, r.Conv.ID)
			if p.EntryID = last.EntryID; err != nil {
				return err
			}
			made := sessions.Remember(sessions.MetaOf("plan-feature", "", ""))
			if err := tx.Sessions().UpdateSession(ctx, session.ID, sessions.SessionUpdate{Metadata: made}); err != nil {
				return err
			}
			return tx.Proposals().InsertPlan(ctx, &p)
		})
		if err != nil {
			t.Fatal(err)
		}
		if reply, err := h.turns.runUndo(ctx, r); err != nil || !strings.Contains(reply.Text, "Plan p-1 is rejected.") {
			t.Fatalf("/undo says %q, %v", reply.Text, err)
		}
		err = db.InTx(ctx, func(tx *store.Tx) (err error) {
			if session, err = tx.Sessions().Session(ctx, session.ID); err != nil {
				return err
			}
			p, err = tx.Proposals().Plan(ctx, p.Number)
			return err
		})
		if err != nil || p.State != plan.Rejected || p.DecidedBy != r.Actor() {
			t.Errorf("the plan is %s by %q; %v", p.State, p.DecidedBy, err)
		}
		if sessions.Next(session.Metadata, sessions.MetaOf("execute", "", "")) != sessions.Continue {
			t.Errorf("the session still has a plan: %v", session.Metadata)
		}
	})
}

// TestAgentForgetsWhatWasTakenBack: the agent's own session has the turn, too. A retry of
// a turn of which nothing came keeps it.
func TestAgentForgetsWhatWasTakenBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run      func(*turns, context.Context, command.Request) (command.Reply, error)
		answered bool
		want     string
	}{
		"undo":                        {(*turns).runUndo, true, ""},
		"undo of what had no answer":  {(*turns).runUndo, false, ""},
		"retry":                       {(*turns).runRetry, true, ""},
		"retry of what had no answer": {(*turns).runRetry, false, "its own"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, db := t.Context(), storetest.SQLite(t)(t)
			h, r, session := talk(t, db)
			err := db.InTx(ctx, func(tx *store.Tx) error {
				if c.answered {
					last, _, err := tx.Messages().LastCheckpoint(ctx, r.Conv.ID)
					if err != nil {
						return err
					}
					if _, err := tx.Messages().AppendMessages(ctx, session.ID, last.EntryID, messages.NewText(messages.RoleAssistant, "done")); err != nil {
						return err
					}
				}
				return tx.Sessions().UpdateSession(ctx, session.ID, sessions.SessionUpdate{AssistantSessionID: new("its own")})
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.run(h.turns, ctx, r); err != nil {
				t.Fatal(err)
			}
			err = db.InRead(ctx, func(tx *store.Tx) error {
				session, err = tx.Sessions().Session(ctx, session.ID)
				return err
			})
			if err != nil || session.AssistantSessionID != c.want {
				t.Errorf("the agent goes on with %q, want %q; %v", session.AssistantSessionID, c.want, err)
			}
		})
	}
}

// TestUndoStopsAtAFork takes back what was said since a fork and nothing before it.
func TestUndoStopsAtAFork(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		ctx, db := t.Context(), open(t)
		h, r, parent := talk(t, db)
		var fork sessions.Session
		err := db.InTx(ctx, func(tx *store.Tx) error {
			done := sessions.EntryDone
			for _, event := range []string{"turn 1", "turn 2", "undo"} {
				e, ok, err := tx.Inbox().NextEntry(ctx, r.Conv.ID)
				if err != nil || !ok {
					return errors.Join(err, errors.New(event))
				}
				if err := tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{State: &done}); err != nil {
					return err
				}
			}
			forked, err := tx.Sessions().ForkSession(ctx, sessions.Fork{From: parent.ID})
			fork = forked.Session
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		left := func(session string) (n int) {
			t.Helper()
			err := db.InRead(ctx, func(tx *store.Tx) error {
				all, err := tx.Messages().MessagesBefore(ctx, session, 1<<62, 10)
				n = len(all)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		refused := func() {
			t.Helper()
			for _, run := range []func(context.Context, command.Request) (command.Reply, error){h.turns.runUndo, h.turns.runRetry} {
				_, err := run(ctx, r)
				if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "Nothing was undone: there is no turn since the fork. The first 2 messages") {
					t.Errorf("behind a fork: %v", err)
				}
			}
			if left(parent.ID) != 2 || left(fork.ID) != 2 {
				t.Errorf("%d messages are left before the fork, %d in it", left(parent.ID), left(fork.ID))
			}
		}
		refused()

		t.Log("a turn of its own is taken back, and nothing else")
		err = db.InTx(ctx, func(tx *store.Tx) error {
			e := sessions.Entry{ID: uuid.Must(uuid.NewV7()).String(), ConversationID: r.Conv.ID, In: messages.Inbound{Event: "turn 3", Conversation: r.Conv.Key}}
			if _, err := tx.Inbox().InsertEntry(ctx, &e); err != nil {
				return err
			}
			seqs, err := tx.Messages().AppendMessages(ctx, fork.ID, e.ID, messages.NewText(messages.RoleUser, "turn 3"))
			if err != nil {
				return err
			}
			return tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{Checkpoint: &sessions.Checkpoint{SessionID: fork.ID, Seq: seqs[0]}})
		})
		if err != nil {
			t.Fatal(err)
		}
		if reply, err := h.turns.runUndo(ctx, r); err != nil || !strings.Contains(reply.Text, "1 message") {
			t.Errorf("a turn of the fork: %q, %v", reply.Text, err)
		}
		refused()
	})
}

func (idleEngine) RetryNow(context.Context, sessions.Conversation, int64) (bool, error) {
	return false, nil
}
