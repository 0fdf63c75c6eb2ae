// Package assistanttest is the contract that every assistant passes.
package assistanttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// Scenario is what the backend of an assistant is made to do in a test.
type Scenario string

// The scenarios.
const (
	Reply        Scenario = "reply"        // an answer of several pieces
	Slow         Scenario = "slow"         // an answer that goes on for ten seconds or more
	Tools        Scenario = "tools"        // an answer with a tool call that runs
	Cut          Scenario = "cut"          // the stream ends in the middle without an error
	Unauthorized Scenario = "unauthorized" // the key is refused; the refusal repeats it
	RateLimited  Scenario = "rate limited" // asks for a wait of 7 s
	Quota        Scenario = "quota"        // a quota is used up
	Unavailable  Scenario = "unavailable"  // the backend is down
	Overflow     Scenario = "overflow"     // the array does not fit
	Broken       Scenario = "broken"       // an error after part of the answer
)

// Subject is an assistant with a backend that plays one scenario.
type Subject struct {
	Assistant assistant.Assistant
	Turn      assistant.Turn

	// Bodies returns the bodies of the requests to the backend so far, as JSON.
	// It may be nil.
	Bodies func() [][]byte

	// Close stops the backend and the assistant's idle connections. After it
	// nothing of either may be left. It may wait for requests to end.
	Close func()
}

// Harness builds the subjects of a suite.
type Harness struct {
	// New returns a subject that plays the scenario, or false if its kind of
	// backend has no such case.
	New func(t *testing.T, s Scenario) (Subject, bool)

	// Scripted returns a subject whose backend gives one answer to each request,
	// in order, and the last one again and again. Nil means that the assistant
	// does not run the host's tools.
	Scripted func(t *testing.T, answers ...Answer) Subject

	// Secrets are the credentials that New uses. They must not appear in any
	// error or event.
	Secrets []string
}

const (
	stopLimit   = time.Second      // the contract's
	turnLimit   = 20 * time.Second // for a turn that should end by itself
	concurrency = 16
)

// Exercise runs the contract suite. It runs no subtests in parallel, because it
// looks for leaked goroutines.
func Exercise(t *testing.T, h Harness) {
	t.Run("SaysWhoItIs", func(t *testing.T) { h.with(t, Reply, h.saysWhoItIs) })
	t.Run("Answers", func(t *testing.T) { h.with(t, Reply, h.answers) })
	t.Run("RunsTools", func(t *testing.T) { h.with(t, Tools, h.answers) })
	t.Run("AnswersManyAtOnce", func(t *testing.T) { h.with(t, Reply, h.answersManyAtOnce) })
	t.Run("ClassifiesErrors", h.classifiesErrors)
	t.Run("NeverStoresACutAnswer", func(t *testing.T) {
		for _, s := range []Scenario{Cut, Broken} {
			t.Run(string(s), func(t *testing.T) { h.with(t, s, h.failsWithoutAnswer) })
		}
	})
	t.Run("StopsWhenCanceled", func(t *testing.T) { h.with(t, Slow, h.stopsWhenCanceled) })
	t.Run("StopsAtTheDeadline", func(t *testing.T) { h.with(t, Slow, h.stopsAtTheDeadline) })
	t.Run("DoesNotStartWhenCanceled", func(t *testing.T) { h.with(t, Reply, h.doesNotStartWhenCanceled) })
	t.Run("StopsWhenNobodyListens", func(t *testing.T) { h.with(t, Slow, h.stopsWhenNobodyListens) })
	t.Run("LeavesTheArrayAlone", func(t *testing.T) { h.with(t, Reply, h.leavesTheArrayAlone) })
	if h.Scripted != nil {
		t.Run("UsesTools", h.usesTools)
	}
}

// with runs test on a subject and checks that nothing of it is left.
func (h Harness) with(t *testing.T, s Scenario, test func(*testing.T, Subject)) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	subject, ok := h.New(t, s)
	if !ok {
		t.Skipf("this backend has no case of %q", s)
	}
	test(t, subject)
	if subject.Close != nil {
		subject.Close()
	}
	goleak.VerifyNone(t, before)
}

// outcome is all that a turn yielded.
type outcome struct {
	events []assistant.Event
	err    error
}

// run ranges over a whole turn and checks the form of the sequence.
func (h Harness) run(ctx context.Context, t testing.TB, s Subject) outcome {
	t.Helper()
	var out outcome
	for event, err := range s.Assistant.Run(ctx, s.Turn) {
		if out.err != nil {
			t.Errorf("an event after the error: %T, %v", event, err)
		}
		switch {
		case err != nil && event != nil:
			t.Errorf("an event and an error at once: %T, %v", event, err)
		case err == nil && event == nil:
			t.Error("neither an event nor an error")
		}
		if err != nil {
			out.err = err
			continue
		}
		out.events = append(out.events, event)
	}
	h.checkSecrets(t, out)
	h.checkOrder(t, out)
	return out
}

