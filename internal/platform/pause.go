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
func Sleep(ctx context.Context, d time.Duration) error { return sleep(ctx, d, &leavable{}) }

func sleep(ctx context.Context, d time.Duration, l *leavable) error {
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
	case <-l.stopping:
		l.leave(l.why)
		return context.Canceled
	}
}

// leavable is work that is on record, so that somebody else can do it later.
type leavable struct {
	stopping <-chan struct{}
	leave    context.CancelCauseFunc
	why      error
}

type leavableKey struct{}

// Leavable returns a context for work that is on record and that another process can do
// as well: once stopping is closed, it ends with why as soon as the work would wait for
// long in AwaitTurn. What is under way then is not cut off.
func Leavable(ctx context.Context, stopping <-chan struct{}, why error) (context.Context, context.CancelFunc) {
	ctx, leave := context.WithCancelCause(ctx)
	l := &leavable{stopping: stopping, leave: leave, why: why}
	return context.WithValue(ctx, leavableKey{}, l), func() { leave(nil) }
}

// shortTurn is how long also those who stop wait for a turn.
const shortTurn = time.Second

// AwaitTurn waits for d, as Sleep does, for a turn to call a platform: nothing was sent
// yet. If the work below ctx is Leavable, a stop ends a wait of more than a second.
func AwaitTurn(ctx context.Context, d time.Duration) error {
	l, ok := ctx.Value(leavableKey{}).(*leavable)
	if !ok || d <= shortTurn {
		return Sleep(ctx, d)
	}
	return sleep(ctx, d, l)
}
