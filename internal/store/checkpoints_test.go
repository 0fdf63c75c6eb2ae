//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// turn stores a request with its checkpoint and the messages of its turn.
func (b bundle) turn(tb testing.TB, chat, event, sessionID string) sessions.Checkpoint {
	tb.Helper()
	e := b.accept(tb, chat, event)
	var c sessions.Checkpoint
	b.do(tb, func(ctx context.Context, tx *store.Tx) error {
		seqs, err := tx.Messages().AppendMessages(ctx, sessionID, e.ID, sampleMessages()...)
		if err != nil {
			return err
		}
		c = sessions.Checkpoint{
			EntryID: e.ID, ConversationID: e.ConversationID, SessionID: sessionID, Seq: seqs[0], Ref: "refs/bot/" + event,
		}
		return tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{Checkpoint: &c})
	})
	return c
}

func (b bundle) last(tb testing.TB, conversationID string) (c sessions.Checkpoint, ok bool) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		c, ok, err = tx.Messages().LastCheckpoint(ctx, conversationID)
		return err
	})
	return c, ok
}

func (b bundle) undo(tb testing.TB, c sessions.Checkpoint) (n int, err error) {
	tb.Helper()
	err = b.try(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		n, err = tx.Messages().UndoTurn(ctx, sessions.Checkpoint{EntryID: c.EntryID})
		return err
	})
	return n, err
}

// array returns the numbers of the messages that a model would see, oldest
// first, and checks that the turns' own view agrees.
func (b bundle) array(tb testing.TB, sessionID string, runs ...string) (seqs []int64) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) error {
		list, err := tx.Messages().MessagesBefore(ctx, sessionID, 1000, 100)
		if err != nil {
			return err
		}
		seqs = nil
		for i := range list {
			seqs = append(seqs, list[len(list)-1-i].Seq)
		}
		var ofRuns []int64
		for _, run := range runs {
			list, err := tx.Messages().RunMessages(ctx, run)
			if err != nil {
				return err
			}
			for _, m := range list {
				ofRuns = append(ofRuns, m.Seq)
			}
		}
		if diff := cmp.Diff(seqs, ofRuns); diff != "" {
			tb.Errorf("messages (-of the session +of its turns):\n%s", diff)
		}
		return nil
	})
	return seqs
}

func TestUndoTakesTurnsBackOneByOne(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		conversation := b.conversation(t, "chat")
		s := b.session(t, conversation.ID)
		if _, ok := b.last(t, conversation.ID); ok {
			t.Error("a checkpoint before the first turn")
		}
		first, second := b.turn(t, "chat", "1", s.ID), b.turn(t, "chat", "2", s.ID)
		elsewhere := b.session(t, b.conversation(t, "other").ID)
		third := b.turn(t, "other", "3", elsewhere.ID)

		got, ok := b.last(t, conversation.ID)
		if diff := cmp.Diff(second, got); diff != "" || !ok {
			t.Errorf("last checkpoint, %v (-want +got):\n%s", ok, diff)
		}
		if n, err := b.undo(t, second); n != 4 || err != nil {
			t.Errorf("%d messages undone, %v; want 4", n, err)
		}
		if diff := cmp.Diff([]int64{1, 2, 3, 4}, b.array(t, s.ID, first.EntryID, second.EntryID)); diff != "" {
			t.Errorf("after one undo (-want +got):\n%s", diff)
		}
		_, err := b.undo(t, second)
		wantKind(t, err, fault.Conflict)

		// The numbers go on; the next turn is undone without the one before.
		fourth := b.turn(t, "chat", "4", s.ID)
		if fourth.Seq != 9 {
			t.Errorf("the turn after an undo begins at %d, want 9", fourth.Seq)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			newest, err := tx.Messages().MessagesBefore(ctx, s.ID, 12, 5) // across the gap
			if len(newest) != 5 || newest[4].Seq != 3 {
				t.Errorf("%d messages, want 5 back to number 3", len(newest))
			}
			return err
		})
		for _, c := range []sessions.Checkpoint{fourth, first} {
			if got, _ := b.last(t, conversation.ID); got.EntryID != c.EntryID {
				t.Errorf("last checkpoint is that of %s, want %s", got.Ref, c.Ref)
			}
			if n, err := b.undo(t, c); n != 4 || err != nil {
				t.Errorf("%s: %d messages undone, %v; want 4", c.Ref, n, err)
			}
		}
		if _, ok := b.last(t, conversation.ID); ok {
			t.Error("a checkpoint is left after all were undone")
		}
		if got := b.array(t, s.ID, first.EntryID, second.EntryID, fourth.EntryID); len(got) != 0 {
			t.Errorf("messages %v are left", got)
		}
		if diff := cmp.Diff([]int64{1, 2, 3, 4}, b.array(t, elsewhere.ID, third.EntryID)); diff != "" {
			t.Errorf("the other conversation (-want +got):\n%s", diff)
		}
		if got := b.counts(t).messages; got != 16 {
			t.Errorf("%d messages stored, want all 16", got)
		}
	})
}

