//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/waittest"
)

// expire takes away all of a kind that is older than before, two rows at a time, and
// returns how many were counted and how many there were.
func (b bundle) expire(t *testing.T, kind store.Expiring, before time.Time) (counted, pruned int64) {
	t.Helper()
	b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
		counted, err = tx.Care().CountExpired(ctx, kind, before)
		return err
	})
	for after := (store.PrunePlace{}); ; {
		n, next, err := b.Prune(t.Context(), kind, before, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		pruned += n
		if after = next; next == (store.PrunePlace{}) {
			return counted, pruned
		}
	}
}

// settledTurn stores a turn that was answered.
func (b bundle) settledTurn(t *testing.T, chat, event, session string) (sessions.Checkpoint, messages.Delivery) {
	t.Helper()
	c := b.turn(t, chat, event, session)
	d := messages.Delivery{ConversationID: c.ConversationID, EventID: c.EntryID, Text: "answer to " + event, Final: true, State: messages.DeliverySent}
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Deliveries().AddDelivery(ctx, &d); err != nil {
			return err
		}
		return tx.Inbox().UpdateEntry(ctx, c.EntryID, sessions.EntryUpdate{State: new(sessions.EntryDone), SessionID: &session})
	})
	return c, d
}

// kept returns which of entries still have a body, and which what was read from it.
func (b bundle) kept(t *testing.T, turns ...sessions.Checkpoint) (raw, data []int) {
	t.Helper()
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		raw, data = nil, nil
		for i, c := range turns {
			e, err := tx.Inbox().Entry(ctx, c.EntryID)
			if err != nil {
				return err
			}
			if e.In.Raw != nil {
				raw = append(raw, i)
			}
			if e.In.Text != "" {
				data = append(data, i)
			}
		}
		return nil
	})
	return raw, data
}

func TestPruningKeepsTheLastTurnToUndoAndRetry(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		s := b.session(t, b.conversation(t, "one").ID)
		var turns []sessions.Checkpoint
		for _, event := range []string{"1", "2", "3", "4", "5", "6"} {
			c, _ := b.settledTurn(t, "one", event, s.ID)
			turns = append(turns, c)
		}
		open := b.turn(t, "two", "waits", b.session(t, b.conversation(t, "two").ID).ID)
		if _, err := b.undo(t, turns[5]); err != nil {
			t.Fatal(err)
		}
		later := time.Now().Add(time.Hour)
		for i, kind := range []store.Expiring{store.ExpiringBodies, store.ExpiringCheckpoints} {
			for _, want := range []int64{[]int64{6, 5}[i], 0} { // a second time there is nothing left
				if counted, pruned := b.expire(t, kind, later); counted != want || pruned != want {
					t.Errorf("kind %d: counted %d, took %d, want %d", kind, counted, pruned, want)
				}
			}
		}
		raw, data := b.kept(t, append(slices.Clone(turns), open)...)
		if diff := cmp.Diff([][]int{{6}, {4, 6}}, [][]int{raw, data}); diff != "" {
			t.Errorf("turns with a body, turns with what was read (-want +got):\n%s", diff)
		}
		if last, ok := b.last(t, turns[0].ConversationID); !ok || last.EntryID != turns[4].EntryID || last.Ref != turns[4].Ref {
			t.Errorf("the last turn is %+v, %v; want the fifth", last, ok)
		}
		if last, ok := b.last(t, open.ConversationID); !ok || last.EntryID != open.EntryID {
			t.Errorf("a turn at work lost its checkpoint: %+v, %v", last, ok)
		}
		if n, err := b.undo(t, turns[4]); n == 0 || err != nil {
			t.Errorf("the last turn is not undone: %d messages, %v", n, err)
		}
		if _, fresh, err := b.tryAccept(t, "one", "1"); fresh || err != nil {
			t.Errorf("a redelivery is fresh: %v, %v", fresh, err)
		}
		// Undone, it is needed no more.
		if _, pruned := b.expire(t, store.ExpiringBodies, later); pruned != 1 {
			t.Errorf("%d bodies of an undone turn went, want 1", pruned)
		}
		if _, pruned := b.expire(t, store.ExpiringCheckpoints, later); pruned != 1 {
			t.Errorf("%d checkpoints of an undone turn went, want 1", pruned)
		}
	})
}

