package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/modelhttp"
	"remote-agent/internal/lists"
	"remote-agent/internal/messages"
	"remote-agent/internal/order"
)

// wire returns the request as the API takes it, in a form. What comes before the marks of
// the last turns is the same in later requests and is encoded once.
func (c *completion) wire(f form) (*messagesRequest, error) {
	r := &messagesRequest{
		Model: c.name, MaxTokens: c.model.maxTokens, Stream: true,
		Tools: toTools(c.request.Tools),
	}
	if strings.TrimSpace(c.request.System) != "" {
		system := newText(c.request.System)
		system.mark()
		r.System = []*textBlock{system}
	}
	if c.model.public && c.request.Conversation != "" {
		// Other servers refuse fields that they do not know.
		r.Metadata = &metadata{UserID: c.request.Conversation}
	}
	if c.model.effort != "" && !f.effortless {
		r.OutputConfig = &outputConfig{Effort: c.model.effort}
	}
	replay := ""
	if !f.forgetful {
		replay = c.name
		r.Thinking = c.model.toThinking(f)
	}
	by := encoder(replay)
	marked := lastTurns(c.request.Array, by)
	key := c.request.Conversation + "\x00" + replay
	earlier, err := c.model.encodings.Array(key, c.request.Array[:marked], by)
	if err != nil {
		return nil, fmt.Errorf("encode the conversation: %w", err)
	}
	r.earlier = earlier
	r.replays = slices.ContainsFunc(c.request.Array, func(m messages.Message) bool {
		return slices.ContainsFunc(m.Blocks, func(b messages.Block) bool {
			t, ok := b.(messages.Thinking)
			return ok && replayed(t, replay)
		})
	})
	r.Messages = toWire(c.request.Array[marked:], replay)
	markTurns(r.Messages)
	return r, nil
}

// encoder encodes messages as toWire maps them. What toWire makes one message of is
// one unit.
func encoder(replay string) modelhttp.Encoder {
	return modelhttp.Encoder{
		Encode: func(to []byte, unit []messages.Message) ([]byte, error) {
			for i, w := range toWire(unit, replay) {
				element, err := encode(w)
				if err != nil {
					return nil, err
				}
				if i > 0 {
					to = append(to, ',')
				}
				to = append(to, element...)
			}
			return to, nil
		},
		Joins: func(before, m messages.Message) bool {
			return roleOf(before) == roleOf(m) || silent(before, replay) || silent(m, replay)
		},
	}
}

// lastTurns returns where the last two messages of the user, as the API sees them,
// begin: the requests after this one mark others.
func lastTurns(array []messages.Message, by modelhttp.Encoder) int {
	users := 0
	for i := len(array) - 1; i > 0; i-- {
		if by.Joins(array[i-1], array[i]) {
			continue
		}
		if roleOf(array[i]) == roleUser {
			if users++; users == 2 {
				return i
			}
		}
	}
	return 0
}

// hasThinking reports whether a request asks for thinking or holds any.
func (r *messagesRequest) hasThinking() bool { return r.Thinking != nil || r.replays }

// toTools describes tools, in order and byte for byte the same every time. The
// cache holds them up to the last.
func toTools(specs []messages.ToolSpec) []tool {
	if len(specs) == 0 {
		return nil
	}
	tools := lists.Map(specs, func(s messages.ToolSpec) tool {
		return tool{Name: s.Name, Description: s.Description, InputSchema: toSchema(s.Schema)}
	})
	tools[len(tools)-1].mark()
	return tools
}

// toSchema passes a schema on as it is; the API wants its type at the top.
func toSchema(raw json.RawMessage) json.RawMessage {
	var schema struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &schema) != nil || schema.Type != "object" {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return raw
}

// toWire maps a repaired array to the Messages API, and nothing else: tool
// results, with the files that they came with, go to the beginning of a user message,
// neighbors of one role become one message. Thinking is sent back only to replay, the
// model that wrote it, and only if it has a signature.
func toWire(array []messages.Message, replay string) []message {
	var wire []message
	for _, m := range array {
		role := roleOf(m)
		var content []any
		for at, b := range m.Blocks {
			if _, is := b.(messages.Attachment); is && m.Role == messages.RoleTool {
				continue // it went with its result
			}
			if w := toBlock(b, replay); w != nil {
				content = append(content, w)
			}
			if r, is := b.(messages.ToolResult); is {
				content = withFiles(content, r, messages.FilesOf(m, at))
			}
		}
		if len(content) == 0 {
			continue
		}
		if n := len(wire); n > 0 && wire[n-1].Role == role {
			wire[n-1].Content = append(wire[n-1].Content, content...)
		} else {
			wire = append(wire, message{Role: role, Content: content})
		}
	}
	for i := range wire {
		resultsFirst(wire[i].Content)
	}
	return wire
}

