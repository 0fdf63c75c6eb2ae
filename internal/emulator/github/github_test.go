package github_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"remote-agent/internal/emulator/github"
	"remote-agent/internal/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a server with a repository, a person who may write and a token.
type world struct {
	*github.Server
	t     *testing.T
	ann   github.Person
	token string
	http  *http.Client
}

// key is shared because making one takes a second with the race detector.
var key = sync.OnceValue(func() *rsa.PrivateKey {
	made, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return made
})

func start(t *testing.T, opts github.Options) *world {
	t.Helper()
	if opts.App.Key == nil {
		opts.App.Key = key()
	}
	s := github.New(opts)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.AddRepo(github.Repo{Name: "acme/web", Collaborators: map[string]github.Permission{"ann": github.Write, "rita": github.Read}})
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	w := &world{Server: s, t: t, ann: s.Person("ann").In("acme/web"), http: client}
	return w
}

// installed gives the world an installation token.
func installed(t *testing.T, opts github.Options) *world {
	t.Helper()
	w := start(t, opts)
	w.token = w.newToken(nil)
	return w
}

func (w *world) newToken(body any) string {
	w.t.Helper()
	path := "/app/installations/" + w.installationID() + "/access_tokens"
	a := w.as(w.JWT()).call("POST", path, body)
	if a.status != http.StatusCreated {
		w.t.Fatalf("no token: %d %s", a.status, a.body)
	}
	return a.object()["token"].(string)
}

func (w *world) installationID() string {
	w.t.Helper()
	return w.as(w.JWT()).call("GET", "/repos/acme/web/installation", nil).id()
}

func (w *world) as(token string) *world {
	other := *w
	other.token = token
	return &other
}

type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

func (a answer) object() map[string]any {
	a.t.Helper()
	var out map[string]any
	if err := json.Unmarshal(a.body, &out); err != nil {
		a.t.Fatalf("%v: %s", err, a.body)
	}
	return out
}

func (a answer) list() []map[string]any {
	a.t.Helper()
	var out []map[string]any
	if err := json.Unmarshal(a.body, &out); err != nil {
		a.t.Fatalf("%v: %s", err, a.body)
	}
	return out
}

// is checks status and a part of the body.
func (a answer) is(status int, part string) answer {
	a.t.Helper()
	if a.status != status || !strings.Contains(string(a.body), part) {
		a.t.Errorf("got %d %.300s, want %d with %q", a.status, a.body, status, part)
	}
	return a
}

func (a answer) id() string { return strconv.FormatInt(int64(a.object()["id"].(float64)), 10) }

