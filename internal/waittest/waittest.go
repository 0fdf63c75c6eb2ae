// Package waittest says how long a test waits for what happens beside it, and how
// long something that is quick may take, on the machine at hand: an idle one, a
// slow one, or one with twenty other things to do. No test waits a number of
// seconds that somebody thought was plenty.
//
// How slow the machine is gets measured when a wait is about to end, so that a test
// that passes pays nothing and only one that fails waits long. Within
// testing/synctest time is not real, and none of this is needed.
package waittest

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// patience is how long a wait lasts on an idle machine. What is waited for takes
// milliseconds there.
const patience = 20 * time.Second

// cleanup is left before the deadline of the test binary, for the message of the
// test that waited in vain and for its cleanup.
const cleanup = 10 * time.Second

// Context returns a context that ends when waiting longer makes no sense, with a
// cause that says how long that was, or together with its parent. The deadline of
// the test binary is obeyed, so that the test can still say what it waited for.
// What takes long by itself, such as the end of a lease, is named besides.
func Context(parent context.Context, t testing.TB, besides ...time.Duration) context.Context {
	t.Helper()
	most := patience
	for _, d := range besides {
		most += d
	}
	ctx, cancel := context.WithCancelCause(parent)
	begin := time.Now()
	var timer *time.Timer
	armed := make(chan struct{})
	timer = time.AfterFunc(min(most, left(t)), func() {
		<-armed
		if ctx.Err() != nil {
			return
		}
		waited := time.Since(begin)
		if more := min(scaled(most)-waited, left(t)); more > 0 && ctx.Err() == nil {
			timer.Reset(more)
			return
		}
		cancel(fmt.Errorf("waited in vain for %s: %w", waited.Round(time.Millisecond), context.DeadlineExceeded))
	})
	close(armed)
	t.Cleanup(func() {
		timer.Stop()
		cancel(nil)
	})
	return ctx
}

// Late returns a channel that is closed when waiting longer makes no sense. Unlike
// a context of the test it can be used in its cleanup.
func Late(t testing.TB) <-chan struct{} {
	t.Helper()
	return Context(context.Background(), t).Done()
}

// Until asks again and again, for what tells nobody that it has changed, and ends
// the test if it never does. Where there is something to wait on, a channel or a
// method of an emulator, use that with Context.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	late := Late(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// TooLong reports whether what takes a fraction of most on an idle machine took
// longer than most, in the time of this machine. It is for what must not hang, or
// grow without bounds: how quick something really is belongs into a benchmark.
func TooLong(took, most time.Duration) bool {
	return took > most && took > scaled(most)
}

// Scaled returns what d on an idle machine is in the time of this one, for a timeout
// that a test sets in the program: long enough for what must not run into it.
func Scaled(d time.Duration) time.Duration { return scaled(d) }

// left returns how long the test may go on before the test binary is ended.
func left(t testing.TB) time.Duration {
	limited, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok {
		return scaled(patience)
	}
	at, ok := limited.Deadline()
	if !ok {
		return scaled(patience)
	}
	return time.Until(at) - cleanup
}
