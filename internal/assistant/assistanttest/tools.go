package assistanttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/messages"
)

// Answer is one answer of a scripted backend: a text, then calls.
type Answer struct {
	Text  string
	Calls []messages.ToolCall
}

func call(id, name, args string) messages.ToolCall {
	return messages.ToolCall{ID: id, Name: name, Arguments: args}
}

// newHost returns a host with the tools of ToolSpecs.
func newHost() *Host {
	return &Host{Specs: ToolSpecs(), Reads: map[string]bool{"look": true, "peek": true}}
}

// usesTools is the part of the suite for assistants that run the host's tools.
func (h Harness) usesTools(t *testing.T) {
	tests := []struct {
		name    string
		answers []Answer
		test    func(*testing.T, Subject)
	}{
		{"RecordsBeforeItRuns", []Answer{
			{"I look.", []messages.ToolCall{call("c1", "look", `{"path":"x"}`), call("c2", "change", `{"path":"y"}`)}},
			{"", []messages.ToolCall{call("c3", "change", `{"path":"z"}`)}},
			{"It is done.", nil},
		}, h.recordsBeforeItRuns},
		{"TellsTheModelOfARefusal", []Answer{
			{"", []messages.ToolCall{call("c1", "change", `{"path":"y"}`)}}, {"Then not.", nil},
		}, h.tellsOfARefusal},
		{"GoesOnAfterWaiting", []Answer{
			{"", []messages.ToolCall{call("c1", "look", `{}`), call("c2", "change", `{"path":"y"}`), call("c3", "look", `{"path":"y"}`)}},
			{"It is done.", nil},
		}, h.goesOnAfterWaiting},
		{"ReadsSideBySide", []Answer{
			{"", []messages.ToolCall{call("c1", "look", `{"path":"x"}`), call("c2", "peek", `{}`), call("c3", "look", `{"path":"y"}`)}},
			{"Read.", nil},
		}, h.readsSideBySide},
		{"IsSteered", []Answer{
			{"", []messages.ToolCall{call("c1", "look", `{}`)}}, {"Steered.", nil},
		}, h.isSteered},
		{"EndsWithRound", []Answer{{"", []messages.ToolCall{call("c1", "look", `{}`)}}}, h.endsWithRound},
		{"StopsWhileAToolRuns", []Answer{{"", []messages.ToolCall{call("c1", "change", `{}`)}}}, h.stopsWhileAToolRuns},
		{"StopsInCircles", []Answer{{"", []messages.ToolCall{call("", "change", `{"a":1,"b":[2]}`)}}}, h.stopsInCircles},
		{"AnswersBadCalls", []Answer{
			{"", []messages.ToolCall{
				call("", "look", `{}`), call("", "nothing", `{}`), call("same", "look", `{"path":`), call("same", "look", `[1]`), call("c5", "look", ""),
			}},
			{"So be it.", nil},
		}, h.answersBadCalls},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			subject := h.Scripted(t, tt.answers...)
			if _, ok := subject.Assistant.(assistant.ToolUser); !ok {
				t.Error("the assistant runs tools and is no ToolUser")
			}
			tt.test(t, subject)
			if subject.Close != nil {
				subject.Close()
			}
			goleak.VerifyNone(t, before)
		})
	}
}

// tape is what a turn has yielded so far. Hosts of a test look at it while the
// turn runs.
type tape struct {
	mu       sync.Mutex
	messages []messages.Message
}

func (p *tape) add(m messages.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages = append(p.messages, m)
}

func (p *tape) all() []messages.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.messages)
}

// has reports whether a call, or its result, was yielded.
func (p *tape) has(id string, result bool) bool {
	for _, m := range p.all() {
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case messages.ToolCall:
				if b.ID == id && !result {
					return true
				}
			case messages.ToolResult:
				if b.CallID == id && result {
					return true
				}
			case messages.Text, messages.Thinking, messages.Attachment:
			}
		}
	}
	return false
}

