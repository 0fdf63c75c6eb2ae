package turn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
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
func (h *host) awaitDecision(ctx context.Context, number int64) (assistant.Verdict, error) {
	defer h.r.w.o.decided.forget(number)
	ticker := time.NewTicker(h.r.w.o.config.RenewEvery)
	defer ticker.Stop()
	for {
		told := h.r.w.o.decided.on(number) // before the look, so that nothing falls between
		var a approval.Approval
		err := h.r.w.o.config.Storage.InRead(ctx, func(tx port.Tx) (err error) {
			a, err = tx.Questions().Approval(ctx, number)
			return err
		})
		switch {
		case err != nil:
			return assistant.Verdict{}, fmt.Errorf("look for a decision: %w", err)
		case a.State == approval.Allowed:
			// "Always" is our rule, which can be revoked, and the agent's only if it takes nothing else.
			return assistant.Verdict{Allow: true, Always: a.OnlyAlways()}, nil
		case a.State == approval.Denied:
			return assistant.Verdict{Reason: "a person denied it" + wording.Because(a.Note)}, nil
		case a.State != approval.Waiting:
			return assistant.Verdict{Reason: "not approved in time"}, nil
		case !time.Now().Before(a.ExpiresAt):
			err := h.r.w.hold(ctx, func(tx port.Tx) error { return h.r.w.o.expire(ctx, tx, a) })
			if err != nil && !isSettled(err) { // else somebody decided in this moment
				return assistant.Verdict{}, err
			}
			continue
		}
		expiry := time.NewTimer(time.Until(a.ExpiresAt))
		select {
		case <-told:
		case <-ticker.C:
			h.sendQuestions(ctx, a)
		case <-expiry.C:
		case <-h.r.w.o.slots.closing: // a person may take longer than the process has left
			if cancel, ok := h.r.w.o.holders.Load(h.r.w); ok {
				cancel.(context.CancelCauseFunc)(background.ErrShutdown)
			}
		case <-ctx.Done():
		}
		expiry.Stop()
		if ctx.Err() != nil {
			h.withdraw(a, context.Cause(ctx))
			return assistant.Verdict{}, context.Cause(ctx)
		}
	}
}

// sendQuestions sends a question that the platform did not take at once:
// the conversation's worker, who would, waits in this very turn.
func (h *host) sendQuestions(ctx context.Context, a approval.Approval) {
	var due []messages.Delivery
	err := h.r.w.o.config.Storage.InRead(ctx, func(tx port.Tx) error {
		due = nil
		open, err := tx.Deliveries().AllOpenDeliveries(ctx, h.r.w.conv.ID)
		for _, d := range open {
			if d.Control && d.EventID == a.EntryID && !d.NextAt.After(time.Now()) {
				due = append(due, d)
			}
		}
		return err
	})
	if err == nil && len(due) > 0 {
		err = h.r.w.o.outbox.SendHeld(ctx, h.r.w.conv.Key, due)
	}
	if err != nil && ctx.Err() == nil {
		h.r.w.o.config.Log.InfoContext(ctx, "a question is not shown yet", "approval", a.Name(), "err", err)
	}
}

// withdraw settles a question of an agent that does not wait for it any more.
func (h *host) withdraw(a approval.Approval, why error) {
	hold := time.Duration(0) // the worker shows it when the turn is over
	switch {
	case errors.Is(why, background.ErrShutdown):
		a.Note = approval.Restarted
	case why == context.Canceled: //nolint:errorlint // any other cause ends the turn
		a.Note, hold = approval.Withdrawn, outbox.Hold
	}
	ctx, cancel := h.r.w.settling()
	defer cancel()
	a.State, a.DecidedBy, a.DecidedAt = approval.Canceled, "system", time.Now()
	var shown messages.Delivery
	err := h.r.w.hold(ctx, func(tx port.Tx) (err error) {
		if err := h.r.w.o.settle(ctx, tx, a); err != nil {
			return err
		}
		shown, _, err = h.r.w.o.settledQuestion(ctx, tx, h.r.w.conv.Key, a, "", hold)
		return err
	})
	if err == nil && hold > 0 && shown.Message != "" {
		_ = h.r.w.o.outbox.SendHeld(ctx, h.r.w.conv.Key, []messages.Delivery{shown}) // else the worker does
	}
	if err != nil && !isSettled(err) {
		h.r.w.o.config.Log.InfoContext(ctx, "a question could not be withdrawn", "approval", a.Name(), "err", err)
	}
}

// waitsForDecision puts a turn aside that asked a person: it runs again when they
// have decided, or when the question expires. The attempt does not count. If the
// decision came while the turn ended, it goes on at once: both sides hold the
// conversation's row.
func (cl closing) waitsForDecision() ending {
	attempts := max(cl.d.entry.Attempts-1, 0)
	return ending{
		outcome: "waiting", change: sessions.EntryUpdate{Attempts: &attempts}, keep: cl.out.rest, run: sessions.RunRunning,
		within: func(ctx context.Context, tx port.Tx, e *ending) error {
			open, err := tx.Questions().EntryApprovals(ctx, cl.d.entry.ID)
			if err != nil {
				return err
			}
			at, names := time.Now(), ""
			for i, a := range open {
				if i == 0 || a.ExpiresAt.Before(at) {
					at = a.ExpiresAt
				}
				names += " " + a.Name()
			}
			if names != "" {
				e.parked = "✋ Waiting for approval of" + names + "."
			}
			e.change.NextAt = &at
			return cl.w.o.config.Queue.Enqueue(ctx, tx, queue.Job{Kind: queue.KindTurn, Key: cl.w.conv.ID, At: at})
		},
	}
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

// slotHold is a worker's slot, which it yields to others while its agent waits for
// a person. It is safe for concurrent use: an agent may ask several things.
type slotHold struct {
	mu    sync.Mutex // guards all below
	waits int        // questions that wait
	gone  bool       // the slot is somebody else's
	over  bool       // the worker is at its end

	enough context.CancelFunc // ends the wait for a slot, if there is one; may be nil
}

func (h *slotHold) yield(s *slots) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waits++; h.waits == 1 && !h.gone {
		h.gone = true
		s.release()
	}
	h.waitNoMore()
}

// resume waits for a slot again. Without one, because ctx has ended, the worker
// comes to its end without. If the agent asks something else meanwhile, whoever has
// the last answer waits for it.
func (h *slotHold) resume(ctx context.Context, s *slots) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h.mu.Lock()
	h.waits--
	wanted := h.wanted()
	if wanted {
		h.enough = cancel
	}
	h.mu.Unlock()
	if !wanted || !s.acquire(ctx) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.wanted() {
		s.release()
		return
	}
	h.gone = false
	h.waitNoMore()
}

// waitNoMore ends the wait for a slot; the lock is held.
func (h *slotHold) waitNoMore() {
	if h.enough != nil {
		h.enough()
	}
}

// wanted reports whether the slot is to come back; the lock is held.
func (h *slotHold) wanted() bool { return h.waits == 0 && h.gone && !h.over }

// isGone reports whether the slot is somebody else's.
func (h *slotHold) isGone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gone
}

// release gives the slot back for good, if it is there.
func (h *slotHold) release(s *slots) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over = true; !h.gone {
		h.gone = true
		s.release()
	}
}
