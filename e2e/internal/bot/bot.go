// Package bot runs the program as an operator does: as a process with an
// environment, beside emulators of Telegram and of a model API that outlive its
// restarts.
package bot

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the bot's database

	"remote-agent/e2e/internal/need"
	"remote-agent/e2e/internal/process"
	"remote-agent/internal/codebase/gittest"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/telegram"
	"remote-agent/internal/waittest"
)

const (
	token = "1000:test-token-of-the-emulator"
	key   = "sk-test-0123456789abcdef"

	ann = int64(42) // may talk to the bot on Telegram
)

// SumRepo are the files of a repository with a script that does not add and a
// test that fails.
var SumRepo = map[string]string{
	"sum.sh":  "#!/bin/sh\necho $(($1 - $2))\n",
	"test.sh": "#!/bin/sh\ngot=$(sh sum.sh 2 3)\nif [ \"$got\" != 5 ]; then echo \"FAIL: 2+3 = $got, want 5\"; exit 1; fi\necho ok\n",
}

// Bot is the program with its surroundings. It is stopped at the end of the test.
type Bot struct {
	t       testing.TB
	program string
	env     map[string]string
	running *process.Process // nil while it is stopped

	Telegram *telegram.Server
	Model    *openai.Server

	// Slow is what takes long by itself in this test, besides the machine.
	Slow time.Duration
}

// New returns a bot that is not running yet.
func New(t testing.TB) *Bot {
	t.Helper()
	b := &Bot{
		t: t, program: need.Bot(t),
		Telegram: telegram.New(telegram.Options{Token: token, BotUsername: "acme_bot"}),
		Model:    openai.New(openai.Options{APIKey: key}),
	}
	for _, start := range []func() error{b.Telegram.Start, b.Model.Start} {
		if err := start(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		b.Telegram.Close()
		b.Model.Close()
	})
	dir := t.TempDir()
	b.env = map[string]string{
		"PATH":                      os.Getenv("PATH"),
		"HOME":                      dir,
		"LANG":                      "C.UTF-8",
		"LISTEN_ADDR":               process.FreeAddress(t),
		"DATA_DIR":                  filepath.Join(dir, "data"),
		"OPENAI_API_KEY":            key,
		"OPENAI_BASE_URL":           b.Model.URL(),
		"OPENAI_MODEL":              "test-model",
		"TELEGRAM_BOT_TOKEN":        token,
		"TELEGRAM_API_URL":          b.Telegram.URL(),
		"TELEGRAM_ALLOWED_USER_IDS": fmt.Sprint(ann),
		"TELEGRAM_SEND_RATE":        "0",
		"TELEGRAM_CHAT_SEND_RATE":   "0",
		"SHUTDOWN_GRACE":            "5s",
		"MEMORY_LEARNING":           "off", // it asks the model between turns
	}
	return b
}

// With changes options for the next start; an empty one is not set.
func (b *Bot) With(options map[string]string) *Bot {
	maps.Copy(b.env, options)
	return b
}

// WithRepository lets the bot clone a repository with these files, and returns its
// server and address.
func (b *Bot) WithRepository(name string, files map[string]string) (server *gittest.Server, url string) {
	b.t.Helper()
	server = gittest.NewServer(b.t)
	url = server.Repo(name, files)
	b.With(map[string]string{"GIT_ALLOWED_HOSTS": server.Host(), "WORKSPACE_PATH": filepath.Join(b.env["DATA_DIR"], "workspace")})
	return server, url
}

// Option returns an option.
func (b *Bot) Option(name string) string { return b.env[name] }

// Start runs the bot and waits until it says that it is ready.
func (b *Bot) Start() {
	b.t.Helper()
	// There is no .env in its home.
	b.running = process.Start(b.t, b.env["HOME"], b.environ(), b.program, "serve", "--no-console")
	b.t.Cleanup(b.Stop) // before it is killed
	b.running.Answers("http://" + b.env["LISTEN_ADDR"] + "/readyz")
}

// Stop stops the bot in order.
func (b *Bot) Stop() {
	b.t.Helper()
	if b.running == nil {
		return
	}
	if err := b.running.Stop(); err != nil {
		b.t.Errorf("the bot ended with an error: %v", err)
	}
	b.running = nil
}

// Restart stops the bot and starts it again.
func (b *Bot) Restart() {
	b.t.Helper()
	b.Stop()
	b.Start()
}

// Says has Ann write to the bot on Telegram.
func (b *Bot) Says(text string) { b.Telegram.Person(ann).Says(text) }

// Sees waits until Ann sees a message of the bot that has every part.
func (b *Bot) Sees(parts ...string) {
	b.t.Helper()
	var texts []string
	err := b.Telegram.Wait(waittest.Context(context.Background(), b.t, b.Slow), func(l telegram.Ledger) bool {
		texts = l.Chat(ann).BotTexts()
		for _, text := range texts {
			if hasAll(text, parts) {
				return true
			}
		}
		return false
	})
	if err != nil {
		b.t.Fatalf("did not see %q; saw %q", parts, texts)
	}
}

func hasAll(text string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

// Rows returns the rows of a query of the bot's database, their columns joined by
// " | ".
func (b *Bot) Rows(query string) (all []string) {
	b.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.env["DATA_DIR"], "bot.db")+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		b.t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // only read
	rows, err := db.QueryContext(b.t.Context(), query)
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // only read
	columns, err := rows.Columns()
	if err != nil {
		b.t.Fatal(err)
	}
	for rows.Next() {
		values, texts := make([]any, len(columns)), make([]sql.NullString, len(columns))
		for i := range values {
			values[i] = &texts[i]
		}
		if err := rows.Scan(values...); err != nil {
			b.t.Fatal(err)
		}
		row := make([]string, len(columns))
		for i, text := range texts {
			row[i] = text.String
		}
		all = append(all, strings.Join(row, " | "))
	}
	if err := rows.Err(); err != nil {
		b.t.Fatal(err)
	}
	return all
}

// Address is where the bot answers browsers, such as http://127.0.0.1:8080.
func (b *Bot) Address() string { return "http://" + b.env["LISTEN_ADDR"] }

// Demo returns what the demo prints.
func (b *Bot) Demo() string {
	b.t.Helper()
	cmd := exec.Command(b.program, "demo", "--fast")
	cmd.Dir, cmd.Env = b.env["HOME"], b.environ()
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatal(err)
	}
	return string(out)
}

// OwnerLink returns a link that signs a browser in, as an operator gets it.
func (b *Bot) OwnerLink() string {
	b.t.Helper()
	cmd := exec.Command(b.program, "owner-link")
	cmd.Dir, cmd.Env = b.env["HOME"], b.environ()
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// environ is the environment that the bot and its commands run with.
func (b *Bot) environ() (env []string) {
	for name, value := range b.env {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}
