package agents_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
)

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

func logger(l *logged) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
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
	case assistant.ThoughtDelta, assistant.PlanUpdated, assistant.UsageUpdated, assistant.ToolStarted, assistant.ToolFinished:
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

// host decides as decide says and keeps what it was asked.
type host struct {
	assistant.Host
	decide func(ctx context.Context, p assistant.Permission) (assistant.Verdict, error)

	specs []messages.ToolSpec // of MCP servers

	mu     sync.Mutex
	asked  []assistant.Permission
	judged []messages.ToolCall
}

func (h *host) Tools() []messages.ToolSpec { return h.specs }

func (*host) Describe(call messages.ToolCall) string { return call.Name }

func (h *host) Permit(_ context.Context, call messages.ToolCall) (assistant.Verdict, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.judged = append(h.judged, call)
	return assistant.Verdict{Allow: true}, nil
}

func (*host) RunTool(_ context.Context, call messages.ToolCall) (messages.ToolResult, []messages.Attachment) {
	return messages.ToolResult{CallID: call.ID, Name: call.Name, Content: "rain, for " + call.Arguments}, nil
}

func (h *host) Ask(ctx context.Context, p assistant.Permission) (assistant.Verdict, error) {
	h.mu.Lock()
	h.asked = append(h.asked, p)
	h.mu.Unlock()
	return h.decide(ctx, p)
}

func always(v assistant.Verdict) *host {
	return &host{decide: func(context.Context, assistant.Permission) (assistant.Verdict, error) { return v, nil }}
}

// kinds lists events, one a line.
func kinds(events []assistant.Event) (out []string) {
	for _, event := range events {
		out = append(out, fmt.Sprintf("%T %+v", event, event))
	}
	return out
}
