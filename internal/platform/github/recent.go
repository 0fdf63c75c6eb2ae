package github

import (
	"context"
	"math/rand/v2"
	"slices"
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
	r.change(k, func(V) V { return v })
}

// change replaces what k has by what f makes of it, and returns that.
func (r *recent[K, V]) change(k K, f func(V) V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, ok := r.byKey[k]
	if !ok {
		if len(r.order) < r.limit {
			r.order = append(r.order, k)
		} else {
			delete(r.byKey, r.order[r.next])
			r.order[r.next] = k
			r.next = (r.next + 1) % r.limit
		}
	}
	v := f(old)
	r.byKey[k] = v
	return v
}

// loopGuard ends a ping-pong with somebody who answers each answer at once, as
// a program does that writes under a person's account.
type loopGuard struct {
	answered *recent[messagesKey, time.Time] // conversation -> when we last wrote there
	quick    *recent[messagesKey, quickRun]  // conversation and sender -> requests at once in a row
}

// quickRun counts requests in a row. Deliveries, repeats of them and sweeps show
// the same request several times and in any order: it counts once, and gets the
// same answer each time.
type quickRun struct {
	n    int
	seen []quickRequest // the newest last
}

// quickRequest is a request and the place it had in its run.
type quickRequest struct {
	id string
	n  int
}

// maxSeen is how many requests of a conversation and sender are known again.
const maxSeen = 32

// place returns the place the request has had, if it was seen.
func (r quickRun) place(id string) (int, bool) {
	for _, s := range r.seen {
		if s.id == id {
			return s.n, true
		}
	}
	return 0, false
}

// with returns the run after a new request, whose place is n.
func (r quickRun) with(id string, n int) quickRun {
	seen := append(slices.Clone(r.seen[max(0, len(r.seen)+1-maxSeen):]), quickRequest{id: id, n: n})
	return quickRun{n: n, seen: seen}
}

type messagesKey struct{ conversation, sender string }

const (
	// quickly is how soon after our answer a person is not thought to have read it
	// and written the next request.
	quickly = 15 * time.Second

	// maxQuick is how many such requests in a row are served.
	maxQuick = 5
)

func newLoopGuard() *loopGuard {
	return &loopGuard{answered: newRecent[messagesKey, time.Time](4096), quick: newRecent[messagesKey, quickRun](4096)}
}

// spoke notes that the bot wrote in a conversation.
func (g *loopGuard) spoke(conversation string, at time.Time) {
	g.answered.put(messagesKey{conversation: conversation}, at)
}

// admits reports whether a request, named by id, is not one too many of a
// ping-pong.
func (g *loopGuard) admits(conversation, sender, id string, at time.Time) bool {
	answered, ok := g.answered.get(messagesKey{conversation: conversation})
	quick := ok && at.Sub(answered) < quickly && at.Sub(answered) > -quickly
	run := g.quick.change(messagesKey{conversation, sender}, func(r quickRun) quickRun {
		if _, again := r.place(id); again {
			return r
		}
		if !quick {
			return r.with(id, 0)
		}
		return r.with(id, r.n+1)
	})
	n, _ := run.place(id)
	return n <= maxQuick
}

// backoff is a growing, jittered pause between attempts.
type backoff struct{ next, limit time.Duration }

func newBackoff(first, limit time.Duration) *backoff { return &backoff{next: first, limit: limit} }

// sleep pauses at least for atLeast, or until ctx is done.
func (b *backoff) sleep(ctx context.Context, atLeast time.Duration) error {
	d := b.next/2 + rand.N(b.next/2+1) //nolint:gosec // jitter
	b.next = min(2*b.next, b.limit)
	return sleep(ctx, max(d, atLeast))
}

// jittered returns d, or up to a quarter more or less.
func jittered(d time.Duration) time.Duration {
	return d - d/4 + rand.N(d/2+1) //nolint:gosec // jitter
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
