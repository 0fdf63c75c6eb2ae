package github_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"remote-agent/internal/emulator/forged"
	emulator "remote-agent/internal/emulator/github"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform/github"
	"remote-agent/internal/platform/platformtest"
)

// hook is an adapter whose GitHub must not be called.
type hook struct {
	*github.Adapter
	http.Handler
	sink *platformtest.Sink
	n    int
}

func newHook(tb testing.TB, change ...func(*github.Config)) *hook {
	tb.Helper()
	h := &hook{sink: &platformtest.Sink{}}
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tb.Errorf("the handler called %s %s", r.Method, r.URL.Path)
		w.WriteHeader(http.StatusTeapot)
	}))
	tb.Cleanup(silent.Close)
	cfg := github.Config{
		AppID: "4711", PrivateKey: testPEM(), WebhookSecret: secret, APIURL: silent.URL, WebURL: "https://github.com",
	}
	cfg.Commands = func() []string {
		return []string{"status", "plan", "command_set", "agent", "schedule", "help", "new", "stop", "cost"}
	}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	if h.Adapter, err = github.New(cfg); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(h.CloseIdle)
	h.Handler = h.Webhook(h.sink)
	return h
}

func testPEM() string {
	return string(emulator.New(emulator.Options{App: emulator.App{Key: testKey()}}).PrivateKey())
}

// request returns a signed delivery with a new GUID.
func (h *hook) request(event, body string) *http.Request {
	h.n++
	r := httptest.NewRequest(http.MethodPost, "/webhooks/github", strings.NewReader(body))
	r.Header = emulator.Headers(secret, event, fmt.Sprintf("72d3162e-cc78-11e3-81ab-%012d", h.n), []byte(body))
	return r
}

func (h *hook) serve(r *http.Request) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func (h *hook) deliver(t *testing.T, event, body string) {
	t.Helper()
	if code := h.serve(h.request(event, body)); code != http.StatusAccepted {
		t.Fatalf("answered %d", code)
	}
}

// one delivers an event and returns what was accepted of it.
func (h *hook) one(t *testing.T, event, body string) messages.Inbound {
	t.Helper()
	before := len(h.sink.Events())
	h.deliver(t, event, body)
	all := h.sink.Events()
	if len(all) != before+1 {
		t.Fatalf("%d events were accepted, want one; kept %v", len(all)-before, h.sink.Kept())
	}
	return all[before]
}

func (h *hook) none(t *testing.T, why, event, body string) {
	t.Helper()
	before := len(h.sink.Events())
	h.deliver(t, event, body)
	if all := h.sink.Events(); len(all) != before {
		t.Errorf("%s: accepted %+v", why, all[before:])
	}
}

func TestWrongSignatures(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	body := commentBody("@remote-agent hi", "")
	good := emulator.Signature(secret, []byte(body))
	cases := map[string]http.Header{}
	for name, header := range forged.GitHub(secret, "issue_comment", "72d3162e-cc78-11e3-81ab-4c9367dc0958", []byte(body)) {
		cases["emulator: "+name] = header
	}
	digest := strings.TrimPrefix(good, "sha256=")
	for name, values := range map[string][]string{
		"none": {}, "empty": {""}, "prefix only": {"sha256="}, "no prefix": {digest}, "sha1 prefix": {"sha1=" + digest}, "sha512 prefix": {"sha512=" + digest},
		"upper prefix": {"SHA256=" + digest}, "upper hex": {"sha256=" + strings.ToUpper(digest)}, "truncated": {good[:len(good)-1]}, "longer": {good + "0"},
		"zeros": {"sha256=" + strings.Repeat("0", 64)}, "not hex": {"sha256=" + strings.Repeat("z", 64)}, "space": {" " + good}, "space behind": {good + " "},
		"twice": {good, good}, "bad and good": {"sha256=" + strings.Repeat("0", 64), good}, "good and bad": {good, "sha256=" + strings.Repeat("0", 64)},
		"joined": {good + ", " + good}, "other secret": {emulator.Signature("another secret of some length", []byte(body))},
		"empty secret": {emulator.Signature("", []byte(body))}, "other body": {emulator.Signature(secret, []byte(body+" "))}, "one off": {flipped(good)},
		"long": {strings.Repeat("a", 1<<16)},
	} {
		header := emulator.Headers("", "issue_comment", "72d3162e-cc78-11e3-81ab-4c9367dc0958", []byte(body))
		header["X-Hub-Signature-256"] = values
		cases[name] = header
	}
	if len(cases) < 20 {
		t.Fatalf("only %d cases", len(cases))
	}
	for name, header := range cases {
		r := httptest.NewRequest(http.MethodPost, "/webhooks/github", strings.NewReader(body))
		r.Header = header
		if code := h.serve(r); code != http.StatusUnauthorized {
			t.Errorf("%s: answered %d", name, code)
		}
	}
	if len(h.sink.Events())+len(h.sink.Kept()) != 0 || h.sink.Calls() != 0 {
		t.Error("something was stored")
	}
	h.deliver(t, "issue_comment", body)
}

