package modelapi

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// defaultMaxBody is how much of a body is read where an API names no limit.
const defaultMaxBody = 64 << 20

// API is what a Server has to know of its API. All functions may be called
// concurrently unless they say otherwise.
type API[Req any] struct {
	Name     string // for errors
	Path     string // what a client's base URL ends with
	Endpoint string // pattern of the requests to the model

	// More are further endpoints, by their patterns.
	More map[string]http.HandlerFunc

	Echo     func(Req) Response   // the script of a new server
	Received func(*Req) *Received // the part that every request has
	Model    func(*Req) string    // that a request asks for
	Parse    Parser[Req]          // of requests to the model

	// KeyHeader may have the key instead of a bearer's in Authorization; empty is
	// none.
	KeyHeader string

	// Authorize checks what a request has besides its key; nil checks nothing.
	Authorize func(*http.Request) *Error

	// Tokens estimates the length of a prompt.
	Tokens func(*Req) int

	// Prepare completes a request before it is recorded; nil leaves it. It gets the
	// answer from the queue, or nil if the script will be asked, and is called
	// under the server's lock.
	Prepare func(req *Req, queued *Response)

	// Voice returns what words an answer.
	Voice func(Req, Response, *Out) Voice

	// WriteError answers with an error in the form of the API.
	WriteError func(http.ResponseWriter, *Error)

	// The errors. Tokens are compared only if a limit is set, and bodies only if
	// MaxBody is.
	NoKey, WrongKey *Error
	NotFound        func(*http.Request) *Error
	NoModel         func(name string) *Error
	Overflow        func(got, limit int) *Error
	MaxBody         int64
	TooLarge        *Error

	// Describe and List word a model and the list of all; nil is the form of
	// OpenAI's APIs.
	Describe func(id string) any
	List     func(ids []string) any
}

// Parser decodes a request and checks it as the API does. It may be called
// concurrently.
type Parser[Req any] func(body []byte) (Req, *Error)

// Handler returns the HTTP interface.
func (s *Server[Req]) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(s.api.Endpoint, s.serve)
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("GET /v1/models/{id}", s.model)
	for pattern, handle := range s.api.More {
		mux.HandleFunc(pattern, handle)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.api.WriteError(w, s.api.NotFound(r)) })
	return mux
}

// authorize checks the key.
func (s *Server[Req]) authorize(r *http.Request) *Error {
	key := ""
	if s.api.KeyHeader != "" {
		key = r.Header.Get(s.api.KeyHeader)
	}
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && key == "" {
		key = bearer
	}
	switch {
	case key == "":
		return s.api.NoKey
	case s.opts.APIKey != "" && subtle.ConstantTimeCompare([]byte(key), []byte(s.opts.APIKey)) != 1:
		return s.api.WrongKey
	case s.api.Authorize != nil:
		return s.api.Authorize(r)
	}
	return nil
}

func (s *Server[Req]) checkModel(name string) *Error {
	if len(s.opts.Models) == 0 || slices.Contains(s.opts.Models, name) {
		return nil
	}
	return s.api.NoModel(name)
}

func (s *Server[Req]) models(w http.ResponseWriter, r *http.Request) {
	if e := s.authorize(r); e != nil {
		s.api.WriteError(w, e)
		return
	}
	list := listModels
	if s.api.List != nil {
		list = s.api.List
	}
	WriteJSON(w, http.StatusOK, list(s.opts.Models))
}

func (s *Server[Req]) model(w http.ResponseWriter, r *http.Request) {
	e := s.authorize(r)
	if e == nil {
		e = s.checkModel(r.PathValue("id"))
	}
	if e != nil {
		s.api.WriteError(w, e)
		return
	}
	describe := describeModel
	if s.api.Describe != nil {
		describe = s.api.Describe
	}
	WriteJSON(w, http.StatusOK, describe(r.PathValue("id")))
}

// read reads a request and checks its key, its form and its model. It returns
// false if the client is gone.
func (s *Server[Req]) read(r *http.Request, parse Parser[Req]) (req Req, e *Error, ok bool) {
	at, limit := s.opts.Now(), s.api.MaxBody
	limit = cmp.Or(limit, defaultMaxBody)
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return req, nil, false
	}
	e = s.authorize(r)
	if e == nil && s.api.TooLarge != nil && int64(len(body)) > limit {
		e = s.api.TooLarge
	}
	if e == nil {
		req, e = parse(body)
	}
	if e == nil {
		e = s.checkModel(s.api.Model(&req))
	}
	header := r.Header.Clone()
	header.Del("Authorization")
	header.Del(s.api.KeyHeader)
	*s.api.Received(&req) = Received{At: at, Header: header, Body: body}
	return req, e, true
}

// Look reads a request that is none to the model, and answers with what answer
// makes of it if it passes the checks.
func (s *Server[Req]) Look(w http.ResponseWriter, r *http.Request, parse Parser[Req], answer func(*Req) any) {
	req, e, ok := s.read(r, parse)
	switch {
	case !ok:
	case e != nil:
		s.refuse(w, req, e)
	default:
		WriteJSON(w, http.StatusOK, answer(&req))
	}
}

func (s *Server[Req]) refuse(w http.ResponseWriter, req Req, e *Error) {
	s.refused(req, e)
	s.api.WriteError(w, e)
}

// serve answers a request to the model.
func (s *Server[Req]) serve(w http.ResponseWriter, r *http.Request) {
	req, e, ok := s.read(r, s.api.Parse)
	if !ok {
		return
	}
	if limit := s.opts.ContextTokens; e == nil && limit > 0 {
		if got := s.api.Tokens(&req); got > limit {
			e = s.api.Overflow(got, limit)
		}
	}
	if e != nil {
		s.refuse(w, req, e)
		return
	}
	response := s.accept(&req)
	// An answer that is abandoned by a panic to break the connection was played
	// as scripted.
	outcome := Completed
	defer func() { s.finish(req, outcome) }()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)() //nolint:contextcheck // joins the server's end to the request's
	if s.answer(ctx, w, req, response) != nil {
		outcome = Canceled
	}
}

// answer carries out a response. It returns an error if the client, or the
// server, went away before the end.
func (s *Server[Req]) answer(ctx context.Context, w http.ResponseWriter, req Req, r Response) error {
	maps.Copy(w.Header(), r.Header)
	if r.Page != "" {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(r.Fail.Status)
		_, err := io.WriteString(w, r.Page)
		return err
	}
	if r.Fail != nil {
		s.api.WriteError(w, r.Fail)
		return nil
	}
	out := &Out{w: w, crlf: r.CRLF, tight: r.Tight, refuse: s.api.WriteError}
	return out.play(ctx, s.api.Voice(req, r, out), r.Steps)
}

// Decode reads the object of a request into a value, and returns its fields. Of
// what an API says, notJSON is about a body that is no object, unknown about a
// field that is not among the given, and mistyped about a value of another type.
func Decode(body []byte, names []string, into any, notJSON *Error, unknown func(name string) *Error, mistyped func(error) *Error,
) (map[string]json.RawMessage, *Error) {
	var fields map[string]json.RawMessage
	if !utf8.Valid(body) || json.Unmarshal(body, &fields) != nil {
		return nil, notJSON
	}
	for name := range fields {
		if !slices.Contains(names, name) {
			return nil, unknown(name)
		}
	}
	if err := json.Unmarshal(body, into); err != nil {
		return nil, mistyped(err)
	}
	return fields, nil
}
