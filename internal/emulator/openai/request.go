package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"remote-agent/internal/emulator/modelapi"
)

// Request is a request that passed the checks.
type Request struct {
	modelapi.Received

	Model               string          `json:"model"`
	Messages            []Message       `json:"messages"`
	Tools               []Tool          `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	Stream              bool            `json:"stream"`
	StreamOptions       *streamOptions  `json:"stream_options"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Temperature         *float64        `json:"temperature"`
	TopP                *float64        `json:"top_p"`
	Choices             *int            `json:"n"`
	ParallelToolCalls   *bool           `json:"parallel_tool_calls"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// Message is one message of a request.
type Message struct {
	Role       string          `json:"role"`
	RawContent json.RawMessage `json:"content"`
	Name       string          `json:"name"`
	ToolCalls  []ToolCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

// ToolCall is a call that an assistant message makes.
type ToolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string  `json:"name"`
		Arguments *string `json:"arguments"`
	} `json:"function"`
}

// Tool is a function that the model may call.
type Tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// Text returns the content, with the texts of several parts joined by newlines.
func (m Message) Text() string {
	var text string
	if json.Unmarshal(m.RawContent, &text) == nil {
		return text
	}
	var parts []part
	if json.Unmarshal(m.RawContent, &parts) != nil {
		return ""
	}
	var texts []string
	for _, p := range parts {
		if p.Type == "text" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// LastUserText returns the text of the last user message.
func (r Request) LastUserText() string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "user" {
			return m.Text()
		}
	}
	return ""
}

// Roles returns the roles of the messages in order.
func (r Request) Roles() []string {
	roles := make([]string, len(r.Messages))
	for i, m := range r.Messages {
		roles[i] = m.Role
	}
	return roles
}

// tokens estimates the length of the prompt: four bytes of content are a token.
func (r *Request) tokens() int {
	n := 0
	for _, m := range r.Messages {
		n += 4 + len(m.RawContent)/4
		for _, c := range m.ToolCalls {
			n += 4 + len(c.Function.Name)/4
			if c.Function.Arguments != nil {
				n += len(*c.Function.Arguments) / 4
			}
		}
	}
	return n
}

// part is a piece of a content that is a list.
type part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}
