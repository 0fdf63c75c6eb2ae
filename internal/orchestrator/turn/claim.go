package turn

import (
	"context"
	"errors"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
)

// ringPatience is how long a wake-up waits for a slot here before it is offered
// to any replica again.
const ringPatience = time.Second

// Ring looks after a conversation: it claims its lease and drains its inbox, in
// the background. It returns queue.ErrBusy if no slot becomes free within a
// second, and nil if there is nothing to do or somebody else does it.
func (o *Turns) Ring(ctx context.Context, conversationID string) error {
	patience, cancel := context.WithTimeout(ctx, ringPatience)
	defer cancel()
	if !o.slots.try() && !o.waitForSlot(patience) {
		return queue.ErrBusy
	}
	return o.claim(ctx, o.claimant(conversationID, &slotHold{}))
}

// waitForSlot waits for a slot until ctx is done, and reports whether it has one.
func (o *Turns) waitForSlot(ctx context.Context) bool {
	o.config.Metrics.Waiting(1)
	defer o.config.Metrics.Waiting(-1)
	return o.slots.acquire(ctx)
}

// RingAll is Ring for several conversations, whose leases are claimed together, and waits
// for no slot. It returns those that have to be looked after by somebody else, for which
// there was no slot; all, if their claim failed.
func (o *Turns) RingAll(ctx context.Context, conversationIDs []string) (left []string, err error) {
	var claimants []*worker
	for _, id := range conversationIDs {
		if o.slots.try() {
			claimants = append(claimants, o.claimant(id, &slotHold{}))
		} else {
			left = append(left, id)
		}
	}
	if len(claimants) == 0 {
		return left, nil
	}
	if err := o.claim(ctx, claimants...); err != nil {
		return conversationIDs, err
	}
	return left, nil
}

// ringStopped is Ring for a conversation where somebody said stop: what was stopped is
// settled also while all slots are in use, and nothing is begun then.
func (o *Turns) ringStopped(ctx context.Context, conversationID string) error {
	return o.claim(ctx, o.claimant(conversationID, &slotHold{gone: !o.slots.try()}))
}

// claimant returns a worker that is to claim the lease of a conversation.
func (o *Turns) claimant(conversationID string, slot *slotHold) *worker {
	w := o.newWorker(sessions.Conversation{ID: conversationID})
	w.slot = slot
	return w
}

// claim claims the leases of conversations in one transaction and drains their inboxes in
// the background, each with a slot or without. What is to be done first is taken with the
// lease; if that fails, each lease is claimed alone, and in the end without it, so that it is
// the pause before somebody tries again.
func (o *Turns) claim(ctx context.Context, workers ...*worker) error {
	held, err := o.claimAll(ctx, workers, true)
	_, begins := errors.AsType[*BeginError](err)
	switch {
	case err == nil || ctx.Err() != nil:
	case len(workers) > 1 && !fault.Uncertain(err):
		var failed error
		for _, w := range workers {
			failed = errors.Join(failed, o.claim(ctx, w))
		}
		return failed
	case begins:
		held, err = o.claimAll(ctx, workers, false)
	}
	for i, w := range workers {
		if err != nil {
			w.unclaim(err)
		}
		if err != nil || !held[i] || !w.begins(ctx) {
			o.forget(w.begun)
			w.slot.release(o.slots)
		}
	}
	if fault.Is(err, fault.NotFound) {
		return nil // deleted since
	}
	return err
}

// begins has a worker that holds its lease work in the background, unless there is nothing
// to do. It reports whether it does.
func (w *worker) begins(ctx context.Context) bool {
	if w.begun != nil && w.begun.decision.what == leave {
		return false // the lease is given back already
	}
	if w.o.background.Go(func(ctx context.Context) { w.o.workOn(ctx, w) }) {
		return true
	}
	w.handBack(ctx)
	return false
}

// claimAll claims the leases of the workers' conversations, and says which of them nobody
// else has. With take it decides in the same transaction what is to be done there, for the
// first step; a failure of that, or a panic, is a BeginError.
func (o *Turns) claimAll(ctx context.Context, workers []*worker, take bool) (held []bool, err error) {
	defer background.Recover(ctx, o.config.Log, "claim", func(failed error) {
		if err = failed; take {
			err = &BeginError{Err: failed}
		}
	})
	err = o.config.Storage.InTx(ctx, func(tx port.Tx) error {
		held = make([]bool, len(workers))
		for _, w := range workers {
			o.forget(w.begun) // of an earlier run of this function
			w.begun, w.open, w.calm = nil, nil, nil
		}
		return tx.Abreast(ctx, len(workers), func(i int) (err error) {
			held[i], err = workers[i].claim(ctx, tx, take)
			return err
		})
	})
	return held, err
}

// claim is a worker's part of claimAll.
func (w *worker) claim(ctx context.Context, tx port.Tx, take bool) (ok bool, err error) {
	id := w.conv.ID
	lease, conv, ok, err := tx.Leases().ClaimLease(ctx, id, w.o.owner, w.o.config.LeaseTTL)
	w.lease = lease
	if err != nil || !ok || !take {
		return ok, err
	}
	w.conv = conv
	w.begun = w.o.expect(id) // before the commit, so that no stop falls between the two
	open, err := tx.Conversations().OpenWork(ctx, id)
	if err == nil {
		w.open = &open
		w.begun.decision, err = w.decide(ctx, tx, false)
		w.open = nil
	}
	if err != nil {
		return true, &BeginError{Err: err}
	}
	return true, nil
}
