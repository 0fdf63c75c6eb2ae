package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	api "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
)

// wire returns the request in the API's form, with or without thinking, new and
// old.
func (c *completion) wire(thinking bool) api.MessageNewParams {
	p := api.MessageNewParams{
		Model:     c.name,
		MaxTokens: int64(c.model.maxTokens),
		Tools:     toTools(c.request.Tools),
	}
	if strings.TrimSpace(c.request.System) != "" {
		p.System = []api.TextBlockParam{{Text: c.request.System, CacheControl: api.NewCacheControlEphemeralParam()}}
	}
	if c.model.public && c.request.Conversation != "" {
		// Other servers refuse fields that they do not know.
		p.Metadata.UserID = api.String(c.request.Conversation)
	}
	replay := ""
	if thinking {
		replay = c.name
		p.Thinking = toThinking(c.model.thinking)
	}
	p.Messages = toWire(c.request.Array, replay)
	markTurns(p.Messages)
	return p
}

// toThinking returns the option for a Config.ThinkingBudget. It is written as JSON
// because the SDK prints warnings about the typed one to the standard error.
func toThinking(budget int) api.ThinkingConfigParamUnion {
	switch {
	case budget == ThinkingAdaptive:
		return param.Override[api.ThinkingConfigParamUnion](json.RawMessage(`{"type":"adaptive"}`))
	case budget > 0:
		return param.Override[api.ThinkingConfigParamUnion](json.RawMessage(fmt.Sprintf(`{"type":"enabled","budget_tokens":%d}`, budget)))
	}
	return api.ThinkingConfigParamUnion{}
}

// hasThinking reports whether a request asks for thinking or holds any.
func hasThinking(p api.MessageNewParams) bool {
	if !param.IsOmitted(p.Thinking) {
		return true
	}
	for _, m := range p.Messages {
		for _, b := range m.Content {
			if b.OfThinking != nil || b.OfRedactedThinking != nil {
				return true
			}
		}
	}
	return false
}

// toTools describes tools, in order and byte for byte the same every time. The
// cache holds them up to the last.
func toTools(specs []messages.ToolSpec) []api.ToolUnionParam {
	if len(specs) == 0 {
		return nil
	}
	tools := make([]api.ToolUnionParam, len(specs))
	for i, s := range specs {
		tool := &api.ToolParam{Name: s.Name, InputSchema: toSchema(s.Schema)}
		if s.Description != "" {
			tool.Description = api.String(s.Description)
		}
		if i == len(specs)-1 {
			tool.CacheControl = api.NewCacheControlEphemeralParam()
		}
		tools[i] = api.ToolUnionParam{OfTool: tool}
	}
	return tools
}

// toSchema passes a schema on as it is; the API wants its type at the top.
func toSchema(raw json.RawMessage) api.ToolInputSchemaParam {
	var schema struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &schema) != nil || schema.Type != "object" {
		raw = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return param.Override[api.ToolInputSchemaParam](raw)
}

// toWire maps a repaired array to the Messages API, and nothing else: tool
// results go to the beginning of a user message, neighbors of one role become one
// message. Thinking is sent back only to replay, the model that wrote it, and
// only if it has a signature.
func toWire(array []messages.Message, replay string) []api.MessageParam {
	var wire []api.MessageParam
	for _, m := range array {
		role := api.MessageParamRoleUser
		if m.Role == messages.RoleAssistant {
			role = api.MessageParamRoleAssistant
		}
		var content []api.ContentBlockParamUnion
		for _, b := range m.Blocks {
			if w, ok := toBlock(b, replay); ok {
				content = append(content, w)
			}
		}
		if len(content) == 0 {
			continue
		}
		if n := len(wire); n > 0 && wire[n-1].Role == role {
			wire[n-1].Content = append(wire[n-1].Content, content...)
		} else {
			wire = append(wire, api.MessageParam{Role: role, Content: content})
		}
	}
	for i := range wire {
		resultsFirst(wire[i].Content)
	}
	return wire
}

