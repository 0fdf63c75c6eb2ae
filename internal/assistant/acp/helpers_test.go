package acp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/assistant/acp/acptest"
	"remote-agent/internal/emulator/acpagent"
	"remote-agent/internal/messages"
	"remote-agent/internal/waittest"
)

func TestMain(m *testing.M) {
	acpagent.Hijack(os.Args)
	goleak.VerifyTestMain(m)
}

const (
	secret    = "canary-key-0123456789abcdef"
	testLimit = 5 * time.Minute // only reached by a test that fails
)

// world is an assistant with a scripted agent as a real process.
type world struct {
	*acp.Assistant
	record string // what the agent got
	state  string // where it keeps its sessions
	log    *logged
}

type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func config(tb testing.TB, dir string, s acpagent.Script) acp.Config {
	tb.Helper()
	command, err := acpagent.Command(dir, s)
	if err != nil {
		tb.Fatal(err)
	}
	return acp.Config{
		Name: "scripted", Command: command, InstallHint: "install it.", LoginHint: "Log it in.",
		Env: []string{"PATH=" + os.Getenv("PATH"), "AGENT_API_KEY=" + secret, "GORACE=atexit_sleep_ms=0"}, Scratch: dir,
		Start: acptest.Exec,
	}
}

// start returns an assistant that is closed at the end of the test. Sessions
// outlive their process, and what the agent gets is recorded.
func start(tb testing.TB, s acpagent.Script, change ...func(*acp.Config)) world {
	tb.Helper()
	w := world{record: filepath.Join(tb.TempDir(), "record"), state: tb.TempDir(), log: &logged{}}
	s.Record, s.State = w.record, w.state
	c := config(tb, tb.TempDir(), s)
	c.Log = logger(w.log)
	for _, f := range change {
		f(&c)
	}
	var err error
	if w.Assistant, err = acp.New(c); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := w.Close(); err != nil {
			tb.Error(err)
		}
	})
	return w
}

// result is what a turn yielded.
type result struct {
	events   []assistant.Event
	messages []messages.Message
	text     string // of the deltas
	answer   string // of the last assistant message
	resume   []string
	notices  []string
	finished *assistant.Finished
	err      error
}

func ask(ctx context.Context, a assistant.Assistant, turn assistant.Turn) result {
	var r result
	ctx, cancel := context.WithTimeout(ctx, testLimit)
	defer cancel()
	for event, err := range a.Run(ctx, turn) {
		if err != nil {
			r.err = err
			continue
		}
		r.add(event)
	}
	return r
}

func (r *result) add(event assistant.Event) {
	r.events = append(r.events, event)
	switch e := event.(type) {
	case assistant.TextDelta:
		r.text += e.Text
	case assistant.MessageDone:
		r.messages = append(r.messages, e.Message)
		if e.Message.Role == messages.RoleAssistant {
			r.answer = e.Message.PlainText()
		}
	case assistant.Resumable:
		r.resume = append(r.resume, e.Session)
	case assistant.Notice:
		r.notices = append(r.notices, e.Text)
	case assistant.Finished:
		r.finished = &e
	case assistant.ThoughtDelta, assistant.PlanUpdated, assistant.FileMade, assistant.UsageUpdated, assistant.ToolStarted, assistant.ToolFinished:
	}
}

// session returns the id to resume the turn's session with.
func (r result) session(tb testing.TB) string {
	tb.Helper()
	if len(r.resume) == 0 {
		tb.Fatalf("no session id came: %+v", r)
	}
	return r.resume[len(r.resume)-1]
}

func question(text string) assistant.Turn {
	return assistant.Turn{Conversation: "conversation", Run: "run", Array: []messages.Message{messages.NewText(messages.RoleUser, text)}}
}

// next returns the turn after a turn.
func next(turn assistant.Turn, r result, resume, text string) assistant.Turn {
	turn.Array = append(append(append([]messages.Message{}, turn.Array...), r.messages...), messages.NewText(messages.RoleUser, text))
	turn.Array = messages.Repair(turn.Array)
	turn.Resume = resume
	return turn
}

// got returns what the agent received: the methods in order, and the prompts.
func (w world) got(tb testing.TB) (methods, prompts []string, lines []string) {
	tb.Helper()
	f, err := os.Open(w.record)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<24)
	for scanner.Scan() {
		var m struct {
			Method string
			Params struct{ Prompt []struct{ Text string } }
		}
		if err := json.Unmarshal(scanner.Bytes(), &m); err != nil {
			tb.Fatalf("the agent got %q: %v", scanner.Text(), err)
		}
		lines = append(lines, scanner.Text())
		if m.Method != "" {
			methods = append(methods, m.Method)
		}
		for _, p := range m.Params.Prompt {
			prompts = append(prompts, p.Text)
		}
	}
	return methods, prompts, lines
}

// starts returns the pids of the processes that were started.
func (w world) starts(tb testing.TB) (pids []int) {
	tb.Helper()
	_, _, lines := w.got(tb)
	for _, line := range lines {
		var m struct{ Started int }
		if json.Unmarshal([]byte(line), &m) == nil && m.Started != 0 {
			pids = append(pids, m.Started)
		}
	}
	return pids
}

// eventually waits until check holds.
func eventually(tb testing.TB, what string, check func() bool) {
	tb.Helper()
	waittest.Until(tb, what, check)
}

// host decides as decide says and keeps what it was asked.
type host struct {
	assistant.Host
	decide func(ctx context.Context, p assistant.Permission) (assistant.Verdict, error)

	mu    sync.Mutex
	asked []assistant.Permission
}

func (h *host) Ask(ctx context.Context, p assistant.Permission) (assistant.Verdict, error) {
	h.mu.Lock()
	h.asked = append(h.asked, p)
	h.mu.Unlock()
	return h.decide(ctx, p)
}

func (h *host) Tools() []messages.ToolSpec { return nil }

func always(v assistant.Verdict) *host {
	return &host{decide: func(context.Context, assistant.Permission) (assistant.Verdict, error) { return v, nil }}
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }

// gotOrNothing is got before the agent has started.
func (w world) gotOrNothing(tb testing.TB) (methods, prompts, lines []string) {
	tb.Helper()
	if _, err := os.Stat(w.record); err != nil {
		return nil, nil, nil
	}
	return w.got(tb)
}

// settings lists what was set, without session ids.
func settings(tb testing.TB, lines []string) string {
	tb.Helper()
	var set []string
	for _, line := range lines {
		var m struct {
			Method string
			Params map[string]any
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			tb.Fatal(err)
		}
		if !strings.HasPrefix(m.Method, "session/set_") {
			continue
		}
		delete(m.Params, "sessionId")
		params, err := json.Marshal(m.Params)
		if err != nil {
			tb.Fatal(err)
		}
		set = append(set, m.Method+string(params))
	}
	return strings.Join(set, " ")
}

func readAll(tb testing.TB, p acp.Process) string {
	tb.Helper()
	text, err := io.ReadAll(p.Stdout())
	if err != nil {
		tb.Fatal(err)
	}
	_ = p.Stdout().Close()
	return string(text)
}
