package openai

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
)

// Finish reasons that only some providers send.
const (
	finishOverflow    api.FinishReason = "model_context_window_exceeded" // Z.ai
	finishError       api.FinishReason = "error"                         // OpenRouter
	finishNoResources api.FinishReason = "insufficient_system_resource"  // DeepSeek
	finishBadCall                      = "function_call_filter"          // Gemini: begins the one of a call that it cannot read
	maxCalls                           = 128                             // the most that the API itself allows tools
)

// answer is what has come of an answer.
type answer struct {
	id      string
	model   string
	text    strings.Builder
	thought strings.Builder
	reasons bool // the thought is a part of the message
	thinks  bool // there is a thought
	inline  inline
	calls   []messages.ToolCall
	args    []*strings.Builder // of the calls, by position
	extras  []json.RawMessage  // what came with the calls, by position; see signedCalls
	details []*detail          // reasoning_details, of pieces that came
	index   map[int]int        // position of the newest call of a stream index
	finish  api.FinishReason
	usage   assistant.Usage
	written int // bytes of text, thought and arguments that came
}

// add takes a chunk in and returns the text and the reasoning that it brought.
func (a *answer) add(chunk api.ChatCompletionStreamResponse) (delta, thought string) {
	if chunk.ID != "" {
		a.id = chunk.ID
	}
	if chunk.Model != "" {
		a.model = chunk.Model
	}
	if u := chunk.Usage; u != nil {
		// Some providers send it with each chunk; the last one is the total. xAI and Gemini count
		// what the model thought in the total of both only.
		a.usage = assistant.Usage{
			InputTokens:  assistant.Count(int64(u.PromptTokens)),
			OutputTokens: assistant.Count(int64(max(u.CompletionTokens, u.TotalTokens-u.PromptTokens))),
		}
		if u.PromptTokensDetails != nil {
			a.usage.CachedTokens = assistant.Count(int64(u.PromptTokensDetails.CachedTokens))
		}
	}
	for _, c := range chunk.Choices {
		if c.Index != 0 {
			continue
		}
		// A refusal is the answer: the model says why it will not.
		said, inline := a.inline.split(c.Delta.Content)
		delta += said + c.Delta.Refusal
		thought += c.Delta.ReasoningContent + inline
		a.addDetails(c.Delta.Role)
		for i, call := range c.Delta.ToolCalls {
			a.addCall(i, call)
		}
		if f := c.Delta.FunctionCall; f != nil { // as before there were tools
			a.addCall(0, api.ToolCall{Function: *f})
		}
		if c.FinishReason != "" && c.FinishReason != api.FinishReasonNull {
			a.finish = c.FinishReason
		}
	}
	a.text.WriteString(delta)
	a.written += len(delta) + len(thought)
	a.thinks = a.thinks || thought != ""
	if a.reasons {
		a.thought.WriteString(thought)
	}
	return delta, thought
}

// used returns what the answer to r used, as far as the server has said, and else an estimate.
func (a *answer) used(r assistant.Request) assistant.Usage {
	if a.finish != "" || a.usage != (assistant.Usage{}) {
		return a.usage
	}
	return a.usage.Unfinished(r, a.written)
}

// nothing reports whether the model wrote nothing at all, as far as the server says.
func (a *answer) nothing() bool {
	return strings.TrimSpace(a.text.String()) == "" && !a.thinks && len(a.calls) == 0 && a.usage.OutputTokens == 0
}

// addCall takes a piece of a call in, the i-th of a chunk. Pieces of one call share an
// index. Some servers leave the index out, or send 0 for every call: then a name with a new
// id is a new call. Those that leave out the id as well send whole calls. What says nothing
// of whose it is continues the newest call.
func (a *answer) addCall(i int, d api.ToolCall) {
	index := 0
	switch {
	case d.Index != nil:
		index = *d.Index
	case d.ID == "":
		index = i
	}
	at, known := a.index[index]
	if n := len(a.calls); !known && d.ID == "" && d.Function.Name == "" && n > 0 && n < maxCalls {
		at, known = n-1, true
	}
	if !known || d.Function.Name != "" && a.begins(at, d) {
		if len(a.calls) == maxCalls {
			return
		}
		if a.index == nil {
			a.index = make(map[int]int)
		}
		at = len(a.calls)
		a.index[index] = at
		a.calls = append(a.calls, messages.ToolCall{})
		a.args = append(a.args, new(strings.Builder))
		a.extras = append(a.extras, nil)
	}
	if extra := carried(d); extra != nil {
		a.extras[at] = extra
	}
	c := &a.calls[at]
	c.ID = cmp.Or(c.ID, d.ID)
	c.Name = cmp.Or(c.Name, d.Function.Name)
	_, _ = a.args[at].WriteString(d.Function.Arguments) // a builder takes everything
	a.written += len(d.Function.Arguments)
}

// begins reports whether a piece with a name begins another call than the one at a position.
// Some servers make up another id for each piece, but name the call only once.
func (a *answer) begins(at int, d api.ToolCall) bool {
	c := a.calls[at]
	if d.ID != "" {
		return c.ID != "" && c.ID != d.ID
	}
	return c.Name != "" && (c.Name != d.Function.Name || d.Function.Arguments != "" && json.Valid([]byte(a.args[at].String())))
}

// message returns the whole answer, asked of the model of that name: its text, then its calls.
func (a *answer) message(model string) messages.Message {
	m := messages.Message{Role: messages.RoleAssistant}
	if a.thought.Len() > 0 {
		m.Blocks = append(m.Blocks, messages.Thinking{Text: a.thought.String(), Provider: string(Name), Model: model})
	}
	if t, ok := a.signature(model); ok {
		m.Blocks = append(m.Blocks, t)
	}
	if a.text.Len() > 0 {
		m.Blocks = append(m.Blocks, messages.Text{Text: a.text.String()})
	}
	for i, c := range a.calls {
		if c.ID == "" {
			c.ID = "call_" + rand.Text()
		}
		c.Arguments = a.args[i].String()
		m.Blocks = append(m.Blocks, c)
	}
	metadata, err := json.Marshal(struct {
		ID           string `json:"id,omitempty"`
		Model        string `json:"model,omitempty"`
		FinishReason string `json:"finish_reason,omitempty"`
	}{a.id, a.model, string(a.finish)})
	if err == nil {
		m.ProviderMetadata = metadata
	}
	return m
}
