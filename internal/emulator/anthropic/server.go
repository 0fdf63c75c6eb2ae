package anthropic

import (
	"context"
	"crypto/subtle"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/emulator/modelapi"
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

// How a request ended; see modelapi.Outcome.
const (
	Completed = modelapi.Completed
	Canceled  = modelapi.Canceled
	Refused   = modelapi.Refused
)

type (
	// Outcome says how a request ended.
	Outcome = modelapi.Outcome

	// Script decides what the model answers. It may be called concurrently.
	Script = func(Request) Response

	// Stats count requests to the model.
	Stats = modelapi.Stats

	// Refusal is a request that did not pass the checks.
	Refusal = modelapi.Refusal[APIError]

	core = modelapi.Server[Request, Response, APIError]
)

// Server is an emulated Messages API. It is safe for concurrent use.
type Server struct {
	*core

	opts  Options
	cache cache

	// mu guards all that follows.
	mu      sync.Mutex
	paused  map[string]bool // contents of answers that may be continued
	replies int
}

// New returns a server that is not listening yet. It answers with Echo.
func New(opts Options) *Server {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Server{opts: opts, paused: map[string]bool{}}
	s.core = modelapi.New[APIError](modelapi.Options[Request]{
		KeepRequests: opts.KeepRequests, OnDone: opts.OnDone, Addr: opts.Addr,
	}, modelapi.Dialect[Request, Response]{
		Name: "Anthropic", Handler: s.Handler, Echo: Echo, Number: func(r *Request) *int { return &r.N },
	})
	return s
}

// Echo is the script of a new server. It answers "echo: TEXT [N messages]" with
// the text of the last user message and the number of messages in the request.
func Echo(r Request) Response {
	return Text("echo: ", r.LastUserText(), " ["+strconv.Itoa(len(r.Messages))+" messages]")
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
	modelapi.WriteJSON(w, http.StatusOK, page)
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
	modelapi.WriteJSON(w, http.StatusOK, describeModel(r.PathValue("id")))
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
		modelapi.WriteJSON(w, http.StatusOK, map[string]int{"input_tokens": promptTokens(req.points())})
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
	modelapi.Answer(r.Context(), s.core, req, func(req *Request, queued *Response) {
		// A request that an error answers neither reads nor writes the cache.
		if queued == nil || queued.fail == nil {
			req.Usage = s.cache.account(points, req.At)
		}
	}, func(ctx context.Context, req Request, response Response) error {
		return s.play(ctx, w, req, response)
	})
}

func (s *Server) refuse(w http.ResponseWriter, req Request, e *APIError) {
	modelapi.Refuse(s.core, req, Refusal{Error: *e, Body: req.Body, At: req.At})
	s.writeError(w, e)
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
	modelapi.WriteJSON(w, e.Status, map[string]any{"type": "error", "error": e, "request_id": id})
}

func (s *Server) newID(kind string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies++
	return kind + strconv.Itoa(s.replies)
}
