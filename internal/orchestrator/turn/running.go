package turn

import (
	"context"
	"sync"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
	"remote-agent/internal/metrics"
	"remote-agent/internal/sessions"
)

// running knows the turns that this process works on, so that they can be
// stopped.
type running struct {
	mu    sync.Mutex // guards turns and all fields of them that change
	turns map[string]*turnHandle
}

// turnHandle is a worker's current turn. It is registered before the turn is
// taken from the inbox, so that no stop can fall between the two.
type turnHandle struct {
	conversation string

	seq      int64 // of the entry; 0 until it is known
	in       messages.Inbound
	role     sessions.Role // of the sender, as the turn began; empty while it is prepared
	access   int64         // up to which change of access the sender was judged
	stopUpTo int64
	since    time.Time
	shows    *progress // nil until the turn runs
	cancel   context.CancelCauseFunc
	done     chan struct{} // closed by the worker when the turn has ended

	waiting bool          // it does not run: it waits for its next try
	wake    chan struct{} // capacity 1: it is to be looked at again
}

func (r *running) add(h *turnHandle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns[h.conversation] = h
}

// firstTurn is a turn that was begun where its message was accepted, for the
// worker that continues with it.
type firstTurn struct {
	handle   *turnHandle
	decision decision
}

// expect registers a turn that is about to begin in this process.
func (o *Turns) expect(conversationID string) *firstTurn {
	first := &firstTurn{handle: &turnHandle{conversation: conversationID, since: time.Now(), done: make(chan struct{}), wake: make(chan struct{}, 1)}}
	o.running.add(first.handle)
	return first
}

// forget takes a turn away that was expected and does not come. first may be nil.
func (o *Turns) forget(first *firstTurn) {
	if first != nil {
		o.running.remove(first.handle)
	}
}

// arm gives a turn the function that cancels it.
func (r *running) arm(h *turnHandle, cancel context.CancelCauseFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h.cancel = cancel
}

// begin tells which entry the turn works on, whose sender was judged up to a
// change of access, and stops it if that was asked for in the meantime.
func (r *running) begin(h *turnHandle, entry sessions.Entry, role sessions.Role, access int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h.seq, h.in, h.role, h.access = entry.Seq, entry.In, role, access
	if entry.Seq <= h.stopUpTo {
		h.cancel(command.ErrStopped)
	}
}

// waits tells which entry waits for its next try, and ends that if a stop was asked for
// in the meantime.
func (r *running) waits(h *turnHandle, entry sessions.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h.seq, h.in, h.waiting = entry.Seq, entry.In, true
	if entry.Seq <= h.stopUpTo {
		h.cancel(command.ErrStopped)
	}
}

// wake has the worker of a conversation look again at what it waits for.
func (r *running) wake(conversationID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.turns[conversationID]; h != nil {
		select {
		case h.wake <- struct{}{}:
		default:
		}
	}
}

// remove takes h away. Its done channel is closed.
func (r *running) remove(h *turnHandle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turns[h.conversation] == h {
		delete(r.turns, h.conversation)
	}
	close(h.done)
}

// runs tells how a turn shows what it does.
func (r *running) runs(conversationID string, p *progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.turns[conversationID]; h != nil {
		h.shows = p
	}
}

// stalled counts the turns from which nothing was heard for stalledAfter.
func (r *running) stalled() (s metrics.Stalled) {
	r.mu.Lock()
	shown := make([]*progress, 0, len(r.turns))
	for _, h := range r.turns {
		if h.shows != nil {
			shown = append(shown, h.shows)
		}
	}
	r.mu.Unlock()
	for _, p := range shown {
		is, byTool := p.stalled()
		switch {
		case !is:
		case p.job:
			s.Command++
		case byTool:
			s.Tool++
		default:
			s.Model++
		}
	}
	return s
}

// count returns how many turns have begun.
func (r *running) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, h := range r.turns {
		if h.seq != 0 && !h.waiting {
			n++
		}
	}
	return n
}

// since returns when the turn of a conversation began; ok is false if none runs
// in this process.
func (r *running) sinceOf(conversationID string) (since time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.turns[conversationID]
	if h == nil || h.seq == 0 || h.waiting {
		return time.Time{}, false
	}
	return h.since, true
}

// stop cancels the turn of a conversation if its entry was accepted up to upTo.
// It returns the turn, or nil if this process has none.
func (r *running) stop(conversationID string, upTo int64) *turnHandle {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.turns[conversationID]
	if h == nil || h.seq > upTo {
		return nil
	}
	h.stopUpTo = max(h.stopUpTo, upTo)
	if h.seq != 0 {
		h.cancel(command.ErrStopped)
	}
	return h
}
