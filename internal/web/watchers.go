package web

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// watchers are those who ask /readyz to know whether they may send requests here.
// The zero value is ready.
type watchers struct {
	mu      sync.Mutex // guards all below
	last    time.Time  // when somebody asked last and was told that the service works
	drained time.Time  // when it began to stop
	refused int        // how often somebody was told that it stops
	told    chan struct{}
}

// drain notes that the service stops.
func (w *watchers) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drained = time.Now()
}

// asked notes that somebody asked /readyz, after the answer was written.
func (w *watchers) asked(stopping bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !stopping {
		w.last = time.Now()
		return
	}
	w.refused++
	if w.refused >= watchedTimes && w.told != nil {
		close(w.told)
		w.told = nil
	}
}

// await waits until those who watch know, or ctx ends.
func (w *watchers) await(ctx context.Context) {
	w.mu.Lock()
	if w.last.IsZero() || w.drained.Sub(w.last) > watchedWithin {
		w.mu.Unlock()
		return
	}
	told := make(chan struct{})
	if w.refused >= watchedTimes {
		close(told)
	} else {
		w.told = told
	}
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, maxLinger)
	defer cancel()
	select {
	case <-told:
	case <-ctx.Done():
		return
	}
	// What was on its way here when it was told arrives.
	select {
	case <-time.After(leaveAfter):
	case <-ctx.Done():
	}
}

// atWork are the connections that were taken and have a request, or may bring one. The
// zero value is ready.
type atWork struct {
	mu   sync.Mutex             // guards all below
	open map[net.Conn]time.Time // since when each has brought nothing; zero for one with a request
	none chan struct{}          // closed when there are none; nil while nobody waits
}

// follow is the http.Server.ConnState of the server.
func (a *atWork) follow(c net.Conn, state http.ConnState) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if state == http.StateNew || state == http.StateActive {
		if a.open == nil {
			a.open = make(map[net.Conn]time.Time)
		}
		var since time.Time
		if state == http.StateNew {
			since = time.Now()
		}
		a.open[c] = since
		return
	}
	delete(a.open, c)
	if len(a.open) == 0 && a.none != nil {
		close(a.none)
		a.none = nil
	}
}

// await waits until there are none, for lastWords at the most, or ctx ends. Those that have
// brought nothing for firstWords, such as one that a browser keeps ready, are closed. It is
// called once, when no new ones are taken.
func (a *atWork) await(ctx context.Context) {
	a.mu.Lock()
	if len(a.open) == 0 {
		a.mu.Unlock()
		return
	}
	none := make(chan struct{})
	a.none = none
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	for {
		select {
		case <-none:
			return
		case <-ctx.Done():
			return
		case <-time.After(a.hangUp(time.Now())):
		}
	}
}

// hangUp closes the connections that have brought nothing for firstWords, and returns when
// the next one may have.
func (a *atWork) hangUp(now time.Time) (next time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next = firstWords
	for c, since := range a.open {
		switch left := firstWords - now.Sub(since); {
		case since.IsZero():
		case left > 0:
			next = min(next, left)
		default:
			_ = c.Close() // follow hears of it
		}
	}
	return next
}
