package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"remote-agent/internal/fault"
)

// Options tunes the queue. The zero value of a duration means its default.
type Options struct {
	Log *slog.Logger // may not be nil

	FetchCooldown time.Duration // shortest time between fetches; default 5 ms
	FetchPoll     time.Duration // longest time between fetches; default 250 ms
	SweepEvery    time.Duration // period of KindSweep; default 5 s
	BusyPause     time.Duration // how long ErrBusy puts a job off; default 1 s
	Workers       int           // handlers that run at once; default 16

	// Alone reports whether no other process works on the database; nil: others may. It
	// is called often. See River.
	Alone func() bool

	// PollOnly is for connections over which PostgreSQL cannot notify, behind a pooler.
	PollOnly bool
}

const (
	jobTimeout  = 30 * time.Second // handlers only start work
	stopTimeout = 10 * time.Second

	// leaveTimeout bounds how long the end waits for a database that does not answer.
	leaveTimeout = 2 * time.Second
	maxAttempts  = 4
	keepJobs     = 5 * time.Minute

	// River looks every five seconds for scheduled jobs that are due within the
	// next five. One that is due earlier would be up to five seconds late, so it
	// is not scheduled but snoozed when it is first taken up.
	schedulerPeriod = 5 * time.Second
)

// River is the Queue behind which River stores the jobs, in the same PostgreSQL
// database as everything else. While it runs in the only process that works on the
// database, storing them is for nobody: then a Timer holds them, as on SQLite.
type River struct {
	options Options
	pool    *pgxpool.Pool
	client  *river.Client[pgx.Tx] // for enqueueing
	timer   *Timer
	running atomic.Bool // the timer's jobs are handed out
}

var _ Queue = (*River)(nil)

// OpenRiver returns a queue in the database of pool, whose schema Migrate has
// made. It starts nothing: Run does.
func OpenRiver(pool *pgxpool.Pool, options Options) (*River, error) {
	options = options.withDefaults()
	// The cooldown also limits how often an insert wakes the fetchers.
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Logger: quiet(options.Log), FetchCooldown: options.FetchCooldown, FetchPollInterval: options.FetchPoll,
	})
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "open queue")
	}
	return &River{options: options, pool: pool, client: client, timer: NewTimer(options)}, nil
}

// wake is the stored form of a Job. One River kind serves all of ours.
type wake struct {
	Job Kind      `json:"kind"`
	Key string    `json:"key,omitempty"`
	At  time.Time `json:"at,omitzero"`
}

// Kind implements river.JobArgs.
func (wake) Kind() string { return "wake" }

// Enqueue implements Queue.
func (r *River) Enqueue(ctx context.Context, tx Tx, jobs ...Job) error {
	handle, ok := tx.Handle().(pgx.Tx)
	if !ok {
		return fault.Newf(fault.Internal, "queue: unknown transaction %T", tx.Handle())
	}
	if len(jobs) == 0 {
		return nil
	}
	if r.running.Load() && r.options.Alone != nil && r.options.Alone() {
		return r.timer.Enqueue(ctx, tx, jobs...)
	}
	_, err := r.client.InsertManyTx(ctx, handle, params(jobs))
	return fault.Wrap(err, fault.Unavailable, "enqueue jobs")
}

// params is how River is told of jobs.
func params(jobs []Job) []river.InsertManyParams {
	list := make([]river.InsertManyParams, len(jobs))
	for i, job := range jobs {
		opts := &river.InsertOpts{MaxAttempts: maxAttempts}
		if job.Behind {
			opts.Priority = river.PriorityDefault + 1
		}
		if time.Until(job.At) > schedulerPeriod {
			opts.ScheduledAt = job.At
		}
		list[i] = river.InsertManyParams{Args: wake{Job: job.Kind, Key: job.Key, At: job.At}, InsertOpts: opts}
	}
	return list
}

// Run implements Queue. It may be called once at a time. In the end it stores what the
// timer still holds, for the process that comes next.
func (r *River) Run(ctx context.Context, handlers map[Kind]Handler) error {
	config, err := r.config(handlers)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "configure queue")
	}
	client, err := r.start(ctx, config)
	if client == nil {
		return err
	}
	r.running.Store(true)
	r.timer.run(ctx, handlers, nil) // River sweeps
	r.running.Store(false)
	r.leave(ctx)

	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := client.Stop(stop); err != nil {
		r.options.Log.WarnContext(ctx, "queue did not stop in time", "err", err)
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if err := client.StopAndCancel(stop); err != nil {
			return fault.Wrap(err, fault.Internal, "stop queue")
		}
	}
	return nil
}

