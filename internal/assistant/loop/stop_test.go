package loop_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/loop"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

func TestAtMostEightAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all []messages.ToolCall
		for i := range 20 {
			all = append(all, call(fmt.Sprint("c", i), "look", fmt.Sprintf(`{"n":%d}`, i)))
		}
		h := host()
		var mu sync.Mutex
		active, most := 0, 0
		h.Do = func(_ context.Context, c messages.ToolCall) messages.ToolResult {
			mu.Lock()
			active++
			most = max(most, active)
			mu.Unlock()
			<-time.After(time.Second)
			mu.Lock()
			active--
			mu.Unlock()
			return messages.ToolResult{Content: c.ID}
		}
		started := time.Now()
		got := run(t.Context(), says(calls(all...), text("Done.")), turn(h))
		if got.err != nil || most != 8 || time.Since(started) != 3*time.Second {
			t.Errorf("%d at once, %v, error %v", most, time.Since(started), got.err)
		}
		for i, r := range got.results() {
			if r.Content != fmt.Sprint("c", i) {
				t.Errorf("result %d is %q", i, r.Content)
			}
		}
		if len(got.messages) != 3 {
			t.Errorf("%d messages, want one for all results", len(got.messages))
		}
	})
}

// TestToolsThatDoNotEnd has tools that take long to end after the stop.
func TestToolsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := host()
		h.Do = func(ctx context.Context, _ messages.ToolCall) messages.ToolResult {
			<-ctx.Done()
			<-time.After(5 * time.Second)
			return messages.ToolResult{Content: "at last"}
		}
		time.AfterFunc(time.Minute, cancel)
		started := time.Now()
		got := run(ctx, says(calls(call("a", "look", `{"n":1}`), call("b", "look", `{"n":2}`), call("c", "change", `{}`))), turn(h))
		if took := time.Since(started) - time.Minute; took > time.Second {
			t.Errorf("Run returned %v after the stop", took)
		}
		if !fault.Is(got.err, fault.Canceled) || len(got.messages) != 1 || len(h.Ran()) != 2 {
			t.Errorf("run: %+v", got)
		}
		<-time.After(10 * time.Second) // the tools end
	})
}

func TestDeadlineOfTheTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		h := host()
		h.Do = func(ctx context.Context, _ messages.ToolCall) messages.ToolResult {
			<-ctx.Done()
			return messages.ToolResult{Content: "interrupted", IsError: true}
		}
		got := run(ctx, says(calls(call("a", "change", `{}`))), turn(h))
		if !errors.Is(got.err, context.DeadlineExceeded) || !fault.Is(got.err, fault.Unavailable) || fault.Public(got.err) == "" {
			t.Errorf("run: %+v", got)
		}
	})
}

func TestListenerThatGoesAway(t *testing.T) {
	t.Parallel()
	// Stops at each event of the turn in turn.
	for stopAt := range 12 {
		m, h := says(
			answer{blocks: []messages.Block{messages.Text{Text: "I look."}, call("a", "look", `{"n":1}`), call("b", "look", `{"n":2}`), call("c", "change", `{}`)}},
			text("Done."),
		), host()
		h.Do = func(ctx context.Context, _ messages.ToolCall) messages.ToolResult {
			if ctx.Err() != nil {
				return messages.ToolResult{Content: "stopped", IsError: true}
			}
			return messages.ToolResult{Content: "x"}
		}
		n := 0
		for _, err := range loop.New(m, loop.Config{}).Run(t.Context(), turn(h)) {
			if err != nil {
				t.Fatal(err)
			}
			if n == stopAt {
				break
			}
			n++
		}
	}
}

// TestToolsEndWhenTheListenerGoesAway has two reads run when the caller stops.
func TestToolsEndWhenTheListenerGoesAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, h := says(calls(call("a", "look", `{"n":1}`), call("b", "look", `{"n":2}`))), host()
		h.Do = func(ctx context.Context, c messages.ToolCall) messages.ToolResult {
			if c.ID == "b" {
				<-ctx.Done()
			}
			return messages.ToolResult{Content: "x"}
		}
		started := time.Now()
		for event, err := range loop.New(m, loop.Config{}).Run(t.Context(), turn(h)) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := event.(assistant.ToolFinished); ok {
				break
			}
		}
		if took := time.Since(started); took > 0 {
			t.Errorf("Run returned after %v, although its tools end with the context", took)
		}
	})
}

// TestNothingIsYieldedAfterTheStop ends the turn while the host decides.
func TestNothingIsYieldedAfterTheStop(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	h := host()
	h.Decide = func(c messages.ToolCall) (assistant.Verdict, error) {
		if c.ID == "b" {
			cancel()
		}
		return assistant.Verdict{Reason: "no"}, nil
	}
	got := run(ctx, says(calls(call("a", "look", `{"n":1}`), call("b", "look", `{"n":2}`))), turn(h))
	if !fault.Is(got.err, fault.Canceled) || len(got.messages) != 1 {
		t.Errorf("run: %+v", got)
	}
}

func TestPanicOfAToolEndsOnlyTheTurn(t *testing.T) {
	t.Parallel()
	h := host()
	h.Do = func(_ context.Context, c messages.ToolCall) messages.ToolResult {
		if c.ID == "b" {
			panic("boom")
		}
		return messages.ToolResult{Content: "x"}
	}
	got := run(t.Context(), says(calls(call("a", "change", `{}`), call("b", "change", `{}`), call("c", "change", `{}`))), turn(h))
	if !fault.Is(got.err, fault.Internal) || len(got.results()) != 1 || len(h.Ran()) != 2 {
		t.Errorf("run: %+v", got)
	}
}