func (h Harness) checkSecrets(t testing.TB, out outcome) {
	t.Helper()
	text := fmt.Sprintf("%+v", out.events)
	if out.err != nil {
		text += out.err.Error() + fmt.Sprintf("%+v", out.err) + fault.Public(out.err)
	}
	for _, secret := range h.Secrets {
		if strings.Contains(text, secret) {
			t.Errorf("a credential is in what the turn yielded: %s", strings.ReplaceAll(text, secret, "<HERE>"))
		}
	}
}

// checkOrder checks what holds for every turn, however it ended.
func (h Harness) checkOrder(t testing.TB, out outcome) {
	t.Helper()
	var said strings.Builder // since the last assistant message
	open := map[string]bool{}
	finished := false
	for i, event := range out.events {
		if finished {
			t.Errorf("event %d after Finished: %T", i, event)
		}
		switch e := event.(type) {
		case assistant.TextDelta:
			if e.Text == "" {
				t.Errorf("event %d is an empty TextDelta", i)
			}
			said.WriteString(e.Text)
		case assistant.ToolStarted:
			if open[e.ID] {
				t.Errorf("tool %q was started twice", e.ID)
			}
			open[e.ID] = true
		case assistant.ToolFinished:
			if !open[e.ID] {
				t.Errorf("tool %q finished without having started", e.ID)
			}
			delete(open, e.ID)
		case assistant.MessageDone:
			if e.Message.Role != messages.RoleAssistant {
				break
			}
			if got := e.Message.PlainText(); got != said.String() {
				t.Errorf("the message says %q, the deltas %q", got, said.String())
			}
			said.Reset()
		case assistant.Finished:
			finished = true
		case assistant.Resumable:
			if e.Session == "" {
				t.Error("Resumable without a session id")
			}
		case assistant.ThoughtDelta, assistant.PlanUpdated, assistant.Notice, assistant.FileMade, assistant.UsageUpdated:
		}
	}
	switch {
	case finished && out.err != nil:
		t.Errorf("Finished and an error: %v", out.err)
	case finished && len(open) > 0:
		t.Errorf("tools that did not finish: %v", open)
	case finished && said.Len() > 0:
		t.Errorf("text that is in no message: %q", said.String())
	}
}

func (h Harness) saysWhoItIs(t *testing.T, s Subject) {
	name := s.Assistant.Name()
	if name == "" || len(name) > 20 {
		t.Errorf("Name() = %q, want 1 to 20 bytes", name)
	}
	if s.Assistant.Name() != name || s.Assistant.Model() != s.Assistant.Model() { //nolint:staticcheck // the two calls must agree
		t.Error("Name or Model changes")
	}
}

func (h Harness) answers(t *testing.T, s Subject) {
	ctx, cancel := context.WithTimeout(t.Context(), turnLimit)
	defer cancel()
	h.checkAnswer(t, h.run(ctx, t, s))
}

// checkAnswer checks a successful turn: its last event, its answer, and that
// its messages can follow the array that it was given.
func (h Harness) checkAnswer(t testing.TB, out outcome) {
	t.Helper()
	if out.err != nil {
		t.Errorf("the turn failed: %v", out.err)
		return
	}
	if len(out.events) == 0 {
		t.Error("the turn yielded nothing")
		return
	}
	if _, ok := out.events[len(out.events)-1].(assistant.Finished); !ok {
		t.Errorf("the last event is %T, want Finished", out.events[len(out.events)-1])
	}
	array := []messages.Message{messages.NewText(messages.RoleUser, "question")}
	var answer string
	for _, event := range out.events {
		if done, ok := event.(assistant.MessageDone); ok {
			array = append(array, done.Message)
			if done.Message.Role == messages.RoleAssistant {
				answer = done.Message.PlainText()
			}
		}
	}
	if strings.TrimSpace(answer) == "" {
		t.Error("the last assistant message has no text")
	}
	array = append(array, messages.NewText(messages.RoleUser, "next"))
	calls, results := count(array)
	if calls != results {
		t.Errorf("%d calls and %d results", calls, results)
	}
	if c, r := count(messages.Repair(array)); c != calls || r != results {
		t.Errorf("Repair had to mend the messages: %d calls and %d results before, %d and %d after", calls, results, c, r)
	}
}

func count(array []messages.Message) (calls, results int) {
	for _, m := range array {
		for _, b := range m.Blocks {
			switch b.(type) {
			case messages.ToolCall:
				calls++
			case messages.ToolResult:
				results++
			case messages.Text, messages.Thinking, messages.Attachment:
			}
		}
	}
	return calls, results
}

func (h Harness) answersManyAtOnce(t *testing.T, s Subject) {
	ctx, cancel := context.WithTimeout(t.Context(), turnLimit)
	defer cancel()
	var wg sync.WaitGroup
	for range concurrency {
		wg.Go(func() { h.checkAnswer(t, h.run(ctx, t, s)) })
	}
	wg.Wait()
}

