package openai

import (
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/emulator/modelapi"
)

const maxBody = 64 << 20

// Options configure a Server. The zero value is usable.
type Options = modelapi.Options[Request]

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

// Server is an emulated chat completions API. It is safe for concurrent use.
type Server struct {
	*core

	opts Options
}

// New returns a server that is not listening yet. It answers with Echo.
func New(opts Options) *Server {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Server{opts: opts}
	s.core = modelapi.New[APIError](opts, modelapi.Dialect[Request, Response]{
		Name: "OpenAI", Path: "/v1", Handler: s.Handler, Echo: Echo, Number: func(r *Request) *int { return &r.N },
	})
	return s
}

// Echo is the script of a new server. It answers "echo: TEXT [N messages]" with
// the text of the last user message and the number of messages in the request,
// besides those of the system.
func Echo(r Request) Response {
	n := len(r.Messages)
	for _, role := range r.Roles() {
		if role == "system" || role == "developer" {
			n--
		}
	}
	return Text("echo: ", r.LastUserText(), " ["+strconv.Itoa(n)+" messages]")
}

// Handler returns the HTTP interface below /v1.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
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
		e := invalid("", "You didn't provide an API key. You need to provide your API key in an Authorization header "+
			"using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).")
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
		Status: http.StatusNotFound, Type: "invalid_request_error", Code: "model_not_found",
		Message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", name),
	}
}

func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	if e := s.authorize(r); e != nil {
		writeError(w, e)
		return
	}
	modelapi.WriteModels(w, s.opts.Models)
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
	modelapi.WriteModel(w, r.PathValue("id"))
}

// chat answers one completion request.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
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
	if e == nil && s.opts.ContextTokens > 0 && req.tokens() > s.opts.ContextTokens {
		e = ContextOverflow(s.opts.ContextTokens, req.tokens()).fail
	}
	req.At, req.Body, req.Header = at, body, r.Header.Clone()
	req.Header.Del("Authorization")
	if e != nil {
		s.refuse(w, req, e)
		return
	}
	modelapi.Answer(r.Context(), s.core, req, nil, func(ctx context.Context, req Request, response Response) error {
		return s.play(ctx, w, req, response)
	})
}

func (s *Server) refuse(w http.ResponseWriter, req Request, e *APIError) {
	modelapi.Refuse(s.core, req, Refusal{Error: *e, Body: req.Body, At: req.At})
	writeError(w, e)
}

func writeError(w http.ResponseWriter, e *APIError) {
	modelapi.WriteJSON(w, e.Status, map[string]any{"error": e})
}
