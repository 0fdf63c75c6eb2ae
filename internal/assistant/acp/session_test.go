package acp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/assistant/acp/acptest"
	"remote-agent/internal/emulator/acpagent"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

const lost = "The agent lost its context and was restarted with a summary of this conversation."

func TestOneProcessForAConversation(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Script{Resume: true})
	turn := question("first")
	turn.System = "Be kind."
	first := ask(t.Context(), w, turn)
	if first.err != nil || !strings.Contains(first.answer, "Be kind.") || !strings.Contains(first.answer, "first") {
		t.Fatalf("first turn: %+v", first)
	}
	second := ask(t.Context(), w, next(turn, first, first.session(t), "second"))
	if second.err != nil || second.answer != "You said: second" || len(second.resume) > 0 {
		t.Fatalf("second turn: %+v", second)
	}
	methods, _, _ := w.got(t)
	want := []string{"initialize", "session/new", "session/prompt", "session/prompt"}
	if d := cmp.Diff(want, methods); d != "" {
		t.Error(d)
	}
}

// TestResumesAfterTheProcessEnded takes both ways that agents offer. What
// session/load replays is no part of the turn.
func TestResumesAfterTheProcessEnded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script acpagent.Script
		method string
	}{
		"resume":           {acpagent.Script{Resume: true}, "session/resume"},
		"load":             {acpagent.Script{Load: true}, "session/load"},
		"resume is better": {acpagent.Script{Load: true, Resume: true}, "session/resume"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, test.script)
			turn := question("first")
			first := ask(t.Context(), w, turn)
			w.Release(turn.Conversation)
			second := ask(t.Context(), w, next(turn, first, first.session(t), "second"))
			if second.err != nil || second.text != "You said: second" || len(second.resume) > 0 || len(second.notices) > 0 {
				t.Fatalf("second turn: %+v", second)
			}
			methods, prompts, _ := w.got(t)
			if d := cmp.Diff([]string{"initialize", "session/new", "session/prompt", "initialize", test.method, "session/prompt"}, methods); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff([]string{"first", "second"}, prompts); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestResumesAsAnotherSession: an agent may go on with what it resumes under another id,
// which counts from then on.
func TestResumesAsAnotherSession(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Script{Resume: true, Renames: true})
	turn := question("first")
	turn.System = "Be kind."
	last := ask(t.Context(), w, turn)
	session := last.session(t)
	for _, text := range []string{"second", "third"} {
		w.Release(turn.Conversation)
		turn = next(turn, last, session, text)
		turn.System = "Be kind."
		last = ask(t.Context(), w, turn)
		if last.err != nil || last.text != "You said: "+text || len(last.notices) > 0 || last.session(t) != session+"-on" {
			t.Fatalf("%s turn: %+v", text, last)
		}
		session = last.session(t)
	}
}

// TestInstructionsThatChangedBetweenTwoProcesses are told to the session that is
// resumed, once; those that did not change are not told again.
func TestInstructionsThatChangedBetweenTwoProcesses(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Script{Resume: true})
	turn := question("first")
	turn.System = "Be kind."
	last := ask(t.Context(), w, turn)
	session := last.session(t)
	for _, step := range []struct {
		text, system string
		told         bool
	}{{"second", "Be kind.", false}, {"third", "Be strict.", true}, {"fourth", "Be strict.", false}} {
		w.Release(turn.Conversation)
		turn = next(turn, last, session, step.text)
		turn.System = step.system
		last = ask(t.Context(), w, turn)
		if last.err != nil || len(last.resume) > 0 || !strings.Contains(last.answer, step.text) || strings.Contains(last.answer, step.system) != step.told {
			t.Errorf("%s turn: %+v", step.text, last)
		}
	}
}

