package github

import (
	"math/rand/v2"
	"slices"
	"time"

	"remote-agent/internal/platform"
)

// loopGuard ends a ping-pong with somebody who answers each answer at once, as
// a program does that writes under a person's account.
type loopGuard struct {
	answered *platform.Recent[messagesKey, time.Time] // conversation -> when we last wrote there
	quick    *platform.Recent[messagesKey, quickRun]  // conversation and sender -> requests at once in a row
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
	return &loopGuard{answered: platform.NewRecent[messagesKey, time.Time](4096), quick: platform.NewRecent[messagesKey, quickRun](4096)}
}

// spoke notes that the bot wrote in a conversation, by GitHub's clock, which also dates
// what people write.
func (g *loopGuard) spoke(conversation string, at time.Time) {
	g.answered.Put(messagesKey{conversation: conversation}, at)
}

// admits reports whether a request, named by id, is not one too many of a
// ping-pong.
func (g *loopGuard) admits(conversation, sender, id string, at time.Time) bool {
	answered, ok := g.answered.Get(messagesKey{conversation: conversation})
	quick := ok && at.Sub(answered) < quickly && at.Sub(answered) > -quickly
	run := g.quick.Change(messagesKey{conversation, sender}, func(r quickRun) quickRun {
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

// jittered returns d, or up to a quarter more or less.
func jittered(d time.Duration) time.Duration {
	return d - d/4 + rand.N(d/2+1) //nolint:gosec // jitter
}
