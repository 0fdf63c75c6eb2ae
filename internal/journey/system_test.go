package journey_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/app"
	"remote-agent/internal/emulator/acpagent"
	"remote-agent/internal/emulator/anthropic"
)

// Each kind of assistant is told who it is and where it talks; those without a loop
// of their own also where they work and what day it is.
func TestSystemPromptOfEachAssistant(t *testing.T) {
	t.Parallel()
	always := []string{"You are Remote Agent", "in a Telegram chat", "One message holds 4096 characters", "/stop", "are data"}
	facts := []string{"You work in the directory ", "acme/web on the branch bot/", "Today is " + time.Now().Format("Monday, 2006-01-02")}
	tests := map[string]struct {
		// start configures the assistant; told returns what it was told in its last turn.
		start func(t *testing.T, w *world) (told func() string)
		facts bool
	}{
		"openai": {
			start: func(_ *testing.T, w *world) func() string {
				return func() string {
					requests := w.ai.Requests()
					first := requests[len(requests)-1].Messages[0]
					return first.Role + ": " + first.Text()
				}
			}, facts: true,
		},
		"anthropic": {
			start: func(t *testing.T, w *world) func() string {
				claude := anthropic.New(anthropic.Options{})
				if err := claude.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(claude.Close)
				w.with(map[string]string{"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": claude.URL(), "DEFAULT_AI_ASSISTANT": "anthropic"})
				return func() string {
					requests := claude.Requests()
					var body struct{ System []struct{ Text string } }
					if err := json.Unmarshal(requests[len(requests)-1].Body, &body); err != nil || len(body.System) != 1 {
						t.Fatalf("the system prompt has %d parts: %v", len(body.System), err)
					}
					return "system: " + body.System[0].Text
				}
			}, facts: true,
		},
		"agent": {
			start: func(t *testing.T, w *world) func() string {
				record := filepath.Join(w.env["DATA_DIR"], "agents", "robot", "record")
				w.withAgent(acpagent.Script{Record: record})
				return func() string {
					lines, err := os.ReadFile(record)
					if err != nil {
						t.Fatal(err)
					}
					for line := range strings.Lines(string(lines)) {
						var call struct {
							Method string
							Params struct{ Prompt []struct{ Text string } }
						}
						if json.Unmarshal([]byte(line), &call) == nil && call.Method == "session/prompt" {
							return "system: " + call.Params.Prompt[0].Text
						}
					}
					return ""
				}
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "").migrated()
			_, url := w.withRepository(map[string]string{"README.md": "# web\n"})
			told := tt.start(t, w)
			w.start()
			w.says(ann, "/clone "+url)
			w.seesText(ann, "Cloned")
			w.says(ann, "hello there")
			w.seesText(ann, "hello there")
			w.settles()
			got := told()
			if !strings.HasPrefix(got, "system: ") || !containsAll(got, always) {
				t.Errorf("it was told %q", got)
			}
			for _, fact := range facts {
				if strings.Contains(got, fact) != tt.facts {
					t.Errorf("%q is there: %v, in %q", fact, !tt.facts, got)
				}
			}
			stored := strings.Join(w.rows("SELECT system_prompt FROM remote_agent_sessions WHERE active"), "")
			if stored == "" || !strings.Contains(got, stored) {
				t.Errorf("the session has %q, it was told %q", stored, got)
			}
		})
	}
}

func TestSystemPromptIsOverriddenStoredAndShown(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(map[string]string{
			"README.md": "# web\n", "AGENTS.md": "Use make test.\n", ".agents/system.md": "Answer in rhymes.\n",
		})
		now := time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC)
		w.now = func() time.Time { return now }
		w.start()
		w.says(ann, "/status verbose")
		w.seesText(ann, "System prompt of the next session", "You are Remote Agent", "No repository is chosen here", "Today is Sunday, 2026-11-22.")
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		w.says(ann, "hello")
		w.seesText(ann, "echo: hello [1 messages]")
		w.settles()
		if told := w.asked(); !containsAll(told, []string{"system: Answer in rhymes.", "Use make test.", "Today is Sunday"}) || strings.Contains(told, "You are Remote Agent") {
			t.Errorf("the model was told %q", told)
		}
		w.says(ann, "/status verbose")
		w.seesText(ann, "System prompt of the session", "Answer in rhymes.", `"mode":"edit"`, `"system_prompt":[".agents/system.md","AGENTS.md"]`)

		t.Log("it is that of each turn, and what is on record follows")
		w.shutdown() // which reads the time
		now = now.Add(2 * time.Hour)
		w.start()
		w.says(ann, "good morning")
		w.seesText(ann, "echo: good morning [3 messages]")
		w.settles()
		if told := w.asked(); !strings.Contains(told, "Today is Monday, 2026-11-23.") {
			t.Errorf("the model was told %q", told)
		}
		ids := w.rows("SELECT CAST(id AS TEXT) FROM remote_agent_sessions WHERE active")
		show := func(o app.ShowOptions) string {
			var out bytes.Buffer
			env := app.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Lookup: os.LookupEnv}
			if err := app.ShowSession(t.Context(), w.config(), env, &out, ids[0], o); err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		if shown := show(app.ShowOptions{System: true}); !containsAll(shown, []string{"## System prompt\n\nAnswer in rhymes.", "Monday, 2026-11-23", "## Configuration\n\n{", `"model":"test-model"`}) {
			t.Errorf("the operator sees %s", shown)
		}
		if shown := show(app.ShowOptions{}); strings.Contains(shown, "rhymes") {
			t.Errorf("nobody asked for the system prompt: %s", shown)
		}

		t.Log("the operator's own goes first")
		w.with(map[string]string{"SYSTEM_PROMPT": "Everybody reads this."})
		w.restart()
		w.says(ann, "and now")
		w.seesText(ann, "echo: and now [5 messages]")
		if told := w.asked(); !strings.HasPrefix(told, "system: Everybody reads this.\n\nAnswer in rhymes.") {
			t.Errorf("the model was told %q", told)
		}
	})
}