func flipped(s string) string {
	last := byte('0')
	if s[len(s)-1] == '0' {
		last = '1'
	}
	return s[:len(s)-1] + string(last)
}

func TestRequestsThatAreNoDeliveries(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	body := commentBody("@remote-agent hi", "")
	for name, tt := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"GET":            {func(r *http.Request) { r.Method = http.MethodGet }, http.StatusMethodNotAllowed},
		"PUT":            {func(r *http.Request) { r.Method = http.MethodPut }, http.StatusMethodNotAllowed},
		"other path":     {func(r *http.Request) { r.URL.Path = "/webhooks/github/x" }, http.StatusNotFound},
		"slash":          {func(r *http.Request) { r.URL.Path = "/webhooks/github/" }, http.StatusNotFound},
		"text":           {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, http.StatusUnsupportedMediaType},
		"no type":        {func(r *http.Request) { r.Header.Del("Content-Type") }, http.StatusUnsupportedMediaType},
		"two types":      {func(r *http.Request) { r.Header.Add("Content-Type", "application/json") }, http.StatusUnsupportedMediaType},
		"no event":       {func(r *http.Request) { r.Header.Del("X-GitHub-Event") }, http.StatusBadRequest},
		"two events":     {func(r *http.Request) { r.Header.Add("X-GitHub-Event", "push") }, http.StatusBadRequest},
		"no delivery":    {func(r *http.Request) { r.Header.Del("X-GitHub-Delivery") }, http.StatusBadRequest},
		"two deliveries": {func(r *http.Request) { r.Header.Add("X-GitHub-Delivery", "72d3162e") }, http.StatusBadRequest},
		"odd delivery":   {func(r *http.Request) { r.Header.Set("X-GitHub-Delivery", "a b/../c") }, http.StatusBadRequest},
		"odd event":      {func(r *http.Request) { r.Header.Set("X-GitHub-Event", "Issues") }, http.StatusBadRequest},
	} {
		r := h.request("issue_comment", body)
		tt.change(r)
		if code := h.serve(r); code != tt.want {
			t.Errorf("%s: answered %d, want %d", name, code, tt.want)
		}
	}
	if h.sink.Calls() != 0 {
		t.Error("something was stored")
	}
	short := h.request("issue_comment", body) // as a stand-in may name it
	short.Header.Set("X-GitHub-Delivery", "d_1")
	if code := h.serve(short); code != http.StatusAccepted {
		t.Errorf("a short id: answered %d", code)
	}
	polling := newHook(t, func(c *github.Config) { c.Poll = true })
	if code := polling.serve(polling.request("issue_comment", body)); code != http.StatusNotFound {
		t.Errorf("an adapter that polls answered %d", code)
	}
}

func TestForm(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	body := url.Values{"payload": {commentBody("@remote-agent hi", "")}}.Encode()
	r := h.request("issue_comment", body)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if code := h.serve(r); code != http.StatusAccepted || len(h.sink.Events()) != 1 || h.sink.Events()[0].Text != "hi" {
		t.Errorf("answered %d, accepted %+v", code, h.sink.Events())
	}
}

// endless reads zeros.
type endless struct{ left int64 }

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), e.left))
	clear(p[:n])
	e.left -= int64(n)
	return n, nil
}

