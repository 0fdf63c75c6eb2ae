// Package modelapi is the one plumbing of the emulated model APIs: a server with a
// script and a queue of answers, a record of its requests, keys, models and limits,
// the steps of which a script is made, and the ways in which an answer is written,
// whole or as a stream of events. What an API checks and how it words what it says
// is in the package of that API.
package modelapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"remote-agent/internal/emulator"
)

// Options configure a Server. The zero value is usable.
type Options[Req any] struct {
	APIKey string   // the only key that is taken; empty takes any
	Models []string // the only models that exist; empty takes any

	// ContextTokens is the context window of the models, zero for no limit. Four
	// bytes of content count as a token.
	ContextTokens int

	// KeepRequests is how many requests are kept. Zero keeps all, a negative
	// number none.
	KeepRequests int

	// OnDone is called when an answer has been sent completely, or not. It may
	// be called concurrently.
	OnDone func(Req, Outcome)

	// Now is the clock of all dates; default time.Now.
	Now func() time.Time
}

// Outcome says how a request ended.
type Outcome string

// The outcomes.
const (
	Completed Outcome = "completed" // the whole script was played
	Canceled  Outcome = "canceled"  // the client went away before that
	Refused   Outcome = "refused"   // the request did not pass the checks
)

// Stats count requests to the model.
type Stats struct {
	Received  int // that passed the checks
	Active    int // being answered
	Completed int
	Canceled  int // because the client disconnected
	Refused   int // that did not pass the checks
}

// Received is what is known of every request. A request embeds it.
type Received struct {
	N      int         `json:"-"` // counted from 1
	At     time.Time   `json:"-"`
	Header http.Header `json:"-"` // without the key
	Body   []byte      `json:"-"`
}

// Refusal is a request that did not pass the checks.
type Refusal struct {
	Error Error
	Body  []byte
	At    time.Time
}

// Server is an emulated model API. It is safe for concurrent use.
type Server[Req any] struct {
	opts    Options[Req]
	api     API[Req]
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	changed emulator.Signal

	// mu guards all that follows.
	mu       sync.Mutex
	loop     *emulator.Loopback
	script   func(Req) Response
	queue    []Response
	requests []Req
	refusals []Refusal
	stats    Stats
}

// New returns a server that is not listening yet.
func New[Req any](opts Options[Req], api API[Req]) *Server[Req] {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Server[Req]{opts: opts, api: api, script: api.Echo}
	// Close ends this context: the server owns its lifetime, as a listener does.
	s.ctx, s.cancel = context.WithCancel(context.Background()) //nolint:gosec // Close calls it
	return s
}

// Start serves on a free port of 127.0.0.1.
func (s *Server[Req]) Start() error {
	loop, err := emulator.Listen(s.Handler())
	if err != nil {
		return fmt.Errorf("starting the %s emulator: %w", s.api.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loop = loop
	return nil
}

// URL returns the base URL for a client, in the form that clients of this API
// take, or the empty string before Start.
func (s *Server[Req]) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loop == nil {
		return ""
	}
	return s.loop.URL() + s.api.Path
}

// Close ends all answers and waits for them. What was recorded stays readable.
// It may be called more than once.
func (s *Server[Req]) Close() {
	s.cancel()
	s.mu.Lock()
	loop := s.loop
	s.mu.Unlock()
	if loop != nil {
		loop.Close()
	}
}

// Script replaces what the model answers. It may be called concurrently. Nil is
// the script of a new server.
func (s *Server[Req]) Script(script func(Req) Response) {
	if script == nil {
		script = s.api.Echo
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = script
}

// Enqueue answers the next requests, one each, before the script is asked again.
func (s *Server[Req]) Enqueue(responses ...Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, responses...)
}

// Requests returns the requests that passed the checks, oldest first.
func (s *Server[Req]) Requests() []Req {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Refusals returns the requests that did not pass the checks. A correct client
// causes none.
func (s *Server[Req]) Refusals() []Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refusals)
}

// Stats returns the counts.
func (s *Server[Req]) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Wait returns nil as soon as check reports true. It looks after changes, not
// all the time, and returns the cause of ctx if that ends first.
func (s *Server[Req]) Wait(ctx context.Context, check func(Stats) bool) error {
	return s.changed.Wait(ctx, func() bool { return check(s.Stats()) })
}

// WaitRequest waits for the nth request that passes the checks, counted from 1,
// and returns it. The answer may not have begun. A request that is not kept any
// more is returned with its number only.
func (s *Server[Req]) WaitRequest(ctx context.Context, n int) (Req, error) {
	var none Req
	if err := s.Wait(ctx, func(st Stats) bool { return st.Received >= n }); err != nil {
		return none, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if s.api.Received(&r).N == n {
			return r, nil
		}
	}
	s.api.Received(&none).N = n
	return none, nil
}

// refused records a request that did not pass the checks.
func (s *Server[Req]) refused(req Req, e *Error) {
	got := s.api.Received(&req)
	s.mu.Lock()
	s.stats.Refused++
	if s.opts.KeepRequests >= 0 {
		s.refusals = append(s.refusals, Refusal{Error: *e, Body: got.Body, At: got.At})
	}
	s.mu.Unlock()
	s.changed.Notify()
	if s.opts.OnDone != nil {
		s.opts.OnDone(req, Refused)
	}
}

// accept records a request and returns what to answer.
func (s *Server[Req]) accept(req *Req) Response {
	s.mu.Lock()
	script := s.script
	var next *Response
	if len(s.queue) > 0 {
		next, s.queue = &s.queue[0], s.queue[1:]
	}
	if s.api.Prepare != nil {
		s.api.Prepare(req, next)
	}
	s.stats.Received++
	s.stats.Active++
	s.api.Received(req).N = s.stats.Received
	if keep := s.opts.KeepRequests; keep >= 0 {
		s.requests = append(s.requests, *req)
		if keep > 0 && len(s.requests) > keep {
			var none Req
			s.requests[0] = none
			s.requests = s.requests[1:]
		}
	}
	s.mu.Unlock()
	s.changed.Notify()
	if next != nil {
		return *next
	}
	return script(*req)
}

func (s *Server[Req]) finish(req Req, outcome Outcome) {
	s.mu.Lock()
	s.stats.Active--
	if outcome == Canceled {
		s.stats.Canceled++
	} else {
		s.stats.Completed++
	}
	s.mu.Unlock()
	if s.opts.OnDone != nil {
		s.opts.OnDone(req, outcome)
	}
	s.changed.Notify()
}
