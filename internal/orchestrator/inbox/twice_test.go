package inbox

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"remote-agent/internal/messages"
)

// TestWhoBringsWhatIsBeingStored waits for those who came before with the same event, for
// nobody else, and not for itself.
func TestWhoBringsWhatIsBeingStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSeen()
		var inside atomic.Int64
		enter := func(ctx context.Context, names ...messages.EventID) (leave func(), heard func() error) {
			var events []messages.Inbound
			for _, name := range names {
				events = append(events, messages.Inbound{Event: name})
			}
			finish, result := make(chan struct{}), make(chan error, 1)
			go func() {
				done, err := s.enter(ctx, events)
				if result <- err; err != nil {
					return
				}
				inside.Add(1)
				<-finish
				inside.Add(-1)
				done()
			}()
			synctest.Wait()
			return func() { close(finish); synctest.Wait() }, func() error { return <-result }
		}
		want := func(n int64, when string) {
			t.Helper()
			if got := inside.Load(); got != n {
				t.Errorf("%s, %d are at work, want %d", when, got, n)
			}
		}
		first, _ := enter(t.Context(), "a", "a", "b")
		want(1, "with an event that comes twice in one call")
		second, _ := enter(t.Context(), "c", "b")
		third, _ := enter(t.Context(), "b", "a", "c")
		other, _ := enter(t.Context(), "d")
		want(2, "with two calls that wait and another event")
		ctx, cancel := context.WithCancel(t.Context())
		_, heard := enter(ctx, "e", "d")
		cancel()
		if err := heard(); !errors.Is(err, context.Canceled) {
			t.Errorf("who gives up hears %v", err)
		}
		late, _ := enter(t.Context(), "e")
		want(3, "when who had given up no longer holds others up")
		first()
		want(3, "after the first, with the second")
		second()
		want(3, "after the second, with the third")
		for _, leave := range []func(){third, other, late} {
			leave()
		}
		if want(0, "in the end"); len(s.storing) != 0 {
			t.Errorf("%d events are still being stored", len(s.storing))
		}
	})
}
