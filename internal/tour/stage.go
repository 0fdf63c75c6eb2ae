package tour

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/telegram"
)

const (
	token    = "1000:token-of-the-tour" //nolint:gosec // only the emulator takes it
	modelKey = "sk-tour-0123456789abcdef"

	ann = int64(42)  // may talk to the bot
	eve = int64(666) // may not
)

// tour is the stage: the services, the bot and the screen.
type tour struct {
	opts   Options
	dir    string
	screen *screen
	tg     *telegram.Server
	ai     *openai.Server
	config config.Config

	halt context.CancelFunc // stops the bot; nil while it does not run
	done chan error

	asked []question
}

// question is a message of Ann and how its one answer is told from all others.
type question struct {
	text   string
	update int64
	answer string // is in the answer and in no other message
}

func open(opts Options, dir string) (*tour, error) {
	t := &tour{opts: opts, dir: dir, screen: newScreen(opts)}
	t.tg = telegram.New(telegram.Options{Token: token, BotUsername: "acme_bot", BotName: "Acme Bot", OnChange: t.screen.changed})
	t.ai = openai.New(openai.Options{APIKey: modelKey})
	t.tg.AddUser(telegram.User{ID: ann, FirstName: "Ann"})
	t.tg.AddUser(telegram.User{ID: eve, FirstName: "Eve"})
	err := errors.Join(t.tg.Start(), t.ai.Start())
	if err == nil {
		err = t.configure()
	}
	if err != nil {
		t.close()
		return nil, fmt.Errorf("demo: %w", err)
	}
	return t, nil
}

// configure makes the bot's configuration from nothing but the tour's own: the
// environment and the .env file of whoever runs it are not read.
func (t *tour) configure() error {
	none := filepath.Join(t.dir, "none.env")
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		return err
	}
	cfg, err := app.LoadConfig(config.Source{EnvFile: none, Environ: []string{
		"LISTEN_ADDR=127.0.0.1:0",
		"DATA_DIR=" + filepath.Join(t.dir, "data"),
		"OPENAI_API_KEY=" + modelKey,
		"OPENAI_BASE_URL=" + t.ai.URL(),
		"OPENAI_MODEL=emulated",
		"MEMORY_LEARNING=off", // the emulated model only answers
		"TELEGRAM_BOT_TOKEN=" + token,
		"TELEGRAM_API_URL=" + t.tg.URL(),
		"TELEGRAM_ALLOWED_USER_IDS=42",
		"TELEGRAM_SEND_RATE=0",
		"TELEGRAM_CHAT_SEND_RATE=0",
		"SHUTDOWN_GRACE=200ms",
	}})
	t.config = cfg
	return err
}

// close ends everything, however the tour ended.
func (t *tour) close() {
	if t.halt != nil {
		t.halt()
		<-t.done //nolint:errcheck // how it ended changes nothing now
		t.halt = nil
	}
	t.tg.Close()
	t.ai.Close()
}

// start runs the bot and returns when it runs.
func (t *tour) start(ctx context.Context) error {
	ctx, t.halt = context.WithCancel(ctx)
	started, done := make(chan struct{}), make(chan error, 1)
	t.done = done
	env := app.Env{
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
		Version: t.opts.Version, Log: t.opts.Log,
		Started: func(app.Info) { close(started) },
	}
	go func() { done <- app.Run(ctx, t.config, env) }()
	select {
	case <-started:
		return nil
	case err := <-done:
		done <- nil // close waits for it too
		return fmt.Errorf("demo: the bot did not start: %w", err)
	}
}

// stop stops the bot in order.
func (t *tour) stop(ctx context.Context) error {
	t.halt()
	t.halt = nil
	select {
	case err := <-t.done:
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("demo: the bot ended badly: %w", err)
		}
		return context.Cause(ctx)
	case <-time.After(patience):
		return errors.New("demo: the bot did not stop in time")
	}
}

// pause lets people read.
func (t *tour) pause(ctx context.Context, d time.Duration) {
	if t.opts.Fast {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// model scripts the next answer: words come one after the other.
func (t *tour) model(text string) { t.ai.Enqueue(t.spoken(text)) }

// spoken is a text at the pace at which models write.
func (t *tour) spoken(text string) openai.Response {
	wait := 70 * time.Millisecond
	if t.opts.Fast {
		wait = time.Millisecond
	}
	var steps []openai.Step
	for word := range strings.SplitSeq(text, " ") {
		if len(steps) > 0 {
			word = " " + word
		}
		steps = append(steps, openai.Delta(word), openai.Pause(wait))
	}
	return openai.Reply(steps...)
}

// says lets Ann write a message whose answer will contain answer.
func (t *tour) says(ctx context.Context, text, answer string) {
	t.pause(ctx, 500*time.Millisecond)
	sent := t.tg.Person(ann).Says(text)
	t.asked = append(t.asked, question{text: text, update: sent.UpdateID, answer: answer})
}

// sees waits until a message of the bot in a chat contains all parts.
func (t *tour) sees(ctx context.Context, chat int64, parts ...string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := t.tg.WaitText(ctx, chat, func(text string) bool {
		for _, p := range parts {
			if !strings.Contains(text, p) {
				return false
			}
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("there was no message with %q: %w", parts, err)
	}
	return nil
}

// asks lets Ann write and waits for the answer.
func (t *tour) asks(ctx context.Context, text, answer string) error {
	t.says(ctx, text, answer)
	if err := t.sees(ctx, ann, answer); err != nil {
		return err
	}
	return t.settled(ctx)
}

// settled waits until the model has nothing more to do and what was taken in is
// acknowledged, so that scenes do not overlap.
func (t *tour) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := t.ai.Wait(ctx, func(s openai.Stats) bool { return s.Active == 0 }); err != nil {
		return fmt.Errorf("the model is still asked: %w", err)
	}
	return t.until(ctx, func() bool { return len(t.tg.Pending()) == 0 })
}

// until waits for a condition on the emulated Telegram.
func (t *tour) until(ctx context.Context, check func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return t.tg.WaitFor(ctx, check)
}

// lastSent returns how many messages the model was sent last, without
// instructions.
func (t *tour) lastSent() int {
	requests := t.ai.Requests()
	if len(requests) == 0 {
		return 0
	}
	return sent(requests[len(requests)-1])
}

func sent(r openai.Request) int {
	n := 0
	for _, role := range r.Roles() {
		if role != "system" {
			n++
		}
	}
	return n
}

// interactive lets the person at the terminal write in Ann's place.
func (t *tour) interactive(ctx context.Context) error {
	t.screen.header("Your turn", "You are Ann now; the model repeats what you say. Try /help, /status, /stop, /new. Ctrl-D ends.")
	t.ai.Script(func(r openai.Request) openai.Response {
		return t.spoken(fmt.Sprintf("You said: %s (The model was sent %d messages.)", r.LastUserText(), sent(r)))
	})
	t.screen.typed()
	lines := make(chan string)
	go func() { // ends with the input, or with the process
		defer close(lines)
		for in := bufio.NewScanner(t.opts.Input); in.Scan(); {
			select {
			case lines <- in.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	last := "" // what has to be answered before the end
	for {
		select {
		case line, ok := <-lines:
			switch line = strings.TrimSpace(line); {
			case !ok:
				err := t.sees(ctx, ann, last)
				t.screen.settle()
				return err
			case line == "":
				continue
			case strings.HasPrefix(line, "/"): // may have ended what was asked before
				last = ""
			default:
				last = "You said: "
			}
			t.tg.Person(ann).Says(line)
		case <-ctx.Done():
			return nil
		}
	}
}
