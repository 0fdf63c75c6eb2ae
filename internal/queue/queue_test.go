//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package queue_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"remote-agent/internal/queue"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/waittest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// always is what a process sees that works on its database alone.
func always() bool { return true }

// bundle is a queue over an open store.
type bundle struct {
	store *store.Store
	queue queue.Queue
}

// each runs test with the queue of each database, and that of a process which has a
// PostgreSQL database to itself.
func each(t *testing.T, options queue.Options, test func(t *testing.T, b bundle)) {
	t.Helper()
	storetest.EachDialect(t, func(t *testing.T, open func(testing.TB) *store.Store) { test(t, opened(t, open(t), options)) })
	t.Run("Alone", func(t *testing.T) {
		t.Parallel()
		alone := options // the others run beside this one
		alone.Alone = always
		test(t, opened(t, storetest.Postgres(t)(t), alone))
	})
}

func opened(t *testing.T, s *store.Store, options queue.Options) bundle {
	t.Helper()
	options.Log = storetest.Log(t)
	q, err := queue.Open(s.Postgres(), options)
	if err != nil {
		t.Fatal(err)
	}
	return bundle{s, q}
}

func (b bundle) enqueue(tb testing.TB, jobs ...queue.Job) {
	tb.Helper()
	err := b.store.InTx(tb.Context(), func(tx *store.Tx) error {
		for _, job := range jobs {
			if err := b.queue.Enqueue(tb.Context(), tx, job); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// run runs the queue until the returned function is called.
func (b bundle) run(tb testing.TB, handlers map[queue.Kind]queue.Handler) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	done := make(chan error, 1)
	go func() { done <- b.queue.Run(ctx, handlers) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("the queue ended with %v", err)
		}
	})
	tb.Cleanup(stop)
	return stop
}

func receive[T any](tb testing.TB, from <-chan T) (v T) {
	tb.Helper()
	select {
	case v = <-from:
	case <-waittest.Late(tb):
		tb.Fatal("nothing came")
	}
	return v
}

func TestJobExistsIfAndOnlyIfItsTransactionCommits(t *testing.T) {
	t.Parallel()
	each(t, queue.Options{}, func(t *testing.T, b bundle) {
		got := make(chan queue.Job, 10)
		undone := errors.New("undone")
		err := b.store.InTx(t.Context(), func(tx *store.Tx) error {
			if err := b.queue.Enqueue(t.Context(), tx, queue.Job{Kind: queue.KindTurn, Key: "undone"}); err != nil {
				return err
			}
			return undone
		})
		if !errors.Is(err, undone) {
			t.Fatal(err)
		}
		b.enqueue(t, queue.Job{Kind: queue.KindTurn, Key: "before"})
		b.run(t, map[queue.Kind]queue.Handler{queue.KindTurn: func(_ context.Context, job queue.Job) error {
			got <- job
			return nil
		}})
		if job := receive(t, got); job.Key != "before" || job.Kind != queue.KindTurn {
			t.Errorf("got %+v, want the job that was committed", job)
		}
		b.enqueue(t, queue.Job{Kind: queue.KindTurn, Key: "while running"})
		if job := receive(t, got); job.Key != "while running" {
			t.Errorf("got %+v", job)
		}
	})
}

func TestDelayedJobWaitsForItsTime(t *testing.T) {
	t.Parallel()
	each(t, queue.Options{}, func(t *testing.T, b bundle) {
		got := make(chan time.Time, 1)
		at := time.Now().Add(1500 * time.Millisecond)
		b.enqueue(t, queue.Job{Kind: queue.KindTurn, Key: "later", At: at})
		b.run(t, map[queue.Kind]queue.Handler{queue.KindTurn: func(context.Context, queue.Job) error {
			got <- time.Now()
			return nil
		}})
		if when := receive(t, got); when.Before(at.Add(-50 * time.Millisecond)) {
			t.Errorf("ran %v too early", at.Sub(when))
		}
	})
}

func TestBusyAndFailedJobsComeAgain(t *testing.T) {
	t.Parallel()
	each(t, queue.Options{BusyPause: 50 * time.Millisecond}, func(t *testing.T, b bundle) {
		var busy, failed atomic.Int64
		done := make(chan string, 2)
		b.enqueue(t, queue.Job{Kind: queue.KindTurn, Key: "busy"}, queue.Job{Kind: queue.KindTurn, Key: "failing"})
		b.run(t, map[queue.Kind]queue.Handler{queue.KindTurn: func(_ context.Context, job queue.Job) error {
			// More often than the attempts that a failing job has.
			if job.Key == "busy" && busy.Add(1) <= 6 {
				return queue.ErrBusy
			}
			if job.Key == "failing" && failed.Add(1) <= 1 {
				return errors.New("not yet")
			}
			done <- job.Key
			return nil
		}})
		got := map[string]bool{receive(t, done): true}
		got[receive(t, done)] = true
		if !got["busy"] || !got["failing"] {
			t.Errorf("finished: %v", got)
		}
	})
}

func TestSweepIsRungPeriodically(t *testing.T) {
	t.Parallel()
	each(t, queue.Options{SweepEvery: time.Second}, func(t *testing.T, b bundle) {
		rung := make(chan struct{}, 100)
		b.run(t, map[queue.Kind]queue.Handler{queue.KindSweep: func(context.Context, queue.Job) error {
			rung <- struct{}{}
			return nil
		}})
		for range 2 {
			receive(t, rung)
		}
	})
}

func TestRunWaitsForRunningHandlers(t *testing.T) {
	t.Parallel()
	each(t, queue.Options{}, func(t *testing.T, b bundle) {
		started, release := make(chan struct{}), make(chan struct{})
		var finished atomic.Bool
		b.enqueue(t, queue.Job{Kind: queue.KindTurn, Key: "slow"})
		stop := b.run(t, map[queue.Kind]queue.Handler{queue.KindTurn: func(ctx context.Context, _ queue.Job) error {
			close(started)
			<-release
			finished.Store(ctx.Err() == nil)
			return nil
		}})
		receive(t, started)
		time.AfterFunc(100*time.Millisecond, func() { close(release) })
		stop()
		if !finished.Load() {
			t.Error("the queue ended before its handler, or cut it off")
		}
	})
}

// TestQueueAndStoreShareTheDatabase has writers, a queue and handlers that write
// on one database at once: on SQLite they share a single connection.
func TestQueueAndStoreShareTheDatabase(t *testing.T) {
	t.Parallel()
	each(t, queue.Options{}, func(t *testing.T, b bundle) {
		const writers, perWriter = 8, 25
		got := make(chan string, writers*perWriter)
		b.run(t, map[queue.Kind]queue.Handler{queue.KindTurn: func(ctx context.Context, job queue.Job) error {
			err := b.store.InTx(ctx, func(tx *store.Tx) error {
				_, err := tx.Leases().AcquireNamed(ctx, job.Key, "worker", time.Hour)
				return err
			})
			got <- job.Key
			return err
		}})
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for n := range perWriter {
					b.enqueue(t, queue.Job{Kind: queue.KindTurn, Key: fmt.Sprintf("%d-%d", w, n)})
				}
			})
		}
		seen := map[string]bool{}
		for len(seen) < writers*perWriter {
			seen[receive(t, got)] = true
		}
		wg.Wait()
	})
}

