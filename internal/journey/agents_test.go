package journey_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"remote-agent/internal/emulator/acpagent"
	"remote-agent/internal/emulator/anthropic"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/waittest"
)

// withConsole gives the operator a console, who is an owner there.
func (w *world) withConsole() *world {
	w.typed = &io.PipeWriter{} // start makes the real one
	return w
}

// types writes a line on the operator's console.
func (w *world) types(line string) {
	w.t.Helper()
	if _, err := io.WriteString(w.typed, line+"\n"); err != nil {
		w.t.Fatal(err)
	}
}

// prints waits until the operator's screen shows every part.
func (w *world) prints(parts ...string) {
	w.t.Helper()
	waittest.Until(w.t, "the screen shows each part", func() bool { return containsAll(w.printed.String(), parts) })
}

func TestApprovalAskedInTelegramIsGrantedOnTheConsole(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(sumRepo)
		w.withConsole().start()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		w.ai.Enqueue(openai.Calls(call("bash", `{"command":"sh test.sh"}`)), openai.Text("It fails."))
		w.says(ann, "run the test")
		w.seesText(ann, "✋", "a-1")
		w.types("/approvals")
		w.prints("a-1", "sh test.sh", "in another conversation")
		w.types("/approve a-1")
		w.prints("a-1: ✔ Approved by ")
		w.seesText(ann, "It fails.")
		w.seesText(ann, "a-1", "Approved by ")

		t.Log("a second person is needed, where that is the rule")
		w.shutdown()
		w.with(map[string]string{"APPROVERS": "other"}).start()
		w.ai.Enqueue(openai.Calls(call("bash", `{"command":"sh test.sh"}`)), openai.Text("Once more."))
		w.says(ann, "again")
		w.seesText(ann, "✋", "a-2", "Someone other than the person who asked")
		w.says(ann, "/approve a-2")
		w.seesText(ann, "Someone else has to decide on a-2")
		w.types("/approve a-2")
		w.seesText(ann, "Once more.")
	})
}

func TestHandoffCarriesTheConversationOver(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		claude := anthropic.New(anthropic.Options{})
		if err := claude.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(claude.Close)
		_, url := w.withRepository(sumRepo)
		w.with(map[string]string{"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": claude.URL()}).start()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		w.ai.Enqueue(
			openai.Calls(call("edit_file", `{"path":"sum.sh","old":"-","new":"+"}`), call("write_file", `{"path":"notes.txt","content":"seven"}`)),
			openai.Text("Changed. The number is seven."),
		)
		w.says(ann, "change it and remember seven")
		w.seesText(ann, "Changed. The number is seven.")
		w.says(ann, "/handoff gemini")
		w.seesText(ann, "no assistant \"gemini\"", "anthropic")
		w.settles()
		w.says(ann, "/handoff anthropic")
		w.seesText(ann, "anthropic now answers here", "It has the history")
		w.restart()
		claude.Enqueue(
			anthropic.Calls(anthropic.Call{Name: "read_file", Arguments: `{"path":"notes.txt"}`}),
			anthropic.Text("It says seven."),
		)
		w.says(ann, "which number?")
		w.seesText(ann, "It says seven.")
		requests := claude.Requests()
		first, err := json.Marshal(requests[0].Messages)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"change it and remember seven", "edit_file", "The number is seven", "which number?"} {
			if !strings.Contains(string(first), part) {
				t.Errorf("the other assistant was not told %q: %s", part, first)
			}
		}
		last, err := json.Marshal(requests[len(requests)-1].Messages)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(last), "seven") {
			t.Errorf("it does not work on the same files: %s", last)
		}
		w.says(ann, "/diff")
		w.seesText(ann, "2 files changed")
		if refused := claude.Refusals(); len(refused) > 0 {
			t.Errorf("the Messages API refused a request: %+v", refused[0])
		}
		got := fmt.Sprint(w.rows("SELECT ai_assistant_type FROM remote_agent_conversations ORDER BY created_at"))
		if got != "[openai anthropic]" {
			t.Errorf("the rows of the chat: %s", got)
		}
	})
}