func TestUndoAcrossSessions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		conversation := b.conversation(t, "chat")
		old := b.session(t, conversation.ID)
		first := b.turn(t, "chat", "1", old.ID)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Sessions().DeactivateSession(ctx, old.ID, "reset")
		})
		fresh := b.session(t, conversation.ID)
		second := b.turn(t, "chat", "2", fresh.ID)
		if second.Seq != first.Seq {
			t.Fatalf("numbers %d and %d: this test wants the same", first.Seq, second.Seq)
		}
		if n, err := b.undo(t, second); n != 4 || err != nil {
			t.Errorf("%d undone, %v", n, err)
		}
		if got := b.array(t, old.ID, first.EntryID); len(got) != 4 {
			t.Errorf("the session before has %v left", got)
		}
		// Without its session a checkpoint still leads to the files.
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Sessions().DeleteSession(ctx, old.ID) })
		if got, ok := b.last(t, conversation.ID); !ok || got.Ref != first.Ref || got.SessionID != "" {
			t.Errorf("checkpoint of a deleted session: %+v, %v", got, ok)
		}
		if n, err := b.undo(t, first); n != 0 || err != nil {
			t.Errorf("%d undone of a deleted session, %v", n, err)
		}
	})
}

func TestUndoCountsMessagesAndNotBlocksOrPrompts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1")
		s := b.session(t, e.ConversationID)
		c := sessions.Checkpoint{EntryID: e.ID, ConversationID: e.ConversationID, SessionID: s.ID, Seq: 1}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.Messages().AppendMessages(ctx, s.ID, e.ID, sampleMessages()[:2]...); err != nil {
				return err
			}
			if err := store.Exec(ctx, tx, `
				INSERT INTO agent_messages (session_id, seq, role, kind, content, created_at)
				VALUES ($1, 3, 'system', 'system', 'be good', 0)`, s.ID); err != nil {
				return err
			}
			return tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{Checkpoint: &c})
		})
		if n, err := b.undo(t, c); n != 2 || err != nil {
			t.Errorf("%d undone, %v; want 2", n, err)
		}
	})
}

func TestTurnIsUndoneOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		s := b.session(t, b.conversation(t, "chat").ID)
		b.turn(t, "chat", "1", s.ID)
		c := b.turn(t, "chat", "2", s.ID)
		var won atomic.Int64
		errs := together(20, func(int) error {
			n, err := b.undo(t, c)
			if err == nil && n == 4 {
				won.Add(1)
			}
			if fault.Is(err, fault.Conflict) {
				return nil
			}
			return err
		})
		if len(errs) > 0 || won.Load() != 1 {
			t.Errorf("%d undid the turn, errors %v; want one and none", won.Load(), errs)
		}
		const none = "01900000-0000-7000-8000-000000000000"
		_, err := b.undo(t, sessions.Checkpoint{EntryID: none})
		wantKind(t, err, fault.NotFound)
		wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Inbox().UpdateEntry(ctx, none, sessions.EntryUpdate{Checkpoint: &c})
		}), fault.NotFound)
	})
}

func TestTurnThatBeginsAgainKeepsItsFirstCheckpoint(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1")
		s := b.session(t, e.ConversationID)
		save := func(change func(*sessions.Checkpoint)) {
			c := sessions.Checkpoint{EntryID: e.ID, ConversationID: e.ConversationID, SessionID: s.ID, Seq: 5}
			change(&c)
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{Checkpoint: &c})
			})
		}
		check := func(when, session, ref string, seq int64) {
			t.Helper()
			got, ok := b.last(t, e.ConversationID)
			if !ok || got.SessionID != session || got.Ref != ref || got.Seq != seq {
				t.Errorf("%s: %+v, %v; want %q from %d", when, got, ok, ref, seq)
			}
		}
		save(func(*sessions.Checkpoint) {})
		save(func(c *sessions.Checkpoint) { c.Ref, c.Seq = "first", 6 })
		check("the worktree came later", s.ID, "first", 5)
		save(func(c *sessions.Checkpoint) { c.Ref, c.Seq = "second", 7 })
		check("begun again", s.ID, "first", 5)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Sessions().DeactivateSession(ctx, s.ID, "")
		})
		next := b.session(t, e.ConversationID)
		save(func(c *sessions.Checkpoint) { c.Ref, c.Seq, c.SessionID = "third", 1, next.ID })
		check("begun again in another session", next.ID, "first", 1)
	})
}

// TestMessagesBeforeSkipsWhatWasUndone asks for one message behind many that were
// taken back.
func TestMessagesBeforeSkipsWhatWasUndone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		s := b.session(t, b.conversation(t, "chat").ID)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Messages().AppendMessages(ctx, s.ID, "r", messages.NewText(messages.RoleUser, "the first"))
			return err
		})
		for _, event := range []string{"1", "2", "3"} {
			if _, err := b.undo(t, b.turn(t, "chat", event, s.ID)); err != nil {
				t.Fatal(err)
			}
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.Messages().MessagesBefore(ctx, s.ID, 1000, 1)
			if len(got) != 1 || got[0].PlainText() != "the first" {
				t.Errorf("got %+v, want the first message", got)
			}
			return err
		})
	})
}
