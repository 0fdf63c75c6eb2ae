package github_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	emulator "remote-agent/internal/emulator/github"
	"remote-agent/internal/platform/github"
	"remote-agent/internal/platform/platformtest"
)

// TestTheAppIsKnownByAnotherClock: who starts with a clock that is not GitHub's, or whose
// clock is set while it runs, is refused once and goes on by GitHub's.
func TestTheAppIsKnownByAnotherClock(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	ahead.Store(int64(-4 * time.Minute))
	w := newWorld(t, setting{server: func(o *emulator.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}})
	for _, then := range []time.Duration{-time.Hour, time.Hour, 0} {
		if err := github.KnowApp(t.Context(), w.Adapter); err != nil {
			t.Errorf("GitHub's clock is %v ahead: %v", time.Duration(ahead.Load()), err)
		}
		ahead.Store(int64(then))
	}
}

// TestWhoHearsLaterOfAnotherClock: several calls are refused at once, of which only the first
// one learns that the clock was set; or a call with a token of an installation has learned it.
func TestWhoHearsLaterOfAnotherClock(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	w := newWorld(t, setting{server: func(o *emulator.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}})
	for _, then := range []time.Duration{0, -4 * time.Minute, time.Hour} {
		ahead.Store(int64(then))
		var group errgroup.Group
		for range 8 {
			group.Go(func() error { return github.KnowApp(t.Context(), w.Adapter) })
		}
		if err := group.Wait(); err != nil {
			t.Errorf("GitHub's clock is %v ahead, for several calls: %v", then, err)
		}
	}
	ahead.Store(0)
	github.Hears(w.Adapter, time.Now())
	if err := github.KnowApp(t.Context(), w.Adapter); err != nil {
		t.Errorf("after another call has learned the time: %v", err)
	}
}

// TestLookupWithAnotherClock finds what arrived although GitHub's clock is not ours.
func TestLookupWithAnotherClock(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			t.Parallel()
			r := rig(t, newWorld(t, setting{pat: true, server: func(o *emulator.Options) {
				o.Now = func() time.Time { return time.Now().Add(ahead) }
			}}))
			platformtest.AgainPostsOnce(t, r, platformtest.DeliveryMadeAt(time.Now()))
		})
	}
}
