package acp_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/emulator/acpagent"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/waittest"
)

// kinds lists the types of events, with what identifies them.
func kinds(events []assistant.Event) (out []string) {
	for _, event := range events {
		switch e := event.(type) {
		case assistant.TextDelta:
			out = append(out, "text "+e.Text)
		case assistant.ThoughtDelta:
			out = append(out, "thought "+e.Text)
		case assistant.PlanUpdated:
			out = append(out, fmt.Sprintf("plan %v", e.Steps))
		case assistant.ToolStarted:
			out = append(out, fmt.Sprintf("started %s %s %q", e.Name, e.Kind, e.Summary))
		case assistant.ToolFinished:
			out = append(out, fmt.Sprintf("finished %v", e.OK))
		case assistant.MessageDone:
			var blocks []string
			for _, b := range e.Message.Blocks {
				switch b := b.(type) {
				case messages.Text:
					blocks = append(blocks, "text "+b.Text)
				case messages.Thinking:
					blocks = append(blocks, "thinking "+b.Text+" of "+b.Provider)
				case messages.ToolCall:
					blocks = append(blocks, "call "+b.Name+" "+b.Arguments)
				case messages.ToolResult:
					blocks = append(blocks, fmt.Sprintf("result of %s, error %v: %s", strings.TrimSpace(b.Name+" "+b.Summary), b.IsError, b.Content))
				case messages.Attachment:
				}
			}
			out = append(out, fmt.Sprintf("%s message: %s", e.Message.Role, strings.Join(blocks, " | ")))
		case assistant.Notice:
			out = append(out, "notice "+e.Text)
		case assistant.FileMade:
			out = append(out, fmt.Sprintf("file %s, %d bytes", e.Name, len(e.Data)))
		case assistant.Finished:
			out = append(out, "finished turn")
		case assistant.Resumable, assistant.UsageUpdated:
		}
	}
	return out
}

// TestEverythingThatATurnShows is the whole mapping in one turn. The call whose
// input comes late is on record with its input.
func TestEverythingThatATurnShows(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Does(
		acpagent.Step{Update: raw(`{"sessionUpdate":"available_commands_update","availableCommands":[]}`)},
		acpagent.Step{Update: raw(`{"sessionUpdate":"from_the_future","x":[1]}`)},
		acpagent.Step{Update: raw(`{"sessionUpdate":"session_info_update","title":"x"}`)},
		acpagent.Step{Update: raw(`[]`)},
		acpagent.Step{Update: raw(`{"sessionUpdate":"agent_message_chunk","content":"not a block"}`)},
		acpagent.Step{Line: `{"jsonrpc":"2.0","method":"_private/note","params":{}}`},
		acpagent.Step{Think: "Let me see."},
		acpagent.Step{Plan: []acpagent.Entry{{Content: "read", Status: "completed"}, {Content: "write\nit", Status: "in_progress"}, {Content: "test", Status: "pending"}}},
		acpagent.Step{Say: "I look. "},
		acpagent.Step{Tool: &acpagent.Tool{ID: "1", Name: "Bash", Title: "ls\t-l", Input: raw(`{"command":"ls -l","n":12345678901234567890}`), Late: true, Output: "a b"}},
		acpagent.Step{Tool: &acpagent.Tool{ID: "2", Title: "Edit a.go", Kind: "edit", Input: raw(`{"path":"a.go"}`), Failed: true,
			Content: raw(`[{"type":"diff","path":"/w/a.go","oldText":"one\ntwo\n","newText":"one\n2\n"}]`)}},
		acpagent.Step{Update: raw(`{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"One."}}`)},
		acpagent.Step{Update: raw(`{"sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"text","text":"Two."}}`)},
	))
	got := ask(t.Context(), w, question("go"))
	if got.err != nil {
		t.Fatal(got.err)
	}
	want := []string{
		"thought Let me see.",
		"plan [{read true false} {write it false true} {test false false}]",
		"text I look. ",
		`assistant message: thinking Let me see. of scripted | text I look.  | call Bash {"command":"ls -l","n":12345678901234567890}`,
		`started Bash execute "ls -l"`,
		"tool message: result of Bash ls -l, error false: a b",
		"finished true",
		`assistant message: call edit {"path":"a.go"}`,
		`started edit write "Edit a.go"`,
		"tool message: result of edit Edit a.go, error true: --- a/w/a.go\n+++ b/w/a.go\n@@ -1,2 +1,2 @@\n one\n-two\n+2",
		"finished false",
		"text One.", "text \n\nTwo.",
		"assistant message: text One.\n\nTwo.",
		"finished turn",
	}
	if d := cmp.Diff(want, kinds(got.events)); d != "" {
		t.Error(d)
	}
}

