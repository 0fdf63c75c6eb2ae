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

// idleConns are connections that are kept open without a request. The zero value
// is ready.
type idleConns struct {
	mu   sync.Mutex // guards all below
	open map[net.Conn]struct{}
	none chan struct{} // closed when there are none; nil while nobody waits
}

// follow is the http.Server.ConnState of the server.
func (i *idleConns) follow(c net.Conn, state http.ConnState) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if state == http.StateIdle {
		if i.open == nil {
			i.open = make(map[net.Conn]struct{})
		}
		i.open[c] = struct{}{}
		return
	}
	delete(i.open, c)
	if len(i.open) == 0 && i.none != nil {
		close(i.none)
		i.none = nil
	}
}

// await waits until there are none, for a second at the most, or ctx ends. It is
// called once.
func (i *idleConns) await(ctx context.Context) {
	i.mu.Lock()
	if len(i.open) == 0 {
		i.mu.Unlock()
		return
	}
	none := make(chan struct{})
	i.none = none
	i.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, idleFor)
	defer cancel()
	select {
	case <-none:
	case <-ctx.Done():
	}
}
