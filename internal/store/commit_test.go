//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"remote-agent/internal/commit"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

// admitted is a conversation whose turn has begun, as Accept does it.
type admitted struct {
	entry   sessions.Entry
	lease   sessions.Lease
	session sessions.Session
	shown   messages.Delivery
	seq     int64
}

func (b bundle) admit(tb testing.TB, chat, event string) (a admitted) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) error {
		c, _, err := tx.Conversations().GetOrCreateConversation(ctx, key(chat), "demo")
		if err != nil {
			return err
		}
		a.entry = sessions.Entry{ConversationID: c.ID, In: inbound(chat, event)}
		fresh, got, err := tx.Inbox().AdmitEntry(ctx, &a.entry, sessions.Admission{Owner: "me", TTL: time.Minute, Deliveries: 1})
		a.lease, a.seq = got.Lease, got.DeliverySeq
		if err != nil || !fresh {
			tb.Errorf("admitted: %v, %v", fresh, err)
			return err
		}
		if a.session, err = tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: c.ID, Assistant: "demo"}); err != nil {
			return err
		}
		a.shown = messages.Delivery{ConversationID: c.ID, EventID: a.entry.ID, State: messages.DeliverySending}
		return tx.Deliveries().AddNumbered(ctx, &a.shown)
	})
	return a
}

