package github_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"remote-agent/internal/doctor"
	emulator "remote-agent/internal/emulator/github"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform/github"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{server: func(o *emulator.Options) { o.App.Permissions = github.Permissions() }})
	who, err := w.Check(t.Context())
	if err != nil || who.Name != "@remote-agent[bot]" || who.ID == "" {
		t.Errorf("Check: %+v, %v", who, err)
	}
	if f := w.Examine(t.Context())[0]; f.Status != doctor.OK {
		t.Errorf("found %+v", f)
	}
	w = newWorld(t, setting{pat: true})
	if who, err = w.Check(t.Context()); err != nil || who.Name != "@helper" {
		t.Errorf("Check with a token: %+v, %v", who, err)
	}
	w.server.RevokeToken(w.token)
	if _, err = w.Check(t.Context()); !fault.Is(err, fault.Unauthorized) || !strings.Contains(fault.Public(err), "GITHUB_TOKEN") || strings.Contains(err.Error(), w.token) {
		t.Errorf("a revoked token: %v", err)
	}
	if err := w.Run(t.Context(), w.sink); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("Run with a revoked token: %v", err)
	}
}

func TestMissingPermissionsAreNamed(t *testing.T) {
	t.Parallel()
	log := &logBuffer{}
	w := newWorld(t, setting{
		server: func(o *emulator.Options) {
			o.App.Permissions = map[string]string{"metadata": "read", "issues": "read", "pull_requests": "write", "administration": "write"}
			o.App.Events = []string{"issues", "issue_comment", "pull_request", "pull_request_review"}
		},
		bot: func(c *github.Config) { c.Log = bufferedLog(log) },
	})
	if _, err := w.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := w.Examine(t.Context())[0]; f.Status != doctor.Fail || !strings.HasSuffix(f.Detail, " contents: write, event: pull_request_review_comment, issues: write") {
		t.Errorf("found %+v", f)
	}
	if !contains(log.String(), "contents: write", "administration: write") {
		t.Errorf("log %s", log)
	}
	w.server.AddRepo(emulator.Repo{Name: repo})
	n := w.person("ann").OpenIssue("x", "y").Number
	_, err := w.Send(t.Context(), messages.Outbound{Delivery: "d", Conversation: key("acme/web#1"), Text: "x"})
	if !fault.Is(err, fault.Forbidden) || n != 1 {
		t.Errorf("Send without the permission: %v", err)
	}
}

func TestNeedlessPermissionsAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{server: func(o *emulator.Options) {
		o.App.Permissions = github.Permissions()
		o.App.Permissions["administration"] = "write"
	}})
	if _, err := w.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := w.Examine(t.Context())[0]; f.Status != doctor.Warn || !strings.HasSuffix(f.Detail, " administration: write") {
		t.Errorf("found %+v", f)
	}
}

func TestRefusedKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{bot: func(c *github.Config) { c.AppID = "9999" }})
	if _, err := w.Check(t.Context()); !fault.Is(err, fault.Unauthorized) || !strings.Contains(fault.Public(err), "GITHUB_APP_ID") {
		t.Errorf("Check: %v", err)
	}
	w = newWorld(t, setting{bot: func(c *github.Config) { c.AppID = "Iv23liEmulated4711" }})
	if _, err := w.Check(t.Context()); err != nil {
		t.Errorf("a client id: %v", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(testKey())
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]string{
		"PKCS 8":    string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"one line":  strings.ReplaceAll(strings.TrimSpace(testPEM()), "\n", `\n`),
		"CRLF ends": strings.ReplaceAll(testPEM(), "\n", "\r\n"),
	} {
		w := newWorld(t, setting{bot: func(c *github.Config) { c.PrivateKey = key }})
		if _, err := w.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAssertion(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		_, _ = w.Write([]byte(`{"id":4711,"slug":"remote-agent"}`))
	}))
	t.Cleanup(server.Close)
	a, err := github.New(github.Config{AppID: "4711", PrivateKey: testPEM(), WebhookSecret: secret, APIURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.CloseIdle)
	if _, err := a.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(seen, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims struct {
		Iat, Exp int64
		Iss      string
	}
	if err := json.Unmarshal(raw, &claims); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix()
	if claims.Iss != "4711" || now-claims.Iat < 59 || now-claims.Iat > 90 || claims.Exp-now > 600 || claims.Exp-now < 300 {
		t.Errorf("claims %+v at %d", claims, now)
	}
}

func TestTokensAreReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	send := func(id string) error {
		_, err := w.Send(t.Context(), messages.Outbound{Delivery: messages.DeliveryID(id), Conversation: key("acme/web#1"), Text: "x"})
		return err
	}
	n := w.person("ann").OpenIssue("x", "y").Number
	if err := send("d-1"); err != nil {
		t.Fatal(err)
	}
	w.server.ExpireTokens()
	if err := send("d-2"); err != nil {
		t.Errorf("after the token's end: %v", err)
	}
	if made := w.server.Count(emulator.CreateInstallationToken); made != 2 || len(w.server.Issue(repo, n).FromBotComments()) != 2 {
		t.Errorf("%d tokens, %v", made, w.server.Issue(repo, n).Texts())
	}
	// One that ends soon is replaced before it does.
	w = newWorld(t, setting{server: func(o *emulator.Options) { o.TokenLifetime = time.Second }})
	w.person("ann").OpenIssue("x", "y")
	for i := range 3 {
		if err := send("e-" + string(rune('0'+i))); err != nil {
			t.Error(err)
		}
	}
	// Where the App is not installed nobody can be answered.
	w = newWorld(t)
	w.server.AddRepo(emulator.Repo{Name: "other/repo", NotInstalled: true})
	w.server.Person("ann").In("other/repo").OpenIssue("x", "y")
	_, err := w.Send(t.Context(), messages.Outbound{Delivery: "d", Conversation: key("other/repo#1"), Text: "x"})
	if !fault.Is(err, fault.Gone) || !strings.Contains(fault.Public(err), "not installed in other/repo") {
		t.Errorf("Send: %v", err)
	}
}

