package anthropic

import (
	"context"
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

// Options configure a Server. The zero value is usable.
type Options struct {
	APIKey string   // the only key that is taken; empty takes any
	Models []string // the only models that exist; empty takes any

	// ContextTokens is the context window of the models, zero for no limit. Four
	// bytes of content count as a token.
	ContextTokens int

	// Prefill lets a request end with the beginning of the answer, as older
	// models do. Without it only a paused turn may be continued.
	Prefill bool

	// SystemMessages lets a message after the first have the role system, as
	// newer models do.
	SystemMessages bool

	// KeepRequests is how many requests are kept. Zero keeps all, a negative
	// number none.
	KeepRequests int

	// OnDone is called when an answer has been sent completely, or not. It may
	// be called concurrently.
	OnDone func(Request, Outcome)

	// Addr is where Start listens; default a free port of 127.0.0.1.
	Addr string

	// Now is the clock of all dates and of the prompt cache; default time.Now.
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

// Stats count requests for messages.
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

// Server is an emulated Messages API. It is safe for concurrent use.
type Server struct {
	opts    Options
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	changed emulator.Signal
	cache   cache

	// mu guards all that follows.
	mu       sync.Mutex
	loop     *emulator.Loopback
	script   Script
	queue    []Response
	requests []Request
	refusals []Refusal
	stats    Stats
	paused   map[string]bool // contents of answers that may be continued
	replies  int
}

// New returns a server that is not listening yet. It answers with Echo.
func New(opts Options) *Server {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Server{opts: opts, script: Echo, paused: map[string]bool{}}
	// Close ends this context: the server owns its lifetime, as a listener does.
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Start serves on Options.Addr.
func (s *Server) Start() error {
	loop, err := emulator.Listen(s.opts.Addr, s.Handler())
	if err != nil {
		return fmt.Errorf("starting the Anthropic emulator: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loop = loop
	return nil
}

// URL returns the base URL for a client, without /v1, or the empty string before
// Start.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loop == nil {
		return ""
	}
	return s.loop.URL()
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

// Echo is the script of a new server. It answers "echo: TEXT [N messages]" with
// the text of the last user message and the number of messages in the request.
func Echo(r Request) Response {
	return Text("echo: ", r.LastUserText(), " ["+strconv.Itoa(len(r.Messages))+" messages]")
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

// Handler returns the HTTP interface.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", s.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", s.countTokens)
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("GET /v1/models/{id}", s.model)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.writeError(w, &APIError{Status: http.StatusNotFound, Type: "not_found_error", Message: "Not Found"})
	})
	return mux
}

// authorize checks the key and the version of the API.
func (s *Server) authorize(r *http.Request) *APIError {
	key := r.Header.Get("X-Api-Key")
	if key == "" {
		key, _ = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	switch {
	case key == "":
		return &APIError{Status: http.StatusUnauthorized, Type: "authentication_error", Message: "x-api-key header is required"}
	case s.opts.APIKey != "" && subtle.ConstantTimeCompare([]byte(key), []byte(s.opts.APIKey)) != 1:
		return Unauthorized().fail
	}
	switch version := r.Header.Get("Anthropic-Version"); version {
	case "2023-06-01", "2023-01-01":
		return nil
	case "":
		return invalid("anthropic-version: header is required")
	default:
		return invalid("anthropic-version: %q is not a valid version", version)
	}
}

func (s *Server) checkModel(name string) *APIError {
	if len(s.opts.Models) == 0 || slices.Contains(s.opts.Models, name) {
		return nil
	}
	return &APIError{Status: http.StatusNotFound, Type: "not_found_error", Message: "model: " + name}
}

type modelInfo struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
}

func describeModel(id string) modelInfo {
	return modelInfo{Type: "model", ID: id, DisplayName: id, CreatedAt: "2026-01-01T00:00:00Z"}
}

func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	if e := s.authorize(r); e != nil {
		s.writeError(w, e)
		return
	}
	list := []modelInfo{}
	for _, id := range s.opts.Models {
		list = append(list, describeModel(id))
	}
	page := map[string]any{"data": list, "has_more": false, "first_id": nil, "last_id": nil}
	if n := len(list); n > 0 {
		page["first_id"], page["last_id"] = list[0].ID, list[n-1].ID
	}
	writeJSON(w, http.StatusOK, page)
}

func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	e := s.authorize(r)
	if e == nil {
		e = s.checkModel(r.PathValue("id"))
	}
	if e != nil {
		s.writeError(w, e)
		return
	}
	writeJSON(w, http.StatusOK, describeModel(r.PathValue("id")))
}

