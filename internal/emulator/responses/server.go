package responses

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/emulator"
)

const (
	maxBody     = 64 << 20
	maxPrefixes = 100_000
)

// Options configure a Server. The zero value is usable.
type Options struct {
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
	OnDone func(Request, Outcome)

	// Addr is where Start listens; default a free port of 127.0.0.1.
	Addr string

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

// Script decides what the model answers. It may be called concurrently.
type Script func(Request) Response

// Stats count requests.
type Stats struct {
	Received  int // that passed the checks
	Active    int // being answered
	Completed int
	Canceled  int // because the client disconnected
	Refused   int // that did not pass the checks
}

// Refusal is a request that did not pass the checks.
type Refusal struct {
	Error APIError
	Body  []byte
	At    time.Time
}

// Server is an emulated Responses API. It is safe for concurrent use.
type Server struct {
	opts    Options
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	changed emulator.Signal

	// mu guards all that follows.
	mu       sync.Mutex
	loop     *emulator.Loopback
	script   Script
	queue    []Response
	requests []Request
	refusals []Refusal
	stats    Stats
	prefixes map[[sha256.Size]byte]int // beginnings of inputs, with their tokens
}

// New returns a server that is not listening yet. It answers with Echo.
func New(opts Options) *Server {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Server{opts: opts, script: Echo, prefixes: map[[sha256.Size]byte]int{}}
	// Close ends this context: the server owns its lifetime, as a listener does.
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Start serves on Options.Addr.
func (s *Server) Start() error {
	loop, err := emulator.Listen(s.opts.Addr, s.Handler())
	if err != nil {
		return fmt.Errorf("starting the Responses emulator: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loop = loop
	return nil
}

// URL returns the base URL for a client, which ends with /v1, or the empty string
// before Start.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loop == nil {
		return ""
	}
	return s.loop.URL() + "/v1"
}

// Close ends all answers and waits for them. What was recorded stays readable.
// It may be called more than once.
func (s *Server) Close() {
	s.cancel()
	s.mu.Lock()
	loop := s.loop
	s.mu.Unlock()
	if loop != nil {
		loop.Close()
	}
}

// Echo is the script of a new server. It answers "echo: TEXT [N items]" with the
// text of the last user message and the number of items in the input.
func Echo(r Request) Response {
	return Text("echo: ", r.LastUserText(), " ["+strconv.Itoa(len(r.Items))+" items]")
}

// Script replaces what the model answers. Nil is Echo.
func (s *Server) Script(script Script) {
	if script == nil {
		script = Echo
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = script
}

// Enqueue answers the next requests, one each, before the script is asked again.
func (s *Server) Enqueue(responses ...Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, responses...)
}

// Requests returns the requests that passed the checks, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Refusals returns the requests that did not pass the checks. A correct client
// causes none.
func (s *Server) Refusals() []Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refusals)
}

// Stats returns the counts.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Wait returns nil as soon as check reports true. It looks after changes, not
// all the time, and returns the cause of ctx if that ends first.
func (s *Server) Wait(ctx context.Context, check func(Stats) bool) error {
	return s.changed.Wait(ctx, func() bool { return check(s.Stats()) })
}

// WaitRequest waits for the nth request that passes the checks, counted from 1,
// and returns it. The answer may not have begun. A request that is not kept any
// more is returned with its number only.
func (s *Server) WaitRequest(ctx context.Context, n int) (Request, error) {
	if err := s.Wait(ctx, func(st Stats) bool { return st.Received >= n }); err != nil {
		return Request{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r.N == n {
			return r, nil
		}
	}
	return Request{N: n}, nil
}

// Handler returns the HTTP interface below /v1.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/responses", s.respond)
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("GET /v1/models/{id}", s.model)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		e := invalid("", "Invalid URL (%s %s)", r.Method, r.URL.Path)
		e.Status = http.StatusNotFound
		writeError(w, e)
	})
	return mux
}

// authorize checks the key.
func (s *Server) authorize(r *http.Request) *APIError {
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || key == "" {
		e := invalid("", "Missing bearer or basic authentication in header")
		e.Status = http.StatusUnauthorized
		return e
	}
	if s.opts.APIKey != "" && subtle.ConstantTimeCompare([]byte(key), []byte(s.opts.APIKey)) != 1 {
		return Unauthorized().fail
	}
	return nil
}

