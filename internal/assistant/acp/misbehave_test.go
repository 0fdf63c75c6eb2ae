package acp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/emulator/acpagent"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/waittest"
)

// TestMisbehavior is everything that an agent can do wrong. Each ends as an
// error with a text for the person, nothing of it is stored as an answer, and
// the next turn works on a fresh process.
func TestMisbehavior(t *testing.T) {
	t.Parallel()
	say := acpagent.Step{Say: "Hel"}
	exit := func(n int) acpagent.Step { return acpagent.Step{Exit: new(n)} }
	answers := func(c int, text string) acpagent.Step {
		return acpagent.Step{Error: &acpagent.Error{Code: c, Message: text}}
	}
	for name, test := range map[string]struct {
		steps  []acpagent.Step
		kind   fault.Kind
		public string // a part of what the person reads
	}{
		"garbage on stdout":           {[]acpagent.Step{say, {Line: "Segmentation fault " + secret}, {Hang: true}}, fault.Unavailable, "not the Agent Client Protocol"},
		"JSON that is no message":     {[]acpagent.Step{say, {Line: `{"a":1}`}, {Hang: true}}, fault.Unavailable, "not the Agent Client Protocol"},
		"half a message":              {[]acpagent.Step{say, {Line: `{"jsonrpc":"2.0","method":"session/upd`}, {Hang: true}}, fault.Unavailable, "not the Agent Client Protocol"},
		"a line of 10 MB":             {[]acpagent.Step{say, {Fill: 10 << 20}, {Hang: true}}, fault.Unavailable, "too much at once"},
		"an endless answer":           {[]acpagent.Step{{Times: 17, Say: strings.Repeat("x", 64<<10)}, {Hang: true}}, fault.Unavailable, "too much at once"},
		"a hang":                      {[]acpagent.Step{say, {Hang: true}}, fault.Unavailable, "sent nothing for"},
		"a hang that resists":         {[]acpagent.Step{say, {Deaf: true}, {Hang: true}}, fault.Unavailable, "sent nothing for"},
		"exit 0":                      {[]acpagent.Step{say, exit(0)}, fault.Unavailable, "exit status 0"},
		"exit 3":                      {[]acpagent.Step{say, exit(3)}, fault.Unavailable, "exit status 3"},
		"exit 0 with an error":        {[]acpagent.Step{say, {Stderr: "error: " + secret}, exit(0)}, fault.Unavailable, "exit status 0"},
		"exit in a message":           {[]acpagent.Step{say, {Raw: `{"jsonrpc":"2.0","me`}, exit(1)}, fault.Unavailable, "in the middle of a message"},
		"a flood on stderr":           {[]acpagent.Step{say, {Times: 200, Stderr: strings.Repeat("noise ", 4096)}, exit(1)}, fault.Unavailable, "exit status 1"},
		"a JSON-RPC error":            {[]acpagent.Step{say, answers(-32603, "Internal error: "+secret)}, fault.Unavailable, "ended with an error"},
		"no login":                    {[]acpagent.Step{answers(-32000, "Authentication required")}, fault.Unauthorized, "Log it in."},
		"that code for a quota":       {[]acpagent.Step{answers(-32000, "You exceeded your current token quota, please check your account balance")}, fault.Exhausted, "quota"},
		"that code for an overload":   {[]acpagent.Step{answers(-32000, "Error code: 529 - overloaded")}, fault.Unavailable, "cannot reach its model"},
		"a refused key":               {[]acpagent.Step{answers(-32603, "authentication_failed")}, fault.Unauthorized, "Log it in."},
		"a rate limit":                {[]acpagent.Step{answers(-32603, "rate_limit")}, fault.RateLimited, "busy"},
		"a session limit":             {[]acpagent.Step{answers(-32603, "You've hit your session limit · resets 8:30pm (Asia/Tokyo)")}, fault.RateLimited, "is reached until"},
		"a limit of all":              {[]acpagent.Step{answers(-32603, "You've hit your limit · resets 2am (Europe/Berlin)")}, fault.RateLimited, "is reached until"},
		"a weekly limit":              {[]acpagent.Step{answers(-32603, "Weekly limit reached · resets 10am (Asia/Seoul) · /upgrade to Max")}, fault.RateLimited, "is reached until"},
		"a limit without an end":      {[]acpagent.Step{answers(-32603, "5-hour limit reached")}, fault.Exhausted, "quota"},
		"a full context":              {[]acpagent.Step{answers(-32603, "Prompt is too long")}, fault.Exhausted, "/new"},
		"a context in other words":    {[]acpagent.Step{answers(-32603, "Codex ran out of room in the model's context window.")}, fault.Exhausted, "/new"},
		"a limit of the context":      {[]acpagent.Step{answers(-32603, "Context limit reached · /compact or /clear to continue")}, fault.Exhausted, "/new"},
		"an option of the context":    {[]acpagent.Step{answers(-32603, "Unknown option context_length in config.toml")}, fault.Unavailable, "ended with an error"},
		"no such model":               {[]acpagent.Step{answers(-32603, "There's an issue with the selected model (gpt-9). It may not exist or you may not have access to it.")}, fault.Unsupported, "there is no such model"},
		"a model of another account":  {[]acpagent.Step{answers(-32603, `unexpected status 400: {"detail":"The 'gpt-9' model is not supported when using Codex with a ChatGPT account."}`)}, fault.Unsupported, "there is no such model"},
		"a model that is gone":        {[]acpagent.Step{answers(-32603, `404 {"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}`)}, fault.Unsupported, "there is no such model"},
		"a model that is overloaded":  {[]acpagent.Step{answers(-32603, "The model is overloaded. Please try again later.")}, fault.Unavailable, "cannot reach its model"},
		"an answer of another form":   {[]acpagent.Step{say, {Line: `{"jsonrpc":"2.0","id":3,"result":[1]}`}, {Hang: true}}, fault.Unavailable, "not the Agent Client Protocol"},
		"an answer without a reason":  {[]acpagent.Step{say, {Line: `{"jsonrpc":"2.0","id":3,"result":null}`}, {Hang: true}}, fault.Internal, "unknown reason"},
		"an answer to nothing, exits": {[]acpagent.Step{say, {Line: `{"jsonrpc":"2.0","id":999,"result":{"stopReason":"end_turn"}}`}, exit(0)}, fault.Unavailable, "exit status 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, acpagent.Script{Resume: true, Turns: []acpagent.Turn{{Match: "bad", Steps: test.steps}}},
				func(c *acp.Config) {
					if strings.HasPrefix(test.public, "sent nothing") {
						c.SilenceTimeout = waittest.Scaled(1500 * time.Millisecond)
					}
				})
			turn := question("bad")
			got := ask(t.Context(), w, turn)
			if fault.KindOf(got.err) != test.kind || !strings.Contains(fault.Public(got.err), test.public) {
				t.Errorf("error %v of kind %q, want %q and %q", got.err, fault.KindOf(got.err), test.kind, test.public)
			}
			if len(got.messages) > 0 || got.finished != nil {
				t.Errorf("an answer was stored: %+v", got.messages)
			}
			if strings.Contains(got.err.Error(), secret) || strings.Contains(w.log.String(), secret) {
				t.Errorf("the credential shows: %v\n%s", got.err, w.log)
			}
			again := question("good")
			again.Resume = got.session(t)
			second := ask(t.Context(), w, again)
			if second.err != nil || second.answer != "You said: good" {
				t.Errorf("the next turn: %+v", second)
			}
			if pids := w.starts(t); len(pids) != 2 {
				t.Errorf("%d processes, want a fresh one for the second turn", len(pids))
			}
		})
	}
}

