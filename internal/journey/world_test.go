// Package journey tests what a person sees over several steps: the real program
// on a real database, against wire-level emulators that outlive its restarts.
package journey_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/acpagent"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/slack"
	"remote-agent/internal/emulator/telegram"
	"remote-agent/internal/sandbox"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/waittest"
)

const (
	token = "1000:test-token-of-the-emulator"
	key   = "sk-test-0123456789abcdef"
	ann   = int64(42)  // allowed
	bob   = int64(77)  // allowed
	eve   = int64(666) // a stranger
)

func TestMain(m *testing.M) {
	runAsBot(os.Args) // that is killed, in the tests of crashes
	serveMCP(os.Args)
	serveCamera(os.Args)
	acpagent.Hijack(os.Args) // journeys with an agent start this test as one
	sandbox.RunIfHelper()    // the bot runs programs confined, with this very test as the helper
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = f.Value.Set("4") // journeys wait more than they work
	}
	os.Exit(storetest.Main(m))
}

// eachDatabase runs a journey on SQLite and on PostgreSQL. The schema is there
// already; journeys that make their own world, among them those of crashes and of
// several replicas, begin with nothing.
func eachDatabase(t *testing.T, journey func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		journey(t, newWorld(t, "").migrated())
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		journey(t, newWorld(t, storetest.PostgresMigratedURL(t)))
	})
}

// world is a bot with its surroundings. The emulators keep their state while the
// bot is stopped and started.
type world struct {
	t   testing.TB
	tg  *telegram.Server
	ai  *openai.Server
	sl  *slack.Server // nil without Slack
	env map[string]string

	typed   *io.PipeWriter // the operator's console; nil without
	printed lockedBuffer   // what the operator reads
	level   slog.Level     // of what the test logs
	logs    io.Writer      // gets that instead; may be nil

	ahead atomic.Int64 // how far the clock is ahead, a time.Duration

	slow time.Duration // what takes long by itself, such as the end of a lease

	now func() time.Time // the clock of memory and standing tasks; nil is the machine's, and what it is ahead

	trace func(statement string) // is told what the database is asked; may be nil

	hangup chan os.Signal // see reload

	envFile string // the .env file; empty: there is none, and the bot cannot restart itself

	addr string
	stop context.CancelFunc
	done chan error
}

func newWorld(t testing.TB, databaseURL string) *world {
	t.Helper()
	w := &world{
		t:  t,
		tg: telegram.New(telegram.Options{Token: token, BotUsername: "acme_bot"}),
		ai: openai.New(openai.Options{APIKey: key}),
	}
	for _, start := range []func() error{w.tg.Start, w.ai.Start} {
		if err := start(); err != nil {
			t.Fatalf("start an emulator: %v", err)
		}
	}
	w.env = map[string]string{
		"LISTEN_ADDR":               "127.0.0.1:0",
		"DATA_DIR":                  filepath.Join(t.TempDir(), "data"),
		"DATABASE_URL":              databaseURL,
		"OPENAI_API_KEY":            key,
		"OPENAI_BASE_URL":           w.ai.URL(),
		"OPENAI_MODEL":              "test-model",
		"TELEGRAM_BOT_TOKEN":        token,
		"TELEGRAM_API_URL":          w.tg.URL(),
		"TELEGRAM_ALLOWED_USER_IDS": "42,77",
		"TELEGRAM_SEND_RATE":        "0",
		"TELEGRAM_CHAT_SEND_RATE":   "0",
		"SHUTDOWN_GRACE":            "5s",
		"MEMORY_LEARNING":           "off", // it asks the model between turns
	}
	t.Cleanup(func() {
		w.shutdown()
		w.tg.Close()
		w.ai.Close()
		if refused := w.ai.Refusals(); len(refused) > 0 {
			t.Errorf("the model API refused %d requests, the first: %+v", len(refused), refused[0])
		}
	})
	return w
}