// play runs a turn with host and keeps its messages on tape.
func (h Harness) play(ctx context.Context, t *testing.T, s Subject, host assistant.Host, p *tape) outcome {
	t.Helper()
	s.Turn.Host = host
	ctx, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	var out outcome
	for event, err := range s.Assistant.Run(ctx, s.Turn) {
		if err != nil {
			out.err = err
			continue
		}
		if done, ok := event.(assistant.MessageDone); ok {
			p.add(done.Message)
		}
		out.events = append(out.events, event)
	}
	h.checkSecrets(t, out)
	h.checkOrder(t, out)
	return out
}

func (h Harness) recordsBeforeItRuns(t *testing.T, s Subject) {
	var p tape
	host := newHost()
	host.Decide = func(c messages.ToolCall) (assistant.Verdict, error) {
		if !p.has(c.ID, false) {
			t.Errorf("Permit was asked about %q before the call was yielded", c.ID)
		}
		return assistant.Verdict{Allow: true}, nil
	}
	host.Do = func(_ context.Context, c messages.ToolCall) messages.ToolResult {
		if c.ID == "c2" && !p.has("c1", true) {
			t.Error("c2 changes something and ran before the result of c1 was yielded")
		}
		return messages.ToolResult{Content: "did " + c.ID}
	}
	out := h.play(t.Context(), t, s, host, &p)
	h.checkAnswer(t, out)
	if diff := cmp.Diff([]string{"c1", "c2", "c3"}, ids(host.Ran())); diff != "" {
		t.Errorf("calls that ran (-want +got):\n%s", diff)
	}
	want := map[string]string{"c1": "did c1", "c2": "did c2", "c3": "did c3"}
	if diff := cmp.Diff(want, results(p.all())); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	var brackets []string
	for _, event := range out.events {
		switch e := event.(type) {
		case assistant.ToolStarted:
			brackets = append(brackets, "+"+e.ID+" "+e.Summary)
		case assistant.ToolFinished:
			brackets = append(brackets, fmt.Sprint("-", e.ID, " ", e.OK))
		case assistant.TextDelta, assistant.ThoughtDelta, assistant.PlanUpdated, assistant.Notice, assistant.FileMade, assistant.UsageUpdated,
			assistant.Resumable, assistant.MessageDone, assistant.Finished:
		}
	}
	if diff := cmp.Diff([]string{"+c1 uses look", "-c1 true", "+c2 uses change", "-c2 true", "+c3 uses change", "-c3 true"}, brackets); diff != "" {
		t.Errorf("tool events (-want +got):\n%s", diff)
	}
	rounds := host.Rounds()
	if len(rounds) != 2 || rounds[0].OutputTokens == 0 || rounds[1].InputTokens <= rounds[0].InputTokens {
		t.Errorf("Round was told of %+v, want growing usage, twice", rounds)
	}
	if last, ok := out.events[len(out.events)-1].(assistant.Finished); ok && last.Usage.InputTokens <= rounds[len(rounds)-1].InputTokens {
		t.Errorf("the usage of the turn is %+v, want that of all requests", last.Usage)
	}
	s.sent(t, 3, "did c1", "did c2", "did c3")
}

// sent checks the nth request to the backend, counted from 1.
func (s Subject) sent(t *testing.T, n int, wants ...string) {
	t.Helper()
	if s.Bodies == nil {
		return
	}
	bodies := s.Bodies()
	if len(bodies) != n {
		t.Errorf("%d requests, want %d", len(bodies), n)
		return
	}
	for _, want := range wants {
		if !strings.Contains(string(bodies[n-1]), want) {
			t.Errorf("request %d lacks %q:\n%s", n, want, bodies[n-1])
		}
	}
}

func ids(calls []messages.ToolCall) []string {
	return lists.Map(calls, func(c messages.ToolCall) string { return c.ID })
}

// results returns the contents of all results by call id.
func results(array []messages.Message) map[string]string {
	out := make(map[string]string)
	for _, m := range array {
		for _, b := range m.Blocks {
			if r, ok := b.(messages.ToolResult); ok {
				out[r.CallID] = r.Content
			}
		}
	}
	return out
}

