package acp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/emulator/acpagent"
	"remote-agent/internal/messages"
)

// read waits until the bot has read what the agent said before.
var read = acpagent.Step{Request: raw(`{"method":"_private/there"}`)}

// leftRunning is an agent that says more after its answer to the first prompt, and makes
// the file then.
func leftRunning(file string, more ...acpagent.Step) acpagent.Script {
	update := func(text string) acpagent.Step { return acpagent.Step{Update: raw(text)} }
	steps := append([]acpagent.Step{
		{Session: "child", Update: raw(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"ls","kind":"execute","rawInput":{"command":"ls"}}`)},
		update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"make","kind":"execute","status":"in_progress","rawInput":{"command":"make"}}`),
		{Say: "It builds."},
		{Line: `{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`},
	}, more...)
	return acpagent.Script{Resume: true, Turns: []acpagent.Turn{
		{Nth: 1, Steps: append(steps, read, acpagent.Step{Touch: file}, acpagent.Step{NoReply: true})},
		{Nth: 2, Steps: []acpagent.Step{
			update(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","title":"make","rawOutput":"built"}`),
			{Session: "child", Update: raw(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","title":"ls","rawOutput":"b"}`)},
			{Say: "Yes."},
		}},
	}}
}

// TestWhatComesLateBelongsToNoOtherTurn: a report on a call of an earlier turn is no
// call of the next one.
func TestWhatComesLateBelongsToNoOtherTurn(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "over")
	w := start(t, leftRunning(file))
	turn := question("go")
	first := ask(t.Context(), w, turn)
	eventually(t, "the agent to say more", func() bool { return made(file) })
	second := ask(t.Context(), w, next(turn, first, first.session(t), "Is it built?"))
	if first.err != nil || second.err != nil {
		t.Fatal(first.err, second.err)
	}
	if d := cmp.Diff([]messages.Message{messages.NewText(messages.RoleAssistant, "Yes.")}, plain(second.messages)); d != "" {
		t.Error(d)
	}
	if len(second.notices) > 0 {
		t.Errorf("notices %q", second.notices)
	}
}

// TestWhatAnAgentSaysAfterItsAnswer is shown with the next one, once. What its subagents
// say is for the agent.
func TestWhatAnAgentSaysAfterItsAnswer(t *testing.T) {
	t.Parallel()
	chunk := func(id, text string) acpagent.Step {
		return acpagent.Step{Update: raw(fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","messageId":%q,"content":{"type":"text","text":%q}}`, id, text))}
	}
	child := chunk("c", "Nothing to see.")
	child.Session = "child"
	file := filepath.Join(t.TempDir(), "over")
	w := start(t, leftRunning(file, chunk("a", "The build "), chunk("a", "has failed."), child, chunk("b", "Shall I look?")))
	turn := question("go")
	first := ask(t.Context(), w, turn)
	eventually(t, "the agent to say more", func() bool { return made(file) })
	turn = next(turn, first, first.session(t), "Is it built?")
	second := ask(t.Context(), w, turn)
	want := []string{"The agent went on after its last answer and said:\n\nThe build has failed.\n\nShall I look?"}
	if d := cmp.Diff(want, second.notices); d != "" || second.answer != "Yes." {
		t.Errorf("%s\n%+v", d, second)
	}
	third := ask(t.Context(), w, next(turn, second, first.session(t), "And now?"))
	if third.err != nil || len(third.notices) > 0 {
		t.Errorf("%+v", third)
	}
}

// TestWhatAnAgentSaysAfterAStopIsDropped: nobody wanted it any more.
func TestWhatAnAgentSaysAfterAStopIsDropped(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "over")
	w := start(t, acpagent.Script{Resume: true, Turns: []acpagent.Turn{{Nth: 2, Steps: []acpagent.Step{
		{Say: "I begin."}, {AwaitCancel: true}, {Say: "I end."}, {Line: `{"jsonrpc":"2.0","id":4,"result":{"stopReason":"cancelled"}}`}, //nolint:misspell // as the protocol spells it
		{Say: "Still here."}, read, {Touch: file}, {NoReply: true},
	}}}})
	turn := question("go")
	first := ask(t.Context(), w, turn)
	turn = next(turn, first, first.session(t), "slow")
	_, second := stopAt(t, w, turn)
	eventually(t, "the agent to say more", func() bool { return made(file) })
	third := ask(t.Context(), w, next(turn, second, first.session(t), "again"))
	if third.err != nil || len(third.notices) > 0 || !strings.Contains(third.answer, "again") || len(w.starts(t)) != 1 {
		t.Errorf("%+v", third)
	}
}

// plain returns the messages with nothing but their roles and blocks.
func plain(list []messages.Message) []messages.Message {
	list = slices.Clone(list)
	for i := range list {
		list[i] = messages.Message{Role: list[i].Role, Blocks: list[i].Blocks}
	}
	return list
}

func made(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