// TestLostSession checks the order of a lost session: forget the id, start
// once afresh with a summary, store the new id, tell the person.
func TestLostSession(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]acpagent.Script{
		"code -32002":           {Resume: true},
		"as Codex says it":      {Resume: true, Unknown: &acpagent.Error{Code: -32603, Message: "Internal error", Data: raw(`{"details":"no rollout found for thread id x"}`)}},
		"any other refusal":     {Load: true, Unknown: &acpagent.Error{Code: -32603, Message: "Internal error"}},
		"no way to continue":    {},
		"an id that is no id":   {Resume: true, Unknown: &acpagent.Error{Code: -32602, Message: "Invalid params"}},
		"modes that it ignores": {Resume: true, Modes: []string{"default"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, script)
			turn := question("second question")
			turn.Resume = "no-such-session"
			turn.Array = append([]messages.Message{
				messages.NewText(messages.RoleUser, "first question"), messages.NewText(messages.RoleAssistant, "first answer"),
			}, turn.Array...)
			got := ask(t.Context(), w, turn)
			if got.err != nil {
				t.Fatal(got.err)
			}
			if len(got.resume) != 2 || got.resume[0] != "" || got.resume[1] == "" || got.resume[1] == "no-such-session" {
				t.Errorf("session ids %q, want an empty one and a new one", got.resume)
			}
			if d := cmp.Diff([]string{lost}, got.notices); d != "" {
				t.Error(d)
			}
			for _, part := range []string{"first question", "first answer", "second question"} {
				if !strings.Contains(got.answer, part) {
					t.Errorf("the agent was not told %q: %s", part, got.answer)
				}
			}
			methods, _, _ := w.got(t)
			if n := strings.Count(strings.Join(methods, " "), "session/new"); n != 1 {
				t.Errorf("%d new sessions, want 1: %v", n, methods)
			}
		})
	}
}

// TestBrokenAgentKeepsTheStoredSession has an agent that can open no session at
// all: the stored id must survive that.
func TestBrokenAgentKeepsTheStoredSession(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Script{
		Resume: true, Unknown: &acpagent.Error{Code: -32603, Message: "Internal error"},
		Open: []acpagent.Step{{Error: &acpagent.Error{Code: -32603, Message: "Internal error"}}},
	})
	turn := question("Hi")
	turn.Resume = "stored"
	got := ask(t.Context(), w, turn)
	if !fault.Is(got.err, fault.Unavailable) || len(got.resume) > 0 {
		t.Errorf("turn: %+v", got)
	}
}

func TestAuthenticationIsNoLostSession(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Script{Resume: true, Unknown: &acpagent.Error{Code: -32000, Message: "Authentication required"}})
	turn := question("Hi")
	turn.Resume = "stored"
	got := ask(t.Context(), w, turn)
	if !fault.Is(got.err, fault.Unauthorized) || len(got.resume) > 0 || !strings.Contains(fault.Public(got.err), "Log it in.") {
		t.Errorf("turn: %+v", got)
	}
}

// TestSessionForgottenByALivingProcess loses the session between two turns of
// one process.
func TestSessionForgottenByALivingProcess(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Script{Resume: true, Turns: []acpagent.Turn{
		{Nth: 2, Steps: []acpagent.Step{{Error: &acpagent.Error{Code: -32002, Message: "Resource not found"}}}},
	}})
	turn := question("first")
	first := ask(t.Context(), w, turn)
	second := ask(t.Context(), w, next(turn, first, first.session(t), "second"))
	if second.err != nil || len(second.resume) != 2 || second.resume[0] != "" || !strings.Contains(second.answer, "You said: first") {
		t.Errorf("second turn: %+v", second)
	}
	if d := cmp.Diff([]string{lost}, second.notices); d != "" {
		t.Error(d)
	}
}

// TestAnotherSessionGetsAnotherProcess: the stored id is what counts, not what
// happens to run.
func TestAnotherSessionGetsAnotherProcess(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Script{Resume: true})
	first := ask(t.Context(), w, question("first"))
	second := ask(t.Context(), w, question("second")) // a new session of ours
	if first.err != nil || second.err != nil || first.session(t) == second.session(t) {
		t.Fatalf("turns: %+v, %+v", first, second)
	}
	third := ask(t.Context(), w, next(question("first"), first, first.session(t), "third"))
	if third.err != nil || third.answer != "You said: third" {
		t.Fatalf("third turn: %+v", third)
	}
	if n := len(w.starts(t)); n != 3 {
		t.Errorf("%d processes, want 3", n)
	}
}

// TestOtherRightsAreAnotherProcess: what may change the worktree is no process of a turn that
// only reads. The session goes on in both.
func TestOtherRightsAreAnotherProcess(t *testing.T) {
	t.Parallel()
	var readOnly []bool
	w := start(t, acpagent.Script{Resume: true}, func(c *acp.Config) {
		c.Start = func(ctx context.Context, spec acp.StartSpec) (acp.Process, error) {
			readOnly = append(readOnly, spec.ReadOnly)
			return acptest.Exec(ctx, spec)
		}
	})
	turn, session := question("edit"), ""
	turn.Dir = t.TempDir()
	turn.Tree = turn.Dir
	for i, mode := range []string{"edit", "auto", "plan", "ask", "edit", "ask"} {
		if i == 5 {
			turn.Tree = "" // what it has for itself alone is no worktree
		}
		turn.Mode = mode
		got := ask(t.Context(), w, turn)
		if got.err != nil || len(got.notices) > 0 {
			t.Fatalf("%s: %+v", mode, got)
		}
		if session == "" {
			session = got.session(t)
		}
		turn = next(turn, got, session, mode)
	}
	if !slices.Equal(readOnly, []bool{false, true, false}) {
		t.Errorf("the processes were started with read-only %t", readOnly)
	}
}

