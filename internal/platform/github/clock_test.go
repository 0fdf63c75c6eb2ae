package github_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	emulator "remote-agent/internal/emulator/github"
	"remote-agent/internal/messages"
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

// TestListeningBeginsByGitHubsClock: what was said before the start is not for the bot, and
// what is said after it is, however far GitHub's clock is from ours.
func TestListeningBeginsByGitHubsClock(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			t.Parallel()
			c := newClock()
			c.later(time.Hour + ahead - 2*time.Minute)
			w := newWorld(t, inTheirTime(c), setting{bot: polling, pat: true})
			n := w.person("ann").OpenIssue("x", "@remote-agent from before").Number
			c.later(2 * time.Minute)
			w.run(t)
			await(t, func() bool { return w.server.Count(emulator.ListCommentsForRepo) > 0 })
			w.person("ann").Comment(n, "@remote-agent new")
			w.await(t, "the new one", func(all []messages.Inbound) bool { return len(all) > 0 })
			if all := w.sink.Events(); len(all) != 1 || all[0].Text != "new" {
				t.Errorf("events %+v", all)
			}
		})
	}
}

// TestLostDeliveriesAreDatedByGitHub: the log of deliveries is read back from the last look,
// which was at a time of GitHub's clock.
func TestLostDeliveriesAreDatedByGitHub(t *testing.T) {
	t.Parallel()
	store := &cursor{values: map[string]string{}}
	w := newWorld(t, setting{bot: func(c *github.Config) { c.Cursor, c.SweepEvery = store, 50*time.Millisecond }, server: func(o *emulator.Options) {
		o.Now = func() time.Time { return time.Now().Add(-20 * time.Minute) }
	}})
	w.run(t)
	await(t, func() bool { return w.server.Count(emulator.ListDeliveries) > 1 })
	w.hook.Store(nil) // nobody is there
	w.settled(t, w.person("ann").OpenIssue("x", "@remote-agent hi"))
	await(t, func() bool { return w.server.Count(emulator.RedeliverDelivery) > 0 })
}

// TestTokensEndByGitHubsClock: a token is kept as long as GitHub takes it.
func TestTokensEndByGitHubsClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{server: func(o *emulator.Options) {
		o.Now = func() time.Time { return time.Now().Add(-2 * time.Hour) }
	}})
	first, err := w.Token(t.Context(), repo)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := w.Token(t.Context(), repo); err != nil || again != first {
		t.Errorf("a good token was replaced: %v", err)
	}
}