// TestToolIDsAreUniqueInTheSession: agents repeat ids, within a turn and in the
// next one; our record takes each id once.
func TestToolIDsAreUniqueInTheSession(t *testing.T) {
	t.Parallel()
	tool := acpagent.Step{Times: 2, Tool: &acpagent.Tool{ID: "call/1", Title: "ls", Input: raw(`{"command":"ls"}`), Output: "x"}}
	w := start(t, acpagent.Does(tool, acpagent.Step{Say: "Done."}))
	turn := question("go")
	seen, session := map[string]bool{}, ""
	for i := range 2 {
		got := ask(t.Context(), w, turn)
		if got.err != nil {
			t.Fatal(got.err)
		}
		for _, m := range got.messages {
			for _, b := range m.Blocks {
				if c, ok := b.(messages.ToolCall); ok {
					if seen[c.ID] || c.ID != messages.SafeID(c.ID) {
						t.Errorf("id %q is there twice or not safe", c.ID)
					}
					seen[c.ID] = true
				}
			}
		}
		if i == 0 {
			session = got.session(t)
		}
		turn = next(turn, got, session, "again")
	}
	if len(seen) != 4 {
		t.Errorf("%d calls, want 4", len(seen))
	}
}

// TestParallelAndUnfinishedTools: what a front end reports in any order fits an
// array that no repair has to mend.
func TestParallelAndUnfinishedTools(t *testing.T) {
	t.Parallel()
	update := func(text string) acpagent.Step { return acpagent.Step{Update: raw(text)} }
	w := start(t, acpagent.Does(
		update(`{"sessionUpdate":"tool_call","toolCallId":"a","title":"A","kind":"read","status":"pending","rawInput":{"path":"a"}}`),
		update(`{"sessionUpdate":"tool_call","toolCallId":"b","title":"B","kind":"fetch","status":"in_progress","rawInput":["u"]}`),
		update(`{"sessionUpdate":"tool_call","toolCallId":"c","title":"never ends"}`),
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"b","status":"completed","rawOutput":{"n":1}}`),
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed"}`),
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed","rawOutput":"late"}`),
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"unknown","status":"failed","title":"surprise"}`),
		acpagent.Step{Say: "Done."},
	))
	got := ask(t.Context(), w, question("go"))
	if got.err != nil {
		t.Fatal(got.err)
	}
	array := append([]messages.Message{messages.NewText(messages.RoleUser, "go")}, got.messages...)
	array = append(array, messages.NewText(messages.RoleUser, "next"))
	calls := map[string]string{}
	for _, m := range messages.Repair(array) {
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case messages.ToolCall:
				calls[b.ID] = b.Name + " " + b.Arguments
			case messages.ToolResult:
				calls[b.CallID] += fmt.Sprintf(" -> %v %q", b.IsError, b.Content)
			case messages.Text, messages.Thinking, messages.Attachment:
			}
		}
	}
	var list []string
	for _, c := range calls {
		list = append(list, c)
	}
	want := map[string]bool{
		`read {"path":"a"} -> false ""`:                                                              true,
		`fetch {"input":["u"]} -> false "{\"n\":1}"`:                                                 true,
		`tool {"title":"never ends"} -> true "The agent reported no result of this call."`:           true,
		`tool {"title":"surprise"} -> true "The agent reported that this failed, without a reason."`: true,
	}
	for _, c := range list {
		if !want[c] {
			t.Errorf("call %s", c)
		}
	}
	if len(list) != len(want) {
		t.Errorf("%d calls, want %d: %q", len(list), len(want), list)
	}
}

// TestACallIsOnRecordWithItsCommand: opencode says first where it will run, and then what.
func TestACallIsOnRecordWithItsCommand(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Does(
		acpagent.Step{Update: raw(`{"sessionUpdate":"tool_call","toolCallId":"a","title":"bash","kind":"execute","status":"pending","rawInput":{"cwd":"/w"}}`)},
		acpagent.Step{Update: raw(`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"in_progress","title":"ls -l","rawInput":{"command":"ls -l","cwd":"/w"}}`)},
		acpagent.Step{Update: raw(`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed","rawOutput":"a b"}`)},
		acpagent.Step{Say: "Done."},
	))
	got := ask(t.Context(), w, question("go"))
	if want := `assistant message: call execute {"command":"ls -l","cwd":"/w"}`; got.err != nil || !slices.Contains(kinds(got.events), want) {
		t.Errorf("%q, %v; want %q", kinds(got.events), got.err, want)
	}
}

