package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/access"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// watchEvery is how soon this process sees what another one, or an operator on the
// command line, changed: a halt, or who may do what.
const watchEvery = 500 * time.Millisecond

// Causes of a turn's end that have to do with authority.
var (
	errHalted  = errors.New("the service was halted")
	errRemoved = errors.New("who asked may not use the bot any more")
)

// watched is the state of the service as this process last saw it. Nothing is
// decided by it that a transaction does not decide again.
type watched struct {
	mu    sync.Mutex // guards state
	state sessions.ServiceState
	look  chan struct{} // buffered; a value asks for a look now
}

func (w *watched) get() sessions.ServiceState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

func (w *watched) swap(next sessions.ServiceState) (before sessions.ServiceState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, w.state = w.state, next
	return before
}

// AccessChanged tells that the state of the service was changed by this process, so
// that running turns end now and not with the next look.
func (o *Orchestrator) AccessChanged() {
	select {
	case o.watched.look <- struct{}{}:
	default:
	}
}

// Halted returns the state of the service as this process last saw it, at most
// about a second ago.
func (o *Orchestrator) Halted() sessions.ServiceState { return o.watched.get() }

// watch looks at the state of the service until ctx ends.
func (o *Orchestrator) watch(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		o.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-o.watched.look:
		}
	}
}

// look reads the state of the service and does what follows from it: running turns
// end if it is halted, and those of people who were removed always; what waited
// goes on once a halt is over.
func (o *Orchestrator) look(ctx context.Context) {
	defer background.Recover(ctx, o.config.Log, "watch", nil)
	var next sessions.ServiceState
	err := o.config.Storage.InRead(ctx, func(tx Tx) error {
		var err error
		next, err = tx.ServiceState(ctx)
		return err
	})
	if err != nil {
		if ctx.Err() == nil {
			o.config.Log.DebugContext(ctx, "Could not look whether the service is halted", "err", err)
		}
		return
	}
	before := o.watched.swap(next)
	o.config.Metrics.Halted(next.Halted())
	if next.Halted() {
		if !before.Halted() {
			o.config.Log.WarnContext(ctx, "Halted: nothing starts until somebody resumes", "by", next.HaltedBy, "since", next.HaltedAt)
		}
		o.running.cutAll(errHalted)
		return
	}
	o.judgeRunning(ctx, next.AccessSeq)
	if before.Halted() {
		o.config.Log.WarnContext(ctx, "Resumed")
		o.background.Go(func(ctx context.Context) { // what it has no slot for, the sweep rings
			if _, err := o.ringAll(ctx, time.Now().Add(-settleTime)); err != nil && ctx.Err() == nil {
				o.config.Log.WarnContext(ctx, "Could not go on at once; the sweep does", "err", err)
			}
		})
		o.inbox.StartDue()
	}
}

// judgeRunning ends the turns that began under an authority which does not hold
// any more.
func (o *Orchestrator) judgeRunning(ctx context.Context, seq int64) {
	for _, h := range o.running.before(seq) {
		var v access.Verdict
		err := o.config.Storage.InRead(ctx, func(tx Tx) error {
			var err error
			v, err = o.access.Judge(ctx, tx, h.in)
			return err
		})
		if err != nil {
			return // the next look asks again
		}
		o.running.judged(h.handle, seq, v.Role == sessions.Stranger)
	}
}

// waitHalted leaves an entry in the inbox because the service is halted, and sees
// to it that its sender knows.
func (w *worker) waitHalted(ctx context.Context, tx Tx, entry sessions.Entry, state sessions.ServiceState) (decision, error) {
	told, err := w.o.outbox.AddHalted(ctx, tx, w.conv, entry, state, false)
	if err != nil {
		return decision{}, err
	}
	if told != nil {
		return decision{what: settled}, nil // the next step brings it
	}
	return decision{what: leave}, tx.ReleaseLease(ctx, w.lease)
}

// isCut reports whether a turn was ended by a halt or because its person was
// removed.
func isCut(err error) bool { return errors.Is(err, errHalted) || errors.Is(err, errRemoved) }

// cutText is what a person reads of a turn that a halt or the removal of its person
// ended. It is not taken up again: what has to be stopped at once is not begun anew
// by itself.
func cutText(out outcome) string {
	shown := "⏹ Stopped: who asked for this may not use the bot any more."
	if errors.Is(out.err, errHalted) {
		shown = fmt.Sprintf("⏹ Stopped after %s: the bot was halted. What was said so far is kept; after the resume, send again what you still want.", wording.Clock(out.took))
	}
	if out.text != "" {
		shown = out.text + "\n\n" + shown
	}
	return shown
}

// begun is a turn that runs, with who asked for it.
type begun struct {
	handle *turnHandle
	in     messages.Inbound
}

// cutAll cancels all turns of this process.
func (r *running) cutAll(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.turns {
		if h.seq != 0 {
			h.cancel(cause)
		}
	}
}

// before returns the turns that were last judged before a change of access.
func (r *running) before(seq int64) (list []begun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.turns {
		if h.seq != 0 && h.access < seq {
			list = append(list, begun{handle: h, in: h.in})
		}
	}
	return list
}

// judged notes up to which change of access a turn was judged, and cancels it if
// its person may not any more.
func (r *running) judged(h *turnHandle, seq int64, removed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h.access = max(h.access, seq)
	if removed {
		h.cancel(errRemoved)
	}
}
