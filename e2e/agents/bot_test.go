package agents_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remote-agent/e2e/internal/bot"
	"remote-agent/e2e/internal/need"
	"remote-agent/internal/emulator/anthropic"
	"remote-agent/internal/emulator/responses"
)

// realAgent lets a real front end answer, in the sandbox, and sees it work, ask,
// resume after a restart and stop.
func inTheSandbox(t *testing.T, b *bot.Bot, name string, options map[string]string, resumed string) {
	t.Helper()
	_, url := b.WithRepository("acme/web", bot.SumRepo)
	modules := filepath.Dir(need.Package(t, "@agentclientprotocol"))
	b.With(map[string]string{"DEFAULT_AI_ASSISTANT": name, "TOOL_READ_PATHS": modules}).With(options).Start()
	b.Slow = time.Minute
	b.Says("/clone " + url)
	b.Sees("Cloned")
	b.Says("PLEASE RUN THE TOOL")
	b.Sees("✋", "a-1", "touch made.txt")
	b.Says("/approve a-1")
	b.Sees("The tool was run.")
	if len(made(t, b, "made.txt")) != 1 {
		t.Error("the approved command did not run in the worktree")
	}
	calls := b.Rows("SELECT tool_name, status FROM agent_tool_calls")
	if len(calls) != 1 || !strings.HasSuffix(calls[0], "completed") {
		t.Errorf("the audit: %q", calls)
	}
	b.Restart()
	b.Says("are you there?")
	b.Sees("I heard you.")
	if got := b.Rows("SELECT count(DISTINCT assistant_session_id) FROM remote_agent_sessions WHERE assistant_session_id <> ''"); fmt.Sprint(got) != "[1]" {
		t.Errorf("%v sessions of the agent; %s", got, resumed)
	}
	b.Says("PLEASE TAKE YOUR TIME")
	b.Sees("I begin.")
	b.Says("/stop")
	b.Sees("⏹ Stopped")
}

// made returns the worktrees of a bot that have a file.
func made(t *testing.T, b *bot.Bot, file string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(b.Option("WORKSPACE_PATH"), ".worktrees"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Base(path) == file {
			found = append(found, filepath.Dir(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRealClaudeInTheSandbox(t *testing.T) {
	t.Parallel()
	program := need.Program(t, "@agentclientprotocol/claude-agent-acp", "claude-agent-acp")
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
	inTheSandbox(t, bot.New(t), "claude", map[string]string{
		"CLAUDE_COMMAND": program, "ANTHROPIC_API_KEY": "sk-ant-emulated-key-0123456789", "ANTHROPIC_BASE_URL": server.URL(),
	}, "Claude Code should have resumed its session")
}

func TestRealCodexInTheSandbox(t *testing.T) {
	t.Parallel()
	program := need.Program(t, "@agentclientprotocol/codex-acp", "codex-acp")
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
	b := bot.New(t)
	codexHome(t, b, server.URL())
	inTheSandbox(t, b, "codex", codexOptions(t, program, server.URL()), "Codex should have resumed its session")
}

// TestRealCodexRunsPlainCommands has Codex run commands without asking for more than
// its own sandbox, in ours. Where its sandbox does not start, it asks, or the
// command fails.
func TestRealCodexRunsPlainCommands(t *testing.T) {
	t.Parallel()
	program := need.Program(t, "@agentclientprotocol/codex-acp", "codex-acp")
	server := responses.New(responses.Options{APIKey: "emulated-key-0123456789"})
	server.Script(func(r responses.Request) responses.Response {
		last := r.Items[len(r.Items)-1]
		text := string(last.RawContent)
		switch {
		case strings.Contains(string(last.RawOutput), "made"):
			return responses.Text("The command ", "was run.")
		case strings.HasSuffix(last.Type, "_output"):
			return responses.Text("It failed: " + string(last.RawOutput))
		case strings.Contains(text, "PLEASE RUN IT"):
			return responses.Reply(responses.Delta("I run it. "), responses.Function(responses.Call{
				ID: fmt.Sprintf("call_%04d", r.N), Name: "exec_command",
				Arguments: `{"cmd":"cat sum.sh && echo made >made.txt && cat made.txt"}`,
			}))
		}
		return responses.Text("I heard ", "you.")
	})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	b := bot.New(t)
	codexHome(t, b, server.URL())
	_, url := b.WithRepository("acme/web", bot.SumRepo)
	b.With(codexOptions(t, program, server.URL())).With(map[string]string{"DEFAULT_AI_ASSISTANT": "codex"}).Start()
	b.Slow = time.Minute
	b.Says("/clone " + url)
	b.Sees("Cloned")
	b.Says("PLEASE RUN IT")
	b.Sees("The command was run.")
	if len(made(t, b, "made.txt")) != 1 {
		t.Error("the command did not write into the worktree")
	}
	if asked := b.Rows("SELECT count(*) FROM approvals"); fmt.Sprint(asked) != "[0]" {
		t.Errorf("it asked %s times", asked)
	}
}

// codexHome configures Codex for a model of ours.
func codexHome(t *testing.T, b *bot.Bot, url string) {
	t.Helper()
	home := filepath.Join(b.Option("DATA_DIR"), "agents", "codex", ".codex")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf("model = %q\nmodel_provider = %q\n[model_providers.emulated]\nname = %q\nbase_url = %q\nwire_api = %q\nenv_key = %q\nrequest_max_retries = 1\nstream_max_retries = 1\n[features]\nplugins = false\n",
		"gpt-emulated", "emulated", "emulated", url, "responses", "OPENAI_API_KEY")
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
}

// codexOptions let Codex reach that model with a key.
func codexOptions(t *testing.T, program, url string) map[string]string {
	t.Helper()
	return map[string]string{
		"CODEX_COMMAND": program, "OPENAI_API_KEY": "emulated-key-0123456789", "OPENAI_BASE_URL": "", "AGENT_ENV": "OPENAI_API_KEY",
		"TOOL_READ_PATHS": filepath.Dir(need.Package(t, "@agentclientprotocol")),
		"AGENT_HOSTS":     "codex=" + strings.TrimPrefix(strings.TrimSuffix(url, "/v1"), "http://"),
	}
}