func (h Harness) tellsOfARefusal(t *testing.T, s Subject) {
	var p tape
	host := newHost()
	host.Decide = func(messages.ToolCall) (assistant.Verdict, error) {
		return assistant.Verdict{Reason: "Ann said no"}, nil
	}
	out := h.play(t.Context(), t, s, host, &p)
	h.checkAnswer(t, out)
	if ran := host.Ran(); len(ran) > 0 {
		t.Errorf("a refused call ran: %+v", ran)
	}
	for _, event := range out.events {
		if started, ok := event.(assistant.ToolStarted); ok {
			t.Errorf("a refused call was started: %+v", started)
		}
	}
	s.sent(t, 2, "Ann said no")
}

func (h Harness) goesOnAfterWaiting(t *testing.T, s Subject) {
	var p tape
	waiting := newHost()
	waiting.Decide = func(c messages.ToolCall) (assistant.Verdict, error) {
		if c.Name == "change" {
			return assistant.Verdict{}, fmt.Errorf("asked Ann: %w", assistant.ErrWaiting)
		}
		return assistant.Verdict{Allow: true}, nil
	}
	out := h.play(t.Context(), t, s, waiting, &p)
	if !errors.Is(out.err, assistant.ErrWaiting) {
		t.Fatalf("error %v, want ErrWaiting", out.err)
	}
	if diff := cmp.Diff([]string{"c1"}, ids(waiting.Ran())); diff != "" {
		t.Errorf("calls that ran before the wait (-want +got):\n%s", diff)
	}
	array := append(slices.Clone(s.Turn.Array), p.all()...)
	if diff := cmp.Diff([]string{"c2", "c3"}, ids(messages.OpenCalls(array))); diff != "" {
		t.Fatalf("open calls (-want +got):\n%s", diff)
	}
	s.sent(t, 1)

	again := s
	again.Turn.Array = array
	host := newHost()
	out = h.play(t.Context(), t, again, host, &p)
	h.checkGoesOn(t, s, out, &p)
	if diff := cmp.Diff([]string{"c2", "c3"}, ids(host.Ran())); diff != "" {
		t.Errorf("calls that ran after the wait (-want +got):\n%s", diff)
	}
	s.sent(t, 2, "look done", "change done")
}

// checkGoesOn checks a turn that went on from the messages of another run.
func (h Harness) checkGoesOn(t *testing.T, s Subject, out outcome, p *tape) {
	t.Helper()
	if out.err != nil {
		t.Fatalf("the turn failed: %v", out.err)
	}
	array := append(slices.Clone(s.Turn.Array), p.all()...)
	array = append(array, messages.NewText(messages.RoleUser, "next"))
	calls, answered := count(array)
	if c, r := count(messages.Repair(array)); calls != answered || c != calls || r != answered {
		t.Errorf("the messages of both runs have %d calls and %d results, repaired %d and %d", calls, answered, c, r)
	}
}

func (h Harness) readsSideBySide(t *testing.T, s Subject) {
	var p tape
	host := newHost()
	var together sync.WaitGroup
	together.Add(3)
	host.Do = func(ctx context.Context, c messages.ToolCall) messages.ToolResult {
		// Ends only when all three run.
		together.Done()
		all := make(chan struct{})
		go func() { together.Wait(); close(all) }()
		select {
		case <-all:
			return messages.ToolResult{Content: "read " + c.ID}
		case <-ctx.Done():
			return messages.ToolResult{Content: "interrupted", IsError: true}
		}
	}
	out := h.play(t.Context(), t, s, host, &p)
	h.checkAnswer(t, out)
	want := map[string]string{"c1": "read c1", "c2": "read c2", "c3": "read c3"}
	if diff := cmp.Diff(want, results(p.all())); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	s.sent(t, 2, "read c1", "read c2", "read c3")
}