func TestWorksInTheTurnsDirectory(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Script{Resume: true, Turns: []acpagent.Turn{{Steps: []acpagent.Step{
		{Tool: &acpagent.Tool{ID: "1", Title: "write", Kind: "edit", Output: "x", Write: "made.txt"}}, {Say: "Done."},
	}}}})
	turn := question("write")
	for range 2 { // another directory is another process
		turn.Dir = t.TempDir()
		if got := ask(t.Context(), w, turn); got.err != nil {
			t.Fatal(got.err)
		}
		if _, err := os.Stat(filepath.Join(turn.Dir, "made.txt")); err != nil {
			t.Error(err)
		}
	}
	turn.Dir = "relative"
	if got := ask(t.Context(), w, turn); !fault.Is(got.err, fault.Internal) {
		t.Errorf("a relative directory: %v", got.err)
	}
}

// TestConversationsWithoutACodebaseShareNothing checks the private directories:
// one for each conversation, gone again if nothing is in it.
func TestConversationsWithoutACodebaseShareNothing(t *testing.T) {
	t.Parallel()
	scratch := t.TempDir()
	w := start(t, acpagent.Script{Turns: []acpagent.Turn{{Match: "write", Steps: []acpagent.Step{
		{Tool: &acpagent.Tool{ID: "1", Title: "write", Kind: "edit", Output: "x", Write: "made.txt"}}, {Say: "Done."},
	}}}}, func(c *acp.Config) { c.Scratch = scratch })
	for _, conversation := range []string{"a", "../b", "c"} {
		turn := question(map[bool]string{true: "nothing", false: "write"}[conversation == "c"])
		turn.Conversation = conversation
		if got := ask(t.Context(), w, turn); got.err != nil {
			t.Fatal(got.err)
		}
		w.Release(conversation)
	}
	made, err := filepath.Glob(filepath.Join(scratch, "*", "made.txt"))
	if err != nil || len(made) != 2 {
		t.Errorf("files %q, want two: %v", made, err)
	}
	all, err := os.ReadDir(scratch)
	if err != nil || len(all) != 2 {
		t.Errorf("%d directories are left, want those with a file: %v", len(all), err)
	}
}

