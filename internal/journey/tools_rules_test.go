package journey_test

import (
	"fmt"
	"strings"
	"testing"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/telegram"
)

// TestToolsAreRemembered sees the calls of one turn in the requests of the next,
// without a restart between.
func TestToolsAreRemembered(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(sumRepo)
		w.start()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		w.says(ann, "hello")
		w.seesText(ann, "echo: hello")
		w.ai.Enqueue(openai.Calls(call("read_file", `{"path":"sum.sh"}`)), openai.Text("Read it."))
		w.says(ann, "read the sum")
		w.seesText(ann, "Read it.")
		w.says(ann, "and what was in it?")
		w.seesText(ann, "echo: and what was in it?")
		requests := w.ai.Requests()
		roles := strings.Join(requests[len(requests)-1].Roles(), " ")
		if !strings.HasSuffix(roles, "user assistant user assistant tool assistant user") {
			t.Errorf("the next turn sees %s", roles)
		}
	})
}

// TestApprovedCommandDoesNotFollowToAnotherRepository switches while a question
// waits.
func TestApprovedCommandDoesNotFollowToAnotherRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "").migrated()
	git, url := w.withRepository(sumRepo)
	other := git.Repo("acme/other", map[string]string{"other.txt": "x"})
	w.start()
	w.says(ann, "/clone "+other)
	w.seesText(ann, "acme/other")
	w.says(ann, "/clone "+url)
	w.seesText(ann, "acme/web")
	w.ai.Enqueue(openai.Calls(call("bash", `{"command":"touch here"}`)), openai.Text("Done."))
	w.says(ann, "touch it")
	w.seesText(ann, "✋", "a-1")
	w.says(ann, "/repo other")
	w.seesText(ann, "Something is still running or queued here")
	w.press(ann, "Run it")
	w.seesText(ann, "Done.")
	if trees := w.trees("here"); len(trees) != 1 || !strings.Contains(trees[0], "web") {
		t.Errorf("the command ran in %v", trees)
	}
}

// TestSteeringIsForOnePerson: in a group somebody else's words wait their turn.
func TestSteeringIsForOnePerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "").migrated()
	_, url := w.withRepository(sumRepo)
	const group = int64(-1001)
	w.tg.AddChat(telegram.Chat{ID: group, Type: telegram.Supergroup, Title: "Team"})
	w.start()
	a, b := w.tg.Person(ann).In(group), w.tg.Person(bob).In(group)
	a.Says("/clone@acme_bot " + url)
	w.seesText(group, "Cloned")
	gate := emulator.NewGate()
	w.ai.Enqueue(
		openai.Reply(append([]openai.Step{openai.Gate(gate)}, openai.CallSteps(call("read_file", `{"path":"sum.sh"}`))...)...),
		openai.Text("Read for ann."),
	)
	a.Says("@acme_bot read the sum")
	if _, err := w.ai.WaitRequest(w.ctx(), 1); err != nil {
		t.Fatal(err)
	}
	b.Says("@acme_bot now delete it")
	b.Says("/status@acme_bot")
	w.seesText(group, "1 queued")
	gate.Open()
	w.seesText(group, "Read for ann.")
	w.seesText(group, "echo:", "now delete it") // a turn of bob's own
	for _, r := range w.ai.Requests()[:2] {
		if strings.Contains(r.LastUserText(), "now delete it") {
			t.Errorf("somebody else's words were part of ann's turn: %q", r.LastUserText())
		}
	}
}

func TestStopButtonAndStoppingWhatWaits(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(sumRepo)
		w.start()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		shown := w.hang()
		w.says(ann, "take your time")
		w.seesText(ann, shown)
		w.press(ann, "Stop")
		w.seesText(ann, shown, "⏹ Stopped after")
		for _, text := range w.tg.Ledger().Chat(ann).BotTexts() {
			if strings.Contains(text, "Nothing is running") {
				t.Errorf("the button said %q", text)
			}
		}

		t.Log("a message behind a question is marked; /stop ends the question and its call")
		w.ai.Enqueue(openai.Calls(call("bash", `{"command":"touch x"}`)))
		w.says(ann, "touch x")
		w.seesText(ann, "✋", "a-1")
		w.says(ann, "are you there?")
		w.says(ann, "/stop")
		w.seesText(ann, "1 queued message was dropped")
		w.seesText(ann, "a-1", "The turn ended; not run")
		w.says(ann, "hello")
		w.seesText(ann, "echo: hello")
		if got := w.rows("SELECT status, error_details FROM agent_tool_calls"); fmt.Sprint(got) != "[failed | not run: the turn ended before]" {
			t.Errorf("the call that was never run: %q", got)
		}
		w.says(ann, "/approve a-1")
		w.seesText(ann, "a-1 is already canceled")
	})
}
