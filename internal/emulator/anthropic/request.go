package anthropic

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"remote-agent/internal/emulator/modelapi"
	"remote-agent/internal/lists"
)

// Request is a request that passed the checks.
type Request struct {
	modelapi.Received

	Usage Usage // of its input

	Model        string          `json:"model"`
	MaxTokens    *int            `json:"max_tokens"`
	Messages     []Message       `json:"messages"` // neighbors of one role merged, as the API does
	RawSystem    json.RawMessage `json:"system"`
	Tools        []Tool          `json:"tools"`
	ToolChoice   *ToolChoice     `json:"tool_choice"`
	Stream       bool            `json:"stream"`
	Thinking     *Thinking       `json:"thinking"`
	Temperature  *float64        `json:"temperature"`
	TopP         *float64        `json:"top_p"`
	CacheControl *CacheControl   `json:"cache_control"`
	OutputConfig struct {
		Effort *string `json:"effort"`
		Format struct {
			Type string `json:"type"`
		} `json:"format"`
	} `json:"output_config"`

	system []ContentBlock
}

// Usage is what the input of a request costs, in tokens. The three are disjoint.
type Usage struct {
	Input      int `json:"input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
}

// Message is one message of a request.
type Message struct {
	Role       string          `json:"role"`
	RawContent json.RawMessage `json:"content"`
	Blocks     []ContentBlock  `json:"-"`
}

// ContentBlock is a part of a message or of the system prompt.
type ContentBlock struct {
	Type         string          `json:"type"`
	Text         *string         `json:"text"`
	Thinking     *string         `json:"thinking"`
	Signature    *string         `json:"signature"`
	Data         *string         `json:"data"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	Content      json.RawMessage `json:"content"`
	IsError      bool            `json:"is_error"`
	CacheControl *CacheControl   `json:"cache_control"`
	Title        string          `json:"title"`
	Source       *Source         `json:"source"`

	// Raw is the block as it was sent.
	Raw json.RawMessage `json:"-"`

	at string // where it is, in the API's notation
}

// Source is where the bytes of an image or a document are.
type Source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// CacheControl marks the end of a prefix to cache.
type CacheControl struct {
	Type string `json:"type"`
	TTL  string `json:"ttl"`
}

// Tool is a tool that the model may call. Type is empty for the client's own.
type Tool struct {
	Type         string          `json:"type"`
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	CacheControl *CacheControl   `json:"cache_control"`
	Title        string          `json:"title"`
	Source       *Source         `json:"source"`

	// Raw is the tool as it was sent.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON keeps the tool as it was sent.
func (t *Tool) UnmarshalJSON(data []byte) error {
	type plain Tool
	if err := json.Unmarshal(data, (*plain)(t)); err != nil {
		return err
	}
	t.Raw = bytes.Clone(data)
	return nil
}

// UnmarshalJSON keeps the block as it was sent.
func (b *ContentBlock) UnmarshalJSON(data []byte) error {
	type plain ContentBlock
	if err := json.Unmarshal(data, (*plain)(b)); err != nil {
		return err
	}
	b.Raw = bytes.Clone(data)
	return nil
}

// ToolChoice says whether the model may or must call a tool.
type ToolChoice struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

// Thinking says how much the model may think.
type Thinking struct {
	Type         string `json:"type"`
	BudgetTokens *int   `json:"budget_tokens"`
}

// blocks reads a content: a text, or a list of blocks.
func blocks(raw json.RawMessage) ([]ContentBlock, bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil && len(raw) > 0 && raw[0] == '"' {
		if text == "" {
			return nil, true
		}
		block, err := json.Marshal(map[string]string{"type": "text", "text": text})
		return []ContentBlock{{Type: "text", Text: &text, Raw: block}}, err == nil
	}
	var list []ContentBlock
	if json.Unmarshal(raw, &list) != nil || list == nil {
		return nil, false
	}
	return list, true
}

// PlainText returns the texts of a message, joined by newlines.
func (m Message) PlainText() string { return joinTexts(m.Blocks) }

func joinTexts(list []ContentBlock) string {
	var texts []string
	for _, b := range list {
		if b.Type == "text" && b.Text != nil {
			texts = append(texts, *b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// System returns the system prompt, with the texts of several blocks joined by
// newlines.
func (r Request) System() string { return joinTexts(r.system) }

// LastUserText returns the text of the last user message that has one.
func (r Request) LastUserText() string {
	for _, m := range slices.Backward(r.Messages) {
		if text := m.PlainText(); m.Role == "user" && text != "" {
			return text
		}
	}
	return ""
}

// LastUserBlock returns the last text block of the last user message that has one:
// what a person wrote, where an agent puts reminders of its own before it.
func (r Request) LastUserBlock() string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role != "user" {
			continue
		}
		for _, b := range slices.Backward(m.Blocks) {
			if b.Type == "text" && b.Text != nil {
				return *b.Text
			}
		}
	}
	return ""
}

// WantsJSON reports whether the answer has to be JSON of a schema. Agents ask so
// beside the conversation, for a title of it.
func (r Request) WantsJSON() bool { return r.OutputConfig.Format.Type == "json_schema" }

// Results returns the tool results in the last message, in order.
func (r Request) Results() []ContentBlock {
	if len(r.Messages) == 0 {
		return nil
	}
	var results []ContentBlock
	for _, b := range r.Messages[len(r.Messages)-1].Blocks {
		if b.Type == "tool_result" {
			results = append(results, b)
		}
	}
	return results
}

// ResultText returns the text of a tool result.
func (b ContentBlock) ResultText() string {
	content, _ := blocks(b.Content)
	return joinTexts(content)
}

// ResultFiles returns the images and documents of a tool result.
func (b ContentBlock) ResultFiles() (files []ContentBlock) {
	content, _ := blocks(b.Content)
	for _, c := range content {
		if c.Source != nil {
			files = append(files, c)
		}
	}
	return files
}

// Roles returns the roles of the messages in order.
func (r Request) Roles() []string {
	return lists.Map(r.Messages, func(m Message) string { return m.Role })
}

// ToolNames returns the names of the tools in order.
func (r Request) ToolNames() []string {
	return lists.Map(r.Tools, func(t Tool) string { return t.Name })
}