// TestTerminalOutput: Codex sends what a command printed outside the protocol.
func TestTerminalOutput(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Does(
		acpagent.Step{Update: raw(`{"sessionUpdate":"tool_call","toolCallId":"a","title":"make","name":"exec_command","kind":"execute","status":"in_progress","content":[{"type":"terminal","terminalId":"a"}],"rawInput":{"command":["sh","-c","make 'it'"]}}`)},
		acpagent.Step{Update: raw(`{"sessionUpdate":"tool_call_update","toolCallId":"a","_meta":{"terminal_output_delta":{"data":"one\n"}}}`)},
		acpagent.Step{Update: raw(`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"failed","_meta":{"terminal_output_delta":{"data":"two\n"},"terminal_exit":{"exit_code":2}}}`)},
		acpagent.Step{Say: "It failed."},
	))
	got := ask(t.Context(), w, question("go"))
	if all := strings.Join(kinds(got.events), "\n"); got.err != nil || !strings.Contains(all, "error true: one\ntwo\n\n[exit status 2]") {
		t.Errorf("%v: %s", got.err, all)
	}
}

// TestSubagent: what a subagent of Claude Code says, its agent has as the result of a call. It is
// no part of the answer.
func TestSubagent(t *testing.T) {
	t.Parallel()
	said := func(kind, text string) acpagent.Step {
		return acpagent.Step{Update: raw(`{"sessionUpdate":"agent_` + kind + `_chunk","messageId":"s1","_meta":{"claudeCode":{"parentToolUseId":"a"}},"content":{"type":"text","text":"` + text + `"}}`)}
	}
	w := start(t, acpagent.Does(
		acpagent.Step{Update: raw(`{"sessionUpdate":"tool_call","toolCallId":"a","title":"Explore","name":"Task","kind":"think","status":"pending","rawInput":{"prompt":"Find it"}}`)},
		said("thought", "Where is it?"), said("message", "Looking for it."),
		acpagent.Step{Update: raw(`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed","content":[{"type":"content","content":{"type":"text","text":"It is in x."}}]}`)},
		said("message", "Found it."),
		acpagent.Step{Say: "See x."},
	))
	got := ask(t.Context(), w, question("go"))
	all := strings.Join(kinds(got.events), "\n")
	if got.err != nil || got.answer != "See x." || got.text != "See x." || strings.Contains(all, "ook") || strings.Contains(all, "ound") || !strings.Contains(all, "It is in x.") {
		t.Errorf("%q, %q, %v: %s", got.answer, got.text, got.err, all)
	}
}