func TestUnknownKindIsDropped(t *testing.T) {
	t.Parallel()
	each(t, queue.Options{}, func(t *testing.T, b bundle) {
		got := make(chan queue.Job, 1)
		b.enqueue(t, queue.Job{Kind: "from-the-future"}, queue.Job{Kind: queue.KindTurn, Key: "known"})
		b.run(t, map[queue.Kind]queue.Handler{queue.KindTurn: func(_ context.Context, job queue.Job) error {
			got <- job
			return nil
		}})
		receive(t, got)
	})
}

// TestTheQueueStartsWhenTheDatabaseComesBack has a PostgreSQL that takes no connections
// as the queue starts: it is tried again, and the sweep comes as soon as it can.
func TestTheQueueStartsWhenTheDatabaseComesBack(t *testing.T) {
	t.Parallel()
	config, err := pgxpool.ParseConfig(storetest.PostgresMigratedURL(t))
	if err != nil {
		t.Fatal(err)
	}
	var tries atomic.Int64
	config.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
		if tries.Add(1) < 3 {
			return errors.New("the database system is starting up")
		}
		return nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	q, err := queue.Open(pool, queue.Options{Log: storetest.Log(t)})
	if err != nil {
		t.Fatal(err)
	}
	swept := make(chan struct{}, 10)
	bundle{queue: q}.run(t, map[queue.Kind]queue.Handler{
		queue.KindSweep: func(context.Context, queue.Job) error {
			swept <- struct{}{}
			return nil
		},
	})
	receive(t, swept)
}

