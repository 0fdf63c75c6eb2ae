package acp_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/emulator/acpagent"
	"remote-agent/internal/fault"
	"remote-agent/internal/waittest"
)

func TestIdleProcessEnds(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Script{Resume: true}, func(c *acp.Config) { c.IdleTimeout = 50 * time.Millisecond })
	turn := question("first")
	first := ask(t.Context(), w, turn)
	pid := w.starts(t)[0]
	eventually(t, "the idle process ends", func() bool { return !running(pid) })
	second := ask(t.Context(), w, next(turn, first, first.session(t), "second"))
	if second.err != nil || second.answer != "You said: second" || len(w.starts(t)) != 2 {
		t.Errorf("second turn: %+v", second)
	}
}

// TestProcessThatEndsBetweenTurns: nobody notices.
func TestProcessThatEndsBetweenTurns(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Script{Resume: true, Turns: []acpagent.Turn{{Match: "first", Steps: []acpagent.Step{
		{Say: "One."}, {Line: `{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`}, {Exit: new(1)},
	}}}})
	first := ask(t.Context(), w, question("first"))
	pid := w.starts(t)[0]
	eventually(t, "the process ends", func() bool { return !running(pid) })
	turn := question("second")
	turn.Resume = first.session(t)
	if second := ask(t.Context(), w, turn); second.err != nil || second.answer != "You said: second" {
		t.Errorf("second turn: %+v", second)
	}
}

// TestMaxProcesses: with one slot, a conversation that is idle makes room, and
// one that works is waited for.
func TestMaxProcesses(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	w := start(t, acpagent.Script{Resume: true, Turns: []acpagent.Turn{{Match: "long", Steps: []acpagent.Step{
		{Say: "I begin."}, {AwaitFile: gate}, {Say: "Done."},
	}}}}, func(c *acp.Config) { c.MaxProcesses = 1 })
	in := func(conversation, text string) assistant.Turn {
		turn := question(text)
		turn.Conversation = conversation
		return turn
	}
	for _, conversation := range []string{"a", "b", "a"} {
		if got := ask(t.Context(), w, in(conversation, "short")); got.err != nil {
			t.Fatal(got.err)
		}
	}
	began := make(chan struct{})
	var long result
	var wg sync.WaitGroup
	wg.Go(func() {
		for event, err := range w.Run(t.Context(), in("c", "long")) {
			if err != nil {
				long.err = err
				continue
			}
			long.add(event)
			if d, ok := event.(assistant.TextDelta); ok && d.Text == "I begin." {
				close(began)
			}
		}
	})
	<-began
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := ask(ctx, w, in("d", "short")); !fault.Is(got.err, fault.Unavailable) {
		t.Errorf("a second process while the first works: %+v", got)
	}
	var waited result
	wg.Go(func() { waited = ask(t.Context(), w, in("d", "short")) })
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if long.err != nil || waited.err != nil || waited.answer != "You said: short" {
		t.Errorf("turns: %+v, %+v", long, waited)
	}
}

// TestTurnsOfAConversationWait: they share a process, so they run one after the
// other.
func TestTurnsOfAConversationWait(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Does(acpagent.Step{Say: "I begin."}, acpagent.Step{AwaitCancel: true}, acpagent.Step{Stop: &acpagent.Stop{Reason: acpagent.Canceled}}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	inner := result{}
	for event := range w.Run(ctx, question("Hi")) {
		if _, ok := event.(assistant.TextDelta); ok {
			short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
			inner = ask(short, w, question("Hi"))
			stop()
			cancel()
		}
	}
	if !fault.Is(inner.err, fault.Unavailable) || len(inner.events) > 0 {
		t.Errorf("a turn beside another: %+v", inner)
	}
}

// TestTwentyAgentsAtOnce checks what supervising them costs: under 50 MB of our
// own memory.
func TestTwentyAgentsAtOnce(t *testing.T) { //nolint:paralleltest // it measures the heap
	const agents, limit = 20, 50 << 20
	gate := filepath.Join(t.TempDir(), "gate")
	w := start(t, acpagent.Does(
		acpagent.Step{Times: 50, Think: strings.Repeat("thought ", 100)},
		acpagent.Step{Times: 10, Tool: &acpagent.Tool{ID: "x", Title: "ls", Input: raw(`{"command":"ls"}`), Output: strings.Repeat("output ", 4000)}},
		acpagent.Step{Times: 50, Say: strings.Repeat("answer ", 100)},
		acpagent.Step{AwaitFile: gate}))
	before := heap()
	ctx := waittest.Context(t.Context(), t, 20*time.Second)
	var ready, wg sync.WaitGroup
	for i := range agents {
		ready.Add(1)
		wg.Go(func() {
			turn := question("go")
			turn.Conversation = fmt.Sprint(i)
			said := 0
			for event, err := range w.Run(ctx, turn) {
				if err != nil {
					t.Errorf("agent %d: %v", i, err)
				}
				if d, ok := event.(assistant.TextDelta); ok && strings.HasPrefix(d.Text, "answer") {
					if said++; said == 50 {
						ready.Done()
					}
				}
			}
		})
	}
	ready.Wait()
	used := int64(heap()) - int64(before)
	t.Logf("%d agents at work: %d KiB of heap", agents, used>>10)
	if used > limit {
		t.Errorf("%d agents at work use %d bytes, want at most %d", agents, used, limit)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestNothingIsLeft does 200 turns in several conversations, good and bad, and
// looks for what is left: goroutines, processes, open files.
func TestNothingIsLeft(t *testing.T) { //nolint:paralleltest // it counts open files
	before := goleak.IgnoreCurrent()
	files := openFiles(t)
	w := start(t, acpagent.Script{Resume: true, Turns: []acpagent.Turn{
		{Match: "tool", Steps: []acpagent.Step{{Tool: &acpagent.Tool{ID: "1", Title: "ls", Output: "x"}}, {Say: "Done."}}},
		{Match: "garbage", Steps: []acpagent.Step{{Line: "oops"}, {Hang: true}}},
		{Match: "exit", Steps: []acpagent.Step{{Exit: new(1)}}},
	}})
	var wg sync.WaitGroup
	for conversation := range 4 {
		wg.Go(func() {
			resume := ""
			for i := range 50 {
				turn := question([]string{"hello", "tool"}[i%2])
				if i%25 == 24 {
					turn = question([]string{"garbage", "exit"}[i/25])
				}
				turn.Conversation, turn.Resume = fmt.Sprint(conversation), resume
				got := ask(t.Context(), w, turn)
				if (got.err != nil) != (i%25 == 24) {
					t.Errorf("turn %d: %v", i, got.err)
				}
				if len(got.resume) > 0 {
					resume = got.resume[len(got.resume)-1]
				}
			}
		})
	}
	wg.Wait()
	pids := w.starts(t)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if running(pid) {
			t.Errorf("process %d of %d is left", pid, len(pids))
		}
	}
	if after := openFiles(t); after > files {
		t.Errorf("%d open files before, %d after", files, after)
	}
	goleak.VerifyNone(t, before)
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("open files cannot be counted here")
	}
	return len(entries)
}

func BenchmarkTurn(b *testing.B) {
	w := start(b, acpagent.Script{Resume: true, Turns: []acpagent.Turn{{Steps: []acpagent.Step{{Times: 20, Say: "some words of an answer. "}}}}})
	turn := question("Hi")
	first := ask(b.Context(), w, turn)
	turn.Resume = first.session(b)
	b.ReportAllocs()
	for b.Loop() {
		if got := ask(b.Context(), w, turn); got.err != nil {
			b.Fatal(got.err)
		}
	}
}
