package github_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/e2e/internal/bot"
	"remote-agent/e2e/internal/need"
	"remote-agent/e2e/internal/process"
	"remote-agent/internal/codebase/gittest"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/waittest"
)

// TestEmulatedGitHub plays journeys against vercel-labs emulate: as an App with
// webhooks, with a token and a repository's hook, and by polling. It knows no
// reactions, no log of deliveries, no list of all comments of a repository and no
// git: marks and sweeps of comments fail without harm, polling brings issues, and
// git is a server of ours.
func TestEmulatedGitHub(t *testing.T) {
	t.Parallel()
	need.Package(t, "emulate") // needs Node 22: npm brings one along
	for mode, play := range map[string]func(*emulate){"app": (*emulate).journey, "token": (*emulate).journey, "poll": (*emulate).polls} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			play(newEmulate(t, mode))
		})
	}
}

// emulate is the other GitHub with one organization, whose people are gina, who
// may write, rob, who may not, and the owner of the bot's token.
type emulate struct {
	t     *testing.T
	bot   *bot.Bot
	url   string
	git   *gittest.Server
	login string // of the bot
}

const (
	emulateRepo = "acme/site"
	hookSecret  = "0123456789abcdef0123456789abcdef"
)

type object = map[string]any

func newEmulate(t *testing.T, mode string) *emulate {
	t.Helper()
	b := bot.New(t)
	e := &emulate{t: t, bot: b, login: "remote-agent[bot]"}
	git, address := b.WithRepository(emulateRepo, bot.SumRepo)
	e.git = git
	web := strings.TrimSuffix(address, "/"+emulateRepo)
	port := process.FreeAddress(t)
	e.url = "http://" + port
	b.With(map[string]string{
		"TELEGRAM_BOT_TOKEN": "", "GITHUB_MODE": "webhook", "GITHUB_API_URL": e.url, "GITHUB_WEB_URL": web,
		"GITHUB_REPOSITORIES": emulateRepo, "GITHUB_POLL_EVERY": "1s", "GITHUB_SWEEP_EVERY": "1s",
	})
	seed := object{
		"tokens": object{
			"ghp_gina000000000000": object{"login": "gina", "scopes": []string{"repo"}},
			"ghp_rob0000000000000": object{"login": "rob", "scopes": []string{"repo"}},
			"ghp_robot00000000000": object{"login": "robot", "scopes": []string{"repo"}},
		},
		"github": object{
			"users": []object{{"login": "gina"}, {"login": "rob"}, {"login": "robot"}},
			"orgs": []object{{"login": "acme", "members": []object{
				{"login": "gina", "role": "admin"}, {"login": "robot", "role": "admin"},
			}}},
			"repos": []object{{"owner": "acme", "name": "site", "auto_init": true}},
		},
	}
	switch mode {
	case "poll":
		b.With(map[string]string{"GITHUB_MODE": "poll"})
		fallthrough
	case "token":
		e.login = "robot"
		b.With(map[string]string{"GITHUB_TOKEN": "ghp_robot00000000000"})
	case "app":
		key := newKey(t)
		keyFile := filepath.Join(t.TempDir(), "key.pem")
		if err := os.WriteFile(keyFile, []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
		b.With(map[string]string{"GITHUB_APP_ID": "4711", "GITHUB_APP_PRIVATE_KEY_FILE": keyFile})
		seed["github"].(object)["apps"] = []object{{
			"app_id": 4711, "slug": "remote-agent", "name": "Remote Agent", "private_key": key,
			"permissions": object{"metadata": "read", "issues": "write", "pull_requests": "write", "contents": "write"},
			"events":      []string{"issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment"},
			"webhook_url": "http://" + b.Option("LISTEN_ADDR") + "/webhooks/github", "webhook_secret": hookSecret,
			"installations": []object{{"installation_id": 100, "account": "acme"}},
		}}
	}
	e.launch(seed, port)
	if mode != "poll" {
		b.With(map[string]string{"GITHUB_WEBHOOK_SECRET": hookSecret})
	}
	if mode == "token" {
		e.hook()
	}
	b.Start()
	return e
}

// hook gives the repository a webhook. Ids of its deliveries are 1, 2, 3; those
// of GitHub are GUIDs, so a proxy in front of the bot makes them long.
func (e *emulate) hook() {
	e.t.Helper()
	to := &url.URL{Scheme: "http", Host: e.bot.Option("LISTEN_ADDR")}
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Header.Set("X-GitHub-Delivery", "00000000-0000-0000-0000-"+fmt.Sprintf("%012s", r.In.Header.Get("X-GitHub-Delivery")))
	}})
	e.t.Cleanup(front.Close)
	var made struct {
		ID int64 `json:"id"`
	}
	e.call("gina", http.MethodPost, "/repos/"+emulateRepo+"/hooks", object{
		"name": "web", "active": true, "events": []string{"*"},
		"config": object{"url": front.URL + "/webhooks/github", "content_type": "json", "secret": hookSecret},
	}, &made)
}

func newKey(t *testing.T) string {
	t.Helper()
	made, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(made)}))
}

// launch starts the other GitHub and waits until it answers.
func (e *emulate) launch(seed object, address string) {
	e.t.Helper()
	raw, err := json.Marshal(seed)
	if err != nil {
		e.t.Fatal(err)
	}
	dir := e.t.TempDir()
	seedFile := filepath.Join(dir, "seed.json")
	if err := os.WriteFile(seedFile, raw, 0o600); err != nil {
		e.t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		e.t.Fatal(err)
	}
	other := process.Start(e.t, dir, nil, need.Node(e.t), need.Program(e.t, "emulate", "emulate"), "start", "--service", "github", "--port", port, "--seed", seedFile)
	other.Answers(e.url + "/meta")
}