// TestTwoRequestsUnderOneID: an answer would be one to either, so nobody is left to decide on
// what the agent may not hear of.
func TestTwoRequestsUnderOneID(t *testing.T) {
	t.Parallel()
	asks := func(call string) acpagent.Step {
		return acpagent.Step{Line: `{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"%SESSION%","toolCall":{"toolCallId":"` + call +
			`","title":"x","rawInput":{"command":"make ` + call + `"}},"options":[{"optionId":"y","kind":"allow_once"},{"optionId":"n","kind":"reject_once"}]}}`}
	}
	w := start(t, acpagent.Script{Turns: []acpagent.Turn{{Match: "go", Steps: []acpagent.Step{asks("1"), asks("2"), {Hang: true}}}}})
	turn := question("go")
	turn.Host = &host{decide: func(ctx context.Context, _ assistant.Permission) (assistant.Verdict, error) {
		<-ctx.Done()
		return assistant.Verdict{}, ctx.Err()
	}}
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Scaled(5*time.Second))
	defer cancel()
	if got := ask(ctx, w, turn); !strings.Contains(fault.Public(got.err), "not the Agent Client Protocol") {
		t.Errorf("the turn ended with %v", got.err)
	}
}

// TestMisbehaviorAtStart is what can go wrong before a session is there.
func TestMisbehaviorAtStart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script acpagent.Script
		kind   fault.Kind
		public string
	}{
		"hangs":             {acpagent.Script{Init: []acpagent.Step{{Hang: true}}}, fault.Unsupported, "did not answer within 300ms and was stopped. Check that its command, which begins with \"" + os.Args[0] + "\", starts"},
		"reads nothing":     {acpagent.Script{Start: []acpagent.Step{{Hang: true}}}, fault.Unsupported, "did not answer within"},
		"exits":             {acpagent.Script{Start: []acpagent.Step{{Stderr: "no config\n"}, {Exit: new(1)}}}, fault.Unavailable, "exit status 1"},
		"exits 0":           {acpagent.Script{Start: []acpagent.Step{{Exit: new(0)}}}, fault.Unavailable, "exit status 0"},
		"prints for ever":   {acpagent.Script{Start: []acpagent.Step{{Times: 200, Line: "npm WARN"}, {Hang: true}}}, fault.Unavailable, "not the Agent Client Protocol"},
		"an invalid config": {acpagent.Script{Init: []acpagent.Step{{Error: &acpagent.Error{Code: 1001, Message: "process has exited with code 1"}}}}, fault.Unsupported, "refused to start"},
		"no login":          {acpagent.Script{Open: []acpagent.Step{{Error: &acpagent.Error{Code: -32000, Message: "Authentication required"}}}}, fault.Unauthorized, "Log it in."},
		"no login, with ways": {acpagent.Script{
			Init: []acpagent.Step{{Line: `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"authMethods":[7,{"id":"key","name":"API key","description":"Set\nEXAMPLE_API_KEY"},{"id":"web","name":"Browser"},{"id":"odd"}]}}`}, {NoReply: true}},
			Open: []acpagent.Step{{Error: &acpagent.Error{Code: -32000, Message: "Authentication required"}}},
		}, fault.Unauthorized, "It names these ways: API key: Set EXAMPLE_API_KEY; Browser. Log it in."},
		"no ways": {acpagent.Script{
			Init: []acpagent.Step{{Line: `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"authMethods":"none"}}`}, {NoReply: true}},
			Open: []acpagent.Step{{Error: &acpagent.Error{Code: -32000, Message: "Authentication required"}}},
		}, fault.Unauthorized, "its key is refused. Log it in."},
		"session/new hangs":       {acpagent.Script{Open: []acpagent.Step{{Hang: true}}}, fault.Unsupported, "did not open a session within"},
		"session/new fails":       {acpagent.Script{Open: []acpagent.Step{{Error: &acpagent.Error{Code: -32603, Message: "x"}}}}, fault.Unavailable, "could not open a session"},
		"a session without an id": {acpagent.Script{Open: []acpagent.Step{{Line: `{"jsonrpc":"2.0","id":2,"result":{}}`}, {NoReply: true}}}, fault.Unavailable, "not the Agent Client Protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, test.script, func(c *acp.Config) {
				if strings.Contains(test.public, "within") {
					c.InitTimeout = 300 * time.Millisecond
				}
				if strings.Contains(test.public, "open a session") { // it answers first
					c.InitTimeout = waittest.Scaled(3 * time.Second)
				}
			})
			got := ask(t.Context(), w, question("Hi"))
			if fault.KindOf(got.err) != test.kind || !strings.Contains(fault.Public(got.err), test.public) {
				t.Errorf("error %v of kind %q, want %q and %q", got.err, fault.KindOf(got.err), test.kind, test.public)
			}
			if len(got.events) > 0 {
				t.Errorf("events %v", kinds(got.events))
			}
		})
	}
}

