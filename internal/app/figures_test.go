package app

import (
	"context"
	"testing"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/metrics"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// TestFiguresOfTheService has a message wait that may run and another that may not yet, and
// half of the day's budget be used.
func TestFiguresOfTheService(t *testing.T) {
	t.Parallel()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) {
		t.Helper()
		s := open(t)
		budget := spend.Budget{DayMicros: 2_000_000}
		f := &figures{store: s, data: t.TempDir(), backups: t.TempDir(), limits: func() spend.Budget { return budget }, stalled: func() metrics.Stalled { return metrics.Stalled{Tool: 2} }}
		err := s.InTx(t.Context(), func(tx *store.Tx) error {
			key := messages.ConversationKey{Platform: "telegram", ID: "1"}
			conv, _, err := tx.Conversations().GetOrCreateConversation(t.Context(), key, "")
			if err != nil {
				return err
			}
			for n, next := range []time.Time{{}, time.Now().Add(time.Hour)} {
				e := sessions.Entry{
					ConversationID: conv.ID, Lane: sessions.LaneTurn, State: sessions.EntryWaiting, NextAt: next,
					AcceptedAt: time.Now().Add(-time.Duration(n+1) * 10 * time.Minute),
					In:         messages.Inbound{Event: messages.EventID(rune('a' + n)), Kind: messages.KindMessage, Conversation: key},
				}
				if _, err := tx.Inbox().InsertEntry(t.Context(), &e); err != nil {
					return err
				}
				if err := tx.Inbox().UpdateEntry(t.Context(), e.ID, sessions.EntryUpdate{NextAt: &next}); err != nil {
					return err
				}
			}
			return tx.Spending().AddUsage(t.Context(), spend.Record{Micros: 1_000_000, Known: true, At: time.Now()})
		})
		if err != nil {
			t.Fatal(err)
		}
		got := f.measure(t.Context())
		if !got.Inbox.Known || got.Inbox.Depth != 2 || got.Inbox.Oldest < 9*time.Minute || got.Inbox.Oldest > 15*time.Minute {
			t.Errorf("the inbox is %+v", got.Inbox)
		}
		if !got.Outbox.Known || got.Outbox.Depth != 0 || got.Outbox.Oldest != 0 {
			t.Errorf("the outbox is %+v", got.Outbox)
		}
		if got.Stalled.Tool != 2 {
			t.Errorf("%+v have stalled", got.Stalled)
		}
		if got.Budget != 0.5 || !got.Backup.IsZero() {
			t.Errorf("%g of the budget is used, the backup is of %s", got.Budget, got.Backup)
		}
		if got.Disk.Total > 0 && (got.Disk.Free <= 0 || got.Disk.Free > got.Disk.Total) {
			t.Errorf("the disk is %+v", got.Disk)
		}
		budget.DayMicros = 0
		if again := f.measure(t.Context()); again.Budget != 0.5 {
			t.Error("who asks often has it measured as often")
		}
		budget.DayMicros, f.at = 4_000_000, time.Time{}
		left, cancel := context.WithCancel(t.Context())
		cancel()
		f.measure(left)
		if got := f.measure(t.Context()); !got.Inbox.Known || got.Budget != 0.25 {
			t.Errorf("after somebody asked and went away, others get %+v", got)
		}
		f.at = time.Time{}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got := f.measure(t.Context()); got.Inbox.Known || got.Outbox.Known || got.Budget >= 0 {
			t.Errorf("what the database does not say is %+v", got)
		}
	})
}
