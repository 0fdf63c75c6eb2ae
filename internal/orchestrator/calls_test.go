package orchestrator_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
	ot "remote-agent/internal/orchestrator/orchestratortest"
)

// TestCallsOfATurnThatIsStopped: one that was begun may have had its effect, one that was not has
// none, and neither is open any more.
func TestCallsOfATurnThatIsStopped(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("do both", func(*ot.Requested) (messages.Message, error) {
			return messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{
				messages.ToolCall{ID: "one", Name: ot.WriteTool, Arguments: `{"do":"one"}`},
				messages.ToolCall{ID: "two", Name: ot.WriteTool, Arguments: `{"do":"two"}`},
			}}, nil
		})
		w.Tools.Hold(make(chan struct{}))
		w.Start()
		w.Chat.Say("do both")
		w.Pass(time.Second)
		w.Chat.Say("/stop")
		w.Pass(10 * time.Second)
		for _, call := range w.Rows(`SELECT tool_call_id, status, error_details FROM agent_tool_calls ORDER BY id`) {
			if !strings.Contains(call, "failed") || strings.Contains(call, "two") != strings.Contains(call, "not run: the turn ended before") {
				t.Errorf("on record: %q", call)
			}
		}
		if open := w.Open(); len(open) > 0 || len(w.Rows(`SELECT id FROM agent_tool_calls`)) != 2 {
			t.Errorf("still open: %q", open)
		}
	})
}

// TestAnAgentNamesACallTwice while it is open: that is one call, and no reason to end the turn.
func TestAnAgentNamesACallTwice(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		agents(w)
		w.Agent.On("look", func(r *ot.Errands) (string, error) {
			for range 2 {
				r.Tell(assistant.MessageDone{Message: messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{
					messages.ToolCall{ID: "same", Name: "Read", Arguments: `{}`},
				}}})
			}
			r.Tell(assistant.MessageDone{Message: messages.NewToolResult("same", "text", false)})
			return "I have looked.", nil
		})
		w.Start()
		w.Chat.Say("look")
		w.Pass(10 * time.Second)
		w.Chat.Find("I have looked.")
		if got := w.Rows(`SELECT tool_call_id, status FROM agent_tool_calls`); len(got) != 1 || !strings.Contains(got[0], "completed") {
			t.Errorf("on record: %q", got)
		}
	})
}

// TestWordsBehindWords: what is said during the second tool of a turn is taken in as what was
// said during the first one.
func TestWordsBehindWords(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		goOn := []chan struct{}{make(chan struct{}), make(chan struct{})}
		w.Tools.Hold(goOn[0])
		for on, next := range map[string]ot.Step{"do it": ot.Call(ot.WriteTool, "one"), "and quickly": ot.Call(ot.WriteTool, "two"), "please": ot.Say("It is done.")} {
			w.Model.On(on, next)
		}
		w.Start()
		w.Chat.Say("do it")
		for i, words := range []string{"and quickly", "please"} {
			w.Pass(time.Second)
			w.Chat.Say(words)
			w.Settle()
			if i == 0 {
				w.Tools.Hold(goOn[1])
			}
			close(goOn[i])
		}
		w.Pass(10 * time.Second)
		if got := w.Model.Asked(); !slices.Equal(got, []string{"do it", "and quickly", "please"}) {
			t.Errorf("the model was asked %q", got)
		}
	})
}