func TestPermission(t *testing.T) {
	t.Parallel()
	all := acpagent.Options("reject_always", "allow_always", "reject_once", "allow_once")
	for name, test := range map[string]struct {
		options []acpagent.Option
		host    *host
		want    string // what the agent was told
		runs    bool
		always  bool
		notices int
	}{
		"once":                   {options: all, host: always(assistant.Verdict{Allow: true}), want: "id-allow_once", runs: true, always: true},
		"for always":             {options: all, host: always(assistant.Verdict{Allow: true, Always: true}), want: "id-allow_once", runs: true, always: true},
		"for always only":        {options: acpagent.Options("allow_always", "reject_once"), host: always(assistant.Verdict{Allow: true, Always: true}), want: "id-allow_always", runs: true, always: true},
		"always is not offered":  {options: acpagent.Options("allow_once", "reject_once"), host: always(assistant.Verdict{Allow: true, Always: true}), want: "id-allow_once", runs: true},
		"no":                     {options: all, host: always(assistant.Verdict{Reason: "no"}), want: "refused: id-reject_once", always: true},
		"no, for always only":    {options: acpagent.Options("allow_once", "reject_always"), host: always(assistant.Verdict{}), want: "refused: id-reject_always"},
		"no way to say no":       {options: acpagent.Options("allow_once"), host: always(assistant.Verdict{}), want: "refused: " + acpagent.Canceled},
		"once is not for always": {options: acpagent.Options("allow_always", "reject_once"), host: always(assistant.Verdict{Allow: true}), want: "refused: id-reject_once", always: true, notices: 1},
		"nobody can be asked for always": {options: acpagent.Options("allow_always", "reject_once"), want: "refused: id-reject_once", always: true, notices: 1, host: &host{decide: func(context.Context, assistant.Permission) (assistant.Verdict, error) {
			return assistant.Verdict{}, fault.New(fault.Unsupported, "no")
		}}},
		"nobody is there":         {options: all, want: "refused: id-reject_once"},
		"no options":              {options: []acpagent.Option{}, host: always(assistant.Verdict{Allow: true}), want: "refused: " + acpagent.Canceled, notices: 1},
		"options of another kind": {options: acpagent.Options("maybe"), host: always(assistant.Verdict{Allow: true}), want: "refused: " + acpagent.Canceled, notices: 1},
		"an error": {options: all, want: "refused: id-reject_once", always: true, host: &host{decide: func(context.Context, assistant.Permission) (assistant.Verdict, error) {
			return assistant.Verdict{Allow: true}, errors.New("no database")
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, acpagent.Does(
				acpagent.Step{Tool: &acpagent.Tool{ID: "1", Title: "rm -r x", Input: raw(`{"command":"rm -r x"}`), Ask: test.options, AskEmpty: true, Output: "id-allow_once", Write: "made"}},
				acpagent.Step{Say: "Done."}))
			turn := question("go")
			turn.Dir = t.TempDir()
			if test.host != nil {
				turn.Host = test.host
			}
			got := ask(t.Context(), w, turn)
			if got.err != nil || len(got.notices) != test.notices {
				t.Fatalf("turn: %+v", got)
			}
			text := strings.Join(kinds(got.events), "\n")
			if started := strings.Contains(text, "started "); started != test.runs {
				t.Errorf("started %v, want %v: %s", started, test.runs, text)
			}
			if failed := strings.Contains(text, "error true: "+test.want); !test.runs && !failed {
				t.Errorf("want the result %q: %s", test.want, text)
			}
			_, _, lines := w.got(t)
			if told := strings.Contains(strings.Join(lines, "\n"), `"optionId":"`+test.want+`"`); test.runs && !told {
				t.Errorf("the agent was not told %q: %q", test.want, lines)
			}
			if test.host == nil || len(test.host.asked) == 0 {
				return
			}
			p := test.host.asked[0]
			if p.Kind != assistant.KindExecute || p.Title != "rm -r x" || !strings.HasPrefix(p.Detail, "```sh\nrm -r x\n```") || p.Always != test.always || p.OnlyAlways != (test.options[0].Kind == "allow_always") ||
				p.Call.Arguments != `{"command":"rm -r x"}` || p.Call.Name != "execute" {
				t.Errorf("asked %+v", p)
			}
		})
	}
}