func TestCommitAppliesAllUnderTheLease(t *testing.T) {
	each(t, func(t *testing.T, b bundle) {
		a := b.admit(t, "1", "a")
		done, text := sessions.EntryDone, "the answer"
		a.shown.Text, a.shown.Final, a.shown.Message = text, true, "7"
		news, err := b.Commit(t.Context(), a.lease, commit.Changes{
			Entry: &commit.Entry{ID: a.entry.ID, EntryUpdate: sessions.EntryUpdate{State: &done}},
			Session: &commit.Session{
				ID: a.session.ID, Run: a.entry.ID,
				Messages: []messages.Message{messages.NewText(messages.RoleUser, "question"), messages.NewText(messages.RoleAssistant, text)},
				Turn:     &sessions.TurnRecord{Model: "m", Result: "the", InputTokens: 9},
			},
			Usage:      &spend.Record{EntryID: a.entry.ID, ConversationID: a.entry.ConversationID, Actor: "test/1", Assistant: "demo", Model: "m"},
			Deliveries: []messages.Delivery{a.shown},
			Added: []messages.Delivery{
				{ConversationID: a.entry.ConversationID, Text: "second", Final: true}, {ConversationID: a.entry.ConversationID, Text: "third", Final: true},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := (commit.News{InboxSeq: 1, DeliverySeq: a.seq + 2, LastSeq: 2}); news != want {
			t.Errorf("news %+v, want %+v", news, want)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			e, err := tx.Inbox().Entry(ctx, a.entry.ID)
			if err != nil || e.State != sessions.EntryDone {
				t.Errorf("entry %+v, %v", e, err)
			}
			list, err := tx.Messages().MessagesBefore(ctx, a.session.ID, 10, 10)
			if err != nil || len(list) != 2 || list[0].Seq != 2 || list[0].PlainText() != text {
				t.Errorf("messages %+v, %v", list, err)
			}
			s, err := tx.Sessions().Session(ctx, a.session.ID)
			if err != nil || s.InputTokens != 9 || s.Result != "the" || s.LastSeq != 2 {
				t.Errorf("session %+v, %v", s, err)
			}
			sum, err := tx.Spending().SumUsage(ctx, spend.Filter{EntryID: a.entry.ID})
			if err != nil || sum.Turns != 1 {
				t.Errorf("usage %+v, %v", sum, err)
			}
			open, err := tx.Deliveries().AllOpenDeliveries(ctx, a.entry.ConversationID)
			if err != nil || len(open) != 3 || open[0].Text != text || open[1].Text != "second" || open[1].Seq != a.seq+1 || open[2].Seq != a.seq+2 {
				t.Errorf("deliveries %+v, %v", open, err)
			}
			return err
		})
	})
}

func TestCommitChangesNothingWithoutTheLease(t *testing.T) {
	each(t, func(t *testing.T, b bundle) {
		a := b.admit(t, "1", "a")
		done := sessions.EntryDone
		changes := commit.Changes{
			Entry:      &commit.Entry{ID: a.entry.ID, EntryUpdate: sessions.EntryUpdate{State: &done}},
			Session:    &commit.Session{ID: a.session.ID, Messages: []messages.Message{messages.NewText(messages.RoleAssistant, "late")}},
			Deliveries: []messages.Delivery{{ID: a.shown.ID, Text: "late", Final: true, State: messages.DeliverySent}},
		}
		added := changes
		added.Added = []messages.Delivery{{ConversationID: a.entry.ConversationID, Text: "late"}}
		release := changes
		release.Release = &commit.Release{InboxSeq: 1, DeliverySeq: a.seq}
		for name, c := range map[string]commit.Changes{"changes": changes, "with new deliveries": added, "with a release": release} {
			for what, l := range map[string]sessions.Lease{
				"another owner":        {ConversationID: a.lease.ConversationID, Owner: "other", Epoch: a.lease.Epoch},
				"another epoch":        {ConversationID: a.lease.ConversationID, Owner: a.lease.Owner, Epoch: a.lease.Epoch - 1},
				"no such conversation": {ConversationID: "00000000-0000-7000-8000-000000000000", Owner: a.lease.Owner, Epoch: a.lease.Epoch},
			} {
				if _, err := b.Commit(t.Context(), l, c); !errors.Is(err, sessions.ErrLeaseLost) {
					t.Errorf("%s, %s: %v, want a lost lease", name, what, err)
				}
			}
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if e, err := tx.Inbox().Entry(ctx, a.entry.ID); err != nil || e.State != sessions.EntryWaiting {
				t.Errorf("entry %+v, %v", e, err)
			}
			if list, err := tx.Messages().MessagesBefore(ctx, a.session.ID, 10, 10); err != nil || len(list) != 0 {
				t.Errorf("messages %+v, %v", list, err)
			}
			open, err := tx.Deliveries().AllOpenDeliveries(ctx, a.entry.ConversationID)
			if err != nil || len(open) != 1 || open[0].Text != "" {
				t.Errorf("deliveries %+v, %v", open, err)
			}
			c, err := tx.Conversations().Conversation(ctx, a.entry.ConversationID)
			if err != nil || c.Owner != "me" || c.DeliverySeq != a.seq {
				t.Errorf("conversation %+v, %v", c, err)
			}
			return err
		})
	})
}

func TestALeaseIsGivenUpOnlyIfNothingCameIn(t *testing.T) {
	each(t, func(t *testing.T, b bundle) {
		a := b.admit(t, "1", "a")
		sent := a.shown
		sent.State, sent.Text, sent.Final = messages.DeliverySent, "x", true
		give := func() commit.News {
			t.Helper()
			news, err := b.Commit(t.Context(), a.lease, commit.Changes{
				Deliveries: []messages.Delivery{sent}, Release: &commit.Release{InboxSeq: 1, DeliverySeq: a.seq},
			})
			if err != nil {
				t.Fatal(err)
			}
			return news
		}
		var notice messages.Delivery
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			notice = messages.Delivery{ConversationID: a.entry.ConversationID, Text: "a notice", Final: true}
			return tx.Deliveries().AddDelivery(ctx, &notice)
		})
		if news := give(); news.Released || news.DeliverySeq != a.seq+1 {
			t.Errorf("with a notice that nobody has seen: %+v", news)
		}
		a.seq++
		b.accept(t, "1", "b")
		if news := give(); news.Released || news.InboxSeq != 2 {
			t.Errorf("with a message that nobody has seen: %+v", news)
		}
		if _, err := b.Commit(t.Context(), a.lease, commit.Changes{Release: &commit.Release{InboxSeq: 2, DeliverySeq: a.seq}, Added: []messages.Delivery{notice}}); err == nil {
			t.Error("a lease was given up with deliveries that nobody has sent")
		}
		news, err := b.Commit(t.Context(), a.lease, commit.Changes{Release: &commit.Release{InboxSeq: 2, DeliverySeq: a.seq}})
		if err != nil || !news.Released {
			t.Fatalf("with all seen: %+v, %v", news, err)
		}
		if _, err := b.Commit(t.Context(), a.lease, commit.Changes{}); !errors.Is(err, sessions.ErrLeaseLost) {
			t.Errorf("after the release: %v", err)
		}
	})
}