// migrated puts a database with the current schema where a bot without a
// DATABASE_URL has its own.
func (w *world) migrated() *world {
	w.t.Helper()
	storetest.SQLiteFile(w.t, w.env["DATA_DIR"])
	return w
}

// with changes options for the next start.
func (w *world) with(options map[string]string) *world {
	maps.Copy(w.env, options)
	return w
}

func (w *world) config() config.Config {
	w.t.Helper()
	cfg, err := w.load()
	if err != nil {
		w.t.Fatalf("load configuration: %v", err)
	}
	return cfg
}

func (w *world) load() (config.Config, error) { return app.LoadConfig(w.source()) }

// source is where the configuration is read from.
func (w *world) source() config.Source {
	w.t.Helper()
	var environ []string
	for name, value := range w.env {
		if value != "" {
			environ = append(environ, name+"="+value)
		}
	}
	return config.Source{Environ: environ, EnvFile: w.options()}
}

// options is the file that options are read from.
func (w *world) options() string {
	w.t.Helper()
	if w.envFile != "" {
		return w.envFile
	}
	none := filepath.Join(w.t.TempDir(), "none.env")
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return none
}

// clock is the time by which memories age and standing tasks run.
func (w *world) clock() time.Time {
	if w.now != nil {
		return w.now()
	}
	return time.Now().Add(time.Duration(w.ahead.Load()))
}

// start runs the bot and waits until it runs.
func (w *world) start() *world {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	started := w.run(ctx, done)
	w.stop, w.done = cancel, done
	select {
	case info := <-started:
		w.addr = info.Addr
	case err := <-done:
		w.stop = nil // there is nothing to stop, and shutdown would wait for its end in vain
		w.t.Fatalf("the bot did not start: %v", err)
	case <-waittest.Late(w.t):
		w.t.Fatal("the bot did not start in time")
	}
	return w
}

// run runs the bot until ctx ends, and tells when it has started and how it ended.
func (w *world) run(ctx context.Context, done chan<- error) <-chan app.Info {
	w.t.Helper()
	started := make(chan app.Info, 1)
	cfg := w.config()
	env := app.Env{
		Stdin: strings.NewReader(""), Stdout: &w.printed, Stderr: &w.printed, Version: "test",
		Log: slog.New(slog.NewTextHandler(&logWriter{t: w.t, also: w.logs}, &slog.HandlerOptions{Level: w.level})),
		Started: func(i app.Info) {
			select {
			case started <- i:
			default: // after a restart
			}
		},
		EnvFile: w.envFile, Restarts: w.envFile != "",
		Lookup: os.LookupEnv,
		Now:    w.clock,
		Trace:  w.trace,
		Reload: w.load,
	}
	w.hangup = make(chan os.Signal, 1)
	env.Hangup = w.hangup
	if w.envFile != "" {
		source := w.source()
		env.Source = &source
	}
	if w.typed != nil {
		read, write := io.Pipe()
		env.Stdin, env.Console, w.typed = read, true, write
	}
	ctx = pprof.WithLabels(ctx, pprof.Labels("bot", w.env["DATA_DIR"]))
	go func() {
		pprof.SetGoroutineLabels(ctx) // those that it starts have them, too
		err := app.Run(ctx, cfg, env)
		for errors.Is(err, app.ErrRestart) {
			if cfg, err = w.load(); err == nil {
				err = app.Run(ctx, cfg, env)
			}
		}
		done <- err
	}()
	return started
}

var labeled = regexp.MustCompile(`(?m)^(\d+) @.*\n# labels: \{.*"bot":("(?:[^"\\]|\\.)*")`)

// goroutines counts those that this bot runs, and none of the emulators and of the
// journeys beside this one.
func (w *world) goroutines() (n int) {
	w.t.Helper()
	var profile strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		w.t.Fatal(err)
	}
	for _, group := range labeled.FindAllStringSubmatch(profile.String(), -1) {
		if group[2] == strconv.Quote(w.env["DATA_DIR"]) {
			count, _ := strconv.Atoi(group[1])
			n += count
		}
	}
	if n == 0 {
		w.t.Fatal("the profile shows no goroutine of the bot")
	}
	return n
}

