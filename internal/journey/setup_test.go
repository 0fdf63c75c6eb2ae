package journey_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/emulator/github"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/slack"
	"remote-agent/internal/fault"
	"remote-agent/internal/setup/dialog"
	"remote-agent/internal/terminal"
	"remote-agent/internal/waittest"
)

// said is what the person answers to a prompt that has asks in it.
type said struct {
	asks, answer string
	before       func() // what is done before answering, such as a look at what was printed
	instead      func() // what is done in the place of answering; the next answer is for the next prompt
}

// person sits at the terminal where bot setup runs: what is printed is compared with what
// the person expects to be asked, and answered.
type person struct {
	t       *testing.T
	mu      sync.Mutex
	changed *sync.Cond
	printed strings.Builder
	read    int // up to where printed was answered
	script  []said
	rest    []byte
}

func newPerson(t *testing.T, script ...said) *person {
	p := &person{t: t, script: script}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// Write implements io.Writer.
func (p *person) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printed.Write(text)
	p.changed.Broadcast()
	return len(text), nil
}

// Read implements io.Reader. It answers the next prompt, and ends with the script.
func (p *person) Read(to []byte) (int, error) {
	for len(p.rest) == 0 {
		if len(p.script) == 0 {
			return 0, io.EOF
		}
		next := p.script[0]
		p.script = p.script[1:]
		p.await(next.asks)
		if next.before != nil {
			next.before()
		}
		if next.instead != nil {
			next.instead()
			continue
		}
		p.rest = []byte(next.answer + "\n")
	}
	n := copy(to, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// await waits until what was printed since the last answer asks for something.
func (p *person) await(asks string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !strings.Contains(p.printed.String()[p.read:], asks) || !strings.HasSuffix(p.printed.String(), ": ") {
		p.changed.Wait()
	}
	p.read = p.printed.Len()
}

func (p *person) screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.printed.String()
}

// saw fails if a text was not shown.
func (p *person) saw(parts ...string) func() {
	return func() {
		if text := p.screen(); !containsAll(text, parts) {
			p.t.Errorf("the screen does not show %q:\n%s", parts, text)
		}
	}
}

// setsUp runs bot setup for a step, or for all, until the script has ended.
func (w *world) setsUp(p *person, step string) error {
	w.t.Helper()
	var environ []string
	for name, value := range w.env {
		if value != "" {
			environ = append(environ, name+"="+value)
		}
	}
	service, err := app.NewSetup(config.Source{Environ: environ, EnvFile: w.envFile}, app.Env{
		Stdout: p, Stderr: p, Version: "test", Log: slog.New(slog.NewTextHandler(&logWriter{t: w.t, also: w.logs}, nil)), Lookup: os.LookupEnv,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	over := waittest.Late(w.t)
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- (&dialog.Dialog{Service: service, Screen: terminal.NewAsker(p, p)}).Run(ctx, step) }()
	select {
	case err := <-done:
		return err
	case <-over:
		w.t.Fatalf("the set-up did not end; the screen shows:\n%s", p.screen())
		return nil
	}
}

// visits does what a browser does on the page whose address is shown: it presses the
// button, and GitHub sends it back.
func (p *person) visits() {
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/start\?state=\S+`).FindString(p.screen())
	page := p.gets(http.NewRequest(http.MethodGet, address, http.NoBody))
	action := regexp.MustCompile(`action="([^"]+)"`).FindStringSubmatch(page)
	manifest := regexp.MustCompile(`name="manifest" value="([^"]+)"`).FindStringSubmatch(page)
	if action == nil || manifest == nil {
		p.t.Errorf("the page has no form: %s", page)
		return
	}
	form := url.Values{"manifest": {unescape(manifest[1])}}
	request, err := http.NewRequest(http.MethodPost, unescape(action[1]), strings.NewReader(form.Encode()))
	if err == nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if text := p.gets(request, err); !strings.Contains(text, "Go back to the terminal") {
		p.t.Errorf("the browser shows %q", text)
	}
}

func unescape(text string) string {
	return strings.NewReplacer("&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(text)
}

func (p *person) gets(request *http.Request, err error) string {
	if err != nil {
		p.t.Error(err)
		return ""
	}
	response, err := http.DefaultClient.Do(request.WithContext(p.t.Context()))
	if err != nil {
		p.t.Error(err)
		return ""
	}
	defer response.Body.Close() //nolint:errcheck // only read
	text, _ := io.ReadAll(response.Body)
	return string(text)
}

// setUpWorld is a bot that runs with nothing set up, among emulators of everything.
func setUpWorld(t *testing.T) (w *world, h *github.Server) {
	t.Helper()
	w = newSlackWorldWith(t, "", "Socket", slack.Options{}).migrated()
	h = github.New(github.Options{Limits: github.NoLimits()})
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	h.AddRepo(github.Repo{Name: ghRepo, Collaborators: map[string]github.Permission{"gina": github.Write}})
	h.Uninstall("acme")
	maps.DeleteFunc(w.env, func(name, _ string) bool {
		return !slices.Contains([]string{"DATA_DIR", "TELEGRAM_API_URL", "TELEGRAM_SEND_RATE", "TELEGRAM_CHAT_SEND_RATE", "SLACK_API_URL", "SHUTDOWN_GRACE", "MEMORY_LEARNING"}, name)
	})
	w.with(map[string]string{"LISTEN_ADDR": freePort(t), "GITHUB_API_URL": h.URL(), "GITHUB_WEB_URL": h.URL()})
	w.envFile = filepath.Join(t.TempDir(), ".env")
	if err := os.WriteFile(w.envFile, []byte(strangersLines), 0o600); err != nil {
		t.Fatal(err)
	}
	return w, h
}

// closedModel is a model API that refuses every key.
func closedModel(t *testing.T) *openai.Server {
	t.Helper()
	closed := openai.New(openai.Options{APIKey: "sk-of-somebody-else"})
	if err := closed.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closed.Close)
	return closed
}

