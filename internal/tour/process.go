package tour

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// process is the bot: this program again, as an operator starts it.
type process struct {
	cmd  *exec.Cmd
	err  bytes.Buffer // its log; may only be read when it has ended
	done chan struct{}
}

// start runs the bot and returns when it asks Telegram for messages.
func (t *tour) start(ctx context.Context) error {
	const first = "getMe" // what it asks when it starts
	before := t.tg.Count(first)
	p := &process{done: make(chan struct{})}
	// It outlives ctx, so that it is stopped in order.
	p.cmd = exec.Command(t.opts.Program, "serve", "--no-console", "--env-file", t.options) //nolint:gosec,noctx // this very program
	p.cmd.Env = append([]string{"HOME=" + t.dir, "TMPDIR=" + t.dir, ChildMark + "=1"}, t.opts.Environ...)
	p.cmd.Dir, p.cmd.Stderr, p.cmd.SysProcAttr = t.dir, &p.err, childAttr()
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start the bot: %w", err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is asked of ProcessState
		close(p.done)
	}()
	t.bot = p
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for t.tg.Count(first) == before {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.bot = nil
			_ = p.kill()
			return fmt.Errorf("the bot did not start in time: %w\n%s", ctx.Err(), p.err.String())
		case <-p.done:
			t.bot = nil
			return fmt.Errorf("the bot did not start: %s\n%s", p.cmd.ProcessState, p.err.String())
		}
	}
	return nil
}

// ChildMark is a variable that is set for the bot alone.
const ChildMark = "BOT_DEMO_CHILD"

// stop stops the bot in order.
func (t *tour) stop(ctx context.Context) error {
	p := t.bot
	t.bot = nil
	if runtime.GOOS == "windows" { // which has no such signal
		return p.kill()
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-time.After(patience):
		return errors.Join(errors.New("the bot did not stop in time"), p.kill())
	}
	if !p.cmd.ProcessState.Success() && ctx.Err() == nil {
		return fmt.Errorf("the bot ended badly: %s\n%s", p.cmd.ProcessState, p.err.String())
	}
	return context.Cause(ctx)
}

// kill ends the bot as a power cut does: it learns nothing of it.
func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	<-p.done
	return err
}

// writeOptions writes the bot's options, from nothing but the demo's own: the
// environment and the .env file of whoever runs it are not read.
func (t *tour) writeOptions() error {
	key := filepath.Join(t.dir, "github.pem")
	if err := os.WriteFile(key, t.hub.PrivateKey(), 0o600); err != nil {
		return err
	}
	t.options = filepath.Join(t.dir, "demo.env")
	return os.WriteFile(t.options, []byte(strings.Join([]string{
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
		"GITHUB_MODE=webhook",
		"GITHUB_WEBHOOK_SECRET=the-secret-of-the-demo",
		"GITHUB_APP_ID=4711",
		"GITHUB_APP_PRIVATE_KEY_FILE=" + key,
		"GITHUB_API_URL=" + t.hub.URL(),
		"GITHUB_WEB_URL=" + t.hub.web(),
		"GIT_ALLOWED_HOSTS=" + t.hub.addr,
		"SHUTDOWN_GRACE=200ms",
	}, "\n")+"\n"), 0o600)
}
