package pages

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"remote-agent/internal/doctor"
	"remote-agent/internal/fault"
)

const (
	jobPatience = 30 * time.Minute // the longest that one may take
	atOnce      = 4 * time.Second  // how long a form waits for what it began
)

// job is something that takes longer than a request may, and what came of it. It lives
// as long as this process.
type job struct {
	once         string    // the nonce of the form that began it
	Began, Ended time.Time // zero Ended: it runs
	Said         string    // what came of it, for people
	Err          error
	Report       *doctor.Report

	done chan struct{}
}

// jobs are the last of each name. It is safe for concurrent use.
type jobs struct {
	background func(fn func(ctx context.Context)) bool // see About; may be nil
	now        func() time.Time
	log        *slog.Logger

	mu  sync.Mutex // guards all
	all map[string]job
}

// of returns the last job of a name.
func (j *jobs) of(name string) (job, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	found, ok := j.all[name]
	return found, ok
}

// begin notes that a job runs, unless one of its name does already. A form that comes twice
// gets the job that it began.
func (j *jobs) begin(name, once string, now time.Time) (one job, again bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch old, ok := j.all[name]; {
	case ok && old.once == once:
		return old, true, nil
	case ok && old.Ended.IsZero():
		return old, false, fault.New(fault.Conflict, "This is already running. Reload the page to see the result.")
	}
	if j.all == nil {
		j.all = make(map[string]job)
	}
	one = job{once: once, Began: now, done: make(chan struct{})}
	j.all[name] = one
	return one, false, nil
}

func (j *jobs) end(name string, ended job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all[name] = ended
	close(ended.done)
}

// work runs what a form asks for beside the request, and waits for it a moment: what is
// quick is there on the next page, and what is not keeps nobody waiting. run fills in
// what came of it.
func (j *jobs) work(r *request, name string, run func(ctx context.Context, j *job)) error {
	if j.background == nil {
		return fault.New(fault.Unsupported, "This cannot be done here.")
	}
	one, again, err := j.begin(name, r.PostForm.Get("nonce"), j.now())
	if err != nil {
		return err
	}
	started := again || j.background(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, jobPatience)
		defer cancel()
		defer func() {
			if broken := recover(); broken != nil {
				one.Err = fault.New(fault.Internal, "It failed; the log has the reason.")
				j.log.ErrorContext(ctx, "a job of a page panicked", "job", name, "panic", broken)
			}
			one.Ended = j.now()
			j.end(name, one)
		}()
		run(ctx, &one)
		if one.Err != nil {
			j.log.WarnContext(ctx, "a job of a page failed", "job", name, "err", one.Err)
		}
	})
	if !started {
		one.Ended, one.Err = j.now(), fault.New(fault.Unavailable, "The program is stopping.")
		j.end(name, one)
		return one.Err
	}
	wait := time.NewTimer(atOnce)
	defer wait.Stop()
	select {
	case <-one.done:
	case <-wait.C:
	case <-r.Context().Done():
	}
	return nil
}
