package bench

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"time"
)

// stamps are the moments of one turn. They are taken at the emulators' doors, so
// what the emulators themselves need is outside, except for the time between the
// arrival of the last edit and its being visible.
type stamps struct {
	sent      time.Time // the person has written
	delivered time.Time // the poll's answer begins to leave Telegram
	requested time.Time // the request has come to the model
	replied   time.Time // the last text of the model begins to leave it; the end of the stream follows at once
	shown     time.Time // the complete answer is visible
}

// stopwatch takes stamps of one turn at a time.
type stopwatch struct {
	mu    sync.Mutex // guards all below
	now   stamps
	polls []chan time.Time // of those who wait for the next poll
}

func newStopwatch() *stopwatch { return &stopwatch{} }

func (s *stopwatch) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = stamps{}
}

func (s *stopwatch) read() stamps {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// nextPoll returns a channel that gets the time of the next getUpdates.
func (s *stopwatch) nextPoll() <-chan time.Time {
	c := make(chan time.Time, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls = append(s.polls, c)
	return c
}

func (s *stopwatch) polled() {
	at := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.polls {
		c <- at
	}
	s.polls = nil
}

// stamp notes the first time that something happens in a turn.
func (s *stopwatch) stamp(which func(*stamps) *time.Time) {
	at := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := which(&s.now); t.IsZero() {
		*t = at
	}
}

// telegram stands before the emulated Telegram.
func (s *stopwatch) telegram(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/getUpdates") {
			s.polled()
			w = &spy{ResponseWriter: w, mark: []byte(`"update_id"`), seen: func() {
				s.stamp(func(t *stamps) *time.Time { return &t.delivered })
			}}
		}
		next.ServeHTTP(w, r)
	})
}

// model stands before the emulated model.
func (s *stopwatch) model(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.stamp(func(t *stamps) *time.Time { return &t.requested })
		next.ServeHTTP(&spy{ResponseWriter: w, mark: []byte(endMark), seen: func() {
			s.stamp(func(t *stamps) *time.Time { return &t.replied })
		}}, r)
	})
}

// spy tells when a mark is about to be written.
type spy struct {
	http.ResponseWriter

	mark []byte
	seen func()
}

// Write implements http.ResponseWriter.
func (s *spy) Write(p []byte) (int, error) {
	if bytes.Contains(p, s.mark) {
		s.seen()
	}
	return s.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find what is below.
func (s *spy) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Flush implements http.Flusher.
func (s *spy) Flush() {
	_ = http.NewResponseController(s.ResponseWriter).Flush() // a client that is gone is seen by the next write
}
