//nolint:thelper // each runs tests, not helpers
package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/fault"
	"remote-agent/internal/store/storetest"

	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// What failed is listed page by page, the newest first, until somebody retries or drops
// it; once only.
func TestDeadEndsAreListedAndSettledOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		failed := sessions.EntryFailed
		var turns []sessions.Entry
		var answers []messages.Delivery
		for i := range 5 {
			e := b.accept(t, "chat", fmt.Sprint(i))
			turns = append(turns, e)
			d := messages.Delivery{ConversationID: e.ConversationID, EventID: e.ID, Text: "an answer", Final: true, State: messages.DeliveryFailed, Attempts: 3, Error: "refused"}
			why := "no model"
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				if err := tx.Inbox().UpdateEntry(ctx, e.ID, sessions.EntryUpdate{State: &failed, Error: &why}); err != nil {
					return err
				}
				return tx.Deliveries().AddDelivery(ctx, &d)
			})
			answers = append(answers, d)
		}
		b.accept(t, "chat", "waits")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			seen := 0
			for before := ""; ; {
				list, err := tx.Queue().FailedEntries(ctx, before, 2)
				if err != nil {
					return err
				}
				for _, e := range list {
					if want := turns[len(turns)-1-seen]; e.ID != want.ID || e.Error != "no model" || e.In.Text != want.In.Text || e.Key.ID != "chat" {
						t.Errorf("%d: %+v, want %s", seen, e, want.ID)
					}
					seen, before = seen+1, e.ID
				}
				if len(list) == 0 {
					break
				}
			}
			list, err := tx.Queue().FailedDeliveries(ctx, string(answers[4].ID), 10)
			if seen != 5 || len(list) != 4 || list[0].ID != string(answers[3].ID) || list[0].Error != "refused" || list[0].Attempts != 3 {
				t.Errorf("%d turns, answers %+v", seen, list)
			}
			return err
		})
		settled := func(change func(tx *store.Queue, ctx context.Context, id string) (string, error), id string) {
			t.Helper()
			for _, first := range []bool{true, false} {
				var conversation string
				err := b.try(t, func(ctx context.Context, tx *store.Tx) (err error) {
					conversation, err = change(tx.Queue(), ctx, id)
					return err
				})
				if first && (err != nil || conversation != turns[0].ConversationID) || !first && !fault.Is(err, fault.Conflict) {
					t.Errorf("first %v: %q, %v", first, conversation, err)
				}
			}
		}
		settled((*store.Queue).DropFailed, turns[1].ID)
		settled((*store.Queue).RetryDelivery, string(answers[1].ID))
		settled((*store.Queue).DropDelivery, string(answers[2].ID))
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			d, err := tx.Deliveries().Delivery(ctx, answers[1].ID)
			if err != nil || d.State != messages.DeliveryPending || d.Attempts != 0 || d.Error != "" || d.Text != "an answer" {
				t.Errorf("sent again: %+v, %v", d, err)
			}
			list, err := tx.Queue().WaitingDeliveries(ctx, 10)
			if err != nil || len(list) != 1 || list[0].ID != string(answers[1].ID) {
				t.Errorf("on their way: %+v, %v", list, err)
			}
			e, err := tx.Inbox().Entry(ctx, turns[1].ID)
			if err != nil || e.State != sessions.EntryStopped {
				t.Errorf("dropped: %+v, %v", e, err)
			}
			got, err := tx.Queue().Count(ctx, time.Now())
			if waits, unsent := time.Since(got.WaitingSince), time.Since(got.UnsentSince); waits < 0 || waits > time.Hour || unsent < 0 || unsent > time.Hour {
				t.Errorf("waiting since %s, unsent since %s", got.WaitingSince, got.UnsentSince)
			}
			if earlier, err := tx.Queue().Count(ctx, time.UnixMilli(-1)); err != nil || !earlier.WaitingSince.IsZero() {
				t.Errorf("what may not run yet waits since %s, %v", earlier.WaitingSince, err)
			}
			got.WaitingSince, got.UnsentSince = time.Time{}, time.Time{}
			if want := (store.QueueCounts{Waiting: 1, Deliveries: 1, FailedTurns: 4, FailedDeliveries: 3}); err != nil || got != want {
				t.Errorf("%+v, %v, want %+v", got, err, want)
			}
			ids, err := tx.Conversations().ConversationsWithWork(ctx, 10)
			if err != nil || len(ids) != 1 {
				t.Errorf("work: %v, %v", ids, err)
			}
			return err
		})
	})
}

