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
	mu       sync.Mutex      // guards base and stopping
	base     context.Context // of all functions; nil while the group is closed
	stopping chan struct{}   // closed by Close; nil until Open
	work     sync.WaitGroup
}

// Open has the group run functions. Their context has the values of ctx and ends
// with cancel only.
func (g *Group) Open(ctx context.Context) (cancel context.CancelCauseFunc) {
	base, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.base, g.stopping = base, make(chan struct{})
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
	if g.base == nil {
		return false
	}
	base := g.base
	g.work.Go(func() { fn(base) })
	return true
}

// Close closes the group and waits for what runs: first politely, for grace, then
// with a cancel for ErrShutdown.
func (g *Group) Close(cancel context.CancelCauseFunc, grace time.Duration) {
	g.mu.Lock()
	if g.base != nil {
		close(g.stopping)
	}
	g.base = nil // nothing new
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
	return g.base != nil
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