// TestPermissionThatNobodyCanGive: the agent takes a yes for always only, and of what is known of
// the call a person may give none. They are told, and not asked.
func TestPermissionThatNobodyCanGive(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Does(
		acpagent.Step{Tool: &acpagent.Tool{ID: "1", Title: "Edit a.txt", Kind: "edit", Ask: acpagent.Options("allow_always", "reject_always"), Output: "ok"}},
		acpagent.Step{Say: "Done."}))
	turn := question("go")
	h := always(assistant.Verdict{Allow: true})
	turn.Host = h
	got := ask(t.Context(), w, turn)
	if got.err != nil || len(h.asked) != 0 || len(got.notices) != 1 || !strings.Contains(got.notices[0], "offered no way to grant it, so it was denied: Edit a.txt") {
		t.Errorf("asked %+v, told %q, %v", h.asked, got.notices, got.err)
	}
}

// TestPermissionWaitsOnRecord: while a person thinks, the call is pending and
// not executing, the agent may go on, and silence is no hang.
func TestPermissionWaitsOnRecord(t *testing.T) {
	t.Parallel()
	silence := waittest.Scaled(150 * time.Millisecond)
	decide := make(chan assistant.Verdict)
	h := &host{decide: func(ctx context.Context, _ assistant.Permission) (assistant.Verdict, error) {
		select {
		case v := <-decide:
			return v, nil
		case <-ctx.Done():
			return assistant.Verdict{}, ctx.Err()
		}
	}}
	w := start(t, acpagent.Does(
		acpagent.Step{Tool: &acpagent.Tool{ID: "1", Title: "go test", Input: raw(`{"command":"go test"}`), Ask: acpagent.Options("allow_once", "reject_once"), Output: "ok"}},
		acpagent.Step{Say: "Done."}), func(c *acp.Config) { c.SilenceTimeout = silence })
	turn := question("go")
	turn.Host = h
	var events []assistant.Event
	for event, err := range w.Run(t.Context(), turn) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
		if m, ok := event.(assistant.MessageDone); ok && m.Message.Role == messages.RoleAssistant && m.Message.PlainText() == "" {
			time.AfterFunc(5*silence, func() { decide <- assistant.Verdict{Allow: true} })
		}
	}
	want := []string{
		`assistant message: call execute {"command":"go test"}`, `started execute execute "go test"`,
		"tool message: result of execute go test, error false: ok", "finished true", "text Done.", "assistant message: text Done.", "finished turn",
	}
	if d := cmp.Diff(want, kinds(events)); d != "" {
		t.Error(d)
	}
}

// TestPermissionTakenBack: the agent does not wait for the answer any more.
func TestPermissionTakenBack(t *testing.T) {
	t.Parallel()
	asked := filepath.Join(t.TempDir(), "asked")
	withdrawn := make(chan struct{})
	h := &host{decide: func(ctx context.Context, _ assistant.Permission) (assistant.Verdict, error) {
		_ = os.WriteFile(asked, nil, 0o600)
		<-ctx.Done()
		close(withdrawn)
		return assistant.Verdict{Allow: true}, nil
	}}
	w := start(t, acpagent.Script{Resume: true, Turns: []acpagent.Turn{{Match: "go", Steps: []acpagent.Step{
		{Line: `{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"other","options":[]}}`},
		{Line: `{"jsonrpc":"2.0","id":77,"method":"fs/read_text_file","params":{"path":"/etc/passwd"}}`},
		{Request: raw(`{"method":"terminal/create","params":{"sessionId":"%SESSION%","command":"sh"}}`)},
		{Tool: &acpagent.Tool{ID: "1", Title: "x", Ask: acpagent.Options("allow_once", "reject_once"), TakeBack: asked}},
		{Say: "Done."},
	}}}})
	turn := question("go")
	turn.Host = h
	got := ask(t.Context(), w, turn)
	<-withdrawn
	if got.err != nil || got.answer != "Done." || len(h.asked) != 1 {
		t.Fatalf("turn: %+v, asked %v", got, h.asked)
	}
	if text := strings.Join(kinds(got.events), "\n"); strings.Contains(text, "started") {
		t.Errorf("the call ran: %s", text)
	}
	for _, want := range []string{
		`"id":"p","result":{"outcome":{"outcome":"` + acpagent.Canceled + `"}}`, `"id":77,"error":{"code":-32601`,
		`"id":1,"error":{"code":-32601`, `"id":2,"result":{"outcome":{"outcome":"` + acpagent.Canceled + `"}}`,
	} {
		eventually(t, "the agent is answered "+want, func() bool {
			_, _, lines := w.got(t)
			return strings.Contains(strings.Join(lines, "\n"), want)
		})
	}
}