// try calls the API; headers are pairs of name and value.
func (w *world) try(method, path string, body any, headers ...string) (answer, error) {
	w.t.Helper()
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			w.t.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.URL()+path, in)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.token != "" {
		req.Header.Set("Authorization", "Bearer "+w.token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return answer{w.t, resp.StatusCode, resp.Header, raw}, err
}

func (w *world) call(method, path string, body any, headers ...string) answer {
	w.t.Helper()
	a, err := w.try(method, path, body, headers...)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

type o = map[string]any

// inbox is a bot that takes deliveries.
type inbox struct {
	mu   sync.Mutex
	got  []hit
	code func(n int) int
}

type hit struct {
	header http.Header
	body   []byte
}

func (h hit) object(t *testing.T) o {
	t.Helper()
	var out o
	if err := json.Unmarshal(h.body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func (b *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	b.got = append(b.got, hit{r.Header.Clone(), body})
	n, code := len(b.got), b.code
	b.mu.Unlock()
	if code != nil {
		w.WriteHeader(code(n))
	}
}

func (b *inbox) all() []hit {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

func (b *inbox) events() []string {
	var out []string
	for _, h := range b.all() {
		var body struct{ Action string }
		_ = json.Unmarshal(h.body, &body)
		out = append(out, strings.TrimSuffix(h.header.Get("X-Github-Event")+"."+body.Action, "."))
	}
	return out
}

func settle(t *testing.T, w *world) {
	t.Helper()
	ctx := waittest.Context(t.Context(), t)
	if err := w.WaitIdle(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestConversation(t *testing.T) {
	t.Parallel()
	w := installed(t, github.Options{})
	issue := w.ann.OpenIssue("Broken", "Please look", "bug")
	first := w.ann.Comment(issue.Number, "- [ ] one\n```\n- [ ] code\n```\n- [x] two")
	base := "/repos/acme/web/issues/1"
	got := w.call("GET", base, nil).is(200, `"number":1`).object()
	if got["title"] != "Broken" || got["pull_request"] != nil || got["comments"] != 1.0 || got["author_association"] != "COLLABORATOR" {
		t.Errorf("issue %v", got)
	}
	posted := w.call("POST", base+"/comments", o{"body": "hi <!-- marker -->"}).is(201, "performed_via_github_app")
	if app := posted.object()["performed_via_github_app"].(o); app["slug"] != "remote-agent" {
		t.Errorf("app %v", app)
	}
	edited := "/repos/acme/web/issues/comments/" + posted.id()
	w.call("PATCH", edited, o{"body": "done <!-- marker -->"}).is(200, "done")
	for i, want := range []int{201, 200} {
		w.call("POST", edited+"/reactions", o{"content": "eyes"}).is(want, "eyes")
		w.call("POST", base+"/reactions", o{"content": "rocket"}).is([]int{201, 200}[i], "rocket")
	}
	reaction := w.call("POST", edited+"/reactions", o{"content": "eyes"}).id()
	w.call("POST", edited+"/reactions", o{"content": "smile"}).is(422, "Validation Failed")
	w.ann.TickTask(first.Comment, 2)
	w.ann.React(first.Comment, "heart")
	v := w.Issue("acme/web", 1)
	bot := v.FromBotComments()
	if len(bot) != 1 || bot[0].Text() != "done" || len(bot[0].History) != 1 || !bot[0].HasReaction("eyes", "remote-agent[bot]") || !bot[0].ViaApp {
		t.Errorf("ledger %+v", bot)
	}
	if got := v.Comment(first.Comment); got.Body != "- [ ] one\n```\n- [ ] code\n```\n- [ ] two" || got.FromBot {
		t.Errorf("ticked %q", got.Body)
	}
	if diff := cmp.Diff([]string{"rocket"}, v.ReactionsOf("remote-agent[bot]")); diff != "" {
		t.Error(diff)
	}
	w.call("DELETE", edited+"/reactions/"+reaction, nil).is(204, "")
	w.call("DELETE", edited+"/reactions/"+reaction, nil).is(404, "Not Found")
	others := w.call("GET", "/repos/acme/web/issues/comments/"+strconv.FormatInt(first.Comment, 10)+"/reactions", nil).list()
	w.call("DELETE", "/repos/acme/web/issues/comments/"+strconv.FormatInt(first.Comment, 10)+"/reactions/"+strconv.FormatInt(int64(others[0]["id"].(float64)), 10), nil).is(403, "own")
	w.ann.Label(1, "done")
	w.ann.CloseIssue(1)
	w.call("GET", base, nil).is(200, `"state":"closed"`)
	if v := w.Issue("acme/web", 1); v.State != "closed" || !slices.Equal(v.Labels, []string{"bug", "done"}) {
		t.Errorf("issue %+v", v)
	}
	w.call("DELETE", edited, nil).is(204, "")
	w.call("GET", edited, nil).is(404, "Not Found")
	if v := w.Issue("acme/web", 1); len(v.Deleted) != 1 || len(v.FromBotComments()) != 0 {
		t.Errorf("deleted %+v", v)
	}
}

func TestStrictness(t *testing.T) {
	t.Parallel()
	w := installed(t, github.Options{Limits: github.NoLimits()})
	w.ann.OpenIssue("One", "x")
	w.AddRepo(github.Repo{Name: "acme/old", Archived: true})
	w.Person("ann").In("acme/old").OpenIssue("x", "x")
	w.AddRepo(github.Repo{Name: "other/web", NotInstalled: true})
	comments := "/repos/acme/web/issues/1/comments"
	long := strings.Repeat("ä", 65536)
	for name, test := range map[string]struct {
		method, path string
		body         any
		status       int
		part         string
	}{
		"longest body":     {"POST", comments, o{"body": long}, 201, ""},
		"too long":         {"POST", comments, o{"body": long + "x"}, 422, "Body is too long"},
		"blank":            {"POST", comments, o{"body": " \n"}, 422, "blank"},
		"no body":          {"POST", comments, o{}, 422, "wasn't supplied"},
		"null body":        {"POST", comments, o{"body": nil}, 422, "wasn't supplied"},
		"number":           {"POST", comments, o{"body": 7}, 422, "is not a string"},
		"no JSON":          {"POST", comments, "{", 400, "Problems parsing JSON"},
		"not UTF-8":        {"POST", comments, "{\"body\":\"\xff\"}", 400, "Problems parsing JSON"},
		"array":            {"POST", comments, "[]", 400, "should be a JSON object"},
		"no issue":         {"POST", "/repos/acme/web/issues/99/comments", o{"body": "x"}, 404, "Not Found"},
		"issue zero":       {"GET", "/repos/acme/web/issues/0", nil, 404, "Not Found"},
		"huge number":      {"GET", "/repos/acme/web/issues/99999999999999999999", nil, 404, "Not Found"},
		"issue as pull":    {"GET", "/repos/acme/web/pulls/1", nil, 404, "Not Found"},
		"archived":         {"POST", "/repos/acme/old/issues/1/comments", o{"body": "x"}, 403, "archived"},
		"not installed":    {"GET", "/repos/other/web", nil, 404, "Not Found"},
		"unknown path":     {"GET", "/repos/acme/web/nothing", nil, 404, "Not Found"},
		"unknown method":   {"PUT", "/repos/acme/web/issues/1", o{}, 404, "Not Found"},
		"bad since":        {"GET", comments + "?since=yesterday", nil, 422, "since"},
		"user of an app":   {"GET", "/user", nil, 403, "Resource not accessible by integration"},
		"app with a token": {"GET", "/app", nil, 401, "JSON web token"},
		"prefix of GHES":   {"GET", "/api/v3/repos/acme/web", nil, 200, "acme/web"},
		"other case":       {"GET", "/repos/ACME/Web", nil, 200, "acme/web"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := *w
			in.t = t
			in.call(test.method, test.path, test.body).is(test.status, test.part)
		})
	}
}

func TestHeadersOfRequests(t *testing.T) {
	t.Parallel()
	w := installed(t, github.Options{})
	w.ann.OpenIssue("x", "x")
	w.call("GET", "/repos/acme/web", nil, "User-Agent", "").is(403, "User-Agent")
	w.call("GET", "/repos/acme/web", nil, "X-GitHub-Api-Version", "newest").is(400, "Invalid API version")
	w.call("GET", "/repos/acme/web", nil, "X-GitHub-Api-Version", "2022-11-28").is(200, "")
	w.call("POST", "/repos/acme/web/issues/1/comments", "body=x", "Content-Type", "application/x-www-form-urlencoded").is(415, "Content-Type")
	for _, bad := range []string{"", "ghs_nothing", "Bearer", "ghp_" + strings.Repeat("a", 36)} {
		w.as(bad).call("GET", "/repos/acme/web", nil).is(401, "")
	}
}