// TestPreludeIsSkipped: what a wrapper prints before the agent speaks loses
// nothing.
func TestPreludeIsSkipped(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Script{Start: []acpagent.Step{{Line: "npm WARN old"}, {Line: "[1]"}, {Line: "  "}}})
	if got := ask(t.Context(), w, question("Hi")); got.err != nil || got.answer != "You said: Hi" {
		t.Errorf("turn: %+v", got)
	}
}

// TestAnswerRightBeforeTheEnd: an agent that answers and exits has answered.
func TestAnswerRightBeforeTheEnd(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Does(acpagent.Step{Times: 500, Say: "x"},
		acpagent.Step{Line: `{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`}, acpagent.Step{Exit: new(0)}))
	for range 5 {
		if got := ask(t.Context(), w, question("Hi")); got.err != nil || len(got.answer) != 500 {
			t.Fatalf("%d bytes, %v", len(got.answer), got.err)
		}
	}
}

// TestLongReplay: a session of thousands of messages arrives faster than it is
// handled.
func TestLongReplay(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Does(acpagent.Step{Times: 2500, Think: "x"}, acpagent.Step{Say: "Done."}))
	n := 0
	for event, err := range w.Run(t.Context(), question("Hi")) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := event.(assistant.ThoughtDelta); ok {
			n++
		}
	}
	if n != 2500 {
		t.Errorf("%d thoughts, want 2500", n)
	}
}

