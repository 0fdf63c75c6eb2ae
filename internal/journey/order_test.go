package journey_test

import (
	"fmt"
	"strings"
	"testing"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
)

// What is sent right behind a command that changes what a message begins with is
// answered after it, however close the two are.
func TestAMessageRightBehindNewStartsTheNewSession(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		w.says(ann, "hello")
		w.seesText(ann, "echo: hello [1 messages]")
		w.settles()
		for i := range 25 {
			text := fmt.Sprint("fresh ", i)
			w.says(ann, "/new")
			w.says(ann, text)
			w.seesText(ann, fmt.Sprintf("echo: %s [1 messages]", text))
		}
		w.settles()
		if got := w.rows("SELECT count(*) FROM remote_agent_sessions")[0]; got != "26" {
			t.Errorf("there are %s sessions, want 26", got)
		}
		for i := range 5 {
			text := fmt.Sprint("forked ", i)
			w.says(ann, "/fork")
			w.says(ann, text)
			w.seesText(ann, fmt.Sprintf("echo: %s [", text))
		}
		w.settles()
		if got := w.rows("SELECT count(*) FROM remote_agent_sessions WHERE parent_session_id IS NOT NULL")[0]; got != "5" {
			t.Errorf("there are %s forks, want 5", got)
		}
	})
}

// A message behind /new belongs to the new session, also while a turn of the old one
// works that takes in what is said meanwhile.
func TestAMessageBehindNewIsNoPartOfARunningTurn(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(sumRepo)
		w.start()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		gate := emulator.NewGate()
		w.ai.Enqueue(
			openai.Reply(append([]openai.Step{openai.Gate(gate)}, openai.CallSteps(call("read_file", `{"path":"sum.sh"}`))...)...),
			openai.Text("I have read it."),
		)
		w.says(ann, "read the sum")
		if _, err := w.ai.WaitRequest(w.ctx(), 1); err != nil {
			t.Fatal(err)
		}
		w.says(ann, "/new")
		w.says(ann, "something else")
		w.says(ann, "/status")
		w.seesText(ann, "1 queued")
		gate.Open()
		w.seesText(ann, "I have read it.")
		w.seesText(ann, "echo: something else [1 messages]")
		for _, r := range w.ai.Requests()[:2] {
			if strings.Contains(r.LastUserText(), "something else") {
				t.Errorf("it was part of the turn before: %q", r.LastUserText())
			}
		}
	})
}
