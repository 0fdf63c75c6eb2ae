package slack_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	emulator "remote-agent/internal/emulator/slack"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/platformtest"
	"remote-agent/internal/platform/slack"
	"remote-agent/internal/waittest"
)

const (
	botToken = "xoxb-1111-2222-secretsecretsecret"
	appToken = "xapp-1-A1-3333-secretsecretsecret"
	secret   = "0123456789abcdef0123456789abcdef"
)

// call is a call that the adapter made.
type call struct {
	method string
	form   url.Values
}

// api is a stand-in of the Web API that answers what a test says.
type api struct {
	*httptest.Server
	mu      sync.Mutex // guards all below
	calls   []call
	answers map[string][]string // by method, in turn; the last one stays
	header  http.Header
	changed chan struct{} // has room for one word that a call was made
}

func newAPI(t *testing.T) *api {
	t.Helper()
	s := &api{header: http.Header{}, changed: make(chan struct{}, 1), answers: map[string][]string{
		"auth.test":        {`{"ok":true,"team_id":"T1","user_id":"UBOT","bot_id":"BBOT","user":"agent"}`},
		"chat.postMessage": {`{"ok":true,"ts":"1700000100.000100"}`},
		// A workspace without agent sessions, unless a test says otherwise.
		"agents.sessions.setStatus": {`{"ok":false,"error":"unknown_method"}`},
	}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *api) serve(w http.ResponseWriter, r *http.Request) {
	method := strings.TrimPrefix(r.URL.Path, "/api/")
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		form = url.Values{"json": {string(body)}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call{method, form})
	select {
	case s.changed <- struct{}{}:
	default:
	}
	maps.Copy(w.Header(), s.header)
	answer := `{"ok":true}`
	if all := s.answers[method]; len(all) > 0 {
		answer = all[0]
		if len(all) > 1 {
			s.answers[method] = all[1:]
		}
	}
	if status, err := strconv.Atoi(answer); err == nil {
		w.WriteHeader(status)
		return
	}
	_, _ = io.WriteString(w, answer)
}

// answer sets what a method answers: JSON or an HTTP status.
func (s *api) answer(method string, answers ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[method] = answers
}

func (s *api) made(method string) []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []call
	for _, c := range s.calls {
		if c.method == method {
			out = append(out, c)
		}
	}
	return out
}

// await waits until a method was called n times.
func (s *api) await(t *testing.T, method string, n int) {
	t.Helper()
	late := waittest.Late(t)
	for len(s.made(method)) < n {
		select {
		case <-s.changed:
		case <-late:
			t.Fatalf("%s was called %d times, want %d", method, len(s.made(method)), n)
		}
	}
}

// bundle is an adapter with the stand-in that it talks to.
type bundle struct {
	*slack.Adapter
	api  *api
	sink *platformtest.Sink
	hook http.Handler
}

func setup(t *testing.T, change ...func(*slack.Config)) bundle {
	t.Helper()
	b := bundle{api: newAPI(t), sink: &platformtest.Sink{}}
	cfg := slack.Config{BotToken: botToken, SigningSecret: secret, APIURL: b.api.URL + "/api", Surroundings: platform.Surroundings{Log: testLog(t)}}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	if b.Adapter, err = slack.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.CloseIdle)
	b.hook = b.Webhook(b.sink)
	return b
}

// deliver sends a signed request to a path of the webhook.
func (b bundle) deliver(path, contentType, body string) *httptest.ResponseRecorder {
	r := signed(path, contentType, body, time.Now())
	w := httptest.NewRecorder()
	b.hook.ServeHTTP(w, r)
	return w
}

func signed(path, contentType, body string, at time.Time) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/webhooks/slack/"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	stamp := strconv.FormatInt(at.Unix(), 10)
	r.Header.Set("X-Slack-Request-Timestamp", stamp)
	r.Header.Set("X-Slack-Signature", emulator.Signature(secret, stamp, []byte(body)))
	return r
}

func (b bundle) event(inner string) *httptest.ResponseRecorder {
	return b.deliver("events", "application/json", wrapped(inner))
}

func wrapped(inner string) string {
	return `{"token":"verification-token","type":"event_callback","team_id":"T1","event_id":"Ev1",
		"authorizations":[{"team_id":"T1","user_id":"UBOT","is_bot":true}],"event":` + inner + `}`
}

func (b bundle) command(fields map[string]string) *httptest.ResponseRecorder {
	form := url.Values{"command": {"/agent"}, "token": {"verification-token"}, "team_id": {"T1"}, "channel_id": {"C1"}, "user_id": {"U1"}, "user_name": {"ann"}, "trigger_id": {"77.88.99"}}
	for k, v := range fields {
		form.Set(k, v)
	}
	return b.deliver("commands", "application/x-www-form-urlencoded", form.Encode())
}

func (b bundle) interaction(payload string) *httptest.ResponseRecorder {
	return b.deliver("interactions", "application/x-www-form-urlencoded", url.Values{"payload": {payload}}.Encode())
}

// one returns the only event that was accepted.
func (b bundle) one(t *testing.T) messages.Inbound {
	t.Helper()
	all := b.sink.Events()
	if len(all) != 1 {
		t.Fatalf("%d events were accepted, want one: %+v", len(all), all)
	}
	return all[0]
}

func key(id string) messages.ConversationKey {
	return messages.ConversationKey{Platform: slack.Name, ID: id}
}

// logBuffer collects a log.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// testLog returns a logger that fails the test if a credential gets into it.
func testLog(t *testing.T) *slog.Logger {
	t.Helper()
	l := &logBuffer{}
	t.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, s := range []string{"secretsecret", secret, "verification-token", "ticket="} {
			if strings.Contains(l.b.String(), s) {
				t.Errorf("the log contains a credential: %s", l.b.String())
			}
		}
		if t.Failed() {
			t.Logf("log:\n%s", l.b.String())
		}
	})
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func mustJSON(t *testing.T, text string, out any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), out); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
