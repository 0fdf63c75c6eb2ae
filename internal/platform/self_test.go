package platform_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
)

// TestSelfIsAskedOnce: many who need it at once wait for the one who asks, and for no longer
// than they have time.
func TestSelfIsAskedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		self, asked := platform.NewSelf[string](), 0
		ask := func(ctx context.Context) (string, error) {
			asked++
			me := "bot"
			if err := platform.Sleep(ctx, time.Minute); err != nil {
				return "", err
			}
			self.Store(&me)
			return me, nil
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if me, err := self.Get(t.Context(), ask); me != "bot" || err != nil {
					t.Errorf("%q, %v", me, err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if me, err := self.Get(ctx, ask); me != "" || !fault.Is(err, fault.KindOf(context.DeadlineExceeded)) {
			t.Errorf("without time: %q, %v", me, err)
		}
		if all.Wait(); asked != 1 {
			t.Errorf("asked %d times", asked)
		}
	})
}
