package background_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/orchestrator/background"
)

// waits returns how long somebody waits for a rush now.
func waits(t *testing.T, r *background.Rush) time.Duration {
	t.Helper()
	begin := time.Now()
	r.Wait(t.Context())
	return time.Since(begin)
}

// TestARushEndsWithIt: few events are none, many are one until a tenth of a second after
// the last of them, and who waits may give up.
func TestARushEndsWithIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r background.Rush
		leave := r.Enter(5)
		if r.On() || waits(t, &r) != 0 {
			t.Error("five events make a rush")
		}
		leave()
		for range 3 { // polls, one soon after the other
			leave = r.Enter(100)
			time.Sleep(50 * time.Millisecond)
			leave()
			time.Sleep(60 * time.Millisecond)
			if !r.On() {
				t.Fatal("the rush is over between two polls")
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if r.Wait(ctx); !r.On() {
			t.Error("the rush is over for somebody who has gone")
		}
		if d := waits(t, &r); d != 40*time.Millisecond || r.On() {
			t.Errorf("it ends %v after the last event and 60 ms, want 40 ms", d)
		}
	})
}

// TestARushIsTold: what is called when it begins, and what that returned when it is over.
func TestARushIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var began, over atomic.Int32
		r := background.Rush{During: func() func() {
			began.Add(1)
			return func() { over.Add(1) }
		}}
		check := func(when string, wantBegan, wantOver int32) {
			t.Helper()
			if b, o := began.Load(), over.Load(); b != wantBegan || o != wantOver {
				t.Errorf("%s %d have begun and %d are over, want %d and %d", when, b, o, wantBegan, wantOver)
			}
		}
		r.Enter(5)()
		for n := range int32(2) {
			check("before a rush", n, n)
			leave := r.Enter(100)
			time.Sleep(50 * time.Millisecond)
			r.Enter(100)()
			check("in a rush", n+1, n)
			leave()
			time.Sleep(10 * time.Second)
		}
		check("at the end", 2, 2)
	})
}

// TestAFloodTakesHalfOfTheTime: what never ends is a rush for two seconds, and then for as
// long none.
func TestAFloodTakesHalfOfTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r background.Rush
		var on, all int
		for range 1200 { // twelve seconds
			leave := r.Enter(60)
			time.Sleep(10 * time.Millisecond)
			if all++; r.On() {
				on++
			}
			if !r.Crowded() {
				t.Fatal("a flood is no crowd while work does not wait for it")
			}
			leave()
		}
		if time.Sleep(200 * time.Millisecond); r.Crowded() {
			t.Error("there is still a crowd behind the flood")
		}
		if share := float64(on) / float64(all); share < 0.45 || share > 0.55 {
			t.Errorf("a flood is a rush for %.0f %% of the time, want half", 100*share)
		}
		if d := waits(t, &r); d > 2*time.Second {
			t.Errorf("somebody waited for %v", d)
		}
	})
}