// resultsFirst puts tool results before all else, in place and without changing
// their order: the API looks for them there only.
func resultsFirst(content []api.ContentBlockParamUnion) {
	sorted := make([]api.ContentBlockParamUnion, 0, len(content))
	for _, results := range []bool{true, false} {
		for _, b := range content {
			if (b.OfToolResult != nil) == results {
				sorted = append(sorted, b)
			}
		}
	}
	copy(content, sorted)
}

func toBlock(b messages.Block, replay string) (w api.ContentBlockParamUnion, ok bool) {
	switch b := b.(type) {
	case messages.Text:
		return api.NewTextBlock(b.Text), strings.TrimSpace(b.Text) != ""
	case messages.Attachment:
		return api.NewTextBlock(assistant.AttachmentText(b)), true
	case messages.ToolCall:
		return api.NewToolUseBlock(messages.SafeID(b.ID), arguments(b.Arguments), messages.SafeName(b.Name)), true
	case messages.ToolResult:
		content := b.Content
		if strings.TrimSpace(content) == "" {
			content = "(no output)" // the API refuses an empty one
		}
		w = api.NewToolResultBlock(messages.SafeID(b.CallID), content, b.IsError)
		if !b.IsError {
			w.OfToolResult.IsError = param.Opt[bool]{}
		}
		return w, true
	case messages.Thinking:
		if replay == "" || b.Signature == "" || b.Provider != string(Name) || b.Model != replay {
			return w, false
		}
		if data, redacted := strings.CutPrefix(b.Signature, redactedPrefix); redacted {
			return api.NewRedactedThinkingBlock(data), true
		}
		return api.NewThinkingBlock(b.Signature, b.Text), true
	}
	return w, false
}

// markTurns marks the ends of the last two user turns for the cache: the last one
// is written, and the one before it is what the last request wrote.
func markTurns(wire []api.MessageParam) {
	marked := 0
	for i := len(wire) - 1; i >= 0 && marked < 2; i-- {
		if wire[i].Role != api.MessageParamRoleUser {
			continue
		}
		content := wire[i].Content
		if mark := content[len(content)-1].GetCacheControl(); mark != nil {
			*mark = api.NewCacheControlEphemeralParam()
			marked++
		}
	}
}

// arguments returns raw if it is a JSON object that the API takes, else an empty
// one: the result of such a call says that its arguments were bad.
func arguments(raw string) json.RawMessage {
	raw = strings.ToValidUTF8(raw, "\uFFFD")
	if !strings.HasPrefix(strings.TrimSpace(raw), "{") || !json.Valid([]byte(raw)) {
		return json.RawMessage("{}")
	}
	if !strings.Contains(raw, `\ud`) && !strings.Contains(raw, `\uD`) {
		return json.RawMessage(raw)
	}
	// The API refuses half of a surrogate pair; decoding replaces it.
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader([]byte(raw)))
	decoder.UseNumber()
	if decoder.Decode(&object) != nil {
		return json.RawMessage("{}")
	}
	clean, err := json.Marshal(object)
	if err != nil {
		return json.RawMessage("{}")
	}
	return clean
}

// raw returns the blocks of the current request as the API sent them, to be sent
// back for the rest of a turn that it paused.
func (a *answer) raw() api.MessageParam {
	m := api.MessageParam{Role: api.MessageParamRoleAssistant}
	for _, b := range a.blocks[a.first:] {
		if b != nil {
			m.Content = append(m.Content, param.Override[api.ContentBlockParamUnion](b.raw()))
		}
	}
	return m
}

// raw returns the block as the API would have sent it in one piece.
func (b *block) raw() json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(b.start), &object) != nil {
		return json.RawMessage(b.start)
	}
	set := func(key, text string) {
		if quoted, err := json.Marshal(text); err == nil {
			object[key] = quoted
		}
	}
	switch {
	case b.kind == "text":
		set("text", b.text.String())
	case b.kind == "thinking":
		set("thinking", b.text.String())
		set("signature", b.signature.String())
	case b.isCall() && b.pieces:
		object["input"] = arguments(b.text.String())
	}
	whole, err := json.Marshal(object)
	if err != nil {
		return json.RawMessage(b.start)
	}
	return whole
}