// The API's roles: tools speak as the user.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

func roleOf(m messages.Message) string {
	if m.Role == messages.RoleAssistant {
		return roleAssistant
	}
	return roleUser
}

// silent reports whether nothing of a message is sent.
func silent(m messages.Message, replay string) bool {
	return !slices.ContainsFunc(m.Blocks, func(b messages.Block) bool {
		switch b := b.(type) {
		case messages.Text:
			return strings.TrimSpace(b.Text) != ""
		case messages.Thinking:
			return replayed(b, replay)
		case messages.Attachment, messages.ToolCall, messages.ToolResult:
		}
		return true
	})
}

// replayed reports whether thinking is sent back: only to the model that wrote it,
// and only with its signature.
func replayed(t messages.Thinking, replay string) bool {
	return replay != "" && t.Signature != "" && t.Provider == string(Name) && t.Model == replay
}

// resultsFirst puts tool results before all else, in place and without changing
// their order: the API looks for them there only.
func resultsFirst(content []any) {
	rank := func(b any) int {
		if _, ok := b.(*toolResultBlock); ok {
			return 0
		}
		return 1
	}
	order.By(content, func(a, b any) int { return rank(a) - rank(b) })
}

// imageTypes are what the API takes as an image.
var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// toBlock returns a block in the API's form, or nil if it is left out.
func toBlock(b messages.Block, replay string) any {
	switch b := b.(type) {
	case messages.Text:
		if strings.TrimSpace(b.Text) != "" {
			return newText(b.Text)
		}
	case messages.Attachment:
		if b.Data != "" && slices.Contains(imageTypes, b.MediaType) {
			return &fileBlock{Type: "image", Source: fileSource{Type: "base64", MediaType: b.MediaType, Data: []byte(b.Data)}}
		}
		if b.Data != "" && b.MediaType == "application/pdf" {
			return &fileBlock{Type: "document", Title: b.Name, Source: fileSource{Type: "base64", MediaType: b.MediaType, Data: []byte(b.Data)}}
		}
		return newText(assistant.AttachmentText(b))
	case messages.ToolCall:
		return &toolUseBlock{Type: "tool_use", ID: messages.SafeID(b.ID), Name: messages.SafeName(b.Name), Input: arguments(b.Arguments)}
	case messages.ToolResult:
		content := b.Content
		if strings.TrimSpace(content) == "" {
			content = "(no output)" // the API refuses an empty one
		}
		return &toolResultBlock{
			Type: "tool_result", ToolUseID: messages.SafeID(b.CallID), IsError: b.IsError, Content: []any{newText(content)},
		}
	case messages.Thinking:
		if !replayed(b, replay) {
			return nil
		}
		if data, redacted := strings.CutPrefix(b.Signature, redactedPrefix); redacted {
			return &redactedBlock{Type: "redacted_thinking", Data: data}
		}
		return &thinkingBlock{Type: "thinking", Thinking: b.Text, Signature: b.Signature}
	}
	return nil
}

// withFiles puts the files of a tool's result into the last block of content, which is that
// result. The API takes only text in the result of a call that failed: then they come behind it.
func withFiles(content []any, r messages.ToolResult, files []messages.Attachment) []any {
	result, _ := content[len(content)-1].(*toolResultBlock)
	for i, a := range files {
		b := toBlock(a, "")
		if _, text := b.(*textBlock); text || !r.IsError {
			result.Content = append(result.Content, b)
		} else {
			content = append(content, newText(assistant.ShownBy(r, files[i:i+1])), b)
		}
	}
	return content
}

func newText(text string) *textBlock { return &textBlock{Type: "text", Text: text} }

// markTurns marks the ends of the last two user turns for the cache: the last one
// is written, and the one before it is what the last request wrote.
func markTurns(wire []message) {
	marked := 0
	for i := len(wire) - 1; i >= 0 && marked < 2; i-- {
		content := wire[i].Content
		if last, ok := content[len(content)-1].(interface{ mark() }); ok && wire[i].Role == roleUser {
			last.mark()
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
func (a *answer) raw() message {
	m := message{Role: roleAssistant}
	for _, b := range a.blocks[a.first:] {
		if b != nil && b.start != "" {
			m.Content = append(m.Content, b.raw())
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
