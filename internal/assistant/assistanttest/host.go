package assistanttest

import (
	"context"
	"slices"
	"sync"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
)

// Host is a host for tests whose decisions are functions. The zero value has no
// tools; with Specs alone it allows every call and answers "NAME done". Set the
// fields before it is used. It is safe for concurrent use if they are.
type Host struct {
	Specs  []messages.ToolSpec
	Reads  map[string]bool // the names of tools that may run in parallel
	Decide func(call messages.ToolCall) (assistant.Verdict, error)
	Do     func(ctx context.Context, call messages.ToolCall) messages.ToolResult
	Shows  func(call messages.ToolCall) []messages.Attachment                           // the files that a result comes with; without it none
	Answer func(ctx context.Context, p assistant.Permission) (assistant.Verdict, error) // without it every question is refused
	Next   func(requests int, used assistant.Usage) ([]messages.Message, error)

	mu    sync.Mutex
	asked []messages.ToolCall
	ran   []messages.ToolCall
	used  []assistant.Usage // of each Round
}

var _ assistant.Host = (*Host)(nil)

// Tools implements assistant.Host.
func (h *Host) Tools() []messages.ToolSpec { return h.Specs }

// Permit implements assistant.Host.
func (h *Host) Permit(_ context.Context, call messages.ToolCall) (assistant.Verdict, error) {
	h.mu.Lock()
	h.asked = append(h.asked, call)
	h.mu.Unlock()
	if h.Decide == nil {
		return assistant.Verdict{Allow: true}, nil
	}
	return h.Decide(call)
}

// Parallel implements assistant.Host.
func (h *Host) Parallel(call messages.ToolCall) bool { return h.Reads[call.Name] }

// Describe implements assistant.Host.
func (h *Host) Describe(call messages.ToolCall) string { return "uses " + call.Name }

// RunTool implements assistant.Host.
func (h *Host) RunTool(ctx context.Context, call messages.ToolCall) (messages.ToolResult, []messages.Attachment) {
	h.mu.Lock()
	h.ran = append(h.ran, call)
	h.mu.Unlock()
	result := messages.ToolResult{CallID: call.ID, Name: call.Name, Content: call.Name + " done"}
	if h.Do != nil {
		result = h.Do(ctx, call)
	}
	if h.Shows == nil {
		return result, nil
	}
	return result, h.Shows(call)
}

// Ask implements assistant.Host.
func (h *Host) Ask(ctx context.Context, p assistant.Permission) (assistant.Verdict, error) {
	if h.Answer == nil {
		return assistant.Verdict{Reason: "nobody answered"}, nil
	}
	return h.Answer(ctx, p)
}

// Round implements assistant.Host.
func (h *Host) Round(_ context.Context, requests int, used assistant.Usage) ([]messages.Message, error) {
	h.mu.Lock()
	h.used = append(h.used, used)
	h.mu.Unlock()
	if h.Next == nil {
		return nil, nil
	}
	return h.Next(requests, used)
}

// Asked returns the calls that Permit was asked about, in order.
func (h *Host) Asked() []messages.ToolCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asked)
}

// Ran returns the calls that were run, in the order in which they began.
func (h *Host) Ran() []messages.ToolCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.ran)
}

// Rounds returns the usage that each call of Round was given.
func (h *Host) Rounds() []assistant.Usage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.used)
}