func (h Harness) isSteered(t *testing.T, s Subject) {
	var p tape
	host := newHost()
	host.Next = func(requests int, _ assistant.Usage) ([]messages.Message, error) {
		if requests != 1 {
			t.Errorf("Round was told of %d requests, want 1", requests)
		}
		if !p.has("c1", true) {
			t.Error("Round was called before the result was yielded")
		}
		return []messages.Message{messages.NewText(messages.RoleUser, "Be quick about it.")}, nil
	}
	h.checkAnswer(t, h.play(t.Context(), t, s, host, &p))
	for _, m := range p.all() {
		if m.Role == messages.RoleUser {
			t.Errorf("what the host had stored was yielded: %+v", m)
		}
	}
	s.sent(t, 2, "look done", "Be quick about it.")
}

func (h Harness) endsWithRound(t *testing.T, s Subject) {
	var p tape
	host := newHost()
	host.Next = func(int, assistant.Usage) ([]messages.Message, error) {
		return nil, fmt.Errorf("50 rounds: %w", assistant.ErrWaiting)
	}
	out := h.play(t.Context(), t, s, host, &p)
	if !errors.Is(out.err, assistant.ErrWaiting) || !p.has("c1", true) {
		t.Errorf("error %v, messages %+v, want ErrWaiting after the result", out.err, p.all())
	}
	s.sent(t, 1)
}

func (h Harness) stopsWhileAToolRuns(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var p tape
	var stopped time.Time
	ended := make(chan struct{})
	host := newHost()
	host.Do = func(ctx context.Context, _ messages.ToolCall) messages.ToolResult {
		defer close(ended)
		stopped = time.Now()
		cancel()
		<-ctx.Done()
		return messages.ToolResult{Content: "killed", IsError: true}
	}
	out := h.play(ctx, t, s, host, &p)
	<-ended
	checkStopped(t, stopped)
	if !fault.Is(out.err, fault.Canceled) || !errors.Is(out.err, context.Canceled) {
		t.Errorf("error %v of kind %q, want canceled", out.err, fault.KindOf(out.err))
	}
	if n := len(p.all()); n != 1 {
		t.Errorf("%d messages, want only the call", n)
	}
}

func (h Harness) stopsInCircles(t *testing.T, s Subject) {
	var p tape
	host := newHost()
	out := h.play(t.Context(), t, s, host, &p)
	if !fault.Is(out.err, fault.Exhausted) || !strings.Contains(fault.Public(out.err), "change") {
		t.Errorf("error %v of kind %q, want an exhausted one that names the tool", out.err, fault.KindOf(out.err))
	}
	if _, overflow := errors.AsType[*assistant.OverflowError](out.err); overflow {
		t.Error("a smaller window would not help")
	}
	if n := len(host.Ran()); n != 2 {
		t.Errorf("the call ran %d times, want 2", n)
	}
	calls, answered := count(p.all())
	if calls != 4 || answered != 4 {
		t.Errorf("%d calls and %d results, want 4 and 4", calls, answered)
	}
	s.sent(t, 4, "same result")
}

func (h Harness) answersBadCalls(t *testing.T, s Subject) {
	var p tape
	host := newHost()
	out := h.play(t.Context(), t, s, host, &p)
	h.checkAnswer(t, out)
	for _, c := range host.Asked() {
		if c.Name != "look" || c.Arguments != "{}" {
			t.Errorf("Permit was asked about %+v", c)
		}
	}
	if n := len(host.Ran()); n != 2 {
		t.Errorf("%d calls ran, want the two good ones", n)
	}
	seen := map[string]bool{"": true}
	for _, m := range p.all() {
		for _, b := range m.Blocks {
			if c, ok := b.(messages.ToolCall); ok {
				if seen[c.ID] {
					t.Errorf("the id %q is missing or not new", c.ID)
				}
				seen[c.ID] = true
			}
		}
	}
	s.sent(t, 2, `there is no tool`, "not valid JSON", "not a JSON object")
}