func TestStopReasons(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]fault.Kind{
		"end_turn": "", "max_tokens": fault.Exhausted, "max_turn_requests": fault.Exhausted,
		"refusal": fault.Invalid, acpagent.Canceled: fault.Unavailable, "from_the_future": fault.Internal, "": fault.Internal,
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			w := start(t, acpagent.Does(acpagent.Step{Say: "Well"}, acpagent.Step{Stop: &acpagent.Stop{Reason: reason}}))
			got := ask(t.Context(), w, question("go"))
			if fault.KindOf(got.err) != want || got.text != "Well" {
				t.Errorf("kind %q, want %q: %+v", fault.KindOf(got.err), want, got)
			}
			if (len(got.messages) > 0) != (want == "") {
				t.Errorf("messages %+v", got.messages)
			}
		})
	}
}

// TestRefusalThatStopsTheAgent: some agents end the turn when they are not
// allowed something.
func TestRefusalThatStopsTheAgent(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Does(
		acpagent.Step{Tool: &acpagent.Tool{ID: "1", Title: "rm x", Input: raw(`{"command":"rm x"}`), Ask: acpagent.Options("allow_once", "reject_once")}},
		acpagent.Step{Stop: &acpagent.Stop{Reason: acpagent.Canceled}}))
	got := ask(t.Context(), w, question("go"))
	if !fault.Is(got.err, fault.Forbidden) || !strings.Contains(fault.Public(got.err), "rm x") {
		t.Errorf("turn: %v", got.err)
	}
}

// TestPlanThatAsksToBeCarriedOut: Claude Code hands over its plan with the question whether to
// carry it out, and ends the turn when it may not. Where nothing may change, the plan is the answer.
func TestPlanThatAsksToBeCarriedOut(t *testing.T) {
	t.Parallel()
	const plan = "# Plan\n\n1. Do it"
	w := start(t, acpagent.Does(
		acpagent.Step{Say: "This is my plan."},
		acpagent.Step{Tool: &acpagent.Tool{
			ID: "1", Title: "Approve Plan", Kind: "switch_mode", Input: raw(`{"plan":"# Plan\n\n1. Do it","allowedPrompts":["a"]}`), Late: true,
			Ask: acpagent.Options("allow_always", "allow_once", "reject_once"),
		}}))
	for mode, want := range map[string]string{"plan": plan, "ask": plan, "edit": "This is my plan.\n\n(The agent finished without a message.)"} {
		turn := question("go")
		h := always(assistant.Verdict{})
		turn.Conversation, turn.Mode, turn.Host = mode, mode, h
		got := ask(t.Context(), w, turn)
		if got.err != nil || got.answer != want || !strings.HasSuffix(got.text, want) || strings.Count(got.text, "# Plan") > 1 {
			t.Errorf("%s: %q, %q, %v; want %q", mode, got.answer, got.text, got.err, want)
		}
		if shown := "```\n" + plan + "\n```\n\n```json\n{\"allowedPrompts\":[\"a\"]}\n```"; len(h.asked) != 1 || h.asked[0].Detail != shown {
			t.Errorf("asked %+v", h.asked)
		}
	}
}

