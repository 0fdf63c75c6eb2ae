package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"remote-agent/internal/fault"
	"remote-agent/internal/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type server struct {
	*web.Server

	url  string
	stop func() error
}

// start runs a server until the test ends or stop is called.
func start(t *testing.T, config web.Config) *server {
	t.Helper()
	config.Addr = "127.0.0.1:0"
	s := web.New(config)
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	stop := func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return &server{Server: s, url: "http://" + s.Addr(), stop: stop}
}

func do(t *testing.T, method, url string, body io.Reader) (int, http.Header, string) {
	t.Helper()
	status, header, text, err := try(t, method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return status, header, text
}

// try is do for a body that the server may refuse to read to its end: the client
// may then see the end of the connection before the answer.
func try(t *testing.T, method, url string, body io.Reader) (int, http.Header, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(data), err
}

func echo(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		http.Error(w, tooLarge.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	_, _ = io.WriteString(w, r.URL.Path+" "+string(data))
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	s := start(t, web.Config{
		Metrics:  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") }),
		Webhooks: map[string]http.Handler{"telegram": http.HandlerFunc(echo)},
		API:      http.HandlerFunc(echo),
	})
	cases := []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/healthz", 200, "ok\n"},
		{"HEAD", "/healthz", 200, ""},
		{"POST", "/healthz", 405, "Method Not Allowed\n"},
		{"GET", "/healthz/", 404, "Not Found\n"},
		{"GET", "//healthz", 404, "Not Found\n"},
		{"GET", "/x/../healthz", 404, "Not Found\n"},
		{"GET", "/healthz/stream", 200, ": first\n\n: last\n\n"},
		{"POST", "/healthz/stream", 405, "Method Not Allowed\n"},
		{"GET", "/readyz", 200, `{"ready":true,"checks":[]}` + "\n"},
		{"GET", "/metrics", 200, "metrics"},
		{"DELETE", "/metrics", 405, "Method Not Allowed\n"},
		{"GET", "/", 404, "Not Found\n"},
		{"GET", "/api/v1", 200, "/api/v1 body"},
		{"DELETE", "/api/v1/a%2Fb", 200, "/api/v1/a/b body"},
		{"GET", "/api/v1x", 404, "Not Found\n"},
		{"GET", "/api/", 404, "Not Found\n"},
		{"GET", "/api//v1", 404, "Not Found\n"},
		{"GET", "/x/../api/v1", 404, "Not Found\n"},
		{"POST", "/webhooks/telegram", 200, "/webhooks/telegram body"},
		{"POST", "/webhooks/telegram/account/1", 200, "/webhooks/telegram/account/1 body"},
		{"GET", "/webhooks/telegram", 405, "Method Not Allowed\n"},
		{"POST", "/webhooks/slack", 404, "Not Found\n"},
		{"GET", "/webhooks/slack", 404, "Not Found\n"},
		{"POST", "/webhooks/", 404, "Not Found\n"},
		{"POST", "/webhooks", 404, "Not Found\n"},
	}
	for _, tc := range cases {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			t.Parallel()
			status, header, body := do(t, tc.method, s.url+tc.path, strings.NewReader("body"))
			if status != tc.status || body != tc.body {
				t.Errorf("%d %q, want %d %q", status, body, tc.status, tc.body)
			}
			if header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Server") != "" {
				t.Errorf("headers = %v", header)
			}
			if status == 405 && header.Get("Allow") == "" {
				t.Error("no Allow header")
			}
		})
	}
}

func TestReadyzTellsWhatFails(t *testing.T) {
	t.Parallel()
	s := start(t, web.Config{Ready: func(context.Context) []web.Check {
		return []web.Check{{Name: "workers"}, {Name: "memory", Info: "off"}, {Name: "database", Err: fault.Wrap(errors.New("password hunter2"), fault.Unavailable, "ping")}}
	}})
	status, _, body := do(t, "GET", s.url+"/readyz", nil)
	want := `{"ready":false,"checks":[{"name":"workers","ok":true},{"name":"memory","ok":true,"info":"off"},{"name":"database","ok":false,"error":"The service is not responding right now."}]}` + "\n"
	if status != http.StatusServiceUnavailable || body != want {
		t.Errorf("%d %s", status, body)
	}
}

