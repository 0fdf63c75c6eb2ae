package anthropic

import (
	"net/http"
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

	// APIError is an error in the API's own form.
	APIError = modelapi.Error
)

// Server is an emulated Messages API. It is safe for concurrent use.
type Server = modelapi.Server[Request]

// memory is what the API remembers of its answers.
type memory struct {
	opts   Options
	cache  cache
	server *Server

	// mu guards all that follows.
	mu      sync.Mutex
	paused  map[string]bool // contents of answers that may be continued
	replies int
}

// New returns a server that is not listening yet. It answers with Echo.
func New(opts Options) *Server {
	s := &memory{opts: opts, paused: map[string]bool{}}
	s.server = modelapi.New(modelapi.Options[Request]{
		APIKey: opts.APIKey, Models: opts.Models, ContextTokens: opts.ContextTokens,
		KeepRequests: opts.KeepRequests, OnDone: opts.OnDone, Now: opts.Now,
	}, modelapi.API[Request]{
		Name: "Anthropic", Endpoint: "POST /v1/messages", KeyHeader: "X-Api-Key",
		More: map[string]http.HandlerFunc{"POST /v1/messages/count_tokens": s.countTokens},
		Echo: Echo, Parse: s.parse, Voice: s.voice, Prepare: s.account, Authorize: checkVersion, WriteError: s.writeError,
		Received: func(r *Request) *modelapi.Received { return &r.Received },
		Model:    func(r *Request) string { return r.Model },
		Tokens:   func(r *Request) int { return promptTokens(r.points()) },
		NoKey:    &APIError{Status: http.StatusUnauthorized, Type: "authentication_error", Message: "x-api-key header is required"},
		WrongKey: Unauthorized().Fail,
		NotFound: func(*http.Request) *APIError { return notFound("Not Found") },
		NoModel:  func(name string) *APIError { return notFound("model: " + name) },
		Overflow: func(got, limit int) *APIError { return PromptTooLong(got, limit).Fail },
		MaxBody:  maxBody, TooLarge: TooLarge().Fail, Describe: describeModel, List: listModels,
	})
	return s.server
}

func notFound(message string) *APIError {
	return &APIError{Status: http.StatusNotFound, Type: "not_found_error", Message: message}
}

// Echo is the script of a new server. It answers "echo: TEXT [N messages]" with
// the text of the last user message and the number of messages in the request.
func Echo(r Request) Response {
	return Text("echo: ", r.LastUserText(), " ["+strconv.Itoa(len(r.Messages))+" messages]")
}

// checkVersion checks the version of the API.
func checkVersion(r *http.Request) *APIError {
	switch version := r.Header.Get("Anthropic-Version"); version {
	case "2023-06-01", "2023-01-01":
		return nil
	case "":
		return invalid("anthropic-version: header is required")
	default:
		return invalid("anthropic-version: %q is not a valid version", version)
	}
}

type modelInfo struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
}

func describeModel(id string) any {
	return modelInfo{Type: "model", ID: id, DisplayName: id, CreatedAt: "2026-01-01T00:00:00Z"}
}

func listModels(ids []string) any {
	list := []any{}
	for _, id := range ids {
		list = append(list, describeModel(id))
	}
	page := map[string]any{"data": list, "has_more": false, "first_id": nil, "last_id": nil}
	if n := len(ids); n > 0 {
		page["first_id"], page["last_id"] = ids[0], ids[n-1]
	}
	return page
}

func (s *memory) parse(body []byte) (Request, *APIError) { return parse(body, s.rules(false)) }

func (s *memory) rules(counting bool) ruleset {
	return ruleset{counting: counting, prefill: s.opts.Prefill, systems: s.opts.SystemMessages, paused: s.isPaused}
}

// countTokens says how long a prompt is. It is no request to the model.
func (s *memory) countTokens(w http.ResponseWriter, r *http.Request) {
	s.server.Look(w, r, func(body []byte) (Request, *APIError) { return parse(body, s.rules(true)) },
		func(req *Request) any { return map[string]int{"input_tokens": promptTokens(req.points())} })
}

func promptTokens(points []point) int {
	if len(points) == 0 {
		return 0
	}
	return points[len(points)-1].tokens
}

// account says what the input of a request costs. A request that an error answers
// neither reads nor writes the cache.
func (s *memory) account(req *Request, queued *Response) {
	if queued == nil || queued.Fail == nil {
		req.Usage = s.cache.account(req.points(), req.At)
	}
}

// maxPaused bounds what is remembered of paused turns.
const maxPaused = 1000

func (s *memory) isPaused(content []ContentBlock) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paused[contentKey(content)]
}

func (s *memory) pause(content []ContentBlock) {
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
func (s *memory) writeError(w http.ResponseWriter, e *APIError) {
	id := s.newID("req_emulated")
	w.Header().Set("Request-Id", id)
	modelapi.WriteJSON(w, e.Status, map[string]any{"type": "error", "error": errorObject(e), "request_id": id})
}

func errorObject(e *APIError) any { return map[string]string{"type": e.Type, "message": e.Message} }

func (s *memory) newID(kind string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies++
	return kind + strconv.Itoa(s.replies)
}
