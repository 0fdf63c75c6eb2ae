package loop_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/assistanttest"
	"remote-agent/internal/assistant/loop"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model answers requests with a script: n is counted from 1.
type model struct {
	script func(n int, r assistant.Request) answer

	mu       sync.Mutex
	requests []assistant.Request
}

// answer is what a model yields for a request.
type answer struct {
	blocks []messages.Block
	used   assistant.Usage // before err
	err    error           // after the message
	cut    bool            // no Finished
}

func (*model) Name() assistant.Name { return "scripted" }
func (*model) Model() string        { return "script-1" }

func (m *model) Complete(ctx context.Context, r assistant.Request) iter.Seq2[assistant.Event, error] {
	return func(yield func(assistant.Event, error) bool) {
		if ctx.Err() != nil {
			yield(nil, &fault.Error{Kind: fault.Canceled, Err: context.Cause(ctx)})
			return
		}
		m.mu.Lock()
		r.Array = slices.Clone(r.Array)
		m.requests = append(m.requests, r)
		n := len(m.requests)
		m.mu.Unlock()
		a := m.script(n, r)
		for _, b := range a.blocks {
			if text, ok := b.(messages.Text); ok && !yield(assistant.TextDelta{Text: text.Text}, nil) {
				return
			}
		}
		if !yield(assistant.MessageDone{Message: messages.Message{Role: messages.RoleAssistant, Blocks: a.blocks}}, nil) {
			return
		}
		if a.err != nil {
			if yield(assistant.UsageUpdated{Usage: a.used, Model: "script-1"}, nil) {
				yield(nil, a.err)
			}
			return
		}
		if !a.cut {
			yield(assistant.Finished{Usage: assistant.Usage{InputTokens: 10, OutputTokens: int64(n), CachedTokens: 2, ContextUsed: int64(n)}, Model: "script-1"}, nil)
		}
	}
}

// says answers the requests in order, the last one again and again.
func says(answers ...answer) *model {
	return &model{script: func(n int, _ assistant.Request) answer { return answers[min(n, len(answers))-1] }}
}

func text(s string) answer { return answer{blocks: []messages.Block{messages.Text{Text: s}}} }

func calls(all ...messages.ToolCall) answer {
	var a answer
	for _, c := range all {
		a.blocks = append(a.blocks, c)
	}
	return a
}

func call(id, name, args string) messages.ToolCall {
	return messages.ToolCall{ID: id, Name: name, Arguments: args}
}

func host() *assistanttest.Host {
	return &assistanttest.Host{Specs: assistanttest.ToolSpecs(), Reads: map[string]bool{"look": true, "peek": true}}
}

func turn(h assistant.Host, more ...messages.Message) assistant.Turn {
	return assistant.Turn{
		Conversation: "c", Run: "r", System: "Be brief.", Model: "other", Host: h,
		Array: append([]messages.Message{messages.NewText(messages.RoleUser, "Hi")}, more...),
	}
}

// result is what a run came to.
type result struct {
	messages []messages.Message
	events   []string // everything but text, in short
	used     assistant.Usage
	finished *assistant.Finished
	err      error
}

func run(ctx context.Context, m *model, tn assistant.Turn) (r result) {
	return runConfig(ctx, loop.New(m, loop.Config{}), tn)
}

func runConfig(ctx context.Context, a *loop.Assistant, tn assistant.Turn) (r result) {
	for event, err := range a.Run(ctx, tn) {
		if err != nil {
			r.err = err
			continue
		}
		switch e := event.(type) {
		case assistant.MessageDone:
			r.messages = append(r.messages, e.Message)
			r.events = append(r.events, string(e.Message.Role))
		case assistant.ToolStarted:
			r.events = append(r.events, fmt.Sprintf("+%s %s", e.ID, e.Kind))
		case assistant.ToolFinished:
			r.events = append(r.events, fmt.Sprintf("-%s %v", e.ID, e.OK))
		case assistant.Finished:
			r.finished = &e
		case assistant.UsageUpdated:
			r.used = e.Usage
		case assistant.TextDelta, assistant.ThoughtDelta, assistant.PlanUpdated, assistant.Notice, assistant.FileMade, assistant.Resumable:
		}
	}
	return r
}