func TestLargeBodies(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	for name, length := range map[string]int64{"declared": 26 << 20, "not declared": -1} {
		r := httptest.NewRequest(http.MethodPost, "/webhooks/github", &endless{26 << 20})
		r.ContentLength = length
		r.Header = emulator.Headers(secret, "issues", "72d3162e-cc78-11e3-81ab-4c9367dc0958", nil)
		if code := h.serve(r); code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: answered %d", name, code)
		}
	}
	// The server in front takes no more than the handler says that it reads.
	if l, ok := h.Handler.(interface{ MaxBody() int64 }); !ok || l.MaxBody() != 25<<20 {
		t.Error("the handler does not say that it reads 25 MiB")
	}
	// One of 2 MiB is read.
	h.deliver(t, "issue_comment", commentBody("@remote-agent hi", "")+strings.Repeat(" ", 2<<20))
	if n := len(h.sink.Events()); n != 1 {
		t.Errorf("%d events", n)
	}
}

func TestNothingIsConfirmedThatIsNotStored(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	broken := errors.New("the database is away")
	h.sink.BeforeAccept = func([]messages.Inbound) error { return broken }
	r := h.request("issue_comment", commentBody("@remote-agent hi", ""))
	if code := h.serve(r); code != http.StatusServiceUnavailable {
		t.Errorf("answered %d", code)
	}
	// What the program will never take is kept and confirmed.
	h.sink.BeforeAccept = func([]messages.Inbound) error { return fault.New(fault.Invalid, "no") }
	h.deliver(t, "issue_comment", commentBody("@remote-agent hi", ""))
	if kept := h.sink.Kept(); len(kept) != 1 || !strings.HasPrefix(kept[0].Reason, "refused: ") {
		t.Errorf("kept %+v", kept)
	}
}

// Finding 10: events of other kinds were kept for ever, with a warning each.
func TestFinding10ForeignEventsAreCountedAndNotKept(t *testing.T) {
	t.Parallel()
	counted := 0
	h := newHook(t, func(c *github.Config) {
		c.Observe = func(what string) {
			if what == "foreign_event" {
				counted++
			}
		}
	})
	for _, event := range []string{"sponsorship", "push", "workflow_run", "no_such_event"} {
		h.deliver(t, event, `{"action":"created","repository":{"full_name":"acme/web"}}`)
	}
	if kept := h.sink.Kept(); len(kept) != 0 || counted != 4 {
		t.Errorf("counted %d, kept %+v", counted, kept)
	}
}

func TestMalformedEventsAreKept(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	for i, tt := range []struct{ event, body, reason string }{
		{"issue_comment", `{`, "not a JSON object"},
		{"issue_comment", `[]`, "not a JSON object"},
		{"issue_comment", `"x"`, "not a JSON object"},
		{"issues", `{"action":"opened"}`, "lacks its repository"},
		{"issues", `{"action":"opened","repository":{"full_name":"acme/web"}}`, "lacks its number"},
		{"issues", `{"action":"opened","issue":7,"repository":{"full_name":"acme/web"}}`, "lacks its number"},
		{"issue_comment", `{"action":"created","issue":{"number":1},"comment":{"body":"@remote-agent"},"repository":{"full_name":"acme/web"}}`, "lacks its number"},
		{"pull_request", `{"action":"opened","repository":{"full_name":"acme/../web"}}`, "lacks its repository"},
	} {
		h.deliver(t, tt.event, tt.body)
		kept := h.sink.Kept()
		if len(kept) != i+1 || !strings.Contains(kept[i].Reason, tt.reason) || string(kept[i].Raw) != tt.body || kept[i].Event == "" {
			t.Fatalf("%s %s: kept %+v", tt.event, tt.body, kept[len(kept)-1])
		}
	}
	for _, event := range []string{"ping", "installation", "installation_repositories", "installation_target", "github_app_authorization"} {
		h.deliver(t, event, `{"action":"deleted","zen":"x","installation":{"id":5},"repositories_removed":[{"full_name":"a/b"}]}`)
	}
	if len(h.sink.Kept()) != 8 || len(h.sink.Events()) != 0 {
		t.Errorf("kept %d, accepted %d", len(h.sink.Kept()), len(h.sink.Events()))
	}
}

