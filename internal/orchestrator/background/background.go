// Package background owns the goroutines of the engine: whatever outlives a call is
// started here, and waited for when the process stops.
package background

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"remote-agent/internal/fault"
)

// ErrShutdown is why what still runs after the grace of a stop is canceled.
var ErrShutdown = errors.New("the service is stopping")

// Group runs functions in the background while it is open. It is safe for
// concurrent use; the zero value is a closed one.
type Group struct {
	mu       sync.Mutex      // guards all below but work
	base     context.Context // of all functions; nil until Open
	open     bool
	running  int           // functions
	stopping chan struct{} // closed by Close; nil until Open
	work     sync.WaitGroup
}

// Open has the group run functions. Their context has the values of ctx and ends
// with cancel only.
func (g *Group) Open(ctx context.Context) (cancel context.CancelCauseFunc) {
	base, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.base, g.open, g.stopping = base, true, make(chan struct{})
	return cancel
}

// Stopping is closed when the group closes. It is nil before the group was open.
func (g *Group) Stopping() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stopping
}

// Go runs fn. It reports false, and runs nothing, while the group is closed.
func (g *Group) Go(fn func(ctx context.Context)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open && g.start(fn)
}

// Follow is Go for what belongs to work of the group that is not over, as its caller is:
// Close waits for that, so it runs while the group closes, too.
func (g *Group) Follow(fn func(ctx context.Context)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return (g.open || g.running > 0) && g.start(fn)
}

// start runs fn; the lock is held.
func (g *Group) start(fn func(ctx context.Context)) bool {
	base := g.base
	g.running++
	g.work.Go(func() {
		defer g.ended()
		fn(base)
	})
	return true
}

func (g *Group) ended() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
}

// Close closes the group and waits for what runs: first politely, for grace, then
// with a cancel for ErrShutdown.
func (g *Group) Close(cancel context.CancelCauseFunc, grace time.Duration) {
	g.mu.Lock()
	if g.open {
		close(g.stopping)
	}
	g.open = false // nothing new
	g.mu.Unlock()
	done := make(chan struct{})
	go func() {
		g.work.Wait()
		close(done)
	}()
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case <-done:
		return
	case <-patience.C:
	}
	cancel(ErrShutdown)
	<-done
}

// Running reports whether the group runs functions.
func (g *Group) Running() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// Recover is deferred: it turns a panic of a stage into a logged error, so that one
// broken turn does not end the others. settle may be nil.
func Recover(ctx context.Context, log *slog.Logger, stage string, settle func(error)) {
	v := recover()
	if v == nil {
		return
	}
	log.ErrorContext(ctx, "recovered from a panic", "stage", stage, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	if settle != nil {
		settle(fault.Wrap(fmt.Errorf("panic: %v", v), fault.Internal, stage))
	}
}
