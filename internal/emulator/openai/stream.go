package openai

import (
	"strconv"
	"strings"

	"remote-agent/internal/emulator/modelapi"
)

// answer is one answer on its way.
type answer struct {
	id       string
	req      Request
	response Response
	out      *modelapi.Out
	text     strings.Builder
	calls    []toolCallDelta
	size     int // bytes of text and arguments
	prompt   int // tokens
}

func voice(req Request, r Response, out *modelapi.Out) modelapi.Voice {
	out.Stream = req.Stream
	// The prompt is measured before the answer begins: at its end, a client would wait for that.
	return &answer{id: "chatcmpl-" + strconv.Itoa(req.N), req: req, response: r, out: out, prompt: req.tokens()}
}

// The forms of the API.
type (
	chunk struct {
		ID                string        `json:"id"`
		Object            string        `json:"object"`
		Created           int64         `json:"created"`
		Model             string        `json:"model"`
		SystemFingerprint string        `json:"system_fingerprint"`
		Choices           []chunkChoice `json:"choices"`
	}
	usageChunk struct {
		chunk
		Usage *usage `json:"usage"`
	}
	usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
	chunkChoice struct {
		Index        int       `json:"index"`
		Delta        delta     `json:"delta"`
		Logprobs     *struct{} `json:"logprobs"`
		FinishReason *string   `json:"finish_reason"`
	}
	delta struct {
		Role      string          `json:"role,omitempty"`
		Content   *string         `json:"content,omitempty"`
		ToolCalls []toolCallDelta `json:"tool_calls,omitempty"`
	}
	toolCallDelta struct {
		Index int `json:"index"`
		toolCall
	}
	toolCall struct {
		ID       string       `json:"id,omitempty"`
		Type     string       `json:"type,omitempty"`
		Function calledByName `json:"function"`
	}
	calledByName struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	}
)

// Begin sends the chunk that has only the role.
func (a *answer) Begin() error {
	if a.response.Bare {
		return nil
	}
	empty := ""
	return a.send(delta{Role: "assistant", Content: &empty}, nil)
}

// Say streams a piece of text or of a call, and keeps what an answer in one piece
// needs.
func (a *answer) Say(step modelapi.Step) error {
	if step.Kind == modelapi.KindText {
		a.size += len(step.Text)
		if !a.req.Stream {
			a.text.WriteString(step.Text)
		}
		return a.send(delta{Content: &step.Text}, nil)
	}
	d := toolCallDelta{Index: step.N, toolCall: toolCall{
		ID: step.Call.ID, Function: calledByName{Name: step.Call.Name, Arguments: step.Call.Arguments},
	}}
	a.size += len(step.Call.Arguments)
	for len(a.calls) <= d.Index {
		a.calls = append(a.calls, toolCallDelta{Index: len(a.calls)})
	}
	c := &a.calls[d.Index]
	if d.ID != "" || d.Function.Name != "" {
		d.Type = "function"
		c.toolCall = d.toolCall
		c.Function.Arguments = ""
	}
	c.Function.Arguments += d.Function.Arguments
	return a.send(delta{ToolCalls: []toolCallDelta{d}}, nil)
}

// Fail streams an error object.
func (a *answer) Fail(step modelapi.Step) error {
	return a.out.Event("", modelapi.OpenAIError(step.Fail))
}

// End says why the answer ends, and what it cost.
func (a *answer) End() (any, error) {
	if !a.req.Stream {
		return a.whole(), nil
	}
	reason := a.finishReason()
	if err := a.send(delta{}, &reason); err != nil {
		return nil, err
	}
	if a.includeUsage() {
		if err := a.out.Event("", usageChunk{chunk: a.chunk(), Usage: a.usage()}); err != nil {
			return nil, err
		}
	}
	return nil, a.out.Data("", "[DONE]")
}

func (a *answer) finishReason() string {
	switch {
	case a.response.Stop != "":
		return a.response.Stop
	case len(a.calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (a *answer) usage() *usage {
	prompt, completion := a.prompt, a.size/4+1
	if u := a.response.Usage; u != nil {
		prompt, completion = u[0], u[1]
	}
	return &usage{prompt, completion, prompt + completion}
}

func (a *answer) includeUsage() bool {
	return a.req.StreamOptions != nil && a.req.StreamOptions.IncludeUsage
}

func (a *answer) chunk(choices ...chunkChoice) chunk {
	if choices == nil {
		choices = []chunkChoice{}
	}
	return chunk{
		ID: a.id, Object: "chat.completion.chunk", Created: a.req.At.Unix(), Model: a.req.Model,
		SystemFingerprint: "fp_emulator", Choices: choices,
	}
}

// send streams one delta.
func (a *answer) send(d delta, reason *string) error {
	c := a.chunk(chunkChoice{Delta: d, FinishReason: reason})
	if a.includeUsage() {
		return a.out.Event("", usageChunk{chunk: c})
	}
	return a.out.Event("", c)
}

// whole is the answer in one piece.
func (a *answer) whole() any {
	type message struct {
		Role      string     `json:"role"`
		Content   *string    `json:"content"`
		Refusal   *string    `json:"refusal"`
		ToolCalls []toolCall `json:"tool_calls,omitempty"`
	}
	m := message{Role: "assistant"}
	if text := a.text.String(); text != "" || len(a.calls) == 0 {
		m.Content = &text
	}
	for _, c := range a.calls {
		m.ToolCalls = append(m.ToolCalls, c.toolCall)
	}
	return map[string]any{
		"id": a.id, "object": "chat.completion", "created": a.req.At.Unix(), "model": a.req.Model,
		"choices": []any{map[string]any{
			"index": 0, "message": m, "logprobs": nil, "finish_reason": a.finishReason(),
		}},
		"usage": a.usage(),
	}
}
