package journey_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/github"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/telegram"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/waittest"
)

const (
	strangersInFlood = 1500
	firstStranger    = int64(1_000_000)
)

// refusals counts the strangers of a flood in Telegram who were told no.
func (w *world) refusals() (n int) {
	for _, call := range w.tg.Calls("sendMessage") {
		if id := call.ChatID; id >= firstStranger && id < firstStranger+strangersInFlood {
			n++
		}
	}
	return n
}

// TestFinding4StrangersDelayNobody lets 1,500 strangers write before an allowed
// user: 30 seconds was what she waited for their refusals, which shared the rate
// of 30 a second.
func TestFinding4StrangersDelayNobody(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.with(map[string]string{"TELEGRAM_SEND_RATE": "30"}).start()
		before := w.goroutines()
		for i := range int64(strangersInFlood) {
			w.says(firstStranger+i, "let me in")
		}
		w.says(ann, "hello")
		w.seesText(ann, "echo: hello")
		if n := w.refusals(); n > 20 {
			t.Errorf("%d strangers were told no before the answer, which they pay for with their own bucket of 10", n)
		}
		if n := w.goroutines() - before; n > 100 {
			t.Errorf("%d goroutines more than before the flood", n)
		}
		if refused := w.rows(`SELECT count(*) FROM inbound_events WHERE state = 'refused'`); len(refused[0]) > len("999") {
			t.Errorf("%s strangers have a row of their own", refused)
		}
		w.settles()
		w.shutdown()
		if n := w.refusals(); n > 30 {
			t.Errorf("%d strangers were told no in the end: what exceeds the bucket is dropped, not queued", n)
		}
	})
}

// TestFinding4AStrangerWhoIsLetInDuringAFloodIsServed lets a stranger in, in the
// database and by another process, while nobody else's messages are recorded.
func TestFinding4AStrangerWhoIsLetInDuringAFloodIsServed(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		flood := func() {
			for i := range int64(400) {
				w.says(firstStranger+i, "let me in")
			}
		}
		flood()
		w.says(eve, "and me")
		w.says(ann, "are they all read?")
		w.seesText(ann, "all read?")
		s, err := store.Open(t.Context(), store.Options{URL: w.env["DATABASE_URL"], DataDir: w.env["DATA_DIR"], Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close() //nolint:errcheck // only this one row
		err = s.InTx(t.Context(), func(tx *store.Tx) error {
			return tx.People().SaveIdentity(t.Context(), sessions.Identity{Platform: "telegram", UserID: messages.UserID(itoa(eve)), Role: sessions.User})
		})
		if err != nil {
			t.Fatal(err)
		}
		flood()
		w.says(eve, "am I in?")
		w.seesText(eve, "am I in?")
	})
}

// TestFinding4OnePersonsWaitingMessagesAreCapped sends eighty messages behind one
// that hangs.
func TestFinding4OnePersonsWaitingMessagesAreCapped(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		gate := emulator.NewGate()
		w.ai.Enqueue(openai.Reply(openai.Delta("This takes"), openai.Gate(gate), openai.Delta(" a while")))
		w.start()
		w.says(ann, "a long one")
		w.seesText(ann, "This takes")
		for i := range 80 {
			w.says(ann, fmt.Sprintf("message %d", i))
		}
		w.seesText(ann, "You have 50 messages queued")
		w.says(ann, "/status") // is behind them all, and no message that waits
		w.seesText(ann, "50 queued")
		const overflow = `SELECT count(*) FROM inbound_events WHERE state = 'refused' AND error = 'overflow'`
		if got := w.rows(overflow); got[0] != "30" {
			t.Errorf("%s messages are recorded as overflow, want 30", got)
		}
		if kept := w.rows(`SELECT count(*) FROM inbound_events WHERE state = 'refused' AND data LIKE '%message 7%'`); kept[0] != "0" {
			t.Errorf("the text of %s refused messages is kept", kept)
		}
		told := 0
		for _, text := range w.tg.ChatView(ann).BotTexts() {
			told += strings.Count(text, "messages queued")
		}
		if told != 1 {
			t.Errorf("Ann was told %d times, want once", told)
		}
		var last telegram.Sent // said after the rush, and marked if the worker of the stopped turn is still there
		marks := func() int {
			return len(slices.DeleteFunc(w.tg.Calls("setMessageReaction"), func(c telegram.Call) bool {
				return !strings.Contains(fmt.Sprint(c), "🫡") || c.Params["message_id"] == fmt.Sprint(last.MessageID)
			}))
		}
		waittest.Until(t, "the mark of the first message that waits, once the rush is over", func() bool { return marks() > 0 })
		w.says(ann, "/stop")
		w.seesText(ann, "50 queued messages were dropped")
		gate.Open()
		w.settles()
		last = w.says(ann, "one more")
		w.seesText(ann, "echo: one more")
		if got := marks(); got != 1 {
			t.Errorf("%d messages were marked as waiting, want the first; the last is %d: %v", got, last.MessageID, w.tg.Calls("setMessageReaction"))
		}
	})
}

// TestFinding4StrangersOnGitHubAreAskedAboutSeldom lets people without write access
// comment, each of whom GitHub has to be asked about.
func TestFinding4StrangersOnGitHubAreAskedAboutSeldom(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		h := w.withGitHub(sumRepo, "webhook")
		w.with(map[string]string{"GITHUB_SWEEP_EVERY": "1h"})
		h.start()
		gina := h.Person("gina").In(ghRepo)
		w.ai.Script(func(openai.Request) openai.Response { return openai.Text("The answer.") })
		asked := gina.OpenIssue("A question", "@remote-agent what is it?").Number
		h.sees(asked, "The answer.")
		open := gina.OpenIssue("Open to all", "Say what you think.").Number
		before, since := h.Count(github.GetPermission), time.Now()
		for i := range 400 {
			h.Person(fmt.Sprintf("stranger%d", i)).In(ghRepo).Comment(open, "@remote-agent do it")
		}
		for range 100 {
			h.Person("stranger0").In(ghRepo).Comment(open, "@remote-agent do it!")
		}
		w.ai.Script(func(openai.Request) openai.Response { return openai.Text("The second answer.") })
		gina.Comment(asked, "@remote-agent and now?")
		h.sees(asked, "The second answer.")
		// Twenty at once and one a second are asked about, and those who know the bot;
		// ten at once and one in two seconds are told no.
		took := int(time.Since(since).Seconds())
		asks, told := h.Count(github.GetPermission)-before, len(h.Issue(ghRepo, open).FromBotComments())
		t.Logf("in %d s, GitHub was asked %d times who may write, and %d strangers were told no", took, asks, told)
		if most := 30 + took; asks > most {
			t.Errorf("GitHub was asked %d times who may write, want at most %d", asks, most)
		}
		if most := 12 + took/2; told > most {
			t.Errorf("%d strangers were told no, want at most %d", told, most)
		}
	})
}
