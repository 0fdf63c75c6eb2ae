package orchestrator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
)

// decided wakes the agents of this process that wait for a decision.
type decided struct {
	mu      sync.Mutex // guards waiting
	waiting map[int64]chan struct{}
}

// tell wakes whoever waits for an approval.
func (d *decided) tell(number int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c, ok := d.waiting[number]; ok {
		close(c)
		delete(d.waiting, number)
	}
}

// on returns a channel that is closed by tell.
func (d *decided) on(number int64) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.waiting[number]
	if !ok {
		if d.waiting == nil {
			d.waiting = make(map[int64]chan struct{})
		}
		c = make(chan struct{})
		d.waiting[number] = c
	}
	return c
}

func (d *decided) forget(number int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, number)
}

// awaitDecision waits until an approval is settled, expires, or ctx ends. A
// decision that was taken on another replica is seen at the pace of the lease.
func (w *worker) awaitDecision(ctx context.Context, number int64) (assistant.Verdict, error) {
	defer w.o.decided.forget(number)
	ticker := time.NewTicker(w.o.config.RenewEvery)
	defer ticker.Stop()
	for {
		told := w.o.decided.on(number) // before the look, so that nothing falls between
		var a approval.Approval
		err := w.o.config.Storage.InRead(ctx, func(tx Tx) error {
			var err error
			a, err = tx.Approval(ctx, number)
			return err
		})
		switch {
		case err != nil:
			return assistant.Verdict{}, fmt.Errorf("look for a decision: %w", err)
		case a.State == approval.Allowed:
			return assistant.Verdict{Allow: true, Always: a.Rule != "" && w.ruled(ctx, a)}, nil
		case a.State == approval.Denied:
			return assistant.Verdict{Reason: "a person said no" + because(a.Note)}, nil
		case a.State != approval.Waiting:
			return assistant.Verdict{Reason: "nobody decided in time, and no answer is no"}, nil
		case !time.Now().Before(a.ExpiresAt):
			if err := w.hold(ctx, func(tx Tx) error { return w.o.expire(ctx, tx, a) }); err != nil {
				return assistant.Verdict{}, err
			}
			continue
		}
		expiry := time.NewTimer(time.Until(a.ExpiresAt))
		select {
		case <-told:
		case <-ticker.C:
		case <-expiry.C:
		case <-ctx.Done():
			expiry.Stop()
			return assistant.Verdict{}, context.Cause(ctx)
		}
		expiry.Stop()
	}
}

// ruled reports whether the like of an approval is allowed from now on.
func (w *worker) ruled(ctx context.Context, a approval.Approval) (ok bool) {
	err := w.o.config.Storage.InRead(ctx, func(tx Tx) error {
		var err error
		ok, err = tx.HasRule(ctx, a.CodebaseID, a.Tool, a.Rule)
		return err
	})
	return err == nil && ok
}

// waitTurn puts a turn aside until a person has decided. The attempt does not
// count. If the decision came while the turn ended, it goes on at once: both
// sides hold the conversation's row.
func (w *worker) waitTurn(d decision, out outcome, placed *messages.Delivery) error {
	ctx, cancel := w.settling()
	defer cancel()
	w.o.windows.forget(d.begun.session.ID)
	attempts := max(d.entry.Attempts-1, 0)
	names := ""
	err := w.hold(ctx, func(tx Tx) error {
		names = ""
		if len(out.rest) > 0 {
			if _, err := tx.AppendMessages(ctx, d.begun.session.ID, d.entry.ID, out.rest...); err != nil {
				return err
			}
		}
		if _, err := out.host.recordEnd(ctx, tx, out.finished); err != nil {
			return err
		}
		open, err := tx.EntryApprovals(ctx, d.entry.ID)
		if err != nil {
			return err
		}
		at := time.Now()
		for i, a := range open {
			if i == 0 || a.ExpiresAt.Before(at) {
				at = a.ExpiresAt
			}
			names += " " + a.Name()
		}
		if err := tx.UpdateEntry(ctx, d.entry.ID, sessions.EntryUpdate{NextAt: &at, Attempts: &attempts}); err != nil {
			return err
		}
		return w.o.config.Queue.Enqueue(ctx, tx, queue.Job{Kind: queue.KindTurn, Key: w.conv.ID, At: at})
	})
	if err != nil {
		return fmt.Errorf("put a turn aside: %w", err)
	}
	if names != "" {
		w.showParked(ctx, placed, "✋ Waiting for a decision on"+names+".")
	}
	return nil
}

// turnLimit ends a turn that takes too long. The time that a person takes for a
// decision does not count.
type turnLimit struct {
	mu     sync.Mutex // guards all below
	left   time.Duration
	since  time.Time // of the current run of the clock; zero while it stands
	paused int
	timer  *time.Timer
}

// newTurnLimit starts the clock. expire is called once, when the time is over.
func newTurnLimit(d time.Duration, expire func()) *turnLimit {
	return &turnLimit{left: d, since: time.Now(), timer: time.AfterFunc(d, expire)}
}

// pause stops the clock until the returned function is called.
func (l *turnLimit) pause() (resume func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused++; l.paused == 1 {
		l.timer.Stop()
		l.left -= time.Since(l.since)
	}
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.paused--; l.paused == 0 {
			l.since = time.Now()
			l.timer.Reset(max(l.left, time.Millisecond))
		}
	})
}

func (l *turnLimit) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused++ // a late resume does not start it again
	l.timer.Stop()
}