// results returns the tool results of a run in order.
func (r result) results() []messages.ToolResult {
	var all []messages.ToolResult
	for _, m := range r.messages {
		for _, b := range m.Blocks {
			if res, ok := b.(messages.ToolResult); ok {
				all = append(all, res)
			}
		}
	}
	return all
}

func names(calls []messages.ToolCall) []string {
	var out []string
	for _, c := range calls {
		out = append(out, c.ID)
	}
	return out
}

func TestWholeTurn(t *testing.T) {
	t.Parallel()
	m := says(
		answer{blocks: []messages.Block{
			messages.Thinking{Text: "hm", Signature: "s", Provider: "scripted"}, messages.Text{Text: "I look."},
			call("a", "look", `{"n":1}`), call("b", "peek", `{}`), call("c", "change", ` `), call("d", "look", `{"n":1}`),
		}},
		text("Done."),
	)
	h := host()
	h.Do = func(_ context.Context, c messages.ToolCall) messages.ToolResult {
		return messages.ToolResult{CallID: "wrong", Content: "did " + c.ID + "\x00\xff", IsError: c.Name == "change"}
	}
	got := run(t.Context(), m, turn(h))
	if got.err != nil || got.finished == nil {
		t.Fatalf("run: %+v", got)
	}
	slices.Sort(got.events[1:5]) // a and b run side by side
	wantEvents := []string{
		"assistant", "+a read", "+b read", "-a true", "-b true", "tool", "+c ", "-c false", "tool", "+d read", "-d true", "tool", "assistant",
	}
	if diff := cmp.Diff(wantEvents, got.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	res := func(id, name string, bad bool) messages.ToolResult {
		return messages.ToolResult{CallID: id, Name: name, Content: "did " + id + "\uFFFD\uFFFD", IsError: bad}
	}
	want := []messages.Message{
		{Role: messages.RoleAssistant, Blocks: []messages.Block{
			messages.Thinking{Text: "hm", Signature: "s", Provider: "scripted"}, messages.Text{Text: "I look."},
			call("a", "look", `{"n":1}`), call("b", "peek", `{}`), call("c", "change", `{}`), call("d", "look", `{"n":1}`),
		}},
		{Role: messages.RoleTool, Blocks: []messages.Block{res("a", "look", false), res("b", "peek", false)}},
		{Role: messages.RoleTool, Blocks: []messages.Block{res("c", "change", true)}},
		{Role: messages.RoleTool, Blocks: []messages.Block{res("d", "look", false)}},
		messages.NewText(messages.RoleAssistant, "Done."),
	}
	if diff := cmp.Diff(want, got.messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&assistant.Finished{
		Usage: assistant.Usage{InputTokens: 20, OutputTokens: 3, CachedTokens: 4, ContextUsed: 2}, Model: "script-1",
	}, got.finished); diff != "" {
		t.Errorf("finished (-want +got):\n%s", diff)
	}
	second := m.requests[1]
	if diff := cmp.Diff(messages.Repair(append(turn(nil).Array, want[:4]...)), second.Array); diff != "" {
		t.Errorf("second request (-want +got):\n%s", diff)
	}
	second.Array = nil
	if diff := cmp.Diff(assistant.Request{Conversation: "c", Run: "r", System: "Be brief.", Tools: h.Specs, Model: "other"}, second); diff != "" {
		t.Errorf("second request (-want +got):\n%s", diff)
	}
}

// stored is the messages of a turn that was put aside, with results for some of
// its calls.
func stored(results ...string) []messages.Message {
	array := []messages.Message{{Role: messages.RoleAssistant, Blocks: []messages.Block{
		call("a", "look", `{}`), call("b", "change", `{}`), call("c", "look", `{"n":2}`),
	}}}
	for _, id := range results {
		array = append(array, messages.NewToolResult(id, "from before", false))
	}
	return array
}

func TestOpenCallsAreRunFirst(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		stored []string
		want   []string
	}{
		"none answered": {nil, []string{"a", "b", "c"}},
		"one answered":  {[]string{"a"}, []string{"b", "c"}},
		"in the middle": {[]string{"b"}, []string{"a", "c"}},
		"all answered":  {[]string{"a", "b", "c"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, h := says(text("Done.")), host()
			h.Next = func(int, assistant.Usage) ([]messages.Message, error) {
				return nil, errors.New("Round is not for the first request")
			}
			tn := turn(h, stored(tt.stored...)...)
			got := run(t.Context(), m, tn)
			if got.err != nil || got.finished == nil {
				t.Fatalf("run: %+v", got)
			}
			ran := names(h.Ran())
			slices.Sort(ran) // reads run side by side
			if diff := cmp.Diff(tt.want, ran); diff != "" {
				t.Errorf("calls that ran (-want +got):\n%s", diff)
			}
			sent := m.requests[0].Array
			last := sent[len(sent)-1]
			var contents []string
			for _, b := range last.Blocks {
				contents = append(contents, b.(messages.ToolResult).Content) //nolint:errcheck,forcetypeassert // a tool message
			}
			want := make([]string, 3)
			for i, id := range []string{"a", "b", "c"} {
				want[i] = []string{"look done", "change done", "look done"}[i]
				if slices.Contains(tt.stored, id) {
					want[i] = "from before"
				}
			}
			if diff := cmp.Diff(want, contents); diff != "" {
				t.Errorf("results that the model saw (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOpenCallsWithoutToolsAreAnswered(t *testing.T) {
	t.Parallel()
	m := says(text("Then not."))
	got := run(t.Context(), m, turn(nil, stored("a")...))
	if got.err != nil || len(got.results()) != 2 || !strings.Contains(got.results()[0].Content, "no tools") {
		t.Errorf("run: %+v", got)
	}
}

func TestErrorOfPermitEndsTheTurnAfterTheResults(t *testing.T) {
	t.Parallel()
	broken := errors.New("the database is gone")
	for name, failing := range map[string]string{"a read beside another": "b", "a change": "c", "a read": "d"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, h := says(calls(call("a", "look", `{}`), call("b", "peek", `{}`), call("c", "change", `{}`), call("d", "look", `{"n":2}`), call("e", "look", `{"n":3}`))), host()
			h.Decide = func(c messages.ToolCall) (assistant.Verdict, error) {
				if c.ID == failing {
					return assistant.Verdict{}, broken
				}
				return assistant.Verdict{Allow: true}, nil
			}
			got := run(t.Context(), m, turn(h))
			if !errors.Is(got.err, broken) || got.finished != nil {
				t.Fatalf("run: %+v", got)
			}
			var answered []string
			for _, r := range got.results() {
				answered = append(answered, r.CallID)
			}
			want := []string{"a", "b", "c"}[:strings.Index("abcd", failing)]
			if diff := cmp.Diff(want, answered); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			ran := names(h.Ran())
			slices.Sort(ran)
			if diff := cmp.Diff(want, ran); diff != "" {
				t.Errorf("calls that ran (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingOfAnIncompleteAnswerRuns(t *testing.T) {
	t.Parallel()
	c := []messages.Block{call("a", "change", `{}`)}
	tests := map[string]struct {
		answer answer
		kind   fault.Kind
	}{
		"an error after the message": {answer{blocks: c, err: fault.New(fault.RateLimited, "Wait.")}, fault.RateLimited},
		"no end":                     {answer{blocks: c, cut: true}, fault.Unavailable},
		"nothing at all":             {answer{}, fault.Unavailable},
		"blank text":                 {text(" \n"), fault.Unavailable},
		"only thinking":              {answer{blocks: []messages.Block{messages.Thinking{Text: "hm"}}}, fault.Unavailable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := host()
			got := run(t.Context(), says(tt.answer), turn(h))
			if !fault.Is(got.err, tt.kind) || len(got.messages) > 0 || len(h.Ran()) > 0 || len(h.Asked()) > 0 || fault.Public(got.err) == "" {
				t.Errorf("run: %+v, ran %v", got, h.Ran())
			}
		})
	}
}

// TestEmptyFinalMessage has the model end with nothing after a tool ran.
func TestEmptyFinalMessage(t *testing.T) {
	t.Parallel()
	h := host()
	got := run(t.Context(), says(calls(call("a", "change", `{}`)), answer{}), turn(h))
	if !fault.Is(got.err, fault.Unavailable) || !strings.Contains(fault.Public(got.err), "empty") || len(got.messages) != 2 {
		t.Errorf("run: %+v", got)
	}
}

// TestUsedByWhatFailed: a request that brought no answer counts for the turn.
func TestUsedByWhatFailed(t *testing.T) {
	t.Parallel()
	spent := assistant.Usage{InputTokens: 100, OutputTokens: 64, ContextUsed: 164}
	for name, tt := range map[string]struct {
		m    *model
		want assistant.Usage
	}{
		"the request failed": {says(calls(call("a", "look", `{}`)), answer{used: spent, err: assistant.ErrEmpty}),
			assistant.Usage{InputTokens: 110, OutputTokens: 65, CachedTokens: 2, ContextUsed: 164}},
		"its answer is empty": {says(answer{}), assistant.Usage{InputTokens: 10, OutputTokens: 1, CachedTokens: 2, ContextUsed: 1}},
	} {
		if got := run(t.Context(), tt.m, turn(host())); !errors.Is(got.err, assistant.ErrEmpty) || got.used != tt.want {
			t.Errorf("%s: %+v, error %v", name, got.used, got.err)
		}
	}
	said := answer{blocks: []messages.Block{messages.Text{Text: "It is 42."}, call("1", "look", "{}")}}
	got := run(t.Context(), says(said, answer{used: spent, err: assistant.ErrEmpty}), turn(host()))
	if got.err != nil || got.finished == nil || got.finished.Usage.InputTokens != 110 || got.finished.Usage.OutputTokens != 65 {
		t.Errorf("an answer that was given before: %+v", got)
	}
}

// TestAnswerBeforeTheLastCallIsTheAnswer: Anthropic's models end a turn with nothing after
// the results if they have said it all with the calls.
func TestAnswerBeforeTheLastCallIsTheAnswer(t *testing.T) {
	t.Parallel()
	const want = "It is 42.\n\n(The model finished without another message.)"
	m := says(answer{blocks: []messages.Block{messages.Text{Text: "It is 42."}, call("1", "look", "{}")}}, calls(call("2", "peek", "{}")), answer{err: assistant.ErrEmpty})
	got := run(t.Context(), m, turn(host()))
	if got.err != nil || got.finished == nil || got.finished.Model != "script-1" || len(m.requests) != 3 || got.messages[len(got.messages)-1].PlainText() != want {
		t.Errorf("%+v", got)
	}
	silent := run(t.Context(), says(calls(call("1", "look", "{}")), answer{err: assistant.ErrEmpty}), turn(host()))
	if !errors.Is(silent.err, assistant.ErrEmpty) {
		t.Errorf("nothing was said: %v", silent.err)
	}
	again := messages.NewText(messages.RoleUser, "And now?")
	other := run(t.Context(), says(answer{err: assistant.ErrEmpty}), turn(host(), messages.NewText(messages.RoleAssistant, "It was 41."), again))
	if !errors.Is(other.err, assistant.ErrEmpty) {
		t.Errorf("the answer to another message was taken: %v", other.err)
	}
}

func TestNoToolsAtAll(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]assistant.Host{"no host": nil, "a host without tools": &assistanttest.Host{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := calls(call("a", "read", `{}`), call("b", "list", `{}`))
			once := run(t.Context(), says(c, text("Then without.")), turn(h))
			if once.err != nil || once.finished == nil || len(once.results()) != 2 || !strings.Contains(once.results()[0].Content, "no tools") {
				t.Errorf("a model that gives in: %+v", once)
			}
			m := says(c)
			twice := run(t.Context(), m, turn(h))
			if !fault.Is(twice.err, fault.Unsupported) || !strings.Contains(fault.Public(twice.err), "read, list") || len(m.requests) != 2 {
				t.Errorf("a model that does not: %+v after %d requests", twice, len(m.requests))
			}
			if len(twice.results()) != 4 {
				t.Errorf("%d results, want 4", len(twice.results()))
			}
		})
	}
}

func TestRoundSteersAndEnds(t *testing.T) {
	t.Parallel()
	m, h := says(calls(call("", "look", `{"n":1}`)), calls(call("", "look", `{"n":2}`)), calls(call("", "look", `{"n":3}`))), host()
	parked := fmt.Errorf("asked: %w", assistant.ErrWaiting)
	h.Next = func(requests int, used assistant.Usage) ([]messages.Message, error) {
		switch requests {
		case 1:
			return nil, nil
		case 2:
			if used.InputTokens != 20 || used.OutputTokens != 3 {
				t.Errorf("usage %+v after two requests", used)
			}
			return []messages.Message{messages.NewText(messages.RoleUser, "Hurry."), messages.NewText(messages.RoleUser, "Please.")}, nil
		}
		return nil, parked
	}
	got := run(t.Context(), m, turn(h))
	if !errors.Is(got.err, assistant.ErrWaiting) || len(got.messages) != 6 || len(m.requests) != 3 {
		t.Fatalf("run: %+v after %d requests", got, len(m.requests))
	}
	sent := m.requests[2].Array
	want := messages.Message{Role: messages.RoleUser, Blocks: []messages.Block{messages.Text{Text: "Hurry."}, messages.Text{Text: "Please."}}}
	if diff := cmp.Diff(want, sent[len(sent)-1]); diff != "" {
		t.Errorf("what the model was told (-want +got):\n%s", diff)
	}
}

func TestMaxRounds(t *testing.T) {
	t.Parallel()
	m := &model{script: func(n int, _ assistant.Request) answer { return calls(call("", "look", fmt.Sprintf(`{"n":%d}`, n))) }}
	got := runConfig(t.Context(), loop.New(m, loop.Config{MaxRounds: 7}), turn(host()))
	if !fault.Is(got.err, fault.Exhausted) || !strings.Contains(fault.Public(got.err), "7 model requests") || len(m.requests) != 7 || len(got.messages) != 14 {
		t.Errorf("%d requests, %d messages, error %v", len(m.requests), len(got.messages), got.err)
	}
	m.requests = nil
	if got := run(t.Context(), m, turn(host())); !fault.Is(got.err, fault.Exhausted) || len(m.requests) != 500 {
		t.Errorf("%d requests by default, error %v", len(m.requests), got.err)
	}
}

// TestAnswerThatComesAfterTheStop has a model that does not see the end of ctx.
func TestAnswerThatComesAfterTheStop(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	m := &model{script: func(int, assistant.Request) answer {
		cancel()
		return text("Too late.")
	}}
	if got := run(ctx, m, turn(nil)); !fault.Is(got.err, fault.Canceled) || len(got.messages) > 0 {
		t.Errorf("run: %+v", got)
	}
}

func TestOverflowAndOtherErrorsPass(t *testing.T) {
	t.Parallel()
	overflow := &fault.Error{Kind: fault.Exhausted, Err: &assistant.OverflowError{Limit: 7, Err: errors.New("x")}}
	got := run(t.Context(), says(calls(call("a", "look", `{}`)), answer{err: overflow}), turn(host()))
	if o, ok := errors.AsType[*assistant.OverflowError](got.err); !ok || o.Limit != 7 || len(got.messages) != 2 {
		t.Errorf("run: %+v", got)
	}
}

func TestTurnIsLeftAlone(t *testing.T) {
	t.Parallel()
	array := make([]messages.Message, 0, 64)
	array = append(array, messages.NewText(messages.RoleUser, "Hi"), messages.NewToolCall("a", "look", ""))
	tn := turn(host())
	tn.Array = array
	before := fmt.Sprintf("%+v", array[:cap(array)])
	if got := run(t.Context(), says(calls(call("b", "change", `{}`)), text("Done.")), tn); got.err != nil {
		t.Fatal(got.err)
	}
	if after := fmt.Sprintf("%+v", array[:cap(array)]); after != before {
		t.Errorf("the caller's array changed:\nbefore %s\nafter  %s", before, after)
	}
}

func TestRefusalWithoutAReasonSaysSo(t *testing.T) {
	t.Parallel()
	h := host()
	h.Decide = func(messages.ToolCall) (assistant.Verdict, error) { return assistant.Verdict{}, nil }
	got := run(t.Context(), says(calls(call("a", "change", `{}`)), text("Then not.")), turn(h))
	if got.err != nil || !got.results()[0].IsError || strings.TrimSpace(got.results()[0].Content) == "" {
		t.Errorf("run: %+v", got)
	}
}
