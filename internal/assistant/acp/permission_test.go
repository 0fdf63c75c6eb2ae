package acp_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/emulator/acpagent"
	"remote-agent/internal/messages"
	"remote-agent/internal/waittest"
)

// asks is a request for permission as it is, with what it says of the call and the usual answers.
func asks(session, call string) acpagent.Step {
	return acpagent.Step{Request: raw(`{"method":"session/request_permission","params":{"sessionId":"` + session + `","toolCall":` + call + `,"options":[
		{"optionId":"always","name":"Allow for session","kind":"allow_always"},
		{"optionId":"no","name":"Reject","kind":"reject_once"},
		{"optionId":"once","name":"Allow once","kind":"allow_once"}]}}`)}
}

// results returns what is on record as results of calls.
func (r result) results() (contents []string) {
	for _, m := range r.messages {
		for _, b := range m.Blocks {
			if x, ok := b.(messages.ToolResult); ok {
				contents = append(contents, x.Content)
			}
		}
	}
	return contents
}

// TestAReasonHidesNoChange: Codex asks for a patch that it has announced with nothing but its
// reason. Whoever decides sees the change, and the result is what happened.
func TestAReasonHidesNoChange(t *testing.T) {
	t.Parallel()
	const (
		change = `{"type":"diff","path":"/w/a.go","oldText":"one\n","newText":"two\n"}`
		reason = `{"type":"content","content":{"type":"text","text":"Write outside of the workspace?"}}`
	)
	w := start(t, acpagent.Does(
		acpagent.Step{Update: raw(`{"sessionUpdate":"tool_call","toolCallId":"p","title":"/w/a.go","kind":"edit","status":"in_progress","content":[` + change + `]}`)},
		asks("%SESSION%", `{"toolCallId":"p","kind":"edit","status":"pending","content":[`+reason+`]}`),
		acpagent.Step{Update: raw(`{"sessionUpdate":"tool_call_update","toolCallId":"p","status":"completed"}`)},
		acpagent.Step{Update: raw(`{"sessionUpdate":"tool_call","toolCallId":"c","title":"make","kind":"execute","status":"in_progress","rawInput":{"command":"make"},"content":[{"type":"terminal","terminalId":"c"}]}`)},
		asks("%SESSION%", `{"toolCallId":"c","kind":"execute","rawInput":{"command":"make"},"content":[`+reason+`]}`),
		acpagent.Step{Update: raw(`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","rawOutput":"made"}`)},
		acpagent.Step{Say: "Done."}))
	turn := question("go")
	h := always(assistant.Verdict{Allow: true})
	turn.Host = h
	got := ask(t.Context(), w, turn)
	if got.err != nil || len(h.asked) != 2 {
		t.Fatalf("asked %+v, %v", h.asked, got.err)
	}
	for i, want := range []string{"-one\n+two", "```sh\nmake\n```"} {
		if detail := h.asked[i].Detail; !strings.Contains(detail, want) || !strings.Contains(detail, "Write outside of the workspace?") {
			t.Errorf("a person is shown\n%s", detail)
		}
	}
	if results := got.results(); len(results) != 2 || !strings.HasPrefix(results[0], "--- a/w/a.go") || results[1] != "made" {
		t.Errorf("results %q", results)
	}
}

// TestASubagentInASessionOfItsOwn: opencode and Codex run subagents so. What they do is on
// record, and what they ask for is asked; what they say is for the agent.
func TestASubagentInASessionOfItsOwn(t *testing.T) {
	t.Parallel()
	update := func(session, text string) acpagent.Step { return acpagent.Step{Session: session, Update: raw(text)} }
	w := start(t, acpagent.Does(
		update("", `{"sessionUpdate":"tool_call","toolCallId":"1","title":"task","kind":"think","status":"in_progress","rawInput":{"prompt":"build it"}}`),
		update("child", `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I build."}}`),
		update("child", `{"sessionUpdate":"tool_call","toolCallId":"1","title":"bash","kind":"execute","status":"pending","rawInput":{"command":"make"}}`),
		asks("child", `{"toolCallId":"1","title":"bash","kind":"execute","status":"pending","rawInput":{}}`),
		update("child", `{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","rawOutput":"made"}`),
		update("", `{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","rawOutput":"it is built"}`),
		acpagent.Step{Say: "Done."}))
	turn := question("go")
	h := always(assistant.Verdict{Allow: true})
	turn.Host = h
	got := ask(t.Context(), w, turn)
	if got.err != nil || got.text != "Done." || len(h.asked) != 1 || !strings.Contains(h.asked[0].Detail, "make") {
		t.Fatalf("asked %+v, answer %q, %v", h.asked, got.text, got.err)
	}
	_, _, lines := w.got(t)
	if last := lines[len(lines)-1]; !strings.Contains(last, `"optionId":"once"`) {
		t.Errorf("the agent was answered %s", last)
	}
	if results := strings.Join(got.results(), ", "); results != "made, it is built" {
		t.Errorf("results %s", results)
	}
}