func TestTokenForGit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{bot: func(c *github.Config) { c.WebURL = "https://github.com" }})
	w.server.AddRepo(emulator.Repo{Name: "Acme/Secret", Private: true})
	var tokens []string
	for _, name := range []string{"Acme/Web", "acme/web", "github.com/acme/web", "https://github.com/Acme/Web.git"} {
		token, err := w.Token(t.Context(), name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !w.server.Allows(token, "acme/web", true) || w.server.Allows(token, "acme/secret", false) {
			t.Errorf("%s: the token does not reach exactly that repository", name)
		}
		tokens = append(tokens, token)
	}
	if len(slices.Compact(tokens)) != 1 {
		t.Error("a token was made for each spelling")
	}
	for _, call := range w.server.Calls(emulator.CreateInstallationToken) {
		if len(call.Body) == 0 {
			continue // for the program's own calls
		}
		if strings.Count(string(call.Body["repository_ids"]), ",") != 0 || call.Body["repository_ids"] == nil || string(call.Body["permissions"]) != `{"contents":"write"}` {
			t.Errorf("asked for %s", call.Body)
		}
	}
	for _, name := range []string{"https://evil.example/acme/web.git", "evil.example/acme/web", "http://github.com/acme/web", "https://me@github.com/acme/web"} {
		if token, err := w.Token(t.Context(), name); !fault.Is(err, fault.Forbidden) || token != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "web", "acme/..", "a/b/c/d"} {
		if token, err := w.Token(t.Context(), name); err == nil || token != "" {
			t.Errorf("%q: %v", name, err)
		}
	}
	w = newWorld(t, setting{pat: true, bot: func(c *github.Config) { c.WebURL, c.Repositories = "https://github.com", []string{"acme/web"} }})
	if token, err := w.Token(t.Context(), "acme/web"); err != nil || token != w.token {
		t.Errorf("a personal token: %v", err)
	}
	if _, err := w.Token(t.Context(), "acme/other"); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a repository that is not on the list: %v", err)
	}
}

func TestRedirectsKeepTheToken(t *testing.T) {
	t.Parallel()
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("a stranger was called with %q", r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(stranger.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/user":
			http.Redirect(w, r, "/users/1", http.StatusMovedPermanently)
		case "/users/1":
			_, _ = w.Write([]byte(`{"id":1,"login":"helper","type":"User"}`))
		default:
			http.Redirect(w, r, stranger.URL, http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(server.Close)
	a, err := github.New(github.Config{Token: "ghp_0123456789abcdef", WebhookSecret: secret, APIURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.CloseIdle)
	if _, err := a.Check(t.Context()); err != nil {
		t.Errorf("a renamed place: %v", err)
	}
	if _, err := a.Send(t.Context(), messages.Outbound{Delivery: "d", Conversation: key("acme/web#1"), Text: "x"}); err == nil {
		t.Error("a redirect elsewhere was followed")
	}
}

// TestASuspendedInstallationIsNamed: GitHub lists it like the others, and says nothing else.
func TestASuspendedInstallationIsNamed(t *testing.T) {
	t.Parallel()
	var logged logBuffer
	w := newWorld(t, setting{bot: func(c *github.Config) {
		c.Log = bufferedLog(&logged)
		c.APIURL = rewriting(t, c.APIURL, "/app/installations", func(i map[string]any) { i["suspended_at"] = "2026-11-21T10:00:00Z" })
	}})
	if _, err := w.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := w.Examine(t.Context())[1]; f.Status != doctor.Fail || !strings.Contains(f.Detail, "Acme (suspended") || f.Fix == "" {
		t.Errorf("it finds %+v", f)
	}
	refused := emulator.Refuse(http.StatusForbidden, "This installation has been suspended")
	w.server.Inject(emulator.CreateInstallationToken, refused, refused)
	for range 2 {
		if n, err := w.Swept(t.Context()); n != 0 || err != nil {
			t.Errorf("%d repositories are swept, %v", n, err)
		}
	}
	if got := strings.Count(logged.String(), "the github app is suspended"); got != 1 {
		t.Errorf("the operator is told %d times:\n%s", got, logged.String())
	}
}