const strangersLines = "# Mine, keep it.\nMY_OWN='a b' # why\n"

// TestSetUp takes somebody from nothing to a bot that answers on all platforms: each step
// is proven, wrong values change nothing, the running bot takes what is right by itself,
// and doctor finds nothing wrong afterwards.
func TestSetUp(t *testing.T) {
	t.Parallel()
	w, h := setUpWorld(t)
	log := &lockedBuffer{}
	w.logs = log
	w.start()
	folder := filepath.Join(t.TempDir(), "shop")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "-C", folder, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	closed := closedModel(t)
	var p *person
	shows := func(parts ...string) func() { return func() { p.saw(parts...)() } }
	unchanged := func() {
		if text, err := os.ReadFile(w.envFile); err != nil || string(text) != strangersLines { //nolint:gosec // a test's own file
			t.Errorf("a wrong value has changed the file: %q, %v", text, err)
		}
	}
	p = newPerson(t,
		said{asks: "Enter for model", answer: "nothing"},
		said{asks: "Enter for model", before: shows("There is no step"), answer: ""},
		said{asks: "How?", answer: "nowhere"},
		said{asks: "How?", before: shows(`"nowhere" is not one of these`), answer: "server"},
		said{asks: "Address", answer: "127.0.0.1/v1"},
		said{asks: "Address", before: shows("OPENAI_BASE_URL (.env) is not a valid address"), answer: closed.URL()},
		said{asks: "API key", answer: "sk-wrong-wrong-wrong"},
		said{asks: "Model", answer: "test-model"},
		said{asks: "Nothing was changed", before: func() { shows("models", "✖ openai")(); unchanged() }, answer: ""},
		said{asks: "Enter keeps what you entered", answer: w.ai.URL()},
		said{asks: "API key", answer: key},
		said{asks: "Enter keeps what you entered", answer: ""},

		said{asks: "Enter for telegram", before: shows("The bot has restarted with it"), answer: ""},
		said{asks: "Bot token", answer: "acme_bot"},
		said{asks: "Bot token", before: shows("TELEGRAM_BOT_TOKEN (.env) is not a bot token"), answer: "1000:wrong-token-of-nobody"},
		said{asks: "Nothing was changed", before: shows("telegram", "✖ account"), answer: ""},
		said{asks: "Bot token", answer: token},

		said{asks: "Enter for slack", before: shows("The command menu is set.", "description, short description, picture"), answer: "3"},
		said{asks: "Bot token", before: shows("https://api.slack.com/apps?new_app=1&manifest_json=", "App-Level Tokens"), answer: w.sl.AppToken()},
		said{asks: "Bot token", before: shows("it must start with xoxb-"), answer: w.sl.BotToken()},
		said{asks: "App-level token", before: func() { w.sl.RefuseAppToken("invalid_auth") }, answer: w.sl.AppToken()},
		said{asks: "Enter to try again", before: func() { shows("✖ socket", "✔ scopes")(); w.sl.RefuseAppToken("") }, answer: ""},
		said{asks: "Enter keeps", answer: ""},
		said{asks: "Enter keeps", answer: ""},

		said{asks: "Enter for github", answer: ""},
		said{asks: "How?", answer: ""},
		said{asks: "Organization", answer: "not a name!"},
		said{asks: "Name of the app", answer: ""},
		said{asks: "Nothing was changed", before: shows("is not the login of an organization"), answer: ""},
		said{asks: "Organization", answer: "acme"},
		said{asks: "Name of the app", answer: ""},
		said{asks: "Waiting for the browser", instead: func() { p.visits() }},
		said{asks: "Enter when that is done", before: shows("/apps/remote-agent/installations/new"), answer: ""},
		said{asks: "Enter to check again", before: func() { shows("the App is installed nowhere")(); h.Install(ghRepo) }, answer: ""},

		said{asks: "Enter for repository", answer: ""},
		said{asks: "Address, owner/name or folder", answer: filepath.Join(folder, "nowhere")},
		said{asks: "Nothing was changed", answer: ""},
		said{asks: "Enter keeps what you entered", answer: folder},

		said{asks: "Enter for address", answer: ""},
		said{asks: "Address", answer: "bot.example.com"},
		said{asks: "Address", before: shows("PUBLIC_URL (.env) is not a valid address"), answer: "http://" + w.env["LISTEN_ADDR"]},

		said{asks: "Enter for people", before: shows("reaches the daemon"), answer: ""},
		said{asks: "How?", answer: ""},
		said{asks: "Account", answer: "telegram/ann"},
		said{asks: "Nothing was changed", before: shows(`"ann" is not a telegram ID`), answer: ""},
		said{asks: "Account", answer: "telegram/42"},
		said{asks: "q to leave", answer: "q"},
	)
	if err := w.setsUp(p, ""); err != nil {
		t.Fatalf("%v\n%s", err, p.screen())
	}

	w.says(ann, "hello")
	w.seesText(ann, "echo: hello [1 messages]")
	w.tidySetUp(p, log)
	if profile := w.tg.Profile(); profile.Description == "" || profile.ShortDescription == "" || len(profile.Pictures) != 1 || len(w.tg.ChatMenu(ann)) < 5 {
		t.Errorf("%d commands, %+v", len(w.tg.ChatMenu(ann)), profile)
	}
	if got, report := w.examine(false); !cmp.Equal(got, newWorldUnwell) || report.Failed != 0 {
		t.Errorf("%v: %+v", got, report)
	}
	w.shutdown()
	w.start() // what was written down is enough for a start
}

