package tour

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"remote-agent/internal/child"
)

// ChildMark is a variable that is set for the bot alone.
const ChildMark = "BOT_DEMO_CHILD"

// start runs the bot, this program again, as an operator starts it, and returns when
// it asks Telegram for messages.
func (t *tour) start(ctx context.Context) error {
	const first = "getMe" // what it asks when it starts
	before := t.tg.Count(first)
	environ, err := t.environ()
	if err != nil {
		return err
	}
	bot, err := child.Start(t.dir, filepath.Join(t.dir, "bot.log"), environ, t.opts.Program, "serve", "--no-console") //nolint:contextcheck // it is stopped in order
	if err != nil {
		return err
	}
	t.bot = bot
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for t.tg.Count(first) == before {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the bot did not start in time: %w\n%s", ctx.Err(), bot.Said())
		case <-bot.Done():
			return fmt.Errorf("the bot did not start: %w", bot.Early())
		}
	}
	return nil
}

// stop stops the bot in order.
func (t *tour) stop(ctx context.Context) error {
	if err := t.bot.Stop(patience); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the bot: %w", err)
	}
	return context.Cause(ctx)
}

// environ returns the bot's environment, with options from nothing but the demo's own:
// the environment and the .env file of whoever runs it are not read.
func (t *tour) environ() ([]string, error) {
	key := filepath.Join(t.dir, "github.pem")
	return append(slices.Clone(t.opts.Environ),
		"HOME="+t.dir, "TMPDIR="+t.dir, ChildMark+"=1",
		"LISTEN_ADDR=127.0.0.1:0",
		"DATA_DIR="+filepath.Join(t.dir, "data"),
		"OPENAI_API_KEY="+modelKey,
		"OPENAI_BASE_URL="+t.ai.URL(),
		"OPENAI_MODEL=emulated",
		"MEMORY_LEARNING=off", // the emulated model only answers
		"TELEGRAM_BOT_TOKEN="+token,
		"TELEGRAM_API_URL="+t.tg.URL(),
		"TELEGRAM_ALLOWED_USER_IDS=42",
		"TELEGRAM_SEND_RATE=0",
		"TELEGRAM_CHAT_SEND_RATE=0",
		"GITHUB_MODE=webhook",
		"GITHUB_WEBHOOK_SECRET=the-secret-of-the-demo",
		"GITHUB_APP_ID=4711",
		"GITHUB_APP_PRIVATE_KEY_FILE="+key,
		"GITHUB_API_URL="+t.hub.URL(),
		"GITHUB_WEB_URL="+t.hub.web(),
		"GIT_ALLOWED_HOSTS="+t.hub.addr,
		"SHUTDOWN_GRACE=200ms",
	), os.WriteFile(key, t.hub.PrivateKey(), 0o600)
}