func TestReadyzOfAPanickingCheck(t *testing.T) {
	t.Parallel()
	s := start(t, web.Config{Ready: func(context.Context) []web.Check { panic("hunter2") }})
	if status, _, body := do(t, "GET", s.url+"/readyz", nil); status != 503 || strings.Contains(body, "hunter2") {
		t.Errorf("%d %s", status, body)
	}
}

func TestReadyzWhileDraining(t *testing.T) {
	t.Parallel()
	s := start(t, web.Config{})
	s.Drain()
	status, _, body := do(t, "GET", s.url+"/readyz", nil)
	if status != http.StatusServiceUnavailable || !strings.Contains(body, `"stopping":true`) {
		t.Errorf("%d %s", status, body)
	}
	if status, _, _ := do(t, "GET", s.url+"/healthz", nil); status != http.StatusOK {
		t.Errorf("/healthz: %d", status)
	}
}

type large struct{ http.HandlerFunc }

func (large) MaxBody() int64 { return 3 << 20 }

func TestBodiesAreLimited(t *testing.T) {
	t.Parallel()
	s := start(t, web.Config{API: http.HandlerFunc(echo), Webhooks: map[string]http.Handler{
		"small": http.HandlerFunc(echo), "large": large{echo},
	}})
	body := func(n int) io.Reader { return bytes.NewReader(make([]byte, n)) }
	// A reader of an unknown length is sent in chunks, without Content-Length.
	chunked := func(n int) io.Reader { return io.MultiReader(body(n)) }
	for name, tc := range map[string]struct {
		path string
		body func(int) io.Reader
		size int
		want int
	}{
		"at the limit":          {"webhooks/small", body, 1 << 20, 200},
		"above the limit":       {"webhooks/small", body, 1<<20 + 1, 413},
		"chunked":               {"webhooks/small", chunked, 1<<20 + 1, 413},
		"raised":                {"webhooks/large", body, 2 << 20, 200},
		"above the raised one":  {"webhooks/large", body, 3<<20 + 1, 413},
		"chunked, above raised": {"webhooks/large", chunked, 3<<20 + 1, 413},
		"of the API":            {"api/v1/x", body, 1<<20 + 1, 413},
		"chunked, of the API":   {"api/v1/x", chunked, 1<<20 + 1, 413},
	} {
		status, _, _, err := try(t, "POST", s.url+"/"+tc.path, tc.body(tc.size))
		for i := 0; err != nil && tc.want == 413 && i < 10; i++ {
			status, _, _, err = try(t, "POST", s.url+"/"+tc.path, tc.body(tc.size))
		}
		if status != tc.want {
			t.Errorf("%s: %d, %v, want %d", name, status, err, tc.want)
		}
	}
}

func TestLargeHeadersAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, web.Config{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Large", strings.Repeat("x", 40<<10))
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d, want 431", resp.StatusCode)
	}
}

func TestPanicBecomes500WithoutDetails(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := start(t, web.Config{
		Webhooks: map[string]http.Handler{"x": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("hunter2") })},
		Log:      slog.New(slog.NewJSONHandler(&log, nil)),
	})
	status, _, body := do(t, "POST", s.url+"/webhooks/x", nil)
	if status != http.StatusInternalServerError || body != "Internal Server Error\n" {
		t.Errorf("%d %q", status, body)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	var line map[string]any
	if err := json.Unmarshal(log.Bytes(), &line); err != nil || line["panic"] != "hunter2" || line["stack"] == "" {
		t.Errorf("log = %s (%v)", log.String(), err)
	}
}

// TestAPanicCutsAnAnswerThatHasBegun: half of it is not taken for a whole one.
func TestAPanicCutsAnAnswerThatHasBegun(t *testing.T) {
	t.Parallel()
	s := start(t, web.Config{API: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic("hunter2")
	})})
	status, _, body, err := try(t, "GET", s.url+"/api/v1/x", nil)
	if status != http.StatusOK || body != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d %q, %v; want an answer that breaks off", status, body, err)
	}
}

