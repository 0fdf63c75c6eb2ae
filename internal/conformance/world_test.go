package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"database/sql"

	_ "github.com/jackc/pgx/v5/stdlib" // how PostgreSQL is asked from outside

	"remote-agent/internal/app"
	"remote-agent/internal/codebase/gittest"
	"remote-agent/internal/config"
	"remote-agent/internal/emulator/acpagent"
	"remote-agent/internal/emulator/github"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/telegram"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/waittest"
)

const (
	botToken = "1000:test-token-of-the-emulator"
	modelKey = "sk-test-0123456789abcdef"
	owner    = 101 // the first of those who may use the bot
	people   = 60
)

// world is a running bot on one database with what is around it: a chat platform,
// a model API and a git server. Checks share it, each with a chat of its own.
type world struct {
	database string // one of databases
	env      map[string]string
	tg       *telegram.Server
	hub      *github.Server // nil unless withGitHub was called
	model    *model
	repo     string // address of a repository
	sql      *sql.DB

	addr string
	stop context.CancelFunc
	done chan error

	mu   sync.Mutex
	last int64 // the person who was given out last
	keys map[string]string
	cast map[string]int64 // people whom a check finds again, by name
}

// newWorld makes a world. Nothing runs in it yet.
func newWorld(t *testing.T, database string) *world {
	t.Helper()
	w := &world{
		database: database, last: owner, keys: make(map[string]string), cast: make(map[string]int64), model: &model{turns: make(map[string][]openai.Response)},
		tg: telegram.New(telegram.Options{Token: botToken, BotUsername: "acme_bot"}),
	}
	w.model.server = openai.New(openai.Options{APIKey: modelKey})
	w.model.server.Script(w.model.answer)
	for _, start := range []func() error{w.tg.Start, w.model.server.Start} {
		if err := start(); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	agent, err := acpagent.Command(dir, acpagent.Script{Resume: true, State: filepath.Join(dir, "data", "agents", "robot")})
	if err != nil {
		t.Fatal(err)
	}
	git := gittest.NewServer(t)
	w.repo = git.Repo("acme/web", repository)
	allowed := make([]string, people)
	for i := range allowed {
		allowed[i] = fmt.Sprint(owner + i)
	}
	w.env = map[string]string{
		"LISTEN_ADDR": "127.0.0.1:0", "DATA_DIR": filepath.Join(dir, "data"), "WORKSPACE_PATH": filepath.Join(dir, "workspace"),
		"BACKUP_DIR":     filepath.Join(dir, "backups"),
		"OPENAI_API_KEY": modelKey, "OPENAI_BASE_URL": w.model.server.URL(), "OPENAI_MODEL": "test-model", "MODEL_FAST": "openai:quick-model",
		"TELEGRAM_BOT_TOKEN": botToken, "TELEGRAM_API_URL": w.tg.URL(), "TELEGRAM_ALLOWED_USER_IDS": strings.Join(allowed, ","),
		"TELEGRAM_OWNER_IDS": strings.Join(allowed, ","),
		"TELEGRAM_SEND_RATE": "0", "TELEGRAM_CHAT_SEND_RATE": "0", "SHUTDOWN_GRACE": "1s", "MEMORY_LEARNING": "off",
		"GIT_ALLOWED_HOSTS": git.Host(),
		"ACP_AGENTS":        "robot=" + strings.Join(agent, " "), "TOOL_READ_PATHS": dir,
	}
	driver, address := "sqlite", "file:"+filepath.Join(w.env["DATA_DIR"], "bot.db")+"?_txlock=immediate&_pragma=busy_timeout(20000)&_pragma=foreign_keys(1)"
	if database == "postgres" {
		w.env["DATABASE_URL"] = storetest.PostgresMigratedURL(t)
		driver, address = "pgx", w.env["DATABASE_URL"]
	} else {
		storetest.SQLiteFile(t, w.env["DATA_DIR"])
	}
	if w.sql, err = sql.Open(driver, address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.end(t)
		w.tg.Close()
		w.model.server.Close()
		if err := w.sql.Close(); err != nil {
			t.Error(err)
		}
		if refused := w.model.server.Refusals(); len(refused) > 0 {
			t.Errorf("the model API refused %d requests, the first: %+v", len(refused), refused[0])
		}
	})
	return w
}

