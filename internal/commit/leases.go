package commit

import (
	"context"
	"time"

	"remote-agent/internal/sessions"
)

// LeaseStore gives leases and makes changes under them, as a part of a transaction.
type LeaseStore interface {
	// ClaimLease takes the conversation's lease for owner, locks its row and returns
	// it. ok is false if somebody holds a live lease, owner included.
	ClaimLease(ctx context.Context, conversationID, owner string, ttl time.Duration) (l sessions.Lease, c sessions.Conversation, ok bool, err error)

	// Apply makes changes a part of this transaction, as Storage.Commit does of one
	// of its own.
	Apply(ctx context.Context, l sessions.Lease, c Changes) (News, error)

	// HoldLease checks that l is still the current lease, locks the
	// conversation's row until the transaction ends and returns it. Every write
	// of a turn begins with it.
	HoldLease(ctx context.Context, l sessions.Lease) (sessions.Conversation, error)

	// Offer tells another process, once the transaction is committed, of conversations
	// that it is to work on, which it claims unless somebody has done so. An offer is a
	// wake-up: one that nobody hears is found by a sweep.
	Offer(ctx context.Context, taker string, conversationIDs ...string) error
}
