package turn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
)

// heartbeat renews the lease while the worker works. If it cannot be renewed in
// time, the worker is canceled before somebody else may take over.
func (w *worker) heartbeat(cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(w.o.config.RenewEvery)
	defer ticker.Stop()
	valid := time.Now().Add(w.o.config.LeaseTTL)
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-ticker.C:
		}
		asked := time.Now()
		ctx, done := context.WithDeadline(w.ctx, valid)
		var stopSeq int64
		err := w.o.config.Storage.InTx(ctx, func(tx port.Tx) (err error) {
			stopSeq, err = tx.Leases().RenewLease(ctx, w.lease, w.o.config.LeaseTTL)
			return err
		})
		done()
		switch {
		case err == nil:
			valid = asked.Add(w.o.config.LeaseTTL)
			w.o.running.stop(w.lease.ConversationID, stopSeq) // asked for on another replica
		case errors.Is(err, sessions.ErrLeaseLost), time.Now().Add(w.o.config.RenewEvery).After(valid):
			cancel(fmt.Errorf("%w: %w", sessions.ErrLeaseLost, err))
			return
		}
	}
}

// abandon gives the lease back when the process stops, so that somebody else
// can go on at once. Failing is harmless: the lease runs out.
func (w *worker) abandon() { w.handBack(w.ctx) }

// handBack is abandon for a worker that may not have begun to work. It wakes
// whoever is free.
func (w *worker) handBack(ctx context.Context) {
	if err := w.giveUp(ctx); err != nil && !errors.Is(err, sessions.ErrLeaseLost) {
		w.o.config.Log.WarnContext(ctx, "could not release a lease", "conversation_id", w.lease.ConversationID, "err", err)
	}
}

// giveUp stores what was sent, wakes whoever is free and ends the lease.
func (w *worker) giveUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return w.o.config.Storage.InTx(ctx, func(tx port.Tx) error {
		if _, err := tx.Leases().HoldLease(ctx, w.lease); err != nil {
			return err
		}
		if err := w.recordSent(ctx, tx); err != nil {
			return err
		}
		if err := w.o.config.Queue.Enqueue(ctx, tx, queue.Job{Kind: queue.KindTurn, Key: w.lease.ConversationID}); err != nil {
			return err
		}
		return tx.Leases().ReleaseLease(ctx, w.lease)
	})
}

// unclaim gives a lease back whose claim failed, if it may be on record nevertheless:
// this process would live on, and nobody would work under it.
func (w *worker) unclaim(failed error) {
	if fault.Uncertain(failed) && w.lease.Owner != "" {
		w.giveUpAfter(0)
	}
}

// giveUpAfter gives the lease up in the background after a pause, as soon as the database
// answers. It tries that until the lease has run out, or somebody else has it.
func (w *worker) giveUpAfter(pause time.Duration) {
	w.o.background.Go(func(ctx context.Context) {
		for over := time.Now().Add(w.o.config.LeaseTTL); time.Now().Add(pause).Before(over); pause = time.Second {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
			if err := w.giveUp(ctx); err == nil || errors.Is(err, sessions.ErrLeaseLost) {
				return // or it was not on record
			}
		}
	})
}

// hold runs fn in a transaction that is fenced by the lease. It is safe for
// concurrent use by the worker and its progress.
func (w *worker) hold(ctx context.Context, fn func(tx port.Tx) error) error {
	return w.o.config.Storage.InTx(ctx, func(tx port.Tx) error {
		if _, err := tx.Leases().HoldLease(ctx, w.lease); err != nil {
			return err
		}
		return fn(tx)
	})
}