// repository has commands as seed 002 names them.
var repository = map[string]string{
	"README.md":                        "# web\n",
	".claude/commands/prime.md":        "---\ndescription: Research codebase\n---\nLook around. $ARGUMENTS\n",
	".claude/commands/plan-feature.md": "Write a plan for: $ARGUMENTS\n",
	".claude/commands/execute.md":      "Execute the plan. $ARGUMENTS\n",
	".claude/commands/odd-plan.md":     "---\nproduces: none\n---\nSay something odd.\n",
	".claude/commands/plan-nothing.md": "---\nproduces: none\n---\nMake no plan.\n",
	"prompts/new.md":                   "---\ndescription: New command\n---\nSay new.\n",
}

func (w *world) config(t *testing.T) config.Config {
	t.Helper()
	var environ []string
	for name, value := range w.env {
		environ = append(environ, name+"="+value)
	}
	none := filepath.Join(t.TempDir(), "none.env")
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := app.LoadConfig(config.Source{Environ: environ, EnvFile: none})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// begin starts the bot.
func (w *world) begin(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	started, done := make(chan app.Info, 1), make(chan error, 1)
	cfg, env := w.config(t), w.environment(t, io.Discard)
	env.Started = func(i app.Info) { started <- i }
	go func() { done <- app.Run(ctx, cfg, env) }()
	w.stop, w.done = cancel, done
	select {
	case info := <-started:
		w.addr = info.Addr
	case err := <-done:
		w.stop = nil
		t.Fatalf("the bot did not start: %v", err)
	case <-waittest.Late(t):
		t.Fatal("the bot did not start in time")
	}
}

func (w *world) environment(t *testing.T, out io.Writer) app.Env {
	t.Helper()
	return app.Env{
		Stdin: strings.NewReader(""), Stdout: out, Stderr: io.Discard, Version: "test", Lookup: os.LookupEnv,
		Log: storetest.Log(t),
	}
}

// end stops the bot.
func (w *world) end(t *testing.T) {
	t.Helper()
	if w.stop == nil {
		return
	}
	w.stop()
	w.stop = nil
	select {
	case err := <-w.done:
		if err != nil {
			t.Errorf("the bot ended with %v", err)
		}
	case <-waittest.Late(t):
		t.Error("the bot did not stop in time")
	}
}

// model is the scripted model: what it answers depends on what it was last told,
// and on how many calls of that turn have results. It echoes what it does not know.
type model struct {
	server *openai.Server
	mu     sync.Mutex
	turns  map[string][]openai.Response
}

// says scripts what the model answers to a text, one answer for each round.
func (m *model) says(text string, answers ...openai.Response) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns[text] = answers
}

