package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/queue"
	"remote-agent/internal/store/storetest"
)

// committed is a transaction that commits at once.
type committed struct{}

func (committed) Handle() any           { return nil }
func (committed) AfterCommit(fn func()) { fn() }

// rung is a job that was handed out, and when.
type rung struct {
	Key string
	At  time.Duration // since the beginning
}

// played runs a Timer for a while and returns what it handed out.
func played(t *testing.T, options queue.Options, d time.Duration, handler func(job queue.Job) error, jobs ...queue.Job) (got []rung) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		options.Log = storetest.Log(t)
		timer, begin := queue.NewTimer(options), time.Now()
		for _, job := range jobs {
			if err := timer.Enqueue(t.Context(), committed{}, job); err != nil {
				t.Fatal(err)
			}
		}
		var mu sync.Mutex
		handle := func(_ context.Context, job queue.Job) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, rung{string(job.Kind) + job.Key, time.Since(begin)})
			return handler(job)
		}
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		if err := timer.Run(ctx, map[queue.Kind]queue.Handler{queue.KindTurn: handle, queue.KindSweep: handle}); err != nil {
			t.Error(err)
		}
	})
	return got
}

// in is the time of day of the tests' clock in a while.
func in(d time.Duration) time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(d) }

func TestTimerRingsInOrderAndSweeps(t *testing.T) {
	t.Parallel()
	got := played(t, queue.Options{SweepEvery: 5 * time.Second}, 11*time.Second, func(queue.Job) error { return nil },
		queue.Job{Kind: queue.KindTurn, Key: " late", At: in(7 * time.Second)},
		queue.Job{Kind: queue.KindTurn, Key: " soon", At: in(2 * time.Second)},
		queue.Job{Kind: queue.KindTurn, Key: " soon", At: in(2 * time.Second)}, // the same one
		queue.Job{Kind: queue.KindTurn, Key: " soon", At: in(3 * time.Second)},
	)
	want := []rung{
		{"sweep", 0}, {"turn soon", 2 * time.Second}, {"turn soon", 3 * time.Second}, {"sweep", 5 * time.Second},
		{"turn late", 7 * time.Second}, {"sweep", 10 * time.Second},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTimerTriesAgain(t *testing.T) {
	t.Parallel()
	busy := 0
	got := played(t, queue.Options{SweepEvery: time.Hour, BusyPause: 10 * time.Second}, time.Minute, func(job queue.Job) error {
		if job.Key == " busy" && busy < 2 {
			busy++
			return queue.ErrBusy
		}
		if job.Key == " busy" {
			return nil
		}
		return errors.New("it does not work") // the sweep as well: nobody tries that again before its time
	}, queue.Job{Kind: queue.KindTurn, Key: " busy", At: in(20 * time.Second)}, queue.Job{Kind: queue.KindTurn, Key: " failing", At: in(time.Second)})
	want := []rung{
		{"sweep", 0},
		{"turn failing", 1 * time.Second}, {"turn failing", 2 * time.Second}, {"turn failing", 4 * time.Second}, {"turn failing", 8 * time.Second},
		{"turn busy", 20 * time.Second}, {"turn busy", 30 * time.Second}, {"turn busy", 40 * time.Second},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestThoseBehindComeLastAlsoAfterABusyMoment: a job that found all busy is still before
// those that let it go first, however long these have waited.
func TestThoseBehindComeLastAlsoAfterABusyMoment(t *testing.T) {
	t.Parallel()
	busy := true
	jobs := []queue.Job{{Kind: queue.KindTurn, Key: " here"}}
	for i := range 4 {
		jobs = append(jobs, queue.Job{Kind: queue.KindTurn, Key: fmt.Sprint(" crowd ", i), Behind: true})
	}
	got := played(t, queue.Options{SweepEvery: time.Hour, BusyPause: time.Second, Workers: 1}, time.Minute, func(job queue.Job) error {
		if job.Behind {
			time.Sleep(time.Second)
		}
		if job.Key == " here" && busy {
			busy = false
			return queue.ErrBusy
		}
		return nil
	}, jobs...)
	places := make([]string, len(got))
	for i, g := range got {
		places[i], _, _ = strings.Cut(strings.TrimPrefix(g.Key, "turn "), " ")
	}
	slices.Sort(places[:2]) // both are due at once
	// The second of the crowd was taken already when the first one ended.
	if diff := cmp.Diff([]string{"here", "sweep", "crowd", "crowd", "here", "crowd", "crowd"}, places); diff != "" {
		t.Error(diff)
	}
}

// TestTimerWaitsForTheFirstOfBoth: one that lets others go first is handed out in its time also
// while others are due later, and the other way round.
func TestTimerWaitsForTheFirstOfBoth(t *testing.T) {
	t.Parallel()
	got := played(t, queue.Options{SweepEvery: time.Hour}, time.Minute, func(queue.Job) error { return nil },
		queue.Job{Kind: queue.KindTurn, Key: " behind", At: in(2 * time.Second), Behind: true},
		queue.Job{Kind: queue.KindTurn, Key: " first", At: in(4 * time.Second)},
		queue.Job{Kind: queue.KindTurn, Key: " behind", At: in(6 * time.Second), Behind: true},
	)
	want := []rung{{"sweep", 0}, {"turn behind", 2 * time.Second}, {"turn first", 4 * time.Second}, {"turn behind", 6 * time.Second}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