// TestEnvironmentIsExplicit has a canary in our own environment.
func TestEnvironmentIsExplicit(t *testing.T) {
	t.Setenv("CANARY_OF_THE_DAEMON", "must not be inherited")
	p, err := acptest.Exec(t.Context(), acp.StartSpec{Command: []string{"/usr/bin/env"}, Env: []string{"ONLY=this"}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	text := readAll(t, p)
	if err := p.Wait(); err != nil || text != "ONLY=this\n" {
		t.Errorf("environment %q, %v", text, err)
	}
	_ = p.Stdin().Close()
}

func TestModeAndModel(t *testing.T) {
	t.Parallel()
	mode := ""
	w := start(t, acpagent.Script{Resume: true, Modes: []string{"default", "plan"}, Models: []string{"big", "Small"}},
		func(c *acp.Config) { c.ModeFor = func(assistant.Turn) []string { return strings.Fields(mode) } })
	turn := question("Hi")
	var resume string
	for _, step := range []struct {
		mode, model string
		want        string
		notices     int
	}{
		{"", "", "", 0},
		{"plan", "small", `session/set_mode{"modeId":"plan"} session/set_model{"modelId":"Small"}`, 0},
		{"plan", "SMALL", "", 0},
		{"plan", "", `session/set_model{"modelId":"big"}`, 0}, // it has its own again
		{"plan", "small", `session/set_model{"modelId":"Small"}`, 0},
		{"default", "big", `session/set_mode{"modeId":"default"} session/set_model{"modelId":"big"}`, 0},
		{"another plan default", "", `session/set_mode{"modeId":"plan"}`, 0},
		{"", "small", `session/set_model{"modelId":"Small"}`, 0},
		{"", "none", `session/set_model{"modelId":"big"}`, 1}, // what is said is true
		{"no such mode", "none", "", 1},
	} {
		mode, turn.Model, turn.Resume = step.mode, step.model, resume
		_, _, before := w.gotOrNothing(t)
		got := ask(t.Context(), w, turn)
		if got.err != nil || len(got.notices) != step.notices || step.notices > 0 && !strings.Contains(got.notices[0], "cannot use the model none") {
			t.Fatalf("%+v: %+v", step, got)
		}
		if len(got.resume) > 0 {
			resume = got.session(t)
		}
		_, _, lines := w.got(t)
		if set := settings(t, lines[len(before):]); set != step.want {
			t.Errorf("%+v: the agent was told %q", step, set)
		}
	}
	if models, _ := w.Models(t.Context()); !slices.Equal(models, []string{"big", "Small"}) {
		t.Errorf("it offers %q", models)
	}
}

// TestModeThatIsRefused: a mode may be a limit, so the turn does not begin.
func TestModeThatIsRefused(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Script{
		Modes: []string{"default", "plan"},
		Mode:  []acpagent.Step{{Error: &acpagent.Error{Code: -32603, Message: "no"}}},
	}, func(c *acp.Config) { c.ModeFor = func(assistant.Turn) []string { return []string{"plan"} } })
	got := ask(t.Context(), w, question("Hi"))
	if got.err == nil || got.text != "" || !strings.Contains(fault.Public(got.err), "mode") {
		t.Errorf("turn: %+v", got)
	}
	if _, prompts, _ := w.got(t); len(prompts) > 0 {
		t.Errorf("the agent was prompted: %q", prompts)
	}
}

// TestCapabilitiesInAnotherForm: what an agent can do is said by an object, or as loosely as by
// true or false.
func TestCapabilitiesInAnotherForm(t *testing.T) {
	t.Parallel()
	for offer, resumes := range map[string]bool{`{}`: true, `{"x":1}`: true, `true`: true, `false`: false, `null`: false} {
		hello := `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"resume":` + offer + `}}}}`
		w := start(t, acpagent.Script{Resume: true, Init: []acpagent.Step{{Line: hello}, {NoReply: true}}})
		turn := question("one")
		first := ask(t.Context(), w, turn)
		if first.err != nil {
			t.Errorf("%s: %v", offer, first.err)
			continue
		}
		w.Release(turn.Conversation)
		ask(t.Context(), w, next(turn, first, first.session(t), "two"))
		if methods, _, _ := w.got(t); slices.Contains(methods, "session/resume") != resumes {
			t.Errorf("%s: %q", offer, methods)
		}
	}
}

// TestResumeThatIsOfferedInVain: Qwen Code offers session/resume, does not know it, and has
// session/load.
func TestResumeThatIsOfferedInVain(t *testing.T) {
	t.Parallel()
	const hello = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"resume":{}}}}}`
	w := start(t, acpagent.Script{Load: true, Init: []acpagent.Step{{Line: hello}, {NoReply: true}}})
	turn := question("one")
	first := ask(t.Context(), w, turn)
	w.Release(turn.Conversation)
	second := ask(t.Context(), w, next(turn, first, first.session(t), "two"))
	if second.err != nil || second.answer != "You said: two" || len(second.notices)+len(second.resume) > 0 {
		t.Errorf("the turn that goes on: %+v", second)
	}
}

func TestOtherVersionOfTheProtocol(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Script{Protocol: 2})
	if got := ask(t.Context(), w, question("Hi")); !fault.Is(got.err, fault.Unsupported) || !strings.Contains(fault.Public(got.err), "version 2") {
		t.Errorf("turn: %+v", got)
	}
}

func TestMissingProgram(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{"by name": "no-such-agent", "by path": "/nonexistent/agent", "not executable": "go.mod"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, acpagent.Script{}, func(c *acp.Config) { c.Command = []string{command} })
			got := ask(t.Context(), w, question("Hi"))
			if !fault.Is(got.err, fault.Unsupported) || !strings.Contains(fault.Public(got.err), "install it.") {
				t.Errorf("turn: %+v", got)
			}
			if err := w.Check(); !fault.Is(err, fault.Unsupported) {
				t.Errorf("Check: %v", err)
			}
		})
	}
	w := start(t, acpagent.Script{})
	if err := w.Check(); err != nil {
		t.Errorf("Check of a program that is there: %v", err)
	}
}

// TestMissingInterpreter: env says 127 when node is not installed.
func TestMissingInterpreter(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(script, []byte("#!/usr/bin/env no-such-node\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	w := start(t, acpagent.Script{}, func(c *acp.Config) { c.Command = []string{script} })
	got := ask(t.Context(), w, question("Hi"))
	if !fault.Is(got.err, fault.Unsupported) || !strings.Contains(fault.Public(got.err), "install it.") {
		t.Errorf("turn: %v", got.err)
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Says("Hello"))
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if got := ask(t.Context(), w, question("Hi")); !fault.Is(got.err, fault.Unavailable) {
		t.Errorf("turn: %+v", got)
	}
	w.Release("conversation")
}
