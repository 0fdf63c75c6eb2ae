package journey_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/waittest"
)

// TestLimitUntilLaterWithARestart has the model's provider name the end of its limit,
// hours away: the person is told, the bot is restarted in between, and goes on when the
// time has come.
func TestLimitUntilLaterWithARestart(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.ai.Enqueue(openai.RateLimited(3 * time.Hour))
		w.start()
		w.says(ann, "what is the plan for today?")
		told := w.seesText(ann, "The provider's limit is reached. I'll continue at ", "/stop to cancel.")
		if at := time.Now().UTC().Add(3 * time.Hour); !strings.Contains(told, at.Format("15:04 UTC")) && !strings.Contains(told, at.Add(-time.Minute).Format("15:04 UTC")) {
			t.Errorf("it says %q, want a time of about %s", told, at.Format("15:04 UTC"))
		}
		w.says(77, "and I?") // others are answered
		w.seesText(77, "echo: and I?")

		w.shutdown()
		if n := w.ai.Stats().Received; n != 2 {
			t.Errorf("the model was asked %d times", n)
		}
		w.start()
		w.says(77, "and now?")
		w.seesText(77, "echo: and now?")
		if n := w.ai.Stats().Received; n != 3 {
			t.Errorf("the model was asked %d times after the restart, before the time", n)
		}
		w.shutdown()
		w.timeComes() // while it is down
		w.start()
		w.seesText(ann, "echo: what is the plan for today? [1 messages]")
		w.settles()
		if rings := w.tg.ChatView(ann).Rings; len(rings) > 1 {
			t.Errorf("it rang with %+v", rings)
		}
	})
}

// timeComes makes everything due that waits for a time.
func (w *world) timeComes() {
	w.t.Helper()
	const due = `UPDATE inbound_events SET next_ms = 1 WHERE state = 'running'`
	if url := w.env["DATABASE_URL"]; url != "" {
		conn, err := pgx.Connect(w.ctx(), url)
		if err != nil {
			w.t.Fatal(err)
		}
		defer conn.Close(context.Background()) //nolint:errcheck // it is committed by then
		if _, err := conn.Exec(w.ctx(), due); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	db, err := sql.Open("sqlite", "file:"+w.env["DATA_DIR"]+"/bot.db?_pragma=busy_timeout(5000)")
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it is committed by then
	if _, err := db.ExecContext(w.ctx(), due); err != nil {
		w.t.Fatal(err)
	}
}

// TestLimitIsCanceledOrTriedNow is what the person does who does not want to wait.
func TestLimitIsCanceledOrTriedNow(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.ai.Enqueue(openai.RateLimited(3*time.Hour), openai.RateLimited(5*time.Hour))
		w.start()
		w.says(ann, "first")
		w.seesText(ann, "I'll continue at ")
		w.restart()
		w.says(ann, "/stop")
		w.seesText(ann, "⏹ Stopped before it was done.")
		w.says(ann, "second")
		w.seesText(ann, "I'll continue at ")
		w.restart()
		w.press(ann, "Retry now")
		w.seesText(ann, "echo: second [3 messages]") // what was canceled was said, and is not asked for again
		w.settles()
	})
}

// TestOverloadIsShownAtOnce has the model overloaded once for a while, on Telegram with
// its limits: the wait is shown within a second, with what can be done about it.
func TestOverloadIsShownAtOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.with(map[string]string{"TELEGRAM_CHAT_SEND_RATE": "1", "TELEGRAM_SEND_RATE": "30"})
		w.ai.Enqueue(openai.Fail(529, "server_error", "overloaded", "Overloaded.").WithRetryAfter(time.Minute))
		w.start()
		w.says(ann, "hello")
		w.seesText(ann, "⏳ The model is overloaded (529). Trying again in", ", 2 of 5.")
		if shown := w.tg.ChatView(ann).FromBot(); len(shown) != 1 || !shown[0].Silent || waittest.TooLong(shown[0].UpdatedAt.Sub(shown[0].CreatedAt), time.Second) {
			t.Errorf("the wait was shown by %+v", shown)
		}
		w.seesText(ann, "Trying again in 5") // it counts down
		w.press(ann, "Retry now")
		w.seesText(ann, "echo: hello")
		w.settles()
	})
}
