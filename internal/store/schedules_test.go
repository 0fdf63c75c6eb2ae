package store_test

import (
	"context"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/store"
)

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