// TestFailureThatLooksLikeAnAnswer: Codex ends a turn well of which its model
// refused the request, with the reason as the answer.
func TestFailureThatLooksLikeAnAnswer(t *testing.T) {
	t.Parallel()
	status := func(s string) acpagent.Step {
		return acpagent.Step{Update: raw(`{"sessionUpdate":"session_info_update","_meta":{"codex":{"threadStatus":{"type":"` + s + `"}}}}`)}
	}
	for text, want := range map[string]fault.Kind{
		"exceeded retry limit, last status: 429 Too Many Requests": fault.RateLimited,
		"We are currently experiencing high demand":                fault.Unavailable,
		"something else": fault.Unavailable,
	} {
		w := start(t, acpagent.Does(status("active"), acpagent.Step{Say: "I begin. "}, status("systemError"), acpagent.Step{Say: text},
			acpagent.Step{Stop: &acpagent.Stop{Reason: "end_turn", Tokens: map[string]int64{"inputTokens": 10, "outputTokens": 5}}}))
		got := ask(t.Context(), w, question("go"))
		if !fault.Is(got.err, want) || got.text != "I begin. " || len(got.messages) > 0 {
			t.Errorf("%s: %+v", text, got)
		}
		if used, ok := got.events[len(got.events)-1].(assistant.UsageUpdated); !ok || used.Usage.OutputTokens != 5 {
			t.Errorf("what it cost is not said last: %+v", got.events)
		}
	}
	w := start(t, acpagent.Does(status("systemError"), status("active"), acpagent.Step{Say: "It is well again."}, status("idle")))
	if got := ask(t.Context(), w, question("go")); got.err != nil || got.answer != "It is well again." {
		t.Errorf("a failure that passed: %+v", got)
	}
}

// TestAskedAfterItIsInProgress: Codex reports a call as in progress before it
// asks; a call that is refused never started.
func TestAskedAfterItIsInProgress(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Does(
		acpagent.Step{Update: raw(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"rm x","kind":"execute","status":"in_progress","rawInput":{"command":"rm x"}}`)},
		acpagent.Step{Request: raw(`{"method":"session/request_permission","params":{"sessionId":"%SESSION%","toolCall":{"toolCallId":"1"},"options":[{"optionId":"n","kind":"reject_once"},{"optionId":"y","kind":"allow_once"}]}}`)},
		acpagent.Step{Update: raw(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"failed"}`)},
		acpagent.Step{Say: "Then not."}))
	got := ask(t.Context(), w, question("go"))
	want := []string{
		`assistant message: call execute {"command":"rm x"}`, "tool message: result of execute rm x, error true: This was not allowed, so it did not run.",
		"text Then not.", "assistant message: text Then not.", "finished turn",
	}
	if d := cmp.Diff(want, kinds(got.events)); got.err != nil || d != "" {
		t.Errorf("%v\n%s", got.err, d)
	}
}

func TestSilentEnd(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Does(acpagent.Step{Think: "hm"}))
	if got := ask(t.Context(), w, question("go")); !fault.Is(got.err, fault.Unavailable) {
		t.Errorf("nothing at all: %+v", got)
	}
	w = start(t, acpagent.Does(acpagent.Step{Tool: &acpagent.Tool{ID: "1", Title: "ls", Output: "x"}}))
	if got := ask(t.Context(), w, question("go")); got.err != nil || got.answer == "" || got.answer != got.text {
		t.Errorf("work without a word: %+v", got)
	}
}

