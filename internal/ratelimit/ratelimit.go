// Package ratelimit limits how often each of many names may do something, in memory of
// a bounded size.
package ratelimit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const maxLimited = 4096 // names that are remembered

// Limits is a rate limit for each of many names. It forgets names that have not
// come for a while when there are too many, so that its size is bounded. It is safe
// for concurrent use.
type Limits struct {
	each  rate.Limit
	burst int

	mu sync.Mutex // guards of
	of map[string]*rate.Limiter
}

// New returns Limits by which each name may do something burst times at once, and each
// times a second after that.
func New(each rate.Limit, burst int) *Limits {
	return &Limits{each: each, burst: burst, of: make(map[string]*rate.Limiter)}
}

// Any reports whether a name is remembered.
func (l *Limits) Any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.of) > 0
}

// Knows reports whether a name is remembered.
func (l *Limits) Knows(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[name] != nil
}

// Take counts one use of a name and returns zero, or how long to wait for it;
// then nothing was counted.
func (l *Limits) Take(name string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.of[name]
	if limiter == nil {
		l.makeRoom(now)
		limiter = rate.NewLimiter(l.each, l.burst)
		l.of[name] = limiter
	}
	r := limiter.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// Wait returns how long a name has to wait, without counting anything.
func (l *Limits) Wait(name string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.of[name]
	if limiter == nil {
		return 0
	}
	missing := 1 - limiter.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	return time.Duration(missing / float64(l.each) * float64(time.Second))
}

// makeRoom forgets names that may do all they could at first if there are too
// many, and if those are few, others as well: so much at once that the next names
// cost nothing. l.mu is held.
func (l *Limits) makeRoom(now time.Time) {
	if len(l.of) < maxLimited {
		return
	}
	for name, limiter := range l.of {
		if limiter.TokensAt(now) >= float64(l.burst) {
			delete(l.of, name)
		}
	}
	for name := range l.of {
		if len(l.of) < maxLimited*3/4 {
			return
		}
		delete(l.of, name)
	}
}