func TestFieldsOfOtherTypesAreOverlooked(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	body := strings.Replace(commentBody("@remote-agent hi", ""), `"title":"It is broken"`, `"title":{"text":1},"closed_at":"yesterday","created_at":12,"labels":"x"`, 1)
	if in := h.one(t, "issue_comment", body); in.Text != "hi" || !strings.HasPrefix(in.Reference, "GitHub issue Acme/Web#42: ") {
		t.Errorf("accepted %+v", in)
	}
}

func TestBadConfigurations(t *testing.T) {
	t.Parallel()
	good := github.Config{Token: "ghp_0123456789abcdef", WebhookSecret: secret}
	for name, tt := range map[string]struct {
		change func(*github.Config)
		names  string
	}{
		"no identity":    {func(c *github.Config) { c.Token = "" }, "GITHUB_APP_ID"},
		"two identities": {func(c *github.Config) { c.AppID, c.PrivateKey = "1", testPEM() }, "both"},
		"no secret":      {func(c *github.Config) { c.WebhookSecret = "" }, "GITHUB_WEBHOOK_SECRET"},
		"short secret":   {func(c *github.Config) { c.WebhookSecret = "0123456789abcde" }, "GITHUB_WEBHOOK_SECRET"},
		"short, polling": {func(c *github.Config) { c.WebhookSecret, c.Poll = "x", true }, "GITHUB_WEBHOOK_SECRET"},
		"token":          {func(c *github.Config) { c.Token = "ghp_with space" }, "GITHUB_TOKEN"},
		"app id":         {func(c *github.Config) { c.Token, c.AppID = "", "my-app" }, "GITHUB_APP_ID"},
		"no key":         {func(c *github.Config) { c.Token, c.AppID = "", "1" }, "GITHUB_APP_PRIVATE_KEY"},
		"bad key": {func(c *github.Config) {
			c.Token, c.AppID, c.PrivateKey = "", "1", "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----"
		}, "GITHUB_APP_PRIVATE_KEY"},
		"api url":       {func(c *github.Config) { c.APIURL = "api.github.com" }, "GITHUB_API_URL"},
		"url of nobody": {func(c *github.Config) { c.APIURL = "https://:443/api/v3" }, "GITHUB_API_URL"},
		"url with user": {func(c *github.Config) { c.APIURL = "https://me:secret@ghe.example.com/api/v3" }, "GITHUB_API_URL"},
		"mention":       {func(c *github.Config) { c.Mention = "@a b" }, "GITHUB_MENTION"},
		"repository":    {func(c *github.Config) { c.Repositories = []string{"web"} }, "GITHUB_REPOSITORIES"},
		"allowed":       {func(c *github.Config) { c.Allowed = []string{"Ann Smith"} }, "GITHUB_ALLOWED_LOGINS"},
	} {
		cfg := good
		tt.change(&cfg)
		_, err := github.New(cfg)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), tt.names) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (strings.Contains(err.Error(), "secret@") || strings.Contains(err.Error(), "AAAA")) {
			t.Errorf("%s: the error has a secret: %v", name, err)
		}
	}
	cfg := good
	cfg.WebhookSecret, cfg.Poll = "", true
	a, err := github.New(cfg)
	if err != nil || a.Capabilities().Buttons {
		t.Errorf("polling without a secret: %v", err)
	}
}

var examples = flag.String("octokit", "", "path of api.github.com/index.json of @octokit/webhooks-examples")

func BenchmarkWebhook(b *testing.B) {
	h := newHook(b)
	h.sink = nil
	handler := h.Webhook(discard{})
	body := commentBody("Please look at this, @remote-agent: it fails.\n\n```go\nfunc main() {}\n```\n"+strings.Repeat("Some more words. ", 100), "")
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, h.request("issue_comment", body))
		if w.Code != http.StatusAccepted {
			b.Fatal(w.Code)
		}
	}
}

// TestWhatWasReadIsStoredWithoutItsSender has a sender that has gone when its event is
// read, as one does that has waited too long.
func TestWhatWasReadIsStoredWithoutItsSender(t *testing.T) {
	t.Parallel()
	gone, leave := context.WithCancel(t.Context())
	leave()
	h := newHook(t)
	r := h.request("issue_comment", commentBody("@remote-agent hi", ""))
	if code, n := h.serve(r.WithContext(gone)), len(h.sink.Events()); code != http.StatusAccepted || n != 1 {
		t.Errorf("answered %d, %d events are stored, want 202 and 1", code, n)
	}
}