// read reads and checks a request. It returns false if the client is gone.
func (s *Server) read(r *http.Request, counting bool) (req Request, e *APIError, ok bool) {
	at := s.opts.Now()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return req, nil, false
	}
	e = s.authorize(r)
	if e == nil && len(body) > maxBody {
		e = tooLarge()
	}
	if e == nil {
		req, e = parse(body, ruleset{counting: counting, prefill: s.opts.Prefill, systems: s.opts.SystemMessages, paused: s.isPaused})
	}
	if e == nil {
		e = s.checkModel(req.Model)
	}
	req.At, req.Body, req.Header = at, body, r.Header.Clone()
	req.Header.Del("Authorization")
	req.Header.Del("X-Api-Key")
	return req, e, true
}

// countTokens says how long a prompt is. It is no request to the model.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	req, e, ok := s.read(r, true)
	switch {
	case !ok:
	case e != nil:
		s.refuse(w, req, e)
	default:
		writeJSON(w, http.StatusOK, map[string]int{"input_tokens": promptTokens(req.points())})
	}
}

func promptTokens(points []point) int {
	if len(points) == 0 {
		return 0
	}
	return points[len(points)-1].tokens
}

// messages answers one request.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	req, e, ok := s.read(r, false)
	if !ok {
		return
	}
	var points []point
	if e == nil {
		points = req.points()
		if n := promptTokens(points); s.opts.ContextTokens > 0 && n > s.opts.ContextTokens {
			e = promptTooLong(n, s.opts.ContextTokens)
		}
	}
	if e != nil {
		s.refuse(w, req, e)
		return
	}
	response := s.accept(&req, points)
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
	s.writeError(w, e)
}

// accept records a request and returns what to answer.
func (s *Server) accept(req *Request, points []point) Response {
	s.mu.Lock()
	var next *Response
	if len(s.queue) > 0 {
		next, s.queue = &s.queue[0], s.queue[1:]
	}
	script := s.script
	s.mu.Unlock()
	// A request that an error answers neither reads nor writes the cache.
	if next == nil || next.fail == nil {
		req.Usage = s.cache.account(points, req.At)
	}
	s.mu.Lock()
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
	s.mu.Unlock()
	s.changed.Notify()
	if next != nil {
		return *next
	}
	return script(*req)
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

// maxPaused bounds what is remembered of paused turns.
const maxPaused = 1000

func (s *Server) isPaused(content []ContentBlock) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paused[contentKey(content)]
}

func (s *Server) pause(content []ContentBlock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.paused) >= maxPaused {
		clear(s.paused)
	}
	s.paused[contentKey(content)] = true
}

// contentKey is the same for contents that differ in their cache marks only.
func contentKey(content []ContentBlock) string {
	var key strings.Builder
	for _, b := range content {
		_, _ = key.Write(unmarked(b.Raw))
	}
	return key.String()
}

// writeError answers in the API's form, which has the number of the request.
func (s *Server) writeError(w http.ResponseWriter, e *APIError) {
	id := s.newID("req_emulated")
	w.Header().Set("Request-Id", id)
	writeJSON(w, e.Status, map[string]any{"type": "error", "error": e, "request_id": id})
}

func (s *Server) newID(kind string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies++
	return kind + strconv.Itoa(s.replies)
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