func TestOpenEntriesAreInOrder(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		waits := b.accept(t, "a", "1")
		runs := b.accept(t, "b", "2")
		running, attempts, next := sessions.EntryRunning, 2, time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.Inbox().UpdateEntry(ctx, runs.ID, sessions.EntryUpdate{State: &running, Attempts: &attempts, NextAt: &next}); err != nil {
				return err
			}
			list, err := tx.Queue().OpenEntries(ctx, store.Viewer{}, 10)
			if len(list) != 2 || list[0].ID != runs.ID || list[1].ID != waits.ID || list[0].Attempts != 2 || !list[0].NextAt.Equal(next) {
				t.Errorf("%+v", list)
			}
			return err
		})
	})
}

// TestADamagedEventIsReadWithoutItsContent, wherever events are read: an error there would hold
// up its conversation for good, and take a page away.
func TestADamagedEventIsReadWithoutItsContent(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		damaged, sound := b.accept(t, "chat", "1"), b.accept(t, "chat", "2")
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := store.Exec(ctx, tx, `UPDATE inbound_events SET data = '{"kind":"message","text":' WHERE id = $1`, damaged.ID); err != nil {
				return err
			}
			conv, err := tx.Conversations().Conversation(ctx, damaged.ConversationID)
			if err != nil {
				return err
			}
			want := messages.Inbound{Kind: messages.KindUnreadable, Account: damaged.In.Account, Event: damaged.In.Event, Message: damaged.In.Message}
			want.Conversation.Platform = conv.Key.Platform
			check := func(where string, got messages.Inbound, err error) {
				got.Raw = nil // what the platform sent is stored by itself
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("%s (-want +got): %v\n%s", where, err, diff)
				}
			}
			next, _, err := tx.Inbox().NextEntry(ctx, conv.ID)
			check("NextEntry", next.In, err)
			next, err = tx.Inbox().Entry(ctx, damaged.ID)
			check("Entry", next.In, err)
			waiting, err := tx.Inbox().WaitingEntries(ctx, conv.ID, 0, 10)
			if len(waiting) != 2 || waiting[1].In.Text != sound.In.Text {
				t.Fatalf("WaitingEntries: %v, %+v", err, waiting)
			}
			check("WaitingEntries", waiting[0].In, err)
			open, err := tx.Queue().OpenEntries(ctx, store.Viewer{}, 10)
			if len(open) != 2 {
				t.Fatalf("OpenEntries: %v, %+v", err, open)
			}
			check("OpenEntries", open[0].In, err)
			events, err := tx.Pages().SessionEvents(ctx, sessions.Session{ConversationID: conv.ID, ID: conv.ID, StartedAt: time.Now()}, 0, 10)
			if len(events) != 2 {
				t.Fatalf("SessionEvents: %v, %+v", err, events)
			}
			check("SessionEvents", events[1].In, err)
			return nil
		})
	})
}

// TestDamagedButtonsHoldNoAnswerUp: its text goes out without them. PostgreSQL stores what they
// are, and no text of it.
func TestDamagedButtonsHoldNoAnswerUp(t *testing.T) {
	t.Parallel()
	b := bundle{storetest.SQLite(t)(t)}
	e := b.accept(t, "chat", "1")
	d := messages.Delivery{ConversationID: e.ConversationID, EventID: e.ID, Text: "an answer", Final: true, Buttons: []messages.Button{{ID: "go", Label: "Go"}}}
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Deliveries().AddDelivery(ctx, &d); err != nil {
			return err
		}
		for _, statement := range []string{`PRAGMA ignore_check_constraints = ON`, `UPDATE deliveries SET buttons = '[{"id":"go"},{"id":'`, `PRAGMA ignore_check_constraints = OFF`} {
			if err := store.Exec(ctx, tx, statement); err != nil {
				return err
			}
		}
		open, err := tx.Deliveries().AllOpenDeliveries(ctx, e.ConversationID)
		if err == nil && (len(open) != 1 || open[0].Text != d.Text || len(open[0].Buttons) != 0) {
			t.Errorf("%+v", open)
		}
		return err
	})
}

// An answer that stands on the platform already is edited when it is tried again, and not
// posted a second time.
func TestAnAnswerThatStandsIsNotPostedAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		e := b.accept(t, "chat", "1")
		d := messages.Delivery{ConversationID: e.ConversationID, EventID: e.ID, Text: "an answer", Final: true, State: messages.DeliveryFailed, Message: "m-7"}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.Deliveries().AddDelivery(ctx, &d); err != nil {
				return err
			}
			if _, err := tx.Queue().RetryDelivery(ctx, string(d.ID)); err != nil {
				return err
			}
			again, err := tx.Deliveries().Delivery(ctx, d.ID)
			if again.State != messages.DeliveryPlaced || again.Message != "m-7" {
				t.Errorf("tried again: %+v", again)
			}
			return err
		})
	})
}
