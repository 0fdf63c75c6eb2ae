package background_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/orchestrator/background"
)

// TestFollow: what belongs to work that is not over runs also while the group closes, which
// waits for it; after that, and before the group was open, nothing runs.
func TestFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g background.Group
		nothing := func(context.Context) { t.Error("a closed group runs something") }
		if g.Go(nothing) || g.Follow(nothing) {
			t.Error("a group runs something before it was open")
		}
		cancel := g.Open(t.Context())
		defer cancel(nil)
		followed := 0
		if !g.Follow(func(context.Context) { followed++ }) {
			t.Error("an open group does not run what follows")
		}
		g.Go(func(context.Context) {
			<-g.Stopping()
			time.Sleep(time.Second)
			if g.Running() || g.Go(nothing) {
				t.Error("the group is open while it closes")
			}
			if !g.Follow(func(context.Context) {
				time.Sleep(time.Second) // longer than what it follows
				if !g.Follow(func(context.Context) { followed++ }) {
					t.Error("what follows has nothing that follows it")
				}
			}) {
				t.Error("a group that closes does not run what follows")
			}
		})
		synctest.Wait()
		begin := time.Now()
		g.Close(cancel, time.Minute)
		if took := time.Since(begin); took != 2*time.Second || followed != 2 {
			t.Errorf("closed after %v, with %d that followed", took, followed)
		}
		if g.Go(nothing) || g.Follow(nothing) {
			t.Error("a closed group runs something")
		}
	})
}