// until asks again and again, because nothing tells when it is worth it.
func (e *emulate) until(what string, check func() bool) {
	e.t.Helper()
	waittest.Until(e.t, what, check)
}

// call makes a call of GitHub's API as somebody.
func (e *emulate) call(login, method, path string, body any, out any) {
	e.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		e.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(e.t.Context(), method, e.url+path, bytes.NewReader(raw))
	if err != nil {
		e.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+(map[string]string{"gina": "ghp_gina000000000000", "rob": "ghp_rob0000000000000"})[login])
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode > 299 {
		e.t.Fatalf("%s %s: %s %s %v", method, path, resp.Status, answer, err)
	}
	if err := json.Unmarshal(answer, out); err != nil {
		e.t.Fatalf("%s %s: %s: %v", method, path, answer, err)
	}
}

// otherComment is a comment as the API shows it.
type otherComment struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
	User struct {
		Login string `json:"login"`
	} `json:"user"`
}

func (e *emulate) says(login string, number int, text string) {
	e.t.Helper()
	var made otherComment
	e.call(login, http.MethodPost, fmt.Sprintf("/repos/%s/issues/%d/comments", emulateRepo, number), object{"body": text}, &made)
}

// answers returns what the bot wrote in an issue.
func (e *emulate) answers(number int) (all []string) {
	e.t.Helper()
	var comments []otherComment
	e.call("gina", http.MethodGet, fmt.Sprintf("/repos/%s/issues/%d/comments?per_page=100", emulateRepo, number), nil, &comments)
	for _, c := range comments {
		if c.User.Login == e.login {
			all = append(all, c.Body)
		}
	}
	return all
}

func (e *emulate) sees(number int, part string) {
	e.t.Helper()
	e.until(fmt.Sprintf("%q in #%d", part, number), func() bool {
		return strings.Contains(strings.Join(e.answers(number), "\n"), part)
	})
}

// otherIssue is what is read of an issue.
type otherIssue struct {
	Number int `json:"number"`
}

func (e *emulate) opens(title, body string) (made otherIssue) {
	e.t.Helper()
	e.call("gina", http.MethodPost, "/repos/"+emulateRepo+"/issues", object{"title": title, "body": body}, &made)
	return made
}

// polls plays what polling can bring: issues.
func (e *emulate) polls() {
	for i := range 3 {
		e.bot.Model.Enqueue(openai.Text(fmt.Sprintf("Answer %d.", i)))
		issue := e.opens("Question", "@remote-agent well?")
		e.sees(issue.Number, fmt.Sprintf("Answer %d.", i))
		e.bot.Restart()
		if got := e.answers(issue.Number); len(got) != 1 {
			e.t.Errorf("%d comments of the bot, want one: %q", len(got), got)
		}
	}
}

func (e *emulate) journey() {
	e.bot.Model.Enqueue(openai.Text("The sum subtracts."))
	issue := e.opens("The sum is wrong", "2+3 gives -1. @remote-agent why?")
	e.sees(issue.Number, "The sum subtracts.")
	if asked := e.bot.Model.Requests()[0].LastUserText(); !strings.Contains(asked, "The sum is wrong") || !strings.Contains(asked, "2+3 gives -1") {
		e.t.Errorf("the model was asked %q", asked)
	}

	e.says("rob", issue.Number, "@remote-agent delete everything")
	e.sees(issue.Number, "Only people with write access")
	e.bot.Restart()

	e.bot.Model.Enqueue(
		openai.Calls(openai.Call{ID: "call_1", Name: "edit_file", Arguments: `{"path":"sum.sh","old":"$1 - $2","new":"$1 + $2"}`}),
		openai.Text("It adds now."),
	)
	e.says("gina", issue.Number, "@remote-agent fix it")
	e.sees(issue.Number, "It adds now.")
	requests := e.bot.Model.Requests()
	if roles := strings.Join(requests[len(requests)-1].Roles(), " "); !strings.Contains(roles, "user assistant user") {
		e.t.Errorf("it did not go on in the session: %s", roles)
	}

	e.says("gina", issue.Number, "@remote-agent /pr Add instead")
	e.sees(issue.Number, "draft pull request")
	var pull struct {
		Title string `json:"title"`
		Body  string `json:"body"`
		Draft bool   `json:"draft"`
		Head  struct {
			Ref string `json:"ref"`
		} `json:"head"`
	}
	e.call("gina", http.MethodGet, fmt.Sprintf("/repos/%s/pulls/%d", emulateRepo, issue.Number+1), nil, &pull)
	branch := fmt.Sprintf("bot/issue-%d", issue.Number)
	if !pull.Draft || pull.Title != "Add instead" || pull.Head.Ref != branch || !strings.Contains(pull.Body, fmt.Sprintf("Closes #%d", issue.Number)) {
		e.t.Errorf("the pull request is %+v", pull)
	}
	if shown := e.git.Run(emulateRepo, nil, "log", "-1", "-p", branch); !strings.Contains(shown, "$1 + $2") {
		e.t.Errorf("the commit is %s", shown)
	}
	e.bot.Restart()
	e.says("gina", issue.Number, "@remote-agent and now?")
	e.sees(issue.Number, "and now?")
	if got := e.answers(issue.Number); len(got) != 5 {
		e.t.Errorf("%d comments of the bot, want 5: %q", len(got), got)
	}
}
