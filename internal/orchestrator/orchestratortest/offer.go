package orchestratortest

import (
	"context"
	"slices"

	"remote-agent/internal/commit"
	"remote-agent/internal/store"
)

// takers are the other processes that take offers, as PostgreSQL would tell p.
func (w *World) takers(p *Process) (owners []string) {
	w.offers.Lock()
	defer w.offers.Unlock()
	for _, other := range w.listening {
		if other != p && !other.Dead() {
			owners = append(owners, other.Engine.Owner())
		}
	}
	return owners
}

// Share has processes offer conversations to each other from now on, which no process
// does else.
func (w *World) Share(among ...*Process) {
	w.offers.Lock()
	defer w.offers.Unlock()
	w.listening = among
}

// Deaf has a process not hear what it is offered, until it is told otherwise.
func (w *World) Deaf(p *Process, deaf bool) {
	w.offers.Lock()
	defer w.offers.Unlock()
	w.deaf = slices.DeleteFunc(w.deaf, func(q *Process) bool { return q == p })
	if deaf {
		w.deaf = append(w.deaf, p)
	}
}

// Offered returns how many conversations were offered so far.
func (w *World) Offered() int {
	w.offers.Lock()
	defer w.offers.Unlock()
	return w.offered
}

// offer tells a process of conversations, as a notification does.
func (w *World) offer(taker string, ids []string) {
	w.offers.Lock()
	defer w.offers.Unlock()
	w.offered += len(ids)
	for _, p := range w.listening {
		if p.Engine.Owner() == taker && !p.Dead() && !slices.Contains(w.deaf, p) {
			go p.Engine.Offered(context.WithoutCancel(w.T.Context()), ids)
		}
	}
}

// offeringTx is a transaction on SQLite that can offer, as one on PostgreSQL can.
type offeringTx struct {
	store.Port
	offer func(taker string, ids []string)
}

func (t offeringTx) Leases() commit.LeaseStore { return offeringLeases{t.Port.Leases(), t} }

type offeringLeases struct {
	commit.LeaseStore
	tx offeringTx
}

func (l offeringLeases) Offer(_ context.Context, taker string, ids ...string) error {
	l.tx.AfterCommit(func() { l.tx.offer(taker, ids) })
	return nil
}
