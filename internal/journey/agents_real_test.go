//go:build e2e

package journey_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/emulator/anthropic"
	"remote-agent/internal/emulator/responses"
)

// agentsDir is the folder of a "npm install" of the two front ends.
var agentsDir = flag.String("agents", "", "folder with node_modules/.bin/claude-agent-acp and codex-acp")

func realProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(*agentsDir, "node_modules", ".bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); *agentsDir == "" || err != nil {
		t.Skipf("%s is not installed in -agents", name)
	}
	return path
}

// realAgent lets a real front end answer, in the sandbox, and sees it work, ask,
// resume after a restart and stop.
func (w *world) realAgent(name string, options map[string]string, resumed string) {
	t := w.t
	_, url := w.withRepository(sumRepo)
	w.with(map[string]string{"DEFAULT_AI_ASSISTANT": name, "TOOL_READ_PATHS": *agentsDir}).with(options).start()
	w.slow = time.Minute
	w.says(ann, "/clone "+url)
	w.seesText(ann, "Cloned")
	w.says(ann, "PLEASE RUN THE TOOL")
	w.seesText(ann, "✋", "a-1", "touch made.txt")
	w.says(ann, "/approve a-1")
	w.seesText(ann, "The tool was run.")
	if len(w.trees("made.txt")) != 1 {
		t.Error("the approved command did not run in the worktree")
	}
	calls := w.rows("SELECT tool_name, status FROM agent_tool_calls")
	if len(calls) != 1 || !strings.HasSuffix(calls[0], "completed") {
		t.Errorf("the audit: %q", calls)
	}
	w.restart()
	w.says(ann, "are you there?")
	w.seesText(ann, "I heard you.")
	if got := w.rows("SELECT count(DISTINCT assistant_session_id) FROM remote_agent_sessions WHERE assistant_session_id <> ''"); fmt.Sprint(got) != "[1]" {
		t.Errorf("%v sessions of the agent; %s", got, resumed)
	}
	w.says(ann, "PLEASE TAKE YOUR TIME")
	w.seesText(ann, "I begin.")
	w.says(ann, "/stop")
	w.seesText(ann, "⏹ Stopped")
}

func TestRealClaudeInTheSandbox(t *testing.T) {
	t.Parallel()
	program := realProgram(t, "claude-agent-acp")
	server := anthropic.New(anthropic.Options{APIKey: "sk-ant-emulated-key-0123456789", SystemMessages: true})
	server.Script(func(r anthropic.Request) anthropic.Response {
		last := ""
		for _, m := range r.Messages[max(0, len(r.Messages)-2):] {
			if m.Role == "user" {
				last = string(m.RawContent)
			}
		}
		switch {
		case len(r.Tools) == 0:
			return anthropic.Text("A title")
		case strings.Contains(last, "tool_result"):
			return anthropic.Text("The tool ", "was run.")
		case strings.Contains(last, "PLEASE RUN THE TOOL"):
			return anthropic.Reply(anthropic.Delta("I run it. "), anthropic.ToolUse(anthropic.Call{
				ID: fmt.Sprintf("toolu_%04d", r.N), Name: "Bash", Arguments: `{"command":"sh test.sh || touch made.txt","description":"make a file"}`,
			}))
		case strings.Contains(last, "PLEASE TAKE YOUR TIME"):
			return anthropic.Reply(anthropic.Delta("I begin. "), anthropic.Pause(time.Minute))
		}
		return anthropic.Text("I heard ", "you.")
	})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	newWorld(t, "").realAgent("claude", map[string]string{
		"CLAUDE_COMMAND": program, "ANTHROPIC_API_KEY": "sk-ant-emulated-key-0123456789", "ANTHROPIC_BASE_URL": server.URL(),
	}, "Claude Code should have resumed its session")
}

func TestRealCodexInTheSandbox(t *testing.T) {
	t.Parallel()
	program := realProgram(t, "codex-acp")
	server := responses.New(responses.Options{APIKey: "emulated-key-0123456789"})
	server.Script(func(r responses.Request) responses.Response {
		last := r.Items[len(r.Items)-1]
		text := string(last.RawContent)
		switch {
		case strings.HasSuffix(last.Type, "_output"):
			return responses.Text("The tool ", "was run.")
		case strings.Contains(text, "PLEASE RUN THE TOOL"):
			return responses.Reply(responses.Delta("I run it. "), responses.Function(responses.Call{
				ID: fmt.Sprintf("call_%04d", r.N), Name: "exec_command",
				Arguments: `{"cmd":"sh test.sh || touch made.txt","sandbox_permissions":"require_escalated","justification":"make a file"}`,
			}))
		case strings.Contains(text, "PLEASE TAKE YOUR TIME"):
			return responses.Reply(responses.Delta("I begin. "), responses.Pause(time.Minute))
		}
		return responses.Text("I heard ", "you.")
	})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	w := newWorld(t, "")
	home := filepath.Join(w.env["DATA_DIR"], "agents", "codex", ".codex")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf("model = %q\nmodel_provider = %q\n[model_providers.emulated]\nname = %q\nbase_url = %q\nwire_api = %q\nenv_key = %q\nrequest_max_retries = 1\nstream_max_retries = 1\n",
		"gpt-emulated", "emulated", "emulated", server.URL(), "responses", "OPENAI_API_KEY")
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	w.realAgent("codex", map[string]string{
		"CODEX_COMMAND": program, "OPENAI_API_KEY": "emulated-key-0123456789", "OPENAI_BASE_URL": "", "AGENT_ENV": "OPENAI_API_KEY",
	}, "Codex should have resumed its session")
}