// leave stores what the timer holds. What it cannot store the next sweep finds.
func (r *River) leave(ctx context.Context) {
	left := r.timer.rest()
	if len(left) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if _, err := r.client.InsertMany(ctx, params(left)); err != nil {
		r.options.Log.WarnContext(ctx, "could not leave the jobs to the next process; its sweep finds their work", "jobs", len(left), "err", err)
	}
}

// startAgain is the pause before the queue is started again where the database was away.
const startAgain = 500 * time.Millisecond

// start starts River, again and again while the database does not answer: who runs it
// has started everything else, and would stand still without. The client is nil if ctx
// ended first, or if the configuration is wrong.
func (r *River) start(ctx context.Context, config *river.Config) (*river.Client[pgx.Tx], error) {
	for told := false; ctx.Err() == nil; {
		client, err := river.NewClient(riverpgxv5.New(r.pool), config)
		if err != nil {
			return nil, fault.Wrap(err, fault.Internal, "configure queue")
		}
		// River gets a context that does not end, so that running handlers are not
		// cut off by the one that ends the fetching.
		err = client.Start(context.WithoutCancel(ctx))
		if err == nil {
			return client, nil
		}
		if !told {
			r.options.Log.WarnContext(ctx, "the queue cannot start; it is tried again", "err", err)
			told = true
		}
		select {
		case <-time.After(startAgain):
		case <-ctx.Done():
		}
	}
	return nil, nil
}

func (r *River) config(handlers map[Kind]Handler) (*river.Config, error) {
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &worker{river: r, handlers: handlers}); err != nil {
		return nil, err
	}
	sweep := river.NewPeriodicJob(
		river.PeriodicInterval(r.options.SweepEvery),
		func() (river.JobArgs, *river.InsertOpts) {
			return wake{Job: KindSweep}, &river.InsertOpts{MaxAttempts: 1}
		},
		&river.PeriodicJobOpts{RunOnStart: true},
	)
	return &river.Config{
		Logger:                      quiet(r.options.Log),
		Queues:                      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: r.options.Workers}},
		Workers:                     workers,
		PeriodicJobs:                []*river.PeriodicJob{sweep},
		FetchCooldown:               r.options.FetchCooldown,
		FetchPollInterval:           r.options.FetchPoll,
		JobTimeout:                  jobTimeout,
		PollOnly:                    r.options.PollOnly,
		RescueStuckJobsAfter:        4 * jobTimeout,
		MaxAttempts:                 maxAttempts,
		RetryPolicy:                 retryPolicy{},
		CompletedJobRetentionPeriod: keepJobs,
		CancelledJobRetentionPeriod: keepJobs,
		DiscardedJobRetentionPeriod: 24 * time.Hour,
	}, nil
}

// worker hands River's jobs to the handlers.
type worker struct {
	river.WorkerDefaults[wake]
	river    *River
	handlers map[Kind]Handler
}

// Work implements river.Worker.
func (w *worker) Work(ctx context.Context, job *river.Job[wake]) error {
	handler, ok := w.handlers[job.Args.Job]
	log := w.river.options.Log.With("job_kind", job.Args.Job, "key", job.Args.Key, "attempt", job.Attempt)
	if !ok {
		// A newer replica may know it; the sweep covers everything else.
		log.WarnContext(ctx, "dropped a job of an unknown kind")
		return nil
	}
	if wait := time.Until(job.Args.At); wait > 0 {
		return river.JobSnooze(wait)
	}
	err := handler(ctx, Job{Kind: job.Args.Job, Key: job.Args.Key, At: job.Args.At})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrBusy):
		return river.JobSnooze(w.river.options.BusyPause)
	}
	log.WarnContext(ctx, "job failed", "err", err)
	return fmt.Errorf("job %s: %w", job.Args.Job, err)
}

// retryPolicy waits as the timer does.
type retryPolicy struct{}

// NextRetry implements river.ClientRetryPolicy.
func (retryPolicy) NextRetry(job *rivertype.JobRow) time.Time {
	return time.Now().Add(failing.Pause(len(job.Errors) + 1))
}
