package background

import (
	"context"
	"sync"
	"time"
)

// The bounds of a rush.
const (
	manyAtOnce  = 40                     // events that are being accepted make a rush
	calmAfter   = 100 * time.Millisecond // without so many it is over
	longestRush = 3 * time.Second        // so long may work wait: Slack waits no longer for an acknowledgement
)

// Rush says when so many events come in at once that accepting them goes before
// answering: a platform waits for an acknowledgement for seconds, people for an
// answer for longer. Whatever could wait, as the beginning of a turn, then waits until it
// is over, for three seconds at the most, and then it goes on for as long: a platform that
// floods the service gets no more than half of the time. The zero value is ready, and safe for concurrent use.
type Rush struct {
	// During, if not nil, is called when a rush begins, and what it returns when that is over.
	During func() (over func())

	mu     sync.Mutex // guards all below
	events int        // being accepted now
	over   chan struct{}
	calmed func()    // what During returned
	began  time.Time // of this rush, so that a timer of an earlier one does not end it
	calm   int       // changes with each event that comes, for the timer that waits for calm
	rest   time.Time // until then there is no other one
}

// Enter notes that n events are being accepted, until the returned function is called.
func (r *Rush) Enter(n int) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events += n
	r.calm++
	if r.events >= manyAtOnce && r.over == nil && !time.Now().Before(r.rest) {
		began := time.Now()
		r.over, r.began = make(chan struct{}), began
		if r.During != nil {
			r.calmed = r.During()
		}
		time.AfterFunc(longestRush, func() { r.end(func() bool { return r.began.Equal(began) }) })
	}
	return func() { r.leave(n) }
}

func (r *Rush) leave(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.events -= n; r.over != nil && r.events < manyAtOnce {
		r.calm++
		calm := r.calm
		time.AfterFunc(calmAfter, func() { r.end(func() bool { return r.calm == calm }) })
	}
}

// end ends the rush if that still holds; the lock is held meanwhile.
func (r *Rush) end(still func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over == nil || !still() {
		return
	}
	close(r.over)
	r.over = nil
	if r.calmed != nil {
		r.calmed()
	}
	r.rest = time.Now().Add(time.Since(r.began))
}

// On reports whether there is one.
func (r *Rush) On() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over != nil
}

// Crowded reports whether there is one, or so many events come in that there would be if
// work had not waited for long enough.
func (r *Rush) Crowded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over != nil || r.events >= manyAtOnce
}

// Wait returns when there is none, or when ctx ends.
func (r *Rush) Wait(ctx context.Context) {
	r.mu.Lock()
	over := r.over
	r.mu.Unlock()
	if over == nil {
		return
	}
	select {
	case <-over:
	case <-ctx.Done():
	}
}