func (m *model) answer(r openai.Request) openai.Response {
	round := 0
	for _, message := range r.Messages {
		switch {
		case message.Role == "user":
			round = 0
		case len(message.ToolCalls) > 0:
			round++
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if answers := m.turns[strings.TrimSpace(r.LastUserText())]; round < len(answers) {
		return answers[round]
	}
	return openai.Echo(r)
}

// asked returns the newest request whose last user text contains a text.
func (m *model) asked(text string) (found openai.Request, ok bool) {
	for _, r := range m.server.Requests() {
		if strings.Contains(r.LastUserText(), text) {
			found, ok = r, true
		}
	}
	return found, ok
}

// toolCall is one call that the model makes.
func toolCall(name string, arguments any) openai.Call {
	encoded, err := json.Marshal(arguments)
	if err != nil {
		panic(err) // of a test's own literal
	}
	return openai.Call{Name: name, Arguments: string(encoded)}
}

// person is somebody with a private chat of their own.
type person struct {
	c  *check
	id int64
}

// person returns somebody who has not said anything yet.
func (c *check) person() person {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last++; c.last == owner+people {
		c.Fatal("there are too few people")
	}
	return person{c, c.last}
}

// casts is person, and the returns them to other checks.
func (c *check) casts(name string) person {
	c.Helper()
	p := c.person()
	c.cast[name] = p.id
	return p
}

// the is somebody whom the world was prepared with.
func (c *check) the(name string) person {
	c.Helper()
	id, ok := c.cast[name]
	if !ok {
		c.T.Fatalf("nobody is called %s", name)
	}
	return person{c, id}
}

// place is the person's chat as the bot's commands call it.
func (p person) place() string { return fmt.Sprintf("telegram/%d", p.id) }

// says sends a text and waits for a message of the bot that contains every part.
func (p person) says(text string, parts ...string) string {
	p.c.Helper()
	before := len(p.c.tg.ChatView(p.id).FromBot())
	p.c.tg.Person(p.id).Says(text)
	var found string
	err := p.c.tg.Wait(waittest.Context(context.Background(), p.c.T), func(l telegram.Ledger) bool {
		for i, answer := range l.Chat(p.id).BotTexts() {
			if i >= before && containsAll(answer, parts) {
				found = answer
				return true
			}
		}
		return false
	})
	if err != nil {
		p.c.Fatalf("after %q the bot did not say %q; it said %q", text, parts, p.c.tg.ChatView(p.id).BotTexts()[before:])
	}
	return found
}

// rests waits until nothing of the person's chat is under way.
func (p person) rests() {
	p.c.Helper()
	open := fmt.Sprintf(`SELECT (SELECT count(*) FROM inbound_events e WHERE e.state IN ('waiting', 'running') AND e.conversation_id IN (%[1]s))
		+ (SELECT count(*) FROM deliveries d WHERE d.state NOT IN ('sent', 'failed') AND d.conversation_id IN (%[1]s))`, p.conversation())
	waittest.Until(p.c.T, "the chat comes to rest", func() bool { return p.c.one(open) == "0" })
}

// conversation is a query for the id of the person's conversation.
func (p person) conversation() string {
	return fmt.Sprintf(`SELECT id FROM remote_agent_conversations WHERE platform_type = 'telegram' AND platform_conversation_id = '%d'`, p.id)
}

// sessions is a query for the ids of the person's sessions.
func (p person) sessions() string {
	return `SELECT id FROM remote_agent_sessions WHERE conversation_id IN (` + p.conversation() + `)`
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// command runs what a command of the bot runs, beside the daemon, and returns what it
// prints.
func (c *check) command(what string, run func(ctx context.Context, cfg config.Config, env app.Env) error) string {
	c.Helper()
	var out bytes.Buffer
	if err := run(c.Context(), c.config(c.T), c.environment(c.T, &out)); err != nil {
		c.Fatalf("%s: %v", what, err)
	}
	return out.String()
}

// calls asks the API with a key that has a scope.
func (c *check) calls(scope, method, path string) (status int, body map[string]any) {
	c.Helper()
	c.mu.Lock()
	key := c.keys[scope]
	c.mu.Unlock()
	if key == "" {
		key = strings.TrimSpace(c.command("make a key", func(ctx context.Context, cfg config.Config, env app.Env) error {
			return app.CreateKey(ctx, cfg, env, app.KeyRequest{Name: strings.ReplaceAll(scope, ":", "-"), Scopes: []string{scope}})
		}))
		c.mu.Lock()
		c.keys[scope] = key
		c.mu.Unlock()
	}
	request, err := http.NewRequestWithContext(c.Context(), method, "http://"+c.addr+"/api/v1"+path, nil)
	if err != nil {
		c.Fatalf("%v", err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: waittest.Scaled(20 * time.Second)}).Do(request)
	if err != nil {
		c.Fatalf("%v", err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		c.Fatalf("%s %s: %d, %v", method, path, response.StatusCode, err)
	}
	return response.StatusCode, body
}

// items asks the API for a list.
func (c *check) items(scope, path string) (list []map[string]any) {
	c.Helper()
	status, body := c.calls(scope, http.MethodGet, path)
	if status != http.StatusOK {
		c.Fatalf("GET %s: %d %v", path, status, body)
	}
	rows, _ := body["items"].([]any)
	for _, row := range rows {
		one, _ := row.(map[string]any)
		list = append(list, one)
	}
	return list
}
