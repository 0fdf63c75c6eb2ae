package queue

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"remote-agent/internal/fault"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Timer is the Queue of a database that one process works on: it holds the jobs in
// memory. Those that a process takes with it when it dies are rung again by the
// sweep that the next one begins with.
type Timer struct {
	options Options
	ring    chan struct{} // buffered; a value means that the first job may be another one

	mu     sync.Mutex // guards all below
	jobs   timedJobs
	behind timedJobs    // those that let others go first
	held   map[Job]bool // those of both that have not failed yet: the same one twice is one
}

var _ Queue = (*Timer)(nil)

// NewTimer returns a queue without jobs.
func NewTimer(options Options) *Timer {
	return &Timer{options: options.withDefaults(), ring: make(chan struct{}, 1), held: make(map[Job]bool)}
}

// timedJob is a job that waits for its time.
type timedJob struct {
	Job
	at      time.Time
	attempt int // how often it failed
}

// timedJobs is a heap: the job that is due first is the first.
type timedJobs []timedJob

func (h timedJobs) Len() int           { return len(h) }
func (h timedJobs) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h timedJobs) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *timedJobs) Push(x any)        { *h = append(*h, x.(timedJob)) } //nolint:errcheck,forcetypeassert // only add pushes
func (h *timedJobs) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// Enqueue implements Queue. What is enqueued while the process dies is lost, also if
// tx commits.
func (t *Timer) Enqueue(_ context.Context, tx Tx, jobs ...Job) error {
	for _, job := range jobs {
		if !job.At.IsZero() {
			job.At = job.At.Round(0).UTC() // without what makes two of the same time differ
		}
		tx.AfterCommit(func() { t.add(timedJob{Job: job, at: job.At}) })
	}
	return nil
}

func (t *Timer) add(j timedJob) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j.attempt == 0 {
		if t.held[j.Job] {
			return
		}
		t.held[j.Job] = true
	}
	if j.Behind {
		heap.Push(&t.behind, j)
	} else {
		heap.Push(&t.jobs, j)
	}
	select {
	case t.ring <- struct{}{}:
	default:
	}
}

// next takes the first job that is due, of those behind only if no other one is. Without
// one it returns how long until there is one, and false if there is none at all.
func (t *Timer) next() (j timedJob, wait time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, jobs := range []*timedJobs{&t.jobs, &t.behind} {
		if len(*jobs) == 0 {
			continue
		}
		if until := time.Until((*jobs)[0].at); until > 0 {
			if !ok || until < wait {
				wait, ok = until, true
			}
			continue
		}
		j, _ = heap.Pop(jobs).(timedJob)
		if j.attempt == 0 {
			delete(t.held, j.Job)
		}
		return j, 0, true
	}
	return j, wait, ok
}

// Run implements Queue. It may be called once at a time.
func (t *Timer) Run(ctx context.Context, handlers map[Kind]Handler) error {
	sweep := time.NewTicker(t.options.SweepEvery)
	defer sweep.Stop()
	t.add(timedJob{Job: Job{Kind: KindSweep}})
	t.run(ctx, handlers, sweep.C)
	return nil
}

// run hands jobs to the handlers until ctx is done, and a sweep whenever it is time to.
func (t *Timer) run(ctx context.Context, handlers map[Kind]Handler, sweep <-chan time.Time) {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, t.options.Workers)
	for ctx.Err() == nil {
		j, wait, ok := t.next()
		if ok && wait == 0 {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				t.add(j) // it stays what it was
				return
			}
			running.Go(func() {
				defer func() { <-slots }()
				t.handle(context.WithoutCancel(ctx), j, handlers)
			})
			continue
		}
		if !ok {
			wait = t.options.SweepEvery
		}
		due := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-due.C:
		case <-t.ring:
		case <-sweep:
			t.add(timedJob{Job: Job{Kind: KindSweep}})
		}
		due.Stop()
	}
}

// rest takes all jobs that were not handed out.
func (t *Timer) rest() (jobs []Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, j := range slices.Concat(t.jobs, t.behind) {
		jobs = append(jobs, j.Job)
	}
	t.jobs, t.behind = nil, nil
	clear(t.held)
	return jobs
}

// handle hands a job to its handler, and has it come again if that asks for it.
func (t *Timer) handle(ctx context.Context, j timedJob, handlers map[Kind]Handler) {
	log := t.options.Log.With("job_kind", j.Kind, "key", j.Key, "attempt", j.attempt+1)
	handler, ok := handlers[j.Kind]
	if !ok {
		log.WarnContext(ctx, "dropped a job of an unknown kind")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	err := handler(ctx, j.Job)
	switch {
	case err == nil:
	case errors.Is(err, ErrBusy):
		j.at = time.Now().Add(t.options.BusyPause)
		t.add(j)
	default:
		log.WarnContext(ctx, "job failed", "err", err)
		if j.attempt++; j.attempt < maxAttempts && j.Kind != KindSweep {
			j.at = time.Now().Add(failing.Pause(j.attempt))
			t.add(j)
		}
	}
}

// failing is how long a job waits that has failed.
var failing = fault.Policy{Longest: time.Minute}

// withDefaults fills in what is zero.
func (o Options) withDefaults() Options {
	o.FetchCooldown = cmp.Or(o.FetchCooldown, 5*time.Millisecond)
	o.FetchPoll = max(cmp.Or(o.FetchPoll, 250*time.Millisecond), o.FetchCooldown)
	o.SweepEvery = cmp.Or(o.SweepEvery, 5*time.Second)
	o.BusyPause = cmp.Or(o.BusyPause, time.Second)
	o.Workers = cmp.Or(o.Workers, 16)
	return o
}

// Open returns the queue of a database: River, whose schema Migrate has made, in a
// PostgreSQL database, which several processes may share; without one a Timer.
func Open(pool *pgxpool.Pool, options Options) (Queue, error) {
	if pool == nil {
		return NewTimer(options), nil
	}
	return OpenRiver(pool, options)
}