func TestPruningKeepsDeliveriesThatSomethingNeeds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		s := b.session(t, b.conversation(t, "one").ID)
		c, old := b.settledTurn(t, "one", "1", s.ID)
		asks := messages.Delivery{ConversationID: c.ConversationID, Text: "May I?", State: messages.DeliverySent}
		failed := messages.Delivery{ConversationID: c.ConversationID, Text: "lost", State: messages.DeliveryFailed}
		pending := messages.Delivery{ConversationID: c.ConversationID, Text: "pending"}
		working := b.accept(t, "one", "2")
		notice := messages.Delivery{ConversationID: c.ConversationID, EventID: working.ID, Text: "waits", State: messages.DeliverySent}
		last := messages.Delivery{ConversationID: c.ConversationID, Text: "last", State: messages.DeliverySent}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for _, d := range []*messages.Delivery{&asks, &failed, &pending, &notice, &last} {
				if err := tx.Deliveries().AddDelivery(ctx, d); err != nil {
					return err
				}
			}
			return nil
		})
		question := b.question(t, sessions.Entry{ID: c.EntryID, ConversationID: c.ConversationID},
			func(a *approval.Approval) { a.DeliveryID = string(asks.ID) })
		if _, pruned := b.expire(t, store.ExpiringDeliveries, time.Now().Add(-time.Hour)); pruned != 0 {
			t.Errorf("%d young deliveries went", pruned)
		}
		left := func() (texts []string) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				texts = nil
				for _, d := range []messages.Delivery{old, asks, failed, pending, notice, last} {
					switch found, err := tx.Deliveries().Delivery(ctx, d.ID); {
					case err == nil:
						texts = append(texts, found.Text)
					case !fault.Is(err, fault.NotFound):
						return err
					}
				}
				return nil
			})
			return texts
		}
		later := time.Now().Add(time.Hour)
		if counted, pruned := b.expire(t, store.ExpiringDeliveries, later); counted != 2 || pruned != 2 {
			t.Errorf("counted %d, took %d, want 2", counted, pruned)
		}
		if diff := cmp.Diff([]string{"May I?", "pending", "waits", "last"}, left()); diff != "" {
			t.Errorf("left (-want +got):\n%s", diff)
		}
		if err := b.decide(t, question, approval.Denied); err != nil {
			t.Fatal(err)
		}
		b.expire(t, store.ExpiringDeliveries, later)
		if diff := cmp.Diff([]string{"pending", "waits", "last"}, left()); diff != "" {
			t.Errorf("left after the decision (-want +got):\n%s", diff)
		}
	})
}

func TestPruningTakesButtonsThatDoNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		conversation := b.conversation(t, "one").ID
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for id, expires := range map[string]time.Duration{"over-1": -time.Hour, "over-2": -2 * time.Hour, "just": -time.Second, "lives": time.Hour} {
				err := tx.Buttons().SaveButton(ctx, command.Button{ID: id, ConversationID: conversation, Decision: "approve", Number: 1, ExpiresAt: time.Now().Add(expires)})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if counted, pruned := b.expire(t, store.ExpiringButtons, time.Now().Add(-time.Minute)); counted != 2 || pruned != 2 {
			t.Errorf("counted %d, took %d, want 2", counted, pruned)
		}
		if _, pruned := b.expire(t, store.ExpiringButtons, time.Now()); pruned != 1 {
			t.Errorf("took %d, want 1", pruned)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Buttons().Button(ctx, "lives")
			return err
		})
	})
}

// The message that shows a plan stays until the plan is decided and carried out: its
// buttons are taken away then.
func TestPruningKeepsTheMessageOfAPlan(t *testing.T) {
	t.Parallel()
	for _, state := range []plan.State{plan.Proposed, plan.Approved, plan.Executing, plan.Done} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b bundle) {
				c := b.conversation(t, "one")
				shows := messages.Delivery{ConversationID: c.ID, Text: "the plan", State: messages.DeliverySent}
				last := messages.Delivery{ConversationID: c.ID, Text: "last", State: messages.DeliverySent}
				b.do(t, func(ctx context.Context, tx *store.Tx) error {
					return errors.Join(tx.Deliveries().AddDelivery(ctx, &shows), tx.Deliveries().AddDelivery(ctx, &last))
				})
				p := b.propose(t, c.ID, 0, "1. look")
				p.DeliveryID = string(shows.ID)
				if err := b.settle(t, p, state); err != nil {
					t.Fatal(err)
				}
				want := map[bool]int64{true: 1}[state == plan.Done]
				if _, pruned := b.expire(t, store.ExpiringDeliveries, time.Now().Add(time.Hour)); pruned != want {
					t.Errorf("%d went, want %d", pruned, want)
				}
			})
		})
	}
}

// What is past its retention is found in a conversation of any length in a time that grows
// with it: 20,000 turns took 38 s when each looked at all before it.
func TestALongConversationIsPrunedInTime(t *testing.T) {
	t.Parallel()
	b := bundleOf(t)
	c := b.conversation(t, "chat")
	first, _ := b.settledTurn(t, c.ID, "1", b.session(t, c.ID).ID)
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		return store.Exec(ctx, tx, `WITH RECURSIVE g(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < 20000)
			INSERT INTO inbound_events (id, platform_type, event_id, conversation_id, seq, state, data, accepted_ms, checkpoint_seq)
			SELECT printf('00000000-0000-7000-8000-%012x', i), platform_type, 'e' || i, conversation_id, seq + i, 'done', data, accepted_ms + i, 1
			FROM g, inbound_events WHERE inbound_events.id = '`+first.EntryID+`'`)
	})
	began := time.Now()
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		n, err := tx.Care().CountExpired(ctx, store.ExpiringCheckpoints, time.Now().Add(time.Hour))
		if err == nil && n != 20_000 {
			t.Errorf("%d checkpoints are past their time", n)
		}
		return err
	})
	if took := time.Since(began); waittest.TooLong(took, time.Second) {
		t.Errorf("counting them took %s", took)
	}
}