func TestBusyPortNamesTheOption(t *testing.T) {
	t.Parallel()
	s := start(t, web.Config{})
	err := web.New(web.Config{Addr: s.Addr()}).Listen(t.Context())
	if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "LISTEN_ADDR "+s.Addr()+" is in use") {
		t.Errorf("error = %v", err)
	}
	err = web.New(web.Config{Addr: "192.0.2.1:0"}).Run(t.Context())
	if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "not an address of this machine") {
		t.Errorf("error = %v", err)
	}
}

func TestPublicTellsLoopbackFromTheRest(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]bool{
		"127.0.0.1:1": false, "[::1]:1": false, "localhost:1": false, "127.9.9.9:1": false,
		"0.0.0.0:1": true, ":1": true, "[::]:1": true, "10.0.0.1:1": true, "example.com:1": true,
	} {
		if got := web.New(web.Config{Addr: addr}).Public(); got != want {
			t.Errorf("Public(%s) = %t", addr, got)
		}
	}
}

func TestStopLetsRequestsFinish(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	s := start(t, web.Config{Webhooks: map[string]http.Handler{"x": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		_, _ = io.WriteString(w, "finished")
	})}})
	answer := make(chan string, 1)
	go func() {
		_, _, body := do(t, "POST", s.url+"/webhooks/x", nil)
		answer <- body
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	for { // no new connections once it stops
		conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	close(release)
	if got := <-answer; got != "finished" {
		t.Errorf("answer = %q", got)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestStopEndsRequestsAfterTheGrace(t *testing.T) {
	t.Parallel()
	entered, left := make(chan struct{}), make(chan struct{})
	s := start(t, web.Config{Grace: time.Millisecond, Webhooks: map[string]http.Handler{"x": http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done() // ends when the connection is closed
		close(left)
	})}})
	go func() {
		req, err := http.NewRequest(http.MethodPost, s.url+"/webhooks/x", nil)
		if err != nil {
			return
		}
		transport := &http.Transport{DisableKeepAlives: true}
		if resp, err := transport.RoundTrip(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-entered
	if err := s.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	<-left
}

func TestDrainingStillServesAndClosesConnections(t *testing.T) {
	t.Parallel()
	s := start(t, web.Config{Webhooks: map[string]http.Handler{"x": http.HandlerFunc(echo)}})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ask := func(method, path string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return resp
	}
	if resp := ask("GET", "/healthz"); resp.Close {
		t.Error("the connection is closed although nothing stops")
	}
	if resp := ask("POST", "/webhooks/x"); resp.StatusCode != http.StatusOK || !resp.Close {
		t.Errorf("a webhook: %s, closes %t; what is sent on a kept connection can meet a process that ends", resp.Status, resp.Close)
	}
	s.Drain()
	for _, to := range [][2]string{{"GET", "/healthz"}, {"POST", "/webhooks/x"}} {
		if resp := ask(to[0], to[1]); resp.StatusCode != http.StatusOK || !resp.Close {
			t.Errorf("%s while draining: %s, closes %t", to[1], resp.Status, resp.Close)
		}
	}
}

func TestWatchersAreToldBeforeTheDoorCloses(t *testing.T) {
	t.Parallel()
	s := start(t, web.Config{})
	s.Drain()
	s.AwaitWatchers(t.Context()) // nobody asked: at once

	s = start(t, web.Config{})
	do(t, "GET", s.url+"/readyz", nil)
	s.Drain()
	told := make(chan struct{})
	go func() {
		defer close(told)
		s.AwaitWatchers(t.Context())
	}()
	do(t, "GET", s.url+"/readyz", nil)
	select {
	case <-told:
		t.Error("one refusal was enough")
	case <-time.After(100 * time.Millisecond):
	}
	do(t, "GET", s.url+"/readyz", nil)
	<-told
}
