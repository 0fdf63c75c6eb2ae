package slack

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// recent remembers the newest entries, up to a limit. It is safe for concurrent
// use. What it forgets must cost no more than an extra call.
type recent[K comparable, V any] struct {
	mu    sync.Mutex // guards all below
	limit int
	byKey map[K]V
	order []K // oldest first, as a ring once full
	next  int // the oldest in a full ring
}

func newRecent[K comparable, V any](limit int) *recent[K, V] {
	return &recent[K, V]{limit: limit, byKey: make(map[K]V)}
}

func (r *recent[K, V]) get(k K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.byKey[k]
	return v, ok
}

func (r *recent[K, V]) put(k K, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(k, v)
}

// first returns what k was first put with, which is v if it is unknown.
func (r *recent[K, V]) first(k K, v V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.byKey[k]; ok {
		return known
	}
	r.set(k, v)
	return v
}

// take returns what k was put with and makes v its value.
func (r *recent[K, V]) take(k K, v V) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.byKey[k]
	r.set(k, v)
	return known, ok
}

// set stores v; r.mu is held.
func (r *recent[K, V]) set(k K, v V) {
	if _, ok := r.byKey[k]; !ok {
		if len(r.order) < r.limit {
			r.order = append(r.order, k)
		} else {
			delete(r.byKey, r.order[r.next])
			r.order[r.next] = k
			r.next = (r.next + 1) % r.limit
		}
	}
	r.byKey[k] = v
}

// backoff is a growing, jittered pause between attempts.
type backoff struct{ next, limit time.Duration }

func newBackoff(first, limit time.Duration) *backoff { return &backoff{next: first, limit: limit} }

// sleep pauses at least for atLeast, or until ctx is done.
func (b *backoff) sleep(ctx context.Context, atLeast time.Duration) {
	d := b.next/2 + rand.N(b.next/2+1) //nolint:gosec // jitter
	b.next = min(2*b.next, b.limit)
	_ = sleep(ctx, max(d, atLeast))
}

// sleep waits for d or until ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
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