// tidySetUp looks at what the set-up has left: a file for this user alone with what others
// wrote in it, and no secret on the screen or in the log.
func (w *world) tidySetUp(p *person, log *lockedBuffer) {
	w.t.Helper()
	text, err := os.ReadFile(w.envFile)
	if err != nil || !strings.HasPrefix(string(text), strangersLines) {
		w.t.Errorf("%q, %v", text, err)
	}
	for _, path := range []string{w.envFile, w.envFile + ".bak"} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			w.t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	config := w.config()
	if n := len(config.Secrets()); n < 5 {
		w.t.Errorf("only %d secrets were set up", n)
	}
	for _, secret := range append(config.Secrets(), "sk-wrong-wrong-wrong", "1000:wrong-token-of-nobody") {
		if strings.Contains(p.screen(), secret) || strings.Contains(log.String(), secret) {
			w.t.Errorf("a secret of %d bytes was shown", len(secret))
		}
	}
}

// TestSetUpAgain changes one step, keeps what the environment pins, and leaves what was
// saved when the person stops in the middle.
func TestSetUpAgain(t *testing.T) {
	t.Parallel()
	w, _ := setUpWorld(t)
	p := newPerson(t, said{asks: "Bot token", answer: token})
	if err := w.setsUp(p, "telegram"); err != nil {
		t.Fatal(err)
	}
	p.saw("It takes effect when the bot starts: bot serve")()
	before, err := os.ReadFile(w.envFile)
	if err != nil {
		t.Fatal(err)
	}

	p = newPerson(t,
		said{asks: "How?", before: func() { p.saw("TELEGRAM_BOT_TOKEN = [redacted] (.env)")() }, answer: "token"},
		said{asks: "Enter keeps what is set", answer: ""},
	)
	if err := w.setsUp(p, "telegram"); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(w.envFile); err != nil || string(after) != string(before) {
		t.Errorf("nothing was changed, and the file was: %q, %v", after, err)
	}

	w.with(map[string]string{"TELEGRAM_BOT_TOKEN": token})
	p = newPerson(t, said{asks: "How?", answer: "1"})
	if err := w.setsUp(p, "telegram"); err != nil {
		t.Fatal(err)
	}
	p.saw("which only environment can change")()
	p = newPerson(t, said{asks: "How?", answer: "off"})
	if err := w.setsUp(p, "telegram"); !strings.Contains(fault.Public(err), "TELEGRAM_BOT_TOKEN is set by the environment") {
		t.Errorf("a step that is blocked: %v", err)
	}

	p = newPerson(t, said{asks: "Bot token", answer: "xoxb-1-typed-and-left"})
	if err := w.setsUp(p, "slack"); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "input has ended") {
		t.Errorf("%v", err)
	}
	if after, err := os.ReadFile(w.envFile); err != nil || string(after) != string(before) {
		t.Errorf("half a step was saved: %q, %v", after, err)
	}
}

// TestSetUpStopped ends the set-up while it waits for an answer.
func TestSetUpStopped(t *testing.T) {
	t.Parallel()
	w, _ := setUpWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	service, err := app.NewSetup(config.Source{EnvFile: w.envFile}, app.Env{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	silent, typed := io.Pipe()
	defer typed.Close() //nolint:errcheck // a pipe
	screen := writerFunc(func(text []byte) (int, error) {
		if strings.Contains(string(text), "Bot token") {
			cancel()
		}
		return len(text), nil
	})
	err = (&dialog.Dialog{Service: service, Screen: terminal.NewAsker(silent, screen)}).Run(ctx, "telegram")
	if !fault.Is(err, fault.Canceled) || !strings.Contains(fault.Public(err), "What was saved stays") || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

type writerFunc func(text []byte) (int, error)

func (f writerFunc) Write(text []byte) (int, error) { return f(text) }
