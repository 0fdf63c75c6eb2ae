package work

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/demo"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// port shows a store through the orchestrator's port, as the application does.
type port struct{ *store.Store }

func (p port) InTx(ctx context.Context, fn func(tx orchestrator.Tx) error) error {
	return p.Store.InTx(ctx, func(tx *store.Tx) error { return fn(tx) })
}

func (p port) InRead(ctx context.Context, fn func(tx orchestrator.Tx) error) error {
	return p.Store.InRead(ctx, func(tx *store.Tx) error { return fn(tx) })
}

// TestUndoAfterACrashTakesOneTurnBack runs /undo twice for one entry, as after a
// crash between taking the turn back and answering.
func TestUndoAfterACrashTakesOneTurnBack(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), port{storetest.SQLite(t)(t)}
	scripted := demo.New(demo.Config{})
	core, err := orchestrator.New(orchestrator.Config{
		Storage: db, Default: scripted.Name(), Log: storetest.Log(t),
		Assistants: map[assistant.Name]assistant.Assistant{scripted.Name(): scripted},
	})
	if err != nil {
		t.Fatal(err)
	}
	shop := New(Config{Storage: db, Log: storetest.Log(t)})
	shop.Bind(core)

	var r orchestrator.Request
	var session sessions.Session
	err = db.InTx(ctx, func(tx orchestrator.Tx) error {
		key := messages.ConversationKey{Platform: "test", ID: "1"}
		if r.Conv, _, err = tx.GetOrCreateConversation(ctx, key, "demo"); err != nil {
			return err
		}
		if session, err = tx.CreateSession(ctx, sessions.NewSession{ConversationID: r.Conv.ID, Assistant: "demo"}); err != nil {
			return err
		}
		for _, event := range []messages.EventID{"turn 1", "turn 2", "undo"} {
			r.Entry = sessions.Entry{
				ID: uuid.Must(uuid.NewV7()).String(), ConversationID: r.Conv.ID, In: messages.Inbound{Event: event, Conversation: key},
			}
			if _, err := tx.InsertEntry(ctx, &r.Entry); err != nil {
				return err
			}
			if event == "undo" {
				continue
			}
			seqs, err := tx.AppendMessages(ctx, session.ID, r.Entry.ID, messages.NewText(messages.RoleUser, string(event)))
			if err != nil {
				return err
			}
			err = tx.SaveCheckpoint(ctx, sessions.Checkpoint{
				EntryID: r.Entry.ID, ConversationID: r.Conv.ID, SessionID: session.ID, Seq: seqs[0],
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := shop.runUndo(ctx, r); err != nil {
			t.Fatal(err)
		}
		err := db.InRead(ctx, func(tx orchestrator.Tx) error {
			r.Entry, err = tx.Entry(ctx, r.Entry.ID)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var left []messages.Message
	err = db.InRead(ctx, func(tx orchestrator.Tx) error {
		left, err = tx.MessagesBefore(ctx, session.ID, 1<<62, 10)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || left[0].PlainText() != "turn 1" {
		t.Errorf("after one /undo that ran twice there is %v", left)
	}
}