// TestThoseBehindComeLast: four jobs wait when the queue starts, of which two have time.
func TestThoseBehindComeLast(t *testing.T) {
	t.Parallel()
	each(t, queue.Options{Workers: 1}, func(t *testing.T, b bundle) {
		got := make(chan queue.Job, 10)
		err := b.store.InTx(t.Context(), func(tx *store.Tx) error {
			return b.queue.Enqueue(t.Context(), tx,
				queue.Job{Kind: queue.KindTurn, Key: "crowd", Behind: true}, queue.Job{Kind: queue.KindTurn, Key: "crowd too", Behind: true},
				queue.Job{Kind: queue.KindTurn, Key: "first"}, queue.Job{Kind: queue.KindTurn, Key: "second"})
		})
		if err != nil {
			t.Fatal(err)
		}
		b.run(t, map[queue.Kind]queue.Handler{queue.KindTurn: func(_ context.Context, job queue.Job) error {
			got <- job
			return nil
		}})
		for i := range 4 {
			if job := receive(t, got); strings.HasPrefix(job.Key, "crowd") != (i >= 2) {
				t.Errorf("%d came %q", i, job.Key)
			}
		}
	})
}

// TestJobsAreStoredForOthersOnly has a process that is alone first: the database learns
// of its jobs when somebody else is there, or it stops and could not hand them out.
func TestJobsAreStoredForOthersOnly(t *testing.T) {
	t.Parallel()
	s := storetest.Postgres(t)(t)
	var alone atomic.Bool
	alone.Store(true)
	first := opened(t, s, queue.Options{BusyPause: time.Hour, Alone: alone.Load})
	stored := func() (keys []string) {
		t.Helper()
		rows, err := s.Postgres().Query(t.Context(), `SELECT args->>'key' FROM river_job WHERE args->>'kind' = 'turn' AND state IN ('available', 'scheduled') ORDER BY 1`)
		if err == nil {
			keys, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	got := make(chan string, 10)
	take := func(_ context.Context, job queue.Job) error {
		got <- job.Key
		if job.Key == "busy" {
			return queue.ErrBusy
		}
		return nil
	}
	stop := first.run(t, map[queue.Kind]queue.Handler{queue.KindTurn: take})
	for {
		// Before it runs it stores jobs, whoever is there.
		first.enqueue(t, queue.Job{Kind: queue.KindTurn, Key: "while alone"})
		if kept := len(stored()); receive(t, got) == "while alone" && kept == 0 {
			break
		}
	}
	first.enqueue(t, queue.Job{Kind: queue.KindTurn, Key: "busy"}, queue.Job{Kind: queue.KindTurn, Key: "later", At: time.Now().Add(time.Hour)})
	receive(t, got)
	if keys := stored(); len(keys) > 0 {
		t.Errorf("alone, it stored %q", keys)
	}
	alone.Store(false)
	first.enqueue(t, queue.Job{Kind: queue.KindTurn, Key: "much later", At: time.Now().Add(2 * time.Hour)})
	if diff := cmp.Diff([]string{"much later"}, stored()); diff != "" {
		t.Errorf("with somebody else there, stored (-want +got):\n%s", diff)
	}
	stop()
	if diff := cmp.Diff([]string{"busy", "later", "much later"}, stored()); diff != "" {
		t.Errorf("it left (-want +got):\n%s", diff)
	}
	next := opened(t, s, queue.Options{})
	next.run(t, map[queue.Kind]queue.Handler{queue.KindTurn: take})
	if key := receive(t, got); key != "busy" {
		t.Errorf("the next process got %q", key)
	}
}