// TestOthersUpdates: what belongs to another session, or to no turn, is no part
// of the answer.
func TestOthersUpdates(t *testing.T) {
	t.Parallel()
	stray := acpagent.Step{Session: "another", Update: raw(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"not yours"}}`)}
	w := start(t, acpagent.Script{Resume: true, Turns: []acpagent.Turn{
		{Match: "first", Steps: []acpagent.Step{stray, {Say: "Mine."}, {Stop: &acpagent.Stop{Reason: "end_turn"}}}},
	}, Open: []acpagent.Step{{Say: "too early"}}})
	turn := question("first")
	first := ask(t.Context(), w, turn)
	if first.err != nil || first.text != "Mine." {
		t.Fatalf("turn: %+v", first)
	}
}

func TestUpdatesAfterTheEnd(t *testing.T) {
	t.Parallel()
	late := filepath.Join(t.TempDir(), "late")
	w := start(t, acpagent.Script{Resume: true, Turns: []acpagent.Turn{{Nth: 1, Steps: []acpagent.Step{
		{Say: "One."}, {Line: `{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`},
		{Say: "late"}, {Tool: &acpagent.Tool{ID: "1", Title: "late", Ask: acpagent.Options("allow_once", "reject_once")}},
		{Touch: late}, {NoReply: true},
	}}}})
	turn := question("first")
	first := ask(t.Context(), w, turn)
	if first.err != nil || first.text != "One." {
		t.Fatalf("turn: %+v", first)
	}
	eventually(t, "the late request is answered", func() bool { _, err := os.Stat(late); return err == nil })
	second := ask(t.Context(), w, next(turn, first, first.session(t), "second"))
	if second.err != nil || second.text != "You said: second" {
		t.Errorf("second turn: %+v", second)
	}
}

// TestForkedChildren: the agent ends and a child of it keeps stdout open. The
// child is in its group and ends with it.
func TestForkedChildren(t *testing.T) {
	t.Parallel()
	pidFile := filepath.Join(t.TempDir(), "pid")
	w := start(t, acpagent.Does(acpagent.Step{Say: "x"}, acpagent.Step{Fork: pidFile}, acpagent.Step{Exit: new(0)}))
	begin := time.Now()
	if got := ask(t.Context(), w, question("Hi")); !fault.Is(got.err, fault.Unavailable) {
		t.Errorf("turn: %+v", got)
	}
	if took := time.Since(begin); waittest.TooLong(took, 5*time.Second) {
		t.Errorf("the turn took %v", took)
	}
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the child ends", func() bool { return !running(pid) })
}

// running reports whether a process is there and is not just waiting to be
// collected.
func running(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

// stopAt runs a turn and stops it at its first text. It returns how long Run
// took after that.
func stopAt(t *testing.T, w world, turn assistant.Turn) (took time.Duration, got result) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stopped time.Time
	for event, err := range w.Run(ctx, turn) {
		if err != nil {
			got.err = err
			continue
		}
		got.add(event)
		if _, ok := event.(assistant.TextDelta); ok && stopped.IsZero() {
			stopped = time.Now()
			cancel()
		}
	}
	return time.Since(stopped), got
}

// TestStop: an agent that ends its turn is kept, with its process.
func TestStop(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Script{Resume: true, Turns: []acpagent.Turn{{Nth: 1, Steps: []acpagent.Step{
		{Say: "I begin."}, {AwaitCancel: true}, {Say: "too late"}, {Stop: &acpagent.Stop{Reason: acpagent.Canceled, Tokens: map[string]int64{"inputTokens": 7, "outputTokens": 5}}},
	}}}})
	turn := question("slow")
	took, got := stopAt(t, w, turn)
	if !fault.Is(got.err, fault.Canceled) || !errors.Is(got.err, context.Canceled) || got.text != "I begin." || waittest.TooLong(took, time.Second) {
		t.Errorf("stopped after %v: %+v", took, got)
	}
	if used, ok := got.events[len(got.events)-1].(assistant.UsageUpdated); !ok || used.Usage.InputTokens != 7 || used.Usage.OutputTokens != 5 {
		t.Errorf("what the turn used until it was stopped is not said last: %+v", got.events)
	}
	second := ask(t.Context(), w, next(turn, got, got.session(t), "second"))
	if second.err != nil || !strings.Contains(second.text, "second") || len(w.starts(t)) != 1 {
		t.Errorf("second turn on %d processes: %+v", len(w.starts(t)), second)
	}
}

// TestStopOfAStubbornAgent: Run returns within a second, the process group is
// ended behind its back, and the next turn waits for that.
func TestStopOfAStubbornAgent(t *testing.T) {
	t.Parallel()
	pidFile := filepath.Join(t.TempDir(), "pid")
	w := start(t, acpagent.Script{Resume: true, Turns: []acpagent.Turn{{Match: "slow", Steps: []acpagent.Step{
		{Deaf: true}, {Fork: pidFile}, {Say: "I begin."}, {Hang: true},
	}}}})
	turn := question("slow")
	took, got := stopAt(t, w, turn)
	if !fault.Is(got.err, fault.Canceled) || waittest.TooLong(took, time.Second) {
		t.Errorf("stopped after %v: %v", took, got.err)
	}
	again := question("second")
	again.Resume = got.session(t)
	second := ask(t.Context(), w, again)
	pids := w.starts(t)
	if second.err != nil || !strings.Contains(second.text, "second") || len(pids) != 2 {
		t.Fatalf("second turn on %d processes: %+v", len(pids), second)
	}
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(string(text))
	if err != nil || running(pids[0]) || running(child) {
		t.Errorf("the agent %d or its child %q is running still: %v", pids[0], text, err)
	}
}

// TestStopWhileAPersonIsAsked: the question is withdrawn on both sides.
func TestStopWhileAPersonIsAsked(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	withdrawn := make(chan struct{})
	h := &host{decide: func(ctx context.Context, _ assistant.Permission) (assistant.Verdict, error) {
		cancel()
		<-ctx.Done()
		close(withdrawn)
		return assistant.Verdict{}, ctx.Err()
	}}
	w := start(t, acpagent.Does(
		acpagent.Step{Tool: &acpagent.Tool{ID: "1", Title: "x", Ask: acpagent.Options("allow_once", "reject_once")}},
		acpagent.Step{Stop: &acpagent.Stop{Reason: acpagent.Canceled}}))
	turn := question("go")
	turn.Host = h
	got := ask(ctx, w, turn)
	<-withdrawn
	if !fault.Is(got.err, fault.Canceled) {
		t.Errorf("turn: %+v", got)
	}
	eventually(t, "the agent is told", func() bool {
		_, _, lines := w.got(t)
		return strings.Contains(strings.Join(lines, "\n"), `"outcome":"`+acpagent.Canceled+`"`)
	})
}

// TestStopWhileItStarts: Run does not wait for a start that hangs.
func TestStopWhileItStarts(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Script{Init: []acpagent.Step{{Hang: true}}})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	begin := time.Now()
	got := ask(ctx, w, question("Hi"))
	if took := time.Since(begin); !fault.Is(got.err, fault.Canceled) || waittest.TooLong(took, 1100*time.Millisecond) {
		t.Errorf("after %v: %+v", took, got)
	}
}

// TestReleaseEndsARunningTurn: so do the end of a conversation and Close.
func TestReleaseEndsARunningTurn(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Does(acpagent.Step{Say: "I begin."}, acpagent.Step{Hang: true}))
	for _, end := range []func(){func() { w.Release("conversation") }, func() { _ = w.Close() }} {
		done := make(chan struct{})
		var failed error
		for event, err := range w.Run(t.Context(), question("Hi")) {
			failed = err
			if _, ok := event.(assistant.TextDelta); ok {
				go func() { defer close(done); end() }()
			}
		}
		<-done
		if !fault.Is(failed, fault.Unavailable) {
			t.Errorf("the turn ended with %v", failed)
		}
	}
}

// TestInterruptedTurn: after a crash the agent is told what is on record, and to
// look before it repeats anything.
func TestInterruptedTurn(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Script{})
	turn := question("deploy it")
	turn.Array = append(turn.Array,
		messages.NewToolCall("c1", "Bash", `{"command":"make deploy"}`), messages.NewToolResult("c1", messages.Interrupted, true))
	got := ask(t.Context(), w, turn)
	if got.err != nil {
		t.Fatal(got.err)
	}
	for _, part := range []string{"was interrupted", "deploy it", "make deploy", messages.Interrupted, "do not repeat"} {
		if !strings.Contains(got.answer, part) {
			t.Errorf("the agent was not told %q: %s", part, got.answer)
		}
	}
}

// TestEndInTheMiddleOfACall: what was told of a call has begun for all that is known, also
// if the process is gone before it says more.
func TestEndInTheMiddleOfACall(t *testing.T) {
	t.Parallel()
	for name, tool := range map[string]*acpagent.Tool{
		"InProgress": {ID: "1", Title: "pkill node", Input: raw(`{"command":"pkill node"}`), Endless: true},
		"Denied":     {ID: "1", Title: "pkill node", Input: raw(`{"command":"pkill node"}`), Endless: true, Ask: acpagent.Options("allow_once", "reject_once")},
	} {
		w := start(t, acpagent.Does(acpagent.Step{Say: "I end it. "}, acpagent.Step{Tool: tool}, acpagent.Step{Exit: new(9)}))
		var started []string
		var failed error
		for event, err := range w.Run(t.Context(), question("go")) {
			if failed = err; err != nil {
				break
			}
			if e, ok := event.(assistant.ToolStarted); ok {
				started = append(started, e.Summary)
			}
		}
		if want := map[string]int{"InProgress": 1}[name]; len(started) != want || !fault.Is(failed, fault.Unavailable) {
			t.Errorf("%s: started %q, %v", name, started, failed)
		}
	}
}

// TestAnswerBeforeTheLastCallIsTheAnswer: an agent that notes something down after it has
// answered has answered.
func TestAnswerBeforeTheLastCallIsTheAnswer(t *testing.T) {
	t.Parallel()
	const end = "(The agent finished without a message.)"
	call := acpagent.Step{Tool: &acpagent.Tool{ID: "1", Title: "note", Kind: "think", Input: raw(`{"a":1}`), Output: "ok"}}
	for want, steps := range map[string][]acpagent.Step{
		"It is 42.\n\n" + end: {{Say: "I look."}, call, {Say: "It is "}, {Say: "42."}, call, call},
		end:                   {call},
	} {
		w := start(t, acpagent.Does(steps...))
		if got := ask(t.Context(), w, question("go")); got.err != nil || got.answer != want || !strings.HasSuffix(got.text, want) {
			t.Errorf("%q, %q, %v; want %q", got.answer, got.text, got.err, want)
		}
	}
}

// TestPermissionForATitleIsForOnce: of a call without input only the title is known,
// and the next one of that title may do something else.
func TestPermissionForATitleIsForOnce(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Does(
		acpagent.Step{Tool: &acpagent.Tool{
			ID: "1", Title: "Edit a.txt", Kind: "edit", Content: raw(`[{"type":"diff","path":"a.txt","oldText":"a","newText":"b"}]`),
			Ask: acpagent.Options("allow_once", "allow_always", "reject_once"), Output: "ok",
		}},
		acpagent.Step{Say: "Done."}))
	turn := question("go")
	h := always(assistant.Verdict{Allow: true})
	turn.Host = h
	if got := ask(t.Context(), w, turn); got.err != nil || len(h.asked) != 1 || h.asked[0].Always || !strings.Contains(h.asked[0].Detail, "+b") {
		t.Errorf("asked %+v, %v", h.asked, got.err)
	}
}
