//nolint:thelper // these run tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/store"
)

// TestWhatNobodyWaitsForStillFailsTheTransaction: on PostgreSQL a delivery is sent
// with the commit, and refused there.
func TestWhatNobodyWaitsForStillFailsTheTransaction(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		told := false
		err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
			c, _, err := tx.Conversations().GetOrCreateConversation(ctx, key("kept"), "demo")
			if err != nil {
				return err
			}
			tx.AfterCommit(func() { told = true })
			return tx.Deliveries().AddNumbered(ctx, &messages.Delivery{ConversationID: c.ID, EventID: noSuchID, Seq: 1})
		})
		wantKind(t, err, fault.NotFound)
		if told {
			t.Error("somebody was told of a commit that failed")
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Conversations().FindConversation(ctx, key("kept"))
			wantKind(t, err, fault.NotFound)
			return nil
		})
	})
}
