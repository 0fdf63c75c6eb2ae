package store_test

import (
	"context"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/store"
)

// A standing task that rests runs no sooner than told, and one that would run later anyway
// keeps its time.
func TestStandingTaskRests(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		t.Helper()
		p := b.agent(t, "watcher", every(3600))
		e, _ := b.uses(t, "here", p)
		s := b.schedule(t, e, p)
		for _, until := range []time.Time{s.NextAt.Add(time.Hour), s.NextAt} {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				if err := tx.Tasks().RestSchedule(ctx, e.ConversationID, until); err != nil {
					return err
				}
				got, on, err := tx.Tasks().Schedule(ctx, e.ConversationID)
				if !on || !got.NextAt.Equal(s.NextAt.Add(time.Hour)) || got.Runs != 0 {
					t.Errorf("until %s: %+v", until, got)
				}
				return err
			})
		}
	})
}

// A standing task whose message was wiped out by another program is run for nobody.
func TestStandingTaskWithoutItsMessageIsNotRead(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		t.Helper()
		p := b.agent(t, "watcher", every(3600))
		e, _ := b.uses(t, "here", p)
		b.schedule(t, e, p)
		for _, origin := range []string{"", "[]"} {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return store.Exec(ctx, tx, `UPDATE agent_schedules SET origin = $1`, origin)
			})
			err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
				_, _, err := tx.Tasks().Schedule(ctx, e.ConversationID)
				return err
			})
			if !fault.Is(err, fault.Internal) {
				t.Errorf("origin %q: %v", origin, err)
			}
		}
	})
}