func (h Harness) classifiesErrors(t *testing.T) {
	tests := map[Scenario]struct {
		kind     fault.Kind
		retry    bool
		overflow bool
	}{
		Unauthorized: {kind: fault.Unauthorized},
		RateLimited:  {kind: fault.RateLimited, retry: true},
		Quota:        {kind: fault.Exhausted},
		Unavailable:  {kind: fault.Unavailable, retry: true},
		Overflow:     {kind: fault.Exhausted, overflow: true},
		Cut:          {kind: fault.Unavailable, retry: true},
	}
	for scenario, want := range tests {
		t.Run(string(scenario), func(t *testing.T) {
			h.with(t, scenario, func(t *testing.T, s Subject) {
				out := h.failing(t, s)
				after, retry := fault.Retry(out.err)
				if got := fault.KindOf(out.err); got != want.kind || retry != want.retry {
					t.Errorf("kind %q, retry %v, want %q, %v: %v", got, retry, want.kind, want.retry, out.err)
				}
				if scenario == RateLimited && after != 7*time.Second {
					t.Errorf("retry after %v, want 7s", after)
				}
				if _, overflow := errors.AsType[*assistant.OverflowError](out.err); overflow != want.overflow {
					t.Errorf("overflow %v, want %v: %v", overflow, want.overflow, out.err)
				}
				if fault.Public(out.err) == "" {
					t.Error("there is no text for the person")
				}
			})
		})
	}
}

func (h Harness) failing(t *testing.T, s Subject) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), turnLimit)
	defer cancel()
	out := h.run(ctx, t, s)
	if out.err == nil {
		t.Fatalf("the turn did not fail: %+v", out.events)
	}
	if ctx.Err() != nil {
		t.Fatalf("the turn ended only with its context: %v", out.err)
	}
	return out
}

func (h Harness) failsWithoutAnswer(t *testing.T, s Subject) {
	for _, event := range h.failing(t, s).events {
		if done, ok := event.(assistant.MessageDone); ok {
			t.Errorf("an unfinished answer was handed over to be stored: %+v", done.Message)
		}
	}
}

// checkStopped checks how long Run took to return after the stop at from.
func checkStopped(t *testing.T, from time.Time) {
	t.Helper()
	if took := time.Since(from); took > stopLimit {
		t.Errorf("Run returned %v after the stop, want at most %v", took, stopLimit)
	}
}

func (h Harness) stopsWhenCanceled(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stopped time.Time
	var err error
	for event, e := range s.Assistant.Run(ctx, s.Turn) {
		if e != nil {
			err = e
			continue
		}
		switch event.(type) {
		case assistant.TextDelta:
			if stopped.IsZero() {
				stopped = time.Now()
				cancel()
			}
		case assistant.Finished, assistant.MessageDone:
			t.Errorf("%T after the stop", event)
		case assistant.Resumable, assistant.ToolStarted, assistant.ToolFinished, assistant.ThoughtDelta, assistant.PlanUpdated, assistant.Notice, assistant.FileMade, assistant.UsageUpdated:
		}
	}
	if stopped.IsZero() {
		t.Fatalf("no text came: %v", err)
	}
	checkStopped(t, stopped)
	if !fault.Is(err, fault.Canceled) {
		t.Errorf("error %v of kind %q, want canceled", err, fault.KindOf(err))
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("context.Canceled is not in the chain of %v", err)
	}
}

func (h Harness) stopsAtTheDeadline(t *testing.T, s Subject) {
	const limit = 200 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	from := time.Now().Add(limit)
	out := h.run(ctx, t, s)
	checkStopped(t, from)
	if !errors.Is(out.err, context.DeadlineExceeded) {
		t.Errorf("error %v, want a deadline in its chain", out.err)
	}
}

func (h Harness) doesNotStartWhenCanceled(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := h.run(ctx, t, s)
	if len(out.events) > 0 || !fault.Is(out.err, fault.Canceled) {
		t.Errorf("%d events and error %v, want only a canceled one", len(out.events), out.err)
	}
}

func (h Harness) stopsWhenNobodyListens(t *testing.T, s Subject) {
	var stopped time.Time
	for event, err := range s.Assistant.Run(t.Context(), s.Turn) {
		if err != nil {
			t.Fatalf("the turn failed: %v", err)
		}
		if _, ok := event.(assistant.TextDelta); ok {
			stopped = time.Now()
			break
		}
	}
	if stopped.IsZero() {
		t.Fatal("no text came")
	}
	checkStopped(t, stopped)
}

func (h Harness) leavesTheArrayAlone(t *testing.T, s Subject) {
	ctx, cancel := context.WithTimeout(t.Context(), turnLimit)
	defer cancel()
	before := fmt.Sprintf("%+v", s.Turn)
	h.run(ctx, t, s)
	if after := fmt.Sprintf("%+v", s.Turn); after != before {
		t.Errorf("the turn changed:\nbefore %s\nafter  %s", before, after)
	}
}
