package chaos

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/github"
)

const (
	githubRepo   = "acme/web"
	githubSecret = "chaos-webhook-secret" //nolint:gosec // of the emulator
)

// onGitHub is GitHub with people who open issues and comment on them. Deliveries get
// lost and come twice and late; the bot itself has to ask for what got lost. Its git
// server is a folder.
type onGitHub struct {
	run     *run
	server  *github.Server
	git     *emulator.Loopback
	keyFile string
	seed    uint64

	sent repeats

	mu     sync.Mutex // guards issues
	issues map[int]int
}

func newGitHub(r *run) (platform, error) {
	p := &onGitHub{run: r, keyFile: filepath.Join(r.dir, "app.pem"), issues: map[int]int{}, seed: r.opts.Seed}
	root := filepath.Join(r.dir, "git")
	if err := bareRepository(filepath.Join(root, githubRepo+".git")); err != nil {
		return nil, err
	}
	var err error
	if p.git, err = emulator.Listen(http.FileServer(http.Dir(root))); err != nil {
		return nil, fmt.Errorf("start the git server: %w", err)
	}
	p.server = github.New(github.Options{
		Now: r.clock, WebURL: p.git.URL(), Limits: github.NoLimits(), KeepCalls: -1,
		OnChange: func(c github.Change) {
			if c.Comment.FromBot {
				r.seen(c.Comment.Text(), c.Kind == github.ChangeCommented)
			}
		},
	})
	calls := &calls{run: r}
	p.server.InjectFunc(func(c github.Call) github.Fault {
		f := calls.next(c.Operation, c.Operation == github.CreateComment)
		return faultOf(f, github.SecondaryLimit(http.StatusTooManyRequests, time.Second), github.ServerError(503))
	})
	if err := p.server.Start(); err != nil {
		p.git.Close()
		return nil, fmt.Errorf("start the emulated GitHub: %w", err)
	}
	people := map[string]github.Permission{}
	for i := range 50 {
		people[login(i)] = github.Write
	}
	p.server.AddRepo(github.Repo{Name: githubRepo, Collaborators: people})
	if err := os.WriteFile(p.keyFile, p.server.PrivateKey(), 0o600); err != nil {
		p.close()
		return nil, fmt.Errorf("write the key of the emulated App: %w", err)
	}
	return p, nil
}

// bareRepository makes a repository with one commit that a plain web server can serve.
func bareRepository(dir string) error {
	for _, step := range []struct {
		in   string
		args []string
	}{
		{"", []string{"init", "-q", "--bare", "--template=", "-b", "main", dir}},
		{"commit refs/heads/main\ncommitter Chaos <chaos@example.com> 1700000000 +0000\ndata 5\nfirstM 100644 inline README\ndata 6\nHello\n\n", []string{"-C", dir, "fast-import", "--quiet"}},
		{"", []string{"-C", dir, "update-server-info"}},
	} {
		cmd := exec.CommandContext(context.Background(), "git", step.args...) //nolint:gosec // our own words
		cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + filepath.Dir(dir), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
		cmd.Stdin = strings.NewReader(step.in)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", step.args[0], err, out)
		}
	}
	return nil
}

func (p *onGitHub) environ() []string {
	return []string{
		"GITHUB_MODE=webhook", "GITHUB_APP_ID=4711", "GITHUB_APP_PRIVATE_KEY_FILE=" + p.keyFile, "GITHUB_API_URL=" + p.server.URL(),
		"GITHUB_WEBHOOK_SECRET=" + githubSecret, "GITHUB_WEB_URL=" + p.git.URL(), "GITHUB_SWEEP_EVERY=2s",
		"GIT_ALLOWED_HOSTS=" + strings.TrimPrefix(p.git.URL(), "http://"),
	}
}

func (p *onGitHub) hook(url string) {
	p.server.SetHook(github.Hook{URL: url + "/webhooks/github", Secret: githubSecret})
}

func (p *onGitHub) introduce(context.Context) error {
	if !p.run.opts.Calm {
		p.server.SetNetwork(github.Network{Drop: 0.1, Double: 0.1, Late: 0.1, LateBy: time.Second, Seed: p.seed})
	}
	return nil
}

// lifetime is five because somebody who answers the bot at once again and again is
// taken for a program.
func (*onGitHub) lifetime() int { return 5 }
func (p *onGitHub) odd() int    { return len(p.server.Violations()) }
func login(i int) string        { return fmt.Sprintf("person%d", i%50) }

func (p *onGitHub) close() {
	p.server.Close()
	p.git.Close()
}

func (p *onGitHub) say(conversation int, text string) receipt {
	who := p.server.Person(login(conversation)).In(githubRepo)
	p.mu.Lock()
	issue := p.issues[conversation]
	p.mu.Unlock()
	var sent github.Sent
	if issue == 0 {
		sent = who.OpenIssue("Question", "@remote-agent "+text)
	} else {
		sent = who.Comment(issue, "@remote-agent "+text)
	}
	p.mu.Lock()
	p.issues[conversation] = sent.Number
	p.mu.Unlock()
	p.sent.add(sent.Deliveries)
	return func() bool {
		for _, guid := range sent.Deliveries {
			if d := p.server.Delivery(guid); d.GUID != "" && !d.Acked { // what was acknowledged is not kept
				return false
			}
		}
		return true
	}
}

func (p *onGitHub) shown(conversation int) (texts []string) {
	p.mu.Lock()
	issue := p.issues[conversation]
	p.mu.Unlock()
	for _, c := range p.server.Issue(githubRepo, issue).FromBotComments() {
		texts = append(texts, c.Text())
	}
	return texts
}

func (p *onGitHub) again(x float64) {
	if guid := p.sent.pick(x); guid != "" && p.server.Redeliver(guid) {
		p.run.count("an event comes again")
	}
}
