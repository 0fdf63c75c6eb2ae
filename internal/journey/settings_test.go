package journey_test

import (
	"fmt"
	"strings"
	"testing"

	"remote-agent/internal/emulator/openai"
)

func TestBudgetsParkAndEnd(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(sumRepo)
		w.with(map[string]string{"BUDGET_TURN_TOKENS": "1000", "BUDGET_PERSON_TOKENS": "5000"}).start()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		w.ai.Enqueue(
			openai.Calls(call("read_file", `{"path":"sum.sh"}`)).WithUsage(900, 200),
			openai.Text("Read it.").WithUsage(900, 100),
		)
		w.says(ann, "read the sum")
		w.seesText(ann, "✋", "a-1", "used its budget", "1k of 1k tokens")
		w.restart()
		w.press(ann, "Continue")
		w.seesText(ann, "Read it.")

		w.ai.Enqueue(openai.Text("A long story.").WithUsage(2000, 2000))
		w.says(ann, "tell me a story")
		w.seesText(ann, "A long story.")
		before := len(w.ai.Requests())
		w.says(ann, "another one")
		w.seesText(ann, "Your daily budget is used up", "00:00 UTC")
		w.says(bob, "and me?")
		w.seesText(bob, "echo: and me?")
		if n := len(w.ai.Requests()) - before; n != 1 {
			t.Errorf("%d requests after the budget was used up, want bob's only", n)
		}
		w.says(ann, "/cost")
		w.seesText(ann, "you, today: 2 turns, 6k tokens", "Limits")
	})
}

func TestModelVerboseAndRetry(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(sumRepo)
		w.with(map[string]string{"MODEL_SMART": "openai:gpt-5.2", "MODEL_FAST": "anthropic:claude-haiku-4-5"}).start()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		w.says(ann, "/model")
		w.seesText(ann, "test-model", "smart", "gpt-5.2", "$1.75")
		w.says(ann, "/model smart")
		w.seesText(ann, "gpt-5.2 answers from")
		w.restart()
		w.says(ann, "/verbose 2")
		w.seesText(ann, "Verbosity is 2")
		w.ai.Enqueue(openai.Calls(call("write_file", `{"path":"notes.txt","content":"one"}`)), openai.Text("Wrote one."))
		w.says(ann, "write a note")
		w.seesText(ann, "Wrote one.")
		requests := w.ai.Requests()
		if model := requests[len(requests)-1].Model; model != "gpt-5.2" {
			t.Errorf("the model asked is %s", model)
		}

		t.Log("the last turn again: its file is gone, its request is asked once more with the note")
		w.ai.Enqueue(openai.Calls(call("list_files", `{}`)), openai.Text("Wrote nothing."))
		w.says(ann, "/retry but write nothing")
		w.seesText(ann, "Wrote nothing.")
		requests = w.ai.Requests()
		last := requests[len(requests)-1]
		if text := last.LastUserText(); !strings.Contains(text, "write a note") || !strings.Contains(text, "but write nothing") {
			t.Errorf("asked again with %q", text)
		}
		if listed := last.Messages[len(last.Messages)-1].Text(); strings.Contains(listed, "notes.txt") {
			t.Errorf("the file of the first try is still there: %s", listed)
		}
		w.says(ann, "/diff")
		w.seesText(ann, "No changes on")
		if got := fmt.Sprint(w.rows("SELECT count(*) FROM usage_records WHERE cost_micros IS NOT NULL")); got == "[0]" {
			t.Error("no usage has a price")
		}
	})
}