// TestATurnThatBeginsAtOnceHasItsCheckpoint stores an entry with the place at which the
// next message of its session is stored, behind one that was taken back.
func TestATurnThatBeginsAtOnceHasItsCheckpoint(t *testing.T) {
	each(t, func(t *testing.T, b bundle) {
		s := b.session(t, b.conversation(t, "chat").ID)
		first := b.turn(t, "chat", "1", s.ID)
		if _, err := b.undo(t, b.turn(t, "chat", "2", s.ID)); err != nil {
			t.Fatal(err)
		}
		e := sessions.Entry{ConversationID: first.ConversationID, In: inbound("chat", "3"), State: sessions.EntryRunning, Attempts: 1, SessionID: s.ID}
		var begun sessions.BegunRun
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, got, err := tx.Inbox().AdmitEntry(ctx, &e, sessions.Admission{Owner: "me", TTL: time.Minute, Begins: true})
			if err != nil {
				return err
			}
			begun, err = tx.Sessions().BeginRun(ctx, sessions.NewRun{SessionID: s.ID, EntryID: e.ID}, messages.NewText(messages.RoleUser, "x"))
			if err == nil && got.MessageSeq != begun.Seqs[0] {
				t.Errorf("the turn begins with message %d, not %d", begun.Seqs[0], got.MessageSeq)
			}
			return err
		})
		want := sessions.Checkpoint{EntryID: e.ID, ConversationID: e.ConversationID, SessionID: s.ID, Seq: begun.Seqs[0]}
		if got, ok := b.last(t, e.ConversationID); !ok || got != want {
			t.Errorf("last checkpoint %+v, %v; want %+v", got, ok, want)
		}
		if n, err := b.undo(t, want); n != 1 || err != nil {
			t.Errorf("%d messages undone, %v; want 1", n, err)
		}
		if got, ok := b.last(t, e.ConversationID); !ok || got != first {
			t.Errorf("last checkpoint %+v, %v; want %+v", got, ok, first)
		}
	})
}

func TestAnEventIsAdmittedOnce(t *testing.T) {
	each(t, func(t *testing.T, b bundle) {
		a := b.admit(t, "1", "a")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			again := sessions.Entry{ConversationID: a.entry.ConversationID, In: a.entry.In}
			fresh, _, err := tx.Inbox().AdmitEntry(ctx, &again, sessions.Admission{Owner: "other", TTL: time.Minute})
			if err != nil || fresh {
				t.Errorf("a repeated event: %v, %v", fresh, err)
			}
			c, err := tx.Conversations().Conversation(ctx, a.entry.ConversationID)
			if err != nil || c.Owner != "me" || c.InboxSeq != 1 || c.Epoch != a.lease.Epoch {
				t.Errorf("conversation %+v, %v", c, err)
			}
			open, err := tx.Conversations().OpenWork(ctx, c.ID)
			if err != nil || !open.Waiting || !open.Deliveries || open.Control || !open.Active || open.Session.ID != a.session.ID {
				t.Errorf("open work %+v, %v", open, err)
			}
			return err
		})
	})
}

func TestABegunRunTellsTheNewestMessageBefore(t *testing.T) {
	each(t, func(t *testing.T, b bundle) {
		a := b.admit(t, "1", "a")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			msg, run := messages.NewText(messages.RoleUser, "x"), sessions.NewRun{SessionID: a.session.ID, EntryID: a.entry.ID}
			for i, want := range []int64{0, 1} {
				if begun, err := tx.Sessions().BeginRun(ctx, run, msg); err != nil || begun.Newest != want || begun.Seqs[0] != want+1 {
					t.Errorf("run %d: %+v, %v", i, begun, err)
				}
			}
			if err := tx.Inbox().UpdateEntry(ctx, a.entry.ID, sessions.EntryUpdate{Checkpoint: &sessions.Checkpoint{SessionID: a.session.ID, Seq: 2}}); err != nil {
				return err
			}
			if _, err := tx.Messages().UndoTurn(ctx, sessions.Checkpoint{EntryID: a.entry.ID}); err != nil {
				return err
			}
			begun, err := tx.Sessions().BeginRun(ctx, run, msg)
			if err != nil || begun.Newest != 1 || begun.Seqs[0] != 3 {
				t.Errorf("after an undo: %+v, %v", begun, err)
			}
			return err
		})
	})
}