// shutdown stops the bot in order.
func (w *world) shutdown() {
	if w.stop == nil {
		return
	}
	w.stop()
	if w.typed != nil {
		w.typed.Close() //nolint:errcheck // a pipe
	}
	select {
	case err := <-w.done:
		if err != nil {
			w.t.Errorf("the bot ended with an error: %v", err)
		}
	case <-waittest.Late(w.t):
		w.t.Error("the bot did not stop in time")
	}
	w.stop = nil
}

func (w *world) restart() {
	w.t.Helper()
	w.shutdown()
	w.start()
}

// replica returns another bot on the same database and emulators. It is not
// started yet.
func (w *world) replica() *world {
	w.t.Helper()
	r := &world{t: w.t, tg: w.tg, ai: w.ai, env: maps.Clone(w.env), now: w.now}
	r.env["DATA_DIR"] = filepath.Join(w.t.TempDir(), "replica")
	w.t.Cleanup(r.shutdown)
	return r
}

// hang makes the model's next answer stop in the middle and never go on. It
// returns the text that is shown until then.
func (w *world) hang() string {
	const shown = "This takes a while"
	w.ai.Enqueue(openai.Reply(openai.Delta("This takes"), openai.Delta(" a while"), openai.Gate(emulator.NewGate())))
	return shown
}

// freePort returns a loopback address that nobody takes by chance.
func freePort(t testing.TB) string {
	t.Helper()
	addr, err := emulator.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// ctx bounds a wait.
func (w *world) ctx() context.Context {
	return waittest.Context(context.Background(), w.t, w.slow)
}

// says sends a text to the bot in the private chat of a user.
func (w *world) says(user int64, text string) telegram.Sent {
	return w.tg.Person(user).Says(text)
}

// sees waits until the newest message of the bot in a chat satisfies check.
func (w *world) sees(chat int64, what string, check func(texts []string) bool) []string {
	w.t.Helper()
	var texts []string
	err := w.tg.Wait(w.ctx(), func(l telegram.Ledger) bool {
		texts = l.Chat(chat).BotTexts()
		return check(texts)
	})
	if err != nil {
		w.t.Fatalf("did not see %s; saw %q", what, texts)
	}
	return texts
}

// seesText waits for a message of the bot that contains every part.
func (w *world) seesText(chat int64, parts ...string) string {
	w.t.Helper()
	var found string
	w.sees(chat, strings.Join(parts, " … "), func(texts []string) bool {
		for _, text := range texts {
			if containsAll(text, parts) {
				found = text
				return true
			}
		}
		return false
	})
	return found
}

// overMark is the line that notifies of an answer, where it took long.
var overMark = regexp.MustCompile(`^✔ (Answered below|(Worked for|Answered after) [^\n]+)$`)

// posted returns what the bot said in a chat. How long an answer took is said on a slow
// machine and not on another one, and is left out.
func (w *world) posted(chat int64) []string {
	return slices.DeleteFunc(w.tg.ChatView(chat).BotTexts(), overMark.MatchString)
}

// settles waits until nothing is under way and all that is seen is known to be sent,
// which no platform is told.
func (w *world) settles() {
	w.t.Helper()
	const open = `SELECT (SELECT count(*) FROM inbound_events WHERE state IN ('waiting', 'running'))
		+ (SELECT count(*) FROM deliveries WHERE state NOT IN ('sent', 'failed'))`
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ctx := w.ctx(); fmt.Sprint(w.rows(open)) != "[0]"; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.t.Fatal("the conversations did not come to rest")
		}
	}
}

func containsAll(text string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

// logWriter writes lines to the test's log while the test runs.
type logWriter struct {
	t    testing.TB
	also io.Writer
}

func (l *logWriter) Write(p []byte) (int, error) {
	if l.also != nil {
		return l.also.Write(p)
	}
	if l.t.Context().Err() == nil {
		l.t.Log(strings.TrimRight(string(p), "\n"))
	}
	return len(p), nil
}
