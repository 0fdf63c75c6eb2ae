package journey_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"remote-agent/internal/emulator/openai"
)

// told returns how many messages of the bot in a chat contain a text.
func (w *world) told(chat int64, text string) (n int) {
	for _, said := range w.tg.Ledger().Chat(chat).BotTexts() {
		if strings.Contains(said, text) {
			n++
		}
	}
	return n
}

// TestOwnerIsToldOfABudgetOnce spends 90 % of the day's tokens: the owner is told in
// their private chat, once, also after another start, and nobody else is.
func TestOwnerIsToldOfABudgetOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.with(map[string]string{"TELEGRAM_OWNER_IDS": itoa(ann), "BUDGET_DAY_TOKENS": "10000"})
		w.ai.Enqueue(openai.Text("That was dear.").WithUsage(8000, 1000))
		w.start()
		w.says(ann, "hello")
		w.seesText(ann, "That was dear.")
		w.says(bob, "hello")
		w.seesText(bob, "echo: hello")
		w.settles()
		w.restart() // it looks at its start, and every 10 s
		w.seesText(ann, "⚠", "of today's budget of", "is used")
		w.restart()
		w.says(ann, "are you there?")
		w.seesText(ann, "are you there?")
		w.settles()
		if n := w.told(ann, "of today's budget"); n != 1 {
			t.Errorf("the owner was told %d times", n)
		}
		if n := w.told(bob, "of today's budget"); n != 0 {
			t.Errorf("somebody else was told %d times", n)
		}
		w.with(map[string]string{"BUDGET_DAY_TOKENS": "1000000"})
		w.restart()
		w.seesText(ann, "✔ Resolved: the daily budget")
	})
}

// TestOwnerIsToldThatNothingCanBeStored takes the room for any file away and gives it
// back: the owner hears of it although nothing can be recorded, once, and of its end.
func TestOwnerIsToldThatNothingCanBeStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "").with(map[string]string{"TELEGRAM_OWNER_IDS": itoa(ann)})
	w.slow = time.Minute // it looks every 10 s
	w.start()
	w.says(ann, "hello")
	w.seesText(ann, "echo: hello")
	w.shutdown()
	p, err := startProcess(t, t.TempDir(), "bot", "", w.env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.end(syscall.SIGKILL)
		if t.Failed() {
			t.Log(p.out)
		}
	})
	if err := p.ready(t.Context()); err != nil {
		t.Fatal(err, p.out)
	}
	w.says(ann, "still there?")
	w.seesText(ann, "still there?")
	p.limitFiles(t, 1)
	w.says(ann, "and now?")
	w.seesText(ann, "⚠ Messages cannot be stored", "The last write failed")
	p.limitFiles(t, unix.RLIM_INFINITY)
	w.seesText(ann, "✔ Resolved: messages can be stored again.")
	w.seesText(ann, "and now?")
	if n := w.told(ann, "Messages cannot be stored"); n != 1 {
		t.Errorf("the owner was told %d times", n)
	}
}
