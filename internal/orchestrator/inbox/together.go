package inbox

import (
	"context"
	"sync"

	"remote-agent/internal/messages"
)

// The bounds of events that are accepted in one transaction, although several calls
// brought them.
const (
	mostAlone    = 4   // transactions at once: who comes then waits for company
	mostTogether = 100 // events
)

// together lets calls that come while enough others are at work share a transaction,
// as a crowd of webhooks does: each of them would wait for round trips and a commit of
// its own. Who comes to a quiet service waits for nobody. The zero value is ready, and safe for concurrent use.
type together struct {
	mu      sync.Mutex // guards both below
	running int        // transactions
	waiting []*joiner
}

// joiner is a call that waits.
type joiner struct {
	events []messages.Inbound
	turn   chan []*joiner // lead these, of whom this one is the first
	result chan outcome   // somebody else has led
}

// outcome is what became of the events of a call. A failure may be another one's:
// then the call is to try alone.
type outcome struct {
	plan   []accepted
	failed bool
}

// join has store run for events, maybe together with those of other calls, and returns
// what it returns for them. What is wrong with the events of one call, or the end of its
// ctx, fails no other call.
func (t *together) join(ctx context.Context, events []messages.Inbound, store func(context.Context, []messages.Inbound) ([]accepted, error)) ([]accepted, error) {
	t.mu.Lock()
	if t.running < mostAlone {
		t.running++
		t.mu.Unlock()
		defer t.next()
		return store(ctx, events)
	}
	j := &joiner{events: events, turn: make(chan []*joiner, 1), result: make(chan outcome, 1)}
	t.waiting = append(t.waiting, j)
	t.mu.Unlock()

	select { // not ctx, which ends what is stored and not the wait: whoever leads soon comes
	case group := <-j.turn:
		defer t.next()
		return lead(ctx, group, store)
	case got := <-j.result:
		if got.failed {
			return store(ctx, events)
		}
		return got.plan, nil
	}
}

// next has the first of those who wait lead the others of a group.
func (t *together) next() {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, events := 0, 0
	for n < len(t.waiting) && (n == 0 || events+len(t.waiting[n].events) <= mostTogether) {
		events += len(t.waiting[n].events)
		n++
	}
	if n == 0 {
		t.running--
		return
	}
	t.waiting[0].turn <- t.waiting[:n:n]
	if t.waiting = t.waiting[n:]; len(t.waiting) == 0 {
		t.waiting = nil
	}
}

// lead stores the events of a group, and those of its first call alone if that fails.
func lead(ctx context.Context, group []*joiner, store func(context.Context, []messages.Inbound) ([]accepted, error)) (plan []accepted, err error) {
	told := 1
	defer func() { // also after a panic
		for _, j := range group[told:] {
			j.result <- outcome{failed: true}
		}
	}()
	var all []messages.Inbound
	for _, j := range group {
		all = append(all, j.events...)
	}
	plan, err = store(ctx, all)
	if err != nil {
		if len(group) == 1 {
			return nil, err
		}
		for ; told < len(group); told++ {
			group[told].result <- outcome{failed: true}
		}
		return store(ctx, group[0].events)
	}
	at := len(group[0].events)
	for ; told < len(group); told++ {
		n := len(group[told].events)
		group[told].result <- outcome{plan: plan[at : at+n : at+n]}
		at += n
	}
	return plan[:len(group[0].events)], nil
}
