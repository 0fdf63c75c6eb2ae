package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
)

// settleTime is how long a control command may be at work before a sweep takes
// it for one that a crash left over.
const settleTime = 5 * time.Second

// How many conversations a sweep looks at: few again and again, but at a start all that
// wait, or the slots would be idle between the sweeps.
const (
	sweptAtOnce = 100
	sweptFirst  = 10_000
)

// sweep rings for every conversation that has work and no live lease, and runs
// control commands that a crash left over. It is what makes lost wake-ups and
// dead processes harmless.
func (o *Orchestrator) sweep(ctx context.Context, _ queue.Job) error {
	o.inbox.StartDue()
	_, err := o.ringAll(ctx, time.Now().Add(-settleTime), sweptAtOnce)
	return err
}

// firstSweep is the sweep at the start, and after a halt. What it has no slot for gets
// a job, so that it does not wait for the next sweep.
func (o *Orchestrator) firstSweep(ctx context.Context) error {
	o.inbox.StartDue()
	before := time.Now().Add(-settleTime)
	if o.config.Exclusive {
		before = before.AddDate(1, 0, 0) // nobody else is at work on any, whatever the clock said when it came
	}
	left, err := o.ringAll(ctx, before, sweptFirst)
	if len(left) == 0 {
		return err
	}
	return errors.Join(err, o.ringLater(ctx, left))
}

// ringLater gives conversations that this process does not take to whoever has a slot.
func (o *Orchestrator) ringLater(ctx context.Context, ids []string) error {
	jobs := lists.Map(ids, func(id string) queue.Job { return queue.Job{Kind: queue.KindTurn, Key: id} })
	return o.config.Storage.InTx(ctx, func(tx Tx) error { return o.config.Queue.Enqueue(ctx, tx, jobs...) })
}

// ringAll starts what it can and returns the conversations that it has no slot
// for, of the limit that have waited longest. One that cannot be looked after keeps none of
// the others, but where the database is away.
func (o *Orchestrator) ringAll(ctx context.Context, before time.Time, limit int) (left []string, err error) {
	var (
		ids     []string
		control []sessions.Entry
	)
	err = o.config.Storage.InRead(ctx, func(tx Tx) (err error) {
		if ids, err = tx.Conversations().ConversationsWithWork(ctx, limit); err != nil {
			return err
		}
		control, err = tx.Inbox().ControlWork(ctx, before, 100)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for work: %w", err)
	}
	for _, e := range control {
		o.control.Start(e)
	}
	for i, id := range ids {
		switch failed := o.Ring(ctx, id); {
		case errors.Is(failed, queue.ErrBusy):
			return ids[i:], err // all slots work
		case failed != nil:
			err = errors.Join(err, fmt.Errorf("conversation %s: %w", id, failed))
			if ctx.Err() != nil || fault.Passing(failed) {
				return nil, err
			}
			continue
		}
		o.config.Metrics.SweepRang(1)
		o.config.Log.DebugContext(ctx, "sweep found work", "conversation_id", id)
	}
	return nil, err
}
