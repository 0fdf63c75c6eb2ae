package platform_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/platform"
)

// TestAwaitTurn: a stop ends long waits of work that can be left, with its reason, and no
// others.
func TestAwaitTurn(t *testing.T) {
	t.Parallel()
	stop := errors.New("the service is stopping")
	for name, tt := range map[string]struct {
		leavable bool
		wait     time.Duration
		took     time.Duration
		left     bool
	}{
		"long, can be left":    {true, time.Minute, 500 * time.Millisecond, true},
		"short, can be left":   {true, time.Second, time.Second, false},
		"long, must be done":   {false, time.Minute, time.Minute, false},
		"over before the stop": {true, 400 * time.Millisecond, 400 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, stopping := t.Context(), make(chan struct{})
				if tt.leavable {
					var end context.CancelFunc
					ctx, end = platform.Leavable(ctx, stopping, stop)
					defer end()
				}
				timer := time.AfterFunc(500*time.Millisecond, func() { close(stopping) })
				defer timer.Stop()
				begin := time.Now()
				err := platform.AwaitTurn(ctx, tt.wait)
				if took := time.Since(begin); took != tt.took || (err != nil) != tt.left {
					t.Errorf("waited %v: %v", took, err)
				}
				if left := errors.Is(context.Cause(ctx), stop); left != tt.left {
					t.Errorf("the work was left: %t, want %t", left, tt.left)
				}
			})
		})
	}
}

// TestBackoff: pauses double up to about their limit, begin anew, and are never shorter
// than the platform asks for.
func TestBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := platform.NewBackoff(time.Second, 4*time.Second)
		pause := func(atLeast, from, to time.Duration) {
			t.Helper()
			begin := time.Now()
			if err := b.Sleep(t.Context(), atLeast); err != nil || time.Since(begin) < from || time.Since(begin) > to {
				t.Errorf("%v after %v, want %v to %v", err, time.Since(begin), from, to)
			}
		}
		for _, most := range []time.Duration{1, 2, 4, 4, 4} {
			pause(0, most*time.Second/2, most*time.Second)
		}
		pause(time.Minute, time.Minute, time.Minute)
		b.Reset()
		pause(0, time.Second/2, time.Second)
	})
}
