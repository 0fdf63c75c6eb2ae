package acp_test

import (
	"log/slog"
	"testing"

	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/assistant/assistanttest"
	"remote-agent/internal/emulator/acpagent"
)

func logger(l *logged) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// TestContract runs the suite against a real process.
func TestContract(t *testing.T) {
	refusal := func(text string) acpagent.Script {
		return acpagent.Does(acpagent.Step{Error: &acpagent.Error{Code: -32603, Message: "Internal error: " + text}})
	}
	scripts := map[assistanttest.Scenario]acpagent.Script{
		assistanttest.Reply: acpagent.Says("Hello", ", ", "you."),
		assistanttest.Slow: acpagent.Does(acpagent.Step{Say: "again "}, acpagent.Step{AwaitCancel: true},
			acpagent.Step{Stop: &acpagent.Stop{Reason: acpagent.Canceled}}),
		assistanttest.Tools: acpagent.Does(
			acpagent.Step{Say: "I look. "},
			acpagent.Step{Tool: &acpagent.Tool{ID: "1", Title: "ls", Input: raw(`{"command":"ls"}`), Output: "a b"}},
			acpagent.Step{Say: "There are two files."}),
		assistanttest.Cut: acpagent.Does(acpagent.Step{Say: "Hel"}, acpagent.Step{Exit: new(0)}),
		assistanttest.Unauthorized: acpagent.Does(acpagent.Step{Error: &acpagent.Error{
			Code: -32000, Message: "Authentication required: " + secret, Data: raw(`{"key":"` + secret + `"}`),
		}}),
		assistanttest.Quota:       refusal("Your credit balance is too low, " + secret),
		assistanttest.Unavailable: refusal("overloaded " + secret),
		assistanttest.Broken:      acpagent.Does(acpagent.Step{Say: "Hel"}, acpagent.Step{Error: &acpagent.Error{Code: -32603, Message: "oops"}}),
	}
	assistanttest.Exercise(t, assistanttest.Harness{
		Secrets: []string{secret},
		New: func(t *testing.T, s assistanttest.Scenario) (assistanttest.Subject, bool) {
			t.Helper()
			script, ok := scripts[s]
			if !ok {
				return assistanttest.Subject{}, false
			}
			a, err := acp.New(config(t, t.TempDir(), script))
			if err != nil {
				t.Fatal(err)
			}
			return assistanttest.Subject{Assistant: a, Turn: question("Hi"), Close: func() {
				if err := a.Close(); err != nil {
					t.Error(err)
				}
			}}, true
		},
	})
}
