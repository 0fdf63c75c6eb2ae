package journey_test

import (
	"strings"
	"syscall"
	"testing"

	"remote-agent/internal/waittest"
)

// reload changes options while the bot runs, and waits until its log says parts.
func (w *world) reload(options map[string]string, log *lockedBuffer, parts ...string) {
	w.t.Helper()
	w.with(options)
	w.hangup <- syscall.SIGHUP
	waittest.Until(w.t, "the reload", func() bool { return containsAll(log.String(), parts) })
}

// TestReload changes people, a model and a budget while the bot runs, and sees that
// the rest waits for a restart, that a removed person's turn ends, and that a file
// with a mistake changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		log := &lockedBuffer{}
		w.logs = log
		w.start()
		w.says(ann, "hello")
		w.seesText(ann, "echo: hello [1 messages]")
		stuck := w.hang()
		w.says(bob, "a long one")
		w.seesText(bob, stuck)

		const secret = "hunter2-hunter2-hunter2"
		w.reload(map[string]string{
			"TELEGRAM_ALLOWED_USER_IDS": "42,666", "OPENAI_MODEL": "other-model", "LISTEN_ADDR": "127.0.0.1:1", "OPENAI_API_KEY": secret,
		}, log, `changed="OPENAI_MODEL TELEGRAM_ALLOWED_USER_IDS"`, `needs_restart="LISTEN_ADDR OPENAI_API_KEY"`)
		w.seesText(bob, "can no longer use the bot")
		w.says(eve, "may I now?")
		w.seesText(eve, "echo: may I now? [1 messages]")
		if r := w.ai.Requests(); r[len(r)-1].Model != "other-model" {
			t.Errorf("the model is asked as %q", r[len(r)-1].Model)
		}

		w.reload(map[string]string{"TELEGRAM_ALLOWED_USER_IDS": "nobody", "BUDGET_PERSON_TOKENS": "1"}, log, "was not reloaded, nothing changed", "TELEGRAM_ALLOWED_USER_IDS")
		w.says(ann, "still here?")
		w.seesText(ann, "echo: still here? [3 messages]")

		w.reload(map[string]string{"TELEGRAM_ALLOWED_USER_IDS": "42"}, log, `changed="BUDGET_PERSON_TOKENS TELEGRAM_ALLOWED_USER_IDS"`)
		w.says(ann, "and now?")
		w.seesText(ann, "budget")
		if strings.Contains(log.String(), secret) {
			t.Error("the log shows a secret")
		}
	})
}
