package platform

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is a growing, jittered pause between attempts of an adapter. It is for
// one goroutine.
type Backoff struct{ first, next, limit time.Duration }

// NewBackoff returns pauses that begin at about first, double each time and stay
// at about limit.
func NewBackoff(first, limit time.Duration) *Backoff {
	return &Backoff{first: first, next: first, limit: limit}
}

// Sleep pauses at least for atLeast, or until ctx is done, and then returns its
// error.
func (b *Backoff) Sleep(ctx context.Context, atLeast time.Duration) error {
	d := b.next/2 + rand.N(b.next/2+1) //nolint:gosec // jitter
	b.next = min(2*b.next, b.limit)
	return Sleep(ctx, max(d, atLeast))
}

// Reset makes the next pause the first again.
func (b *Backoff) Reset() { b.next = b.first }

// Sleep waits for d or until ctx is done, and then returns its error.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