// TestUsage: the tokens of the answer are the turn's; the cost is the session's
// and is subtracted, over restarts of the process and of the bot.
func TestUsage(t *testing.T) {
	t.Parallel()
	cost := func(c float64) acpagent.Step {
		return acpagent.Step{Usage: &acpagent.Usage{Used: 1000, Size: 200000, Cost: &c}}
	}
	tokens := func(total int64) acpagent.Step {
		return acpagent.Step{Stop: &acpagent.Stop{Reason: "end_turn", Tokens: map[string]int64{
			"inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 100, "cachedWriteTokens": 20, "totalTokens": total,
		}}}
	}
	turnOf := func(match string, c float64, total int64) acpagent.Turn {
		return acpagent.Turn{Match: match, Steps: []acpagent.Step{{Say: "Well."}, cost(c), tokens(total)}}
	}
	absurd := acpagent.Step{Stop: &acpagent.Stop{Reason: "end_turn", Tokens: map[string]int64{"inputTokens": math.MaxInt64, "outputTokens": 5, "totalTokens": 5}}}
	gemini := acpagent.Step{Stop: &acpagent.Stop{Reason: "end_turn", Tokens: map[string]int64{
		"inputTokens": 1000, "outputTokens": 50, "cachedReadTokens": 200, "thoughtTokens": 300, "totalTokens": 1350,
	}}}
	script := acpagent.Script{Resume: true, Turns: []acpagent.Turn{
		{Match: "six", Steps: []acpagent.Step{{Say: "Well."}, gemini}},
		{Match: "five", Steps: []acpagent.Step{{Say: "Well."}, absurd}}, turnOf("four", 0.25, 135), turnOf("three", 1.5, 15), turnOf("two", 1.25, 135), turnOf("one", 0.5, 135),
	}}
	w := start(t, script)
	turn := question("one")
	first := ask(t.Context(), w, turn)
	if first.err != nil {
		t.Fatal(first.err)
	}
	want := assistant.Usage{
		InputTokens: 130, OutputTokens: 5, CachedTokens: 100, WrittenTokens: 20, CostUSD: 0.5, ContextUsed: 1000, ContextSize: 200000,
	}
	if d := cmp.Diff(want, first.finished.Usage); d != "" {
		t.Error(d)
	}
	turn2 := next(turn, first, first.session(t), "two")
	second := ask(t.Context(), w, turn2)
	if second.finished.Usage.CostUSD != 0.75 {
		t.Errorf("second turn cost %v, want 0.75", second.finished.Usage.CostUSD)
	}
	w.Release(turn.Conversation)
	turn3 := next(turn2, second, first.session(t), "three")
	third := ask(t.Context(), w, turn3)
	if u := third.finished.Usage; u.CostUSD != 0.25 || u.InputTokens != 10 {
		t.Errorf("third turn: %+v, want a cost of 0.25 and 10 tokens", u)
	}
	fourth := ask(t.Context(), w, next(turn3, third, first.session(t), "four"))
	if fourth.finished.Usage.CostUSD != 0.25 {
		t.Errorf("the counter began again: %v, want 0.25", fourth.finished.Usage.CostUSD)
	}
	if u := ask(t.Context(), w, question("five")).finished.Usage; u.InputTokens != 1e9 || u.OutputTokens != 5 {
		t.Errorf("an absurd number is %+v", u)
	}
	if u := ask(t.Context(), w, question("six")).finished.Usage; u.InputTokens != 1000 || u.OutputTokens != 350 || u.CachedTokens != 200 {
		t.Errorf("what is cached counts once, and what is thought as output: %+v", u)
	}
	// Nothing on record of what the session had cost before: unknown.
	w.Release(turn.Conversation)
	unknown := question("two")
	unknown.Resume = first.session(t)
	if got := ask(t.Context(), w, unknown); got.finished.Usage.CostUSD != 0 {
		t.Errorf("unknown cost: %v, want 0", got.finished.Usage.CostUSD)
	}
}

// TestCostOfAFailedTurn: what a turn without an answer cost is on record, so the next
// process on the session does not count it again. Nor does the one after that.
func TestCostOfAFailedTurn(t *testing.T) {
	t.Parallel()
	turnOf := func(match string, c float64, reason string) acpagent.Turn {
		return acpagent.Turn{Match: match, Steps: []acpagent.Step{
			{Say: "Well."}, {Usage: &acpagent.Usage{Used: 1000, Size: 200000, Cost: &c}}, {Stop: &acpagent.Stop{Reason: reason}},
		}}
	}
	w := start(t, acpagent.Script{Resume: true, Turns: []acpagent.Turn{
		turnOf("four", 2.5, "end_turn"), turnOf("three", 1.5, "end_turn"), turnOf("two", 1.25, "max_tokens"), turnOf("one", 0.5, "end_turn"),
	}})
	turn, resume := question("one"), assistant.Resumable{}
	for i, want := range []float64{0.5, 0.75, 0.25, 1} {
		got := ask(t.Context(), w, turn)
		var used assistant.Usage
		for _, e := range got.events {
			if r, ok := e.(assistant.Resumable); ok {
				resume = r
			}
			if u, ok := e.(assistant.UsageUpdated); ok {
				used = u.Usage
			}
		}
		if used.CostUSD != want || (got.err != nil) != (i == 1) {
			t.Fatalf("turn %d cost %v, want %v: %+v", i+1, used.CostUSD, want, got)
		}
		turn = next(turn, got, resume.Session, []string{"two", "three", "four", ""}[i])
		turn.ResumeCostUSD = resume.CostUSD
		w.Release(turn.Conversation)
	}
}