func (s *Server) checkModel(name string) *APIError {
	if len(s.opts.Models) == 0 || slices.Contains(s.opts.Models, name) {
		return nil
	}
	return &APIError{
		Status: http.StatusBadRequest, Type: "invalid_request_error", Param: "model", Code: "model_not_found",
		Message: fmt.Sprintf("The requested model '%s' does not exist.", name),
	}
}

type modelInfo struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	if e := s.authorize(r); e != nil {
		writeError(w, e)
		return
	}
	list := []modelInfo{}
	for _, id := range s.opts.Models {
		list = append(list, modelInfo{ID: id, Object: "model", OwnedBy: "emulator"})
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	e := s.authorize(r)
	if e == nil {
		e = s.checkModel(r.PathValue("id"))
	}
	if e != nil {
		writeError(w, e)
		return
	}
	writeJSON(w, http.StatusOK, modelInfo{ID: r.PathValue("id"), Object: "model", OwnedBy: "emulator"})
}

// respond answers one request.
func (s *Server) respond(w http.ResponseWriter, r *http.Request) {
	at := s.opts.Now()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return // the client is gone
	}
	e := s.authorize(r)
	var req Request
	if e == nil {
		req, e = parse(body)
	}
	if e == nil {
		e = s.checkModel(req.Model)
	}
	req.Tokens = req.tokens()
	if e == nil && s.opts.ContextTokens > 0 && req.Tokens > s.opts.ContextTokens {
		e = contextOverflow()
	}
	req.At, req.Body, req.Header = at, body, r.Header.Clone()
	req.Header.Del("Authorization")
	if e != nil {
		s.refuse(w, req, e)
		return
	}
	response := s.accept(&req)
	// An answer that is abandoned by a panic to break the connection was played
	// as scripted.
	outcome := Completed
	defer func() { s.finish(req, outcome) }()
	if s.play(r.Context(), w, req, response) != nil {
		outcome = Canceled
	}
}

func (s *Server) refuse(w http.ResponseWriter, req Request, e *APIError) {
	s.mu.Lock()
	s.stats.Refused++
	if s.opts.KeepRequests >= 0 {
		s.refusals = append(s.refusals, Refusal{Error: *e, Body: req.Body, At: req.At})
	}
	s.mu.Unlock()
	s.changed.Notify()
	if s.opts.OnDone != nil {
		s.opts.OnDone(req, Refused)
	}
	writeError(w, e)
}

// accept records a request and returns what to answer.
func (s *Server) accept(req *Request) Response {
	s.mu.Lock()
	req.Cached = s.cached(req)
	s.stats.Received++
	s.stats.Active++
	req.N = s.stats.Received
	if keep := s.opts.KeepRequests; keep >= 0 {
		s.requests = append(s.requests, *req)
		if keep > 0 && len(s.requests) > keep {
			s.requests[0] = Request{}
			s.requests = s.requests[1:]
		}
	}
	script := s.script
	var next *Response
	if len(s.queue) > 0 {
		next, s.queue = &s.queue[0], s.queue[1:]
	}
	s.mu.Unlock()
	s.changed.Notify()
	if next != nil {
		return *next
	}
	return script(*req)
}

// cached returns how many tokens of the input an earlier request began with, and
// remembers the beginnings of this one. s.mu is held.
func (s *Server) cached(req *Request) int {
	if len(s.prefixes) > maxPrefixes {
		clear(s.prefixes)
	}
	tools, err := json.Marshal(req.Tools)
	if err != nil {
		return 0
	}
	key := sha256.Sum256(append([]byte(req.Model+"\x00"+req.Instructions+"\x00"), tools...))
	tokens := Request{Instructions: req.Instructions, Tools: req.Tools}.tokens()
	longest := s.prefixes[key]
	s.prefixes[key] = tokens
	for _, i := range req.Items {
		key = sha256.Sum256(append(key[:], i.Raw...))
		tokens += itemTokens(i)
		longest = max(longest, s.prefixes[key])
		s.prefixes[key] = tokens
	}
	return longest
}

func (s *Server) finish(req Request, outcome Outcome) {
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

func writeError(w http.ResponseWriter, e *APIError) {
	writeJSON(w, e.Status, map[string]any{"error": e})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		b = []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b)
}
