package journey_test

import (
	"testing"

	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/fault"
	"remote-agent/internal/waittest"
)

// What is typed slightly wrong is answered with what was meant, and what runs is not
// denied.
func TestCommandsThatAreHalfRightAreExplained(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(webRepo)
		w.start()
		w.says(ann, "/handoff demo")
		w.seesText(ann, "✖ demo is only a scripted stand-in", "No other assistant is configured")
		w.says(ann, "/handoff nobody")
		w.seesText(ann, `✖ There is no assistant "nobody" here. No other assistant is configured`)
		w.says(ann, "/model cheap")
		w.seesText(ann, "✖ No model is configured for cheap", "MODEL_CHEAP")
		w.says(ann, "/model Fast")
		w.seesText(ann, "✖ No model is configured for fast")
		w.says(ann, "/model")
		w.seesText(ann, "Assistant openai, model test-model")

		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		w.says(ann, "/command-invoke")
		w.seesText(ann, "Specify a command: /command-invoke plan-feature")
		w.says(ann, "/command-invoke status")
		w.seesText(ann, "Send /status without /command-invoke.")
		w.says(ann, "/help prime")
		w.seesText(ann, "/prime [arguments] runs .claude/commands/prime.md of the repository. Research the codebase")
		w.says(ann, "/help /deploy")
		w.seesText(ann, "/deploy: several files have this name, so none of them runs.")
		w.says(ann, "/help command-invoke")
		w.seesText(ann, "/command-invoke <name> [arguments]: run a repository command")
		w.says(ann, "/help nosuch")
		w.seesText(ann, "There is no command /nosuch.")
		w.says(ann, "/prme it")
		w.seesText(ann, "There is no command /prme. Did you mean /prime?")
	})
}

// A bot at the end of a pipe ends although a question is open, and says so to whoever
// called it: nobody can answer it there any more. The question is kept.
func TestPipedInputEndsWithAnOpenQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "").migrated()
	_, url := w.withRepository(sumRepo)
	w.with(map[string]string{"TELEGRAM_BOT_TOKEN": "", "TELEGRAM_API_URL": "", "TELEGRAM_ALLOWED_USER_IDS": ""}).withConsole().start()
	w.types("/clone " + url)
	w.prints("Cloned")
	w.ai.Enqueue(openai.Calls(call("bash", `{"command":"sh test.sh"}`)), openai.Text("It fails."))
	w.types("run the test")
	w.prints("a-1", "sh test.sh")
	if err := w.typed.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-w.done:
		if want := "The input has ended, and a-1 waits for a decision: bot chat, then /approve a-1 or /deny a-1."; fault.Public(err) != want {
			t.Errorf("it ended with %v, want %q", err, want)
		}
	case <-waittest.Late(t):
		t.Fatal("it did not end with its input")
	}
	w.stop = nil

	w.withConsole().start()
	w.types("/approve a-1")
	w.prints("It fails.")
}
