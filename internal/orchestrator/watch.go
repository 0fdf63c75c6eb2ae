package orchestrator

import (
	"context"
	"sync"
	"time"

	"remote-agent/internal/orchestrator/turn"

	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/sessions"
)

// watchEvery is how soon this process sees what another one, or an operator on the
// command line, changed: a halt, or who may do what.
const watchEvery = 500 * time.Millisecond

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
	err := o.config.Storage.InRead(ctx, func(tx Tx) (err error) {
		next, err = tx.People().ServiceState(ctx)
		return err
	})
	if err != nil {
		if ctx.Err() == nil {
			o.config.Log.DebugContext(ctx, "could not check whether the bot is halted", "err", err)
		}
		return
	}
	before := o.watched.swap(next)
	o.config.Metrics.Halted(next.Halted())
	if next.Halted() {
		if !before.Halted() {
			o.config.Log.WarnContext(ctx, "halted: nothing starts until a resume", "by", next.HaltedBy, "since", next.HaltedAt)
		}
		o.CutAll(turn.ErrHalted)
		return
	}
	o.JudgeRunning(ctx, next.AccessSeq)
	if before.Halted() {
		o.config.Log.WarnContext(ctx, "resumed")
		o.background.Go(func(ctx context.Context) {
			if err := o.firstSweep(ctx); err != nil && ctx.Err() == nil {
				o.config.Log.WarnContext(ctx, "could not continue at once; the sweep will", "err", err)
			}
		})
	}
}
