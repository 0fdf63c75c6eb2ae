package anthropic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"remote-agent/internal/emulator/anthropic"
)

// What Anthropic's own SDK makes of the emulator is tested in e2e/anthropic.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func setup(tb testing.TB, opts anthropic.Options) *anthropic.Server {
	tb.Helper()
	opts.APIKey = "key"
	s := anthropic.New(opts)
	if err := s.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

func deadline(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 20*time.Second)
	tb.Cleanup(cancel)
	return ctx
}

// user is a request in which a person says something.
func user(text string) string {
	return fmt.Sprintf(`{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":%q}]}`, text)
}

type posted struct {
	status int
	header http.Header
	body   string
}

func post(tb testing.TB, s *anthropic.Server, body string, header ...string) posted {
	tb.Helper()
	req, err := http.NewRequestWithContext(deadline(tb), http.MethodPost, s.URL()+"/v1/messages", bytes.NewReader([]byte(body)))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "key")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
		if header[i+1] == "" {
			req.Header.Del(header[i])
		}
	}
	rec := &recorder{header: http.Header{}}
	s.Handler().ServeHTTP(rec, req)
	return posted{rec.status, rec.header, rec.body.String()}
}

// recorder is a ResponseWriter that can be flushed.
type recorder struct {
	header http.Header
	status int
	body   strings.Builder
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.body.Write(p)
}

func (r *recorder) WriteHeader(status int) { r.status = status }

func (r *recorder) Flush() {}

func TestErrorAnswers(t *testing.T) {
	t.Parallel()
	s := setup(t, anthropic.Options{})
	for after, header := range map[time.Duration]string{2 * time.Second: "Retry-After=2", 250 * time.Millisecond: "Retry-After-Ms=250"} {
		s.Enqueue(anthropic.RateLimited(after))
		name, value, _ := strings.Cut(header, "=")
		if got := post(t, s, user("x")); got.header.Get(name) != value || got.status != 429 || got.header.Get("Request-Id") == "" {
			t.Errorf("%s: %+v", header, got)
		}
	}
	s.Enqueue(anthropic.SpendLimit(), anthropic.Page(502, "<html>bad gateway</html>"))
	if got := post(t, s, user("x")); got.header.Get("Retry-After") != "" || got.header.Get("X-Should-Retry") != "false" {
		t.Errorf("spend limit: %+v", got)
	}
	if got := post(t, s, user("x")); got.status != 502 || !strings.Contains(got.body, "<html>") {
		t.Errorf("page: %+v", got)
	}
	s.Enqueue(anthropic.Text("a").WithCRLF())
	if got := post(t, s, strings.Replace(user("x"), "{", `{"stream":true,`, 1)); !strings.Contains(got.body, "\r\n\r\n") {
		t.Errorf("CRLF: %q", got.body)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	s := setup(t, anthropic.Options{})
	const body = `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`
	for name, test := range map[string]struct {
		status int
		header []string
	}{
		"bearer":        {200, []string{"X-Api-Key", "", "Authorization", "Bearer key"}},
		"none":          {401, []string{"X-Api-Key", ""}},
		"wrong":         {401, []string{"X-Api-Key", "other"}},
		"wrong bearer":  {401, []string{"X-Api-Key", "", "Authorization", "Bearer other"}},
		"no version":    {400, []string{"Anthropic-Version", ""}},
		"wrong version": {400, []string{"Anthropic-Version", "2030-01-01"}},
	} {
		if got := post(t, s, body, test.header...); got.status != test.status {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

func TestContextWindow(t *testing.T) {
	t.Parallel()
	s := setup(t, anthropic.Options{ContextTokens: 100, KeepRequests: 1})
	if got := post(t, s, user(strings.Repeat("x", 1000))); got.status != 400 || !strings.Contains(got.body, "prompt is too long") {
		t.Errorf("%+v", got)
	}
	for _, text := range []string{"a", "b"} {
		if got := post(t, s, user(text)); got.status != 200 {
			t.Errorf("%+v", got)
		}
	}
	if r, refused := s.Requests(), s.Refusals(); len(r) != 1 || r[0].LastUserText() != "b" || len(refused) != 1 {
		t.Errorf("%d requests and %d refusals kept", len(r), len(refused))
	}
	r, err := s.WaitRequest(deadline(t), 2)
	if err != nil || r.N != 2 {
		t.Errorf("second request %d, %v", r.N, err)
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	finished := make(chan anthropic.Outcome, 5)
	s := setup(t, anthropic.Options{OnDone: func(_ anthropic.Request, o anthropic.Outcome) { finished <- o }})
	says := func(name, request, want string) {
		t.Helper()
		if got := post(t, s, request); got.status != 200 || !strings.Contains(got.body, `"text":"`+want) {
			t.Errorf("%s: %+v, want %q", name, got, want)
		}
	}
	s.Script(func(r anthropic.Request) anthropic.Response { return anthropic.Text(strings.Join(r.Roles(), ",")) })
	says("roles", user("x"), "user")
	s.Script(func(r anthropic.Request) anthropic.Response { return anthropic.Text(fmt.Sprint(r.WantsJSON())) })
	says("plain", user("x"), "false")
	says("titled", strings.Replace(user("x"), "{", `{"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}},`, 1), "true")
	s.Script(nil)
	says("echo", user("x"), "echo:")
	if got := post(t, s, strings.Replace(user("x"), "4096", "0", 1)); got.status != 400 {
		t.Errorf("%+v", got)
	}
	for _, want := range []anthropic.Outcome{anthropic.Completed, anthropic.Completed, anthropic.Completed, anthropic.Completed, anthropic.Refused} {
		if got := <-finished; got != want {
			t.Errorf("outcome %q, want %q", got, want)
		}
	}
}

func TestNotFound(t *testing.T) {
	t.Parallel()
	s := setup(t, anthropic.Options{})
	req, err := http.NewRequestWithContext(deadline(t), http.MethodGet, s.URL()+"/v1/nothing", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	var e struct {
		Type  string             `json:"type"`
		Error anthropic.APIError `json:"error"`
	}
	if err != nil || json.Unmarshal(body, &e) != nil || resp.StatusCode != http.StatusNotFound || e.Type != "error" || e.Error.Type != "not_found_error" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