// TestAModeThatTheAgentLeftIsSetAgain, also if it says so by its options alone: the mode may be a limit.
func TestAModeThatTheAgentLeftIsSetAgain(t *testing.T) {
	t.Parallel()
	for _, left := range []string{
		`{"sessionUpdate":"current_mode_update","currentModeId":"build"}`,
		`{"sessionUpdate":"config_option_update","configOptions":[{"id":"m","category":"mode","type":"select","currentValue":"build","options":[]}]}`,
	} {
		w := start(t, acpagent.Script{Resume: true, Modes: []string{"build", "plan"}, Turns: []acpagent.Turn{{Steps: []acpagent.Step{{Update: raw(left)}, {Say: "Done."}}}}},
			func(c *acp.Config) { c.ModeFor = func(assistant.Turn) []string { return []string{"plan"} } })
		turn := question("one")
		first := ask(t.Context(), w, turn)
		if second := ask(t.Context(), w, next(turn, first, first.session(t), "two")); first.err != nil || second.err != nil {
			t.Fatal(first.err, second.err)
		}
		_, _, lines := w.got(t)
		if set := settings(t, lines); strings.Count(set, "plan") != 2 {
			t.Errorf("%s: the agent was told %q", left, set)
		}
	}
}

// TestTwoRequestsForACall: once the agent may have heard one yes the call is on record as begun,
// whatever is said to the other request. A process that dies then must not take it for one that
// never ran.
func TestTwoRequestsForACall(t *testing.T) {
	t.Parallel()
	asks := func(id string) acpagent.Step {
		return acpagent.Step{Line: `{"jsonrpc":"2.0","id":"` + id + `","method":"session/request_permission","params":{"sessionId":"%SESSION%","toolCall":{"toolCallId":"1",` +
			`"title":"make","kind":"execute","rawInput":{"command":"make"}},"options":[{"optionId":"y","kind":"allow_once"},{"optionId":"n","kind":"reject_once"}]}}`}
	}
	second := filepath.Join(t.TempDir(), "second")
	begun := make(chan struct{})
	first := make(chan struct{}, 1)
	first <- struct{}{}
	w := start(t, acpagent.Does(asks("p"), asks("q"), acpagent.Step{AwaitFile: second},
		acpagent.Step{Update: raw(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"failed"}`)}, acpagent.Step{Say: "Done."}))
	turn := question("go")
	turn.Host = &host{decide: func(ctx context.Context, _ assistant.Permission) (assistant.Verdict, error) {
		select {
		case <-first:
			return assistant.Verdict{Allow: true}, nil
		case <-begun:
			return assistant.Verdict{}, os.WriteFile(second, nil, 0o600)
		case <-ctx.Done():
			return assistant.Verdict{}, ctx.Err()
		}
	}}
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Scaled(5*time.Second))
	defer cancel()
	var events []assistant.Event
	for event, err := range w.Run(ctx, turn) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
		if _, is := event.(assistant.ToolStarted); is {
			close(begun)
		}
	}
	want := []string{
		`assistant message: call execute {"command":"make"}`, `started execute execute "make"`,
		"tool message: result of execute make, error true: The agent reported that this failed, without a reason.", "finished false",
		"text Done.", "assistant message: text Done.", "finished turn",
	}
	if d := cmp.Diff(want, kinds(events)); d != "" {
		t.Error(d)
	}
}
