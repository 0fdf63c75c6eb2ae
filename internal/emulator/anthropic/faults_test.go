package anthropic_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	client "github.com/anthropics/anthropic-sdk-go"

	"remote-agent/internal/emulator/anthropic"
)

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
	s, c := setup(t, anthropic.Options{})
	for name, test := range map[string]struct {
		response anthropic.Response
		status   int
		kind     string
	}{
		"rate limit":  {anthropic.RateLimited(2 * time.Second), 429, "rate_limit_error"},
		"spend limit": {anthropic.SpendLimit(), 429, "enforced_spend_limit_reached"},
		"no credit":   {anthropic.NoCredit(), 400, "invalid_request_error"},
		"overload":    {anthropic.Overloaded(), 529, "overloaded_error"},
		"server":      {anthropic.ServerError(503), 503, "api_error"},
		"key":         {anthropic.Unauthorized(), 401, "authentication_error"},
		"too long":    {anthropic.PromptTooLong(200, 100), 400, "invalid_request_error"},
		"too large":   {anthropic.TooLarge(), 413, "request_too_large"},
	} {
		s.Enqueue(test.response)
		got := stream(deadline(t), c, user("x"))
		e, ok := errors.AsType[*client.Error](got.err)
		if !ok || e.StatusCode != test.status || string(e.Type()) != test.kind || e.RequestID == "" {
			t.Errorf("%s: %v", name, got.err)
		}
	}
	const body = `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`
	for after, header := range map[time.Duration]string{2 * time.Second: "Retry-After=2", 250 * time.Millisecond: "Retry-After-Ms=250"} {
		s.Enqueue(anthropic.RateLimited(after))
		name, value, _ := strings.Cut(header, "=")
		if got := post(t, s, body); got.header.Get(name) != value || got.status != 429 {
			t.Errorf("%s: %+v", header, got)
		}
	}
	s.Enqueue(anthropic.SpendLimit(), anthropic.Page(502, "<html>bad gateway</html>"))
	if got := post(t, s, body); got.header.Get("Retry-After") != "" || got.header.Get("X-Should-Retry") != "false" {
		t.Errorf("spend limit: %+v", got)
	}
	if got := post(t, s, body); got.status != 502 || !strings.Contains(got.body, "<html>") {
		t.Errorf("page: %+v", got)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, anthropic.Options{})
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
	s, c := setup(t, anthropic.Options{ContextTokens: 100, KeepRequests: 1})
	if got := stream(deadline(t), c, user(strings.Repeat("x", 1000))); got.err == nil || !strings.Contains(got.err.Error(), "prompt is too long") {
		t.Errorf("error %v", got.err)
	}
	for _, text := range []string{"a", "b"} {
		if got := stream(deadline(t), c, user(text)); got.err != nil {
			t.Error(got.err)
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
	s, c := setup(t, anthropic.Options{OnDone: func(_ anthropic.Request, o anthropic.Outcome) { finished <- o }})
	s.Script(func(r anthropic.Request) anthropic.Response { return anthropic.Text(strings.Join(r.Roles(), ",")) })
	if got := stream(deadline(t), c, user("x")); got.text() != "user" {
		t.Errorf("%+v", got)
	}
	s.Script(func(r anthropic.Request) anthropic.Response { return anthropic.Text(fmt.Sprint(r.WantsJSON())) })
	titled := user("x")
	titled.OutputConfig.Format = client.JSONOutputFormatParam{Schema: map[string]any{"type": "object"}}
	if plain, got := stream(deadline(t), c, user("x")), stream(deadline(t), c, titled); plain.text() != "false" || got.text() != "true" {
		t.Errorf("%q, %q", plain.text(), got.text())
	}
	s.Script(nil)
	if got := stream(deadline(t), c, user("x")); !strings.HasPrefix(got.text(), "echo:") {
		t.Errorf("%+v", got)
	}
	params := user("x")
	params.MaxTokens = 0
	if got := stream(deadline(t), c, params); got.err == nil {
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
	s, _ := setup(t, anthropic.Options{})
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
