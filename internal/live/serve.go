package live

import (
	"context"
	"net/http"
	"time"
)

const (
	// pace is how long a stream is silent after an event: what changes meanwhile is told
	// by one.
	pace = 500 * time.Millisecond

	// each is how much more silent each of many streams of all conversations makes the
	// others, up to slowest: every event has its page asked for again.
	each    = 4 * time.Millisecond
	slowest = 800 * time.Millisecond

	// settle is how long after a change it is told where at least many streams are open:
	// what one step of a turn commits shortly after each other is then told, and its page
	// made, once.
	settle = 50 * time.Millisecond
	many   = 50

	// heartbeat is how often something is written, and looked at whether they may look.
	heartbeat = 15 * time.Second

	// writeWithin bounds a write: who does not read is gone.
	writeWithin = 10 * time.Second

	// life bounds a stream; the browser begins another one, which goes on behind it. So
	// a connection whose other end has vanished is not kept for long.
	life = 10 * time.Minute
)

// Feed is a stream that is served.
type Feed struct {
	Stream *Stream

	// Check reports whether they may still look. It is asked now and then, and when
	// something of Asked.Access changed.
	Check func(ctx context.Context) bool

	// Passes reports whether changes are of something that they see; nil if all are.
	Passes func(ctx context.Context, changed []Topic) bool
}

// Serve writes events until the browser has gone, they may no longer look, or the hub is
// closed. It closes the stream. An event says that something changed, and has no more in
// it than its id.
func Serve(w http.ResponseWriter, r *http.Request, f Feed) {
	defer f.Stream.Close()
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // a server's limit for requests would end it
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // of a proxy that would keep it back
	if r.Method == http.MethodHead {
		return // who asks what there is does not wait for it
	}
	write := func(text string) bool {
		_ = out.SetWriteDeadline(time.Now().Add(writeWithin)) // where there is none, there is nothing to wait for
		if _, err := w.Write([]byte(text)); err != nil {
			return false
		}
		return out.Flush() == nil
	}
	if write("retry: 1000\n\n") {
		f.run(r.Context(), write)
	}
}

// run writes events until it is over.
func (f Feed) run(ctx context.Context, write func(text string) bool) {
	s := f.Stream
	ctx, cancel := context.WithTimeout(ctx, life)
	defer cancel()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	settled := time.NewTimer(life)
	settled.Stop()
	defer settled.Stop()
	wake := (<-chan struct{})(nil) // nil until there is to be the next event
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.hub.closed:
			return
		case <-beat.C:
			if !f.Check(ctx) || !write(":\n\n") {
				return
			}
		case <-pause.C:
			wake = s.wake
		case <-wake:
			wake = nil
			settled.Reset(s.settle())
		case <-settled.C:
			c := s.take()
			if c.Access && !f.Check(ctx) {
				return
			}
			if !c.Gap && len(c.Topics) == 0 {
				wake = s.wake
				continue
			}
			pause.Reset(s.pace() - s.settle())
			if f.tells(ctx, c) && !write("id: "+c.ID+"\nevent: "+c.event()+"\ndata: 1\n\n") {
				return
			}
		}
	}
}

// tells reports whether a change is one to tell of.
func (f Feed) tells(ctx context.Context, c Change) bool {
	return c.Gap || f.Passes == nil || f.Passes(ctx, c.Topics)
}

// event is what a change is called on the way to the page, which asks for its content
// either way.
func (c Change) event() string {
	if c.Gap {
		return "reload"
	}
	return "changed"
}
