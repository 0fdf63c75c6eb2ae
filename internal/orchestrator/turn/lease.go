package turn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"remote-agent/internal/commit"
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
		news, err := w.o.config.Storage.Commit(ctx, w.lease, commit.Changes{Renew: w.o.config.LeaseTTL})
		done()
		switch {
		case err == nil:
			valid = asked.Add(w.o.config.LeaseTTL)
			w.o.running.stop(w.lease.ConversationID, news.StopSeq) // asked for on another replica
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
		if err := w.release(ctx, tx); err != nil {
			return err
		}
		if err := w.recordSent(ctx, tx); err != nil {
			return err
		}
		return w.o.config.Queue.Enqueue(ctx, tx, queue.Job{Kind: queue.KindTurn, Key: w.lease.ConversationID})
	})
}

// release gives the lease up, whatever there is left to do.
func (w *worker) release(ctx context.Context, tx port.Tx) error {
	_, err := tx.Leases().Apply(ctx, w.lease, commit.Changes{Release: &commit.Release{Anyway: true}})
	return err
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
