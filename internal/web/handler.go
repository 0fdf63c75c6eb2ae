package web

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"remote-agent/internal/fault"
)

// readyTimeout bounds the checks of one readiness request.
const readyTimeout = 3 * time.Second

// handler returns the whole server: headers and recovery around the routes.
func (s *Server) handler() http.Handler {
	always := http.Header{
		"Cache-Control":                {"no-store"},
		"Content-Security-Policy":      {"default-src 'none'; frame-ancestors 'none'"},
		"Cross-Origin-Resource-Policy": {"same-origin"},
		"Referrer-Policy":              {"no-referrer"},
		"X-Content-Type-Options":       {"nosniff"},
		"X-Frame-Options":              {"DENY"},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		maps.Copy(h, always) // a handler that sets one of them has a slice of its own
		if s.draining.Load() {
			h.Set("Connection", "close")
		}
		out := &recorder{ResponseWriter: w}
		defer s.recover(out, r)
		s.route(out, r)
	})
}

// route is written by hand and not with http.ServeMux, which redirects paths
// that are not clean: what is not exactly a path of ours is 404.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	switch {
	case path == "/healthz":
		s.get(w, r, http.HandlerFunc(health))
	case path == StreamPath:
		s.get(w, r, http.HandlerFunc(trickle))
	case path == "/readyz":
		s.get(w, r, http.HandlerFunc(s.ready))
	case path == "/metrics" && s.config.Metrics != nil:
		if !s.mayAsk(r.Host) {
			http.Error(w, "Unknown host name: use the server's address, or the host of LISTEN_ADDR or PUBLIC_URL.", http.StatusMisdirectedRequest)
			return
		}
		s.get(w, r, s.config.Metrics)
	case strings.HasPrefix(path, "/webhooks/"):
		s.webhook(w, r)
	case s.config.API != nil && (path == APIPrefix || strings.HasPrefix(path, APIPrefix+"/")):
		r.Body = http.MaxBytesReader(w, r.Body, DefaultMaxBody)
		s.config.API.ServeHTTP(w, r)
	case s.config.Pages != nil:
		if !s.mayBrowse(r.Host) {
			http.Error(w, "Unknown host name: open the pages by the address of PUBLIC_URL, or as localhost.", http.StatusMisdirectedRequest)
			return
		}
		s.config.Pages.ServeHTTP(w, r)
	default:
		plain(w, http.StatusNotFound)
	}
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		plain(w, http.StatusMethodNotAllowed)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, DefaultMaxBody)
	next.ServeHTTP(w, r)
}

// webhook takes what a platform sends. Its connection is not kept: a process that ends
// closes the kept ones, maybe at the moment at which the platform sends on one, and what
// it does not send again, such as Slack's commands, would be lost.
func (s *Server) webhook(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/webhooks/"), "/")
	next, ok := s.config.Webhooks[name]
	if !ok || next == nil {
		plain(w, http.StatusNotFound)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		plain(w, http.StatusMethodNotAllowed)
		return
	}
	limit := int64(DefaultMaxBody)
	if l, ok := next.(interface{ MaxBody() int64 }); ok {
		limit = l.MaxBody()
	}
	if r.ContentLength > limit {
		plain(w, http.StatusRequestEntityTooLarge)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	next.ServeHTTP(w, r)
}

// health says that the process runs and answers; nothing more, so that a
// database that is down does not get the process restarted.
func health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n")) // a client that left needs no answer
}

// StreamPath answers in two parts with StreamPause between them.
const (
	StreamPath  = "/healthz/stream"
	StreamPause = time.Second
)

// trickle answers slowly, so that whoever asks through a proxy can tell whether it holds
// back what pages that are open wait for.
func trickle(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")      // as the events of the pages have it
	_, _ = w.Write([]byte(": first\n\n")) // a client that left needs no answer
	_ = http.NewResponseController(w).Flush()
	select {
	case <-time.After(StreamPause):
		_, _ = w.Write([]byte(": last\n\n")) // as above
	case <-r.Context().Done():
	}
}

type readyCheck struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Info  string `json:"info,omitempty"`
	Error string `json:"error,omitempty"`
}

type readyBody struct {
	Ready    bool         `json:"ready"`
	Stopping bool         `json:"stopping,omitempty"`
	Checks   []readyCheck `json:"checks"`
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	body := readyBody{Stopping: s.draining.Load(), Checks: []readyCheck{}}
	defer s.watchers.asked(body.Stopping)
	body.Ready = !body.Stopping
	for _, c := range s.checks(r.Context()) {
		check := readyCheck{Name: c.Name, OK: c.Err == nil, Info: c.Info}
		if c.Err != nil {
			check.Error = fault.Public(c.Err)
			body.Ready = false
			s.config.Log.DebugContext(r.Context(), "readiness check failed", "check", c.Name, "err", c.Err)
		}
		body.Checks = append(body.Checks, check)
	}
	w.Header().Set("Content-Type", "application/json")
	if !body.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(body) // a client that left needs no answer
}

// checks runs the checks; one that ignores its deadline is not waited for.
func (s *Server) checks(ctx context.Context) []Check {
	if s.config.Ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	done := make(chan []Check, 1)
	go func() {
		// This goroutine is outside the request's recovery.
		defer func() {
			if p := recover(); p != nil {
				s.config.Log.ErrorContext(ctx, "readiness check panicked", "panic", p, "stack", string(debug.Stack()))
				done <- []Check{{Name: "checks", Err: errors.New("panic")}}
			}
		}()
		done <- s.config.Ready(ctx)
	}()
	select {
	case checks := <-done:
		return checks
	case <-ctx.Done():
		return []Check{{Name: "checks", Err: ctx.Err()}}
	}
}

// recover turns a panic of a handler into a 500 without details.
func (s *Server) recover(w *recorder, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p) // net/http's own way to cut a connection
	}
	s.config.Log.ErrorContext(r.Context(), "HTTP handler panicked", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	if w.wrote {
		panic(http.ErrAbortHandler) // too late for a status: cut the answer
	}
	plain(w, http.StatusInternalServerError)
}

// plain answers with a status and its standard text.
func plain(w http.ResponseWriter, status int) {
	http.Error(w, http.StatusText(status), status)
}

// recorder remembers whether an answer has begun.
type recorder struct {
	http.ResponseWriter

	wrote bool
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	r.wrote = true
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(data []byte) (int, error) {
	r.wrote = true
	return r.ResponseWriter.Write(data)
}

// Unwrap gives http.ResponseController, and http.MaxBytesReader, the original.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
