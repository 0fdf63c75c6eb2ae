// Package api is the HTTP API under /api/v1: programs with a key list, show and
// delete what the database holds, and fork sessions. docs/openapi.yaml describes it; a test compares
// the two.
//
// The server around it (package web) limits connections and sets the headers of
// security. Nothing is answered without a key, and as long as none was ever made
// the API is as if it were not there.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"remote-agent/internal/apikey"
	"remote-agent/internal/fault"
	"remote-agent/internal/ratelimit"
	"remote-agent/internal/store"
)

// Prefix is where the API is mounted.
const Prefix = "/api/v1"

// patience is how long a request may take. Whoever waits for a database that does not answer
// reads that, before the server breaks the connection off without a word.
const patience = 30 * time.Second

// Config configures an API.
type Config struct {
	Store    *store.Store
	Version  string        // of the program
	Document func() []byte // docs/openapi.yaml
	Log      *slog.Logger

	Proxies ratelimit.Proxies // in front of the server

	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// API answers requests under Prefix. It is safe for concurrent use.
type API struct {
	config Config
	log    *slog.Logger
	routes []route
	keys   *ratelimit.Limits // per key: what it may ask
	failed *ratelimit.Limits // per address: how often it may come with a wrong key
	warned rate.Sometimes
}

// New returns an API.
func New(config Config) *API {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	return &API{
		config: config,
		log:    config.Log.With("component", "api"),
		routes: routes(),
		keys:   ratelimit.New(keyRate, keyBurst),
		failed: ratelimit.New(failedRate, failedBurst),
		warned: rate.Sometimes{Interval: time.Minute},
	}
}

// call is a request whose key and parameters have been checked.
type call struct {
	key   apikey.Key
	args  values
	now   time.Time
	route route
}

// actor is how the audit log names who asked.
func (c call) actor() string { return "api/" + c.key.Name }

// document is an answer that is not JSON.
type document struct {
	mediaType string
	content   []byte
}

// created is an answer about something that was not there before.
type created struct{ body any }

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	r = r.WithContext(ctx)
	exists, err := a.exists(ctx)
	if err == nil && !exists {
		http.Error(w, http.StatusText(http.StatusNotFound), http.StatusNotFound) // as any path that is not there
		return
	}
	var answer any
	c := call{now: a.config.Now()}
	if err == nil {
		answer, err = a.answer(r, &c)
	}
	if err != nil {
		p := problemOf(err)
		if p.Status == http.StatusInternalServerError {
			a.log.ErrorContext(ctx, "a request to the API failed", "operation", c.route.id, "err", err)
		}
		p.write(w)
		return
	}
	if d, ok := answer.(document); ok {
		send(w, http.StatusOK, d.mediaType, d.content)
		return
	}
	status := http.StatusOK
	if made, ok := answer.(created); ok {
		status, answer = http.StatusCreated, made.body
	}
	encoded, err := encode(answer)
	if err != nil {
		a.log.ErrorContext(ctx, "an answer of the API cannot be encoded", "operation", c.route.id, "err", err)
		problemOf(err).write(w)
		return
	}
	send(w, status, mediaJSON, encoded)
}

// exists reports whether a key was ever made. Rows of keys stay, so a yes holds.
func (a *API) exists(ctx context.Context) (has bool, err error) {
	if a.keys.Any() {
		return true, nil
	}
	return store.Within(ctx, a.config.Store.InRead, func(tx *store.Tx) (bool, error) { return tx.SignIn().HasAPIKeys(ctx) })
}

// answer checks a request in an order that tells a stranger nothing, and runs it.
func (a *API) answer(r *http.Request, c *call) (any, error) {
	var err error
	if c.key, err = a.authenticate(r, c.now); err != nil {
		return nil, err
	}
	var path map[string]string
	if c.route, path, err = match(a.routes, r); err != nil {
		return nil, err
	}
	if !acceptable(r.Header.Values("Accept"), c.route.media()) {
		return nil, &problem{Status: http.StatusNotAcceptable, Code: codeNotAcceptable, Detail: "This endpoint returns " + c.route.media() + "; the Accept header must allow that."}
	}
	if r.ContentLength > 0 || len(r.TransferEncoding) > 0 {
		return nil, &problem{Status: http.StatusRequestEntityTooLarge, Code: codeTooLarge, Detail: "This request takes no body."}
	}
	if !c.key.Allows(c.route.scope) {
		return nil, scopeMissing(c.route.scope)
	}
	if c.args, err = parse(c.route.params, path, r.URL.RawQuery); err != nil {
		return nil, err
	}
	a.log.DebugContext(r.Context(), "API request", "operation", c.route.id, "key", c.key.Name)
	return c.route.handle(a, r.Context(), *c)
}

// match finds the route of a request. The path is taken as it was sent: one that
// is not clean, or spells a name with escapes, is none of ours.
func match(all []route, r *http.Request) (route, map[string]string, error) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), Prefix)
	var methods []string
	for _, candidate := range all {
		args, fits := candidate.fits(path)
		switch {
		case !ok || !fits:
		case candidate.method == r.Method, candidate.method == http.MethodGet && r.Method == http.MethodHead:
			return candidate, args, nil
		case candidate.method == http.MethodGet:
			methods = append(methods, http.MethodGet, http.MethodHead)
		default:
			methods = append(methods, candidate.method)
		}
	}
	if len(methods) > 0 {
		return route{}, nil, &problem{
			Status: http.StatusMethodNotAllowed, Code: codeMethod, Detail: "Methods allowed here: " + strings.Join(methods, ", ") + ".",
			header: map[string]string{"Allow": strings.Join(methods, ", ")},
		}
	}
	return route{}, nil, &problem{Status: http.StatusNotFound, Code: codeNotFound, Detail: "There is nothing at this path; " + Prefix + " lists what there is."}
}

// acceptable reports whether the ranges of Accept have a type in them.
func acceptable(headers []string, mediaType string) bool {
	if len(headers) == 0 {
		return true
	}
	kind, _, _ := strings.Cut(mediaType, "/")
	for item := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		name, weight, _ := strings.Cut(item, ";")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case mediaType, kind + "/*", "*/*":
			if q, ok := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q="); ok {
				if f, err := strconv.ParseFloat(q, 64); err == nil && f == 0 {
					continue
				}
			}
			return true
		}
	}
	return false
}

const (
	mediaJSON = "application/json"
	mediaYAML = "application/yaml"
)

// encode returns JSON with a line break at its end.
func encode(answer any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // it is no HTML, and texts stay readable
	if err := encoder.Encode(answer); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "encode an answer")
	}
	return out.Bytes(), nil
}

func send(w http.ResponseWriter, status int, mediaType string, content []byte) {
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(content)))
	w.WriteHeader(status)
	_, _ = w.Write(content) //nolint:gosec // JSON or YAML, and the browser is told not to guess; a client that left needs no answer
}

// gone reports whether err says that something is not there.
func gone(err error) bool { return fault.Is(err, fault.NotFound) }
