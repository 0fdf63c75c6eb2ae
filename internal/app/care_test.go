package app

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"remote-agent/internal/config"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// TestOneReplicaPrunesAtATime lets two replicas ask, of which one has the lease.
func TestOneReplicaPrunesAtATime(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), store.Options{DataDir: t.TempDir(), Log: slog.New(slog.DiscardHandler), Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	in := func(fn func(ctx context.Context, tx *store.Tx) error) {
		t.Helper()
		if err := s.InTx(t.Context(), func(tx *store.Tx) error { return fn(t.Context(), tx) }); err != nil {
			t.Fatal(err)
		}
	}
	const month = 30 * 24 * time.Hour
	const events = 2*pruneBatch + 1
	in(func(ctx context.Context, tx *store.Tx) error {
		for i := range events {
			key := messages.ConversationKey{Platform: "test", ID: "1"}
			e := sessions.Entry{
				In:    messages.Inbound{Event: messages.EventID(rune('a' + i)), Kind: messages.KindMessage, Conversation: key, Text: "said"},
				State: sessions.EntryDone, AcceptedAt: time.Now().Add(-month - time.Hour),
			}
			if _, err := tx.Inbox().InsertEntry(ctx, &e); err != nil {
				return err
			}
		}
		return nil
	})
	left := func() (n int64) {
		in(func(ctx context.Context, tx *store.Tx) (err error) {
			n, err = tx.Care().CountExpired(ctx, store.ExpiringBodies, time.Now().Add(-month))
			return err
		})
		return n
	}
	log := slog.New(slog.DiscardHandler)
	care := caretaker{store: s, leases: leases{s, log, "me"}, retention: config.Retention{Raw: month}, log: log}
	in(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Leases().AcquireNamed(ctx, pruneLease, "another", time.Minute)
		return err
	})
	if care.pruneAlone(t.Context()); left() != events {
		t.Errorf("%d of %d bodies are left although another replica has the lease", left(), events)
	}
	in(func(ctx context.Context, tx *store.Tx) error {
		return tx.Leases().ReleaseNamed(ctx, pruneLease, "another")
	})
	if care.pruneAlone(t.Context()); left() != 0 {
		t.Errorf("%d bodies are left", left())
	}
	in(func(ctx context.Context, tx *store.Tx) error {
		free, err := tx.Leases().AcquireNamed(ctx, pruneLease, "another", time.Minute)
		if !free {
			t.Error("the lease was not given back")
		}
		return err
	})
}