// withAgent gives the world a scripted agent of the name "robot", which answers
// new conversations.
func (w *world) withAgent(script acpagent.Script) *world {
	w.t.Helper()
	dir := w.t.TempDir()
	script.State = filepath.Join(w.env["DATA_DIR"], "agents", "robot")
	if err := os.MkdirAll(script.State, 0o700); err != nil { // as the first start does
		w.t.Fatal(err)
	}
	command, err := acpagent.Command(dir, script)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.with(map[string]string{
		"ACP_AGENTS": "robot=" + strings.Join(command, " "), "DEFAULT_AI_ASSISTANT": "robot", "TOOL_READ_PATHS": dir,
	})
}

func TestAgentWorksAsksResumesAndIsStopped(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(sumRepo)
		w.withAgent(acpagent.Script{Resume: true, Turns: []acpagent.Turn{
			{Match: "make a file", Steps: []acpagent.Step{
				{Say: "I make it. "},
				{Tool: &acpagent.Tool{
					ID: "t1", Title: "touch made.txt", Input: json.RawMessage(`{"command":"touch made.txt"}`),
					Ask: acpagent.Options("allow_once", "allow_always", "reject_once"), Write: "made.txt", Output: "done",
				}},
				{Say: "It is there."},
			}},
			{Match: "take long", Steps: []acpagent.Step{{Say: "Working"}, {AwaitCancel: true}}},
		}}).start()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		w.says(ann, "make a file")
		w.seesText(ann, "✋", "a-1", "touch made.txt")
		w.press(ann, "Run it")
		w.seesText(ann, "It is there.")
		w.waitTree("made.txt")
		got := w.rows("SELECT tool_name, request, status FROM agent_tool_calls")
		if len(got) != 1 || !strings.Contains(got[0], "touch made.txt") || !strings.HasSuffix(got[0], "completed") {
			t.Errorf("the agent's call: %q", got)
		}

		t.Log("the same session after a restart, and a stop")
		w.restart()
		w.says(ann, "hello again")
		w.seesText(ann, "hello again")
		if got := w.rows("SELECT count(DISTINCT assistant_session_id) FROM remote_agent_sessions WHERE assistant_session_id <> ''"); fmt.Sprint(got) != "[1]" {
			t.Errorf("%v sessions of the agent, want one that was resumed", got)
		}
		w.says(ann, "take long")
		w.seesText(ann, "Working")
		w.says(ann, "/stop")
		w.seesText(ann, "⏹ Stopped")
		w.says(ann, "still there?")
		w.seesText(ann, "still there?")
	})
}

// TestAgentIsPutIntoTheModeInWhichItAsks: Qwen Code, for example, has one in which a model decides.
func TestAgentIsPutIntoTheModeInWhichItAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "").migrated()
	record := filepath.Join(w.env["DATA_DIR"], "agents", "robot", "record")
	w.withAgent(acpagent.Script{Modes: []string{"auto", "plan", "default"}, Record: record}).start()
	w.says(ann, "hello")
	w.seesText(ann, "You said:")
	got, err := os.ReadFile(record)
	if set := regexp.MustCompile(`session/set_mode.*`).FindString(string(got)); err != nil || !strings.Contains(set, `"modeId":"default"`) {
		t.Errorf("the agent was put into its mode by %q: %v", set, err)
	}
}

func TestAgentThatDiesEndsHonestlyAndTheNextTurnWorks(t *testing.T) {
	t.Parallel()
	one := 1
	w := newWorld(t, "").migrated()
	w.withAgent(acpagent.Script{Turns: []acpagent.Turn{
		{Match: "garbage", Steps: []acpagent.Step{{Line: "Segmentation fault?"}, {Say: "Still fine."}}},
		{Match: "die", Nth: 1, Steps: []acpagent.Step{{Say: "I was about"}, {Raw: `{"jsonrpc":"2.0","meth`}, {Exit: &one}}},
	}}).start()
	w.says(ann, "please die")
	w.seesText(ann, "I was about", "✖", "ended in the middle of a message", "Your message is saved")
	w.says(ann, "/new")
	w.seesText(ann, "new session")
	w.says(ann, "and now garbage")
	w.seesText(ann, "✖", "not the Agent Client Protocol", "Tried 2 times")
	w.says(ann, "/new")
	w.settles() // else the next message may still be the old session's
	w.says(ann, "well?")
	w.seesText(ann, "well?")
	for _, text := range w.tg.Ledger().Chat(ann).BotTexts() {
		if strings.Contains(text, "about") && strings.Contains(text, "tried") || strings.Contains(text, "Segmentation") {
			t.Errorf("what an agent began was repeated, or its garbage shown: %q", text)
		}
	}
}
