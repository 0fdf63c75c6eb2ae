package api

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// What a client may cost.
const (
	keyRate     = rate.Limit(20) // requests a second with one key
	keyBurst    = 60
	failedRate  = rate.Limit(1.0 / 6) // wrong keys a second from one address
	failedBurst = 10

	maxLimited = 4096 // names that are remembered
)

// limits is a rate limit for each of many names. It forgets names that have not
// come for a while when there are too many, so that its size is bounded.
type limits struct {
	each  rate.Limit
	burst int

	mu sync.Mutex // guards of
	of map[string]*rate.Limiter
}

func newLimits(each rate.Limit, burst int) *limits {
	return &limits{each: each, burst: burst, of: make(map[string]*rate.Limiter)}
}

// any reports whether a name is remembered.
func (l *limits) any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.of) > 0
}

// knows reports whether a name is remembered.
func (l *limits) knows(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[name] != nil
}

// take counts one use of a name and returns zero, or how long to wait for it;
// then nothing was counted.
func (l *limits) take(name string, now time.Time) time.Duration {
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

// wait returns how long a name has to wait, without counting anything.
func (l *limits) wait(name string, now time.Time) time.Duration {
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
func (l *limits) makeRoom(now time.Time) {
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
