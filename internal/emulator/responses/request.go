package responses

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

	Tokens int // of the input, tools and instructions included
	Cached int // of these, that an earlier request began with

	Model              string          `json:"model"`
	RawInput           json.RawMessage `json:"input"`
	Items              []Item          `json:"-"`
	Instructions       string          `json:"instructions"`
	Tools              []Tool          `json:"tools"`
	ToolChoice         json.RawMessage `json:"tool_choice"`
	Stream             bool            `json:"stream"`
	Store              *bool           `json:"store"`
	Include            []string        `json:"include"`
	ParallelToolCalls  *bool           `json:"parallel_tool_calls"`
	MaxOutputTokens    *int            `json:"max_output_tokens"`
	PreviousResponseID string          `json:"previous_response_id"`
	PromptCacheKey     string          `json:"prompt_cache_key"`
	Reasoning          struct {
		Effort  string `json:"effort"`
		Summary string `json:"summary"`
	} `json:"reasoning"`
	TextOptions struct {
		Format struct {
			Type string `json:"type"`
			Name string `json:"name"`
		} `json:"format"`
	} `json:"text"`
}

// Item is an element of the input.
type Item struct {
	Type             string          `json:"type"` // empty stands for message
	ID               string          `json:"id"`
	Role             string          `json:"role"`
	RawContent       json.RawMessage `json:"content"`
	CallID           string          `json:"call_id"`
	Name             string          `json:"name"`
	Arguments        *string         `json:"arguments"`
	Input            *string         `json:"input"`
	Action           json.RawMessage `json:"action"`
	RawOutput        json.RawMessage `json:"output"`
	Summary          []part          `json:"summary"`
	EncryptedContent *string         `json:"encrypted_content"`
	Tools            []Tool          `json:"tools"` // of additional_tools

	// Raw is the item as it was sent.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON keeps the item as it was sent, and names its type.
func (i *Item) UnmarshalJSON(data []byte) error {
	type plain Item
	if err := json.Unmarshal(data, (*plain)(i)); err != nil {
		return err
	}
	if i.Type == "" && i.Role != "" {
		i.Type = "message"
	}
	i.Raw = bytes.Clone(data)
	return nil
}

// part is a piece of a content or an output that is a list.
type part struct {
	Type string  `json:"type"`
	Text *string `json:"text"`
}

// Tool is a tool that the model may call. A namespace has tools of its own.
type Tool struct {
	Type       string          `json:"type"`
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"`
	Tools      []Tool          `json:"tools"`
}

// Text returns the content of a message, with the texts of several parts joined by
// newlines.
func (i Item) Text() string { return textOf(i.RawContent) }

// Output returns the output of a call.
func (i Item) Output() string { return textOf(i.RawOutput) }

func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []part
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	var texts []string
	for _, p := range parts {
		if p.Text != nil {
			texts = append(texts, *p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// LastUserText returns the text of the last user message.
func (r Request) LastUserText() string {
	for _, i := range slices.Backward(r.Items) {
		if i.Type == "message" && i.Role == "user" {
			return i.Text()
		}
	}
	return ""
}

// WantsJSON reports whether the answer has to be JSON of a schema. Agents ask so
// beside the conversation, for a title of it or a review of a command.
func (r Request) WantsJSON() bool { return r.TextOptions.Format.Type == "json_schema" }

// Outputs returns the outputs of calls after what the model said last, in order.
func (r Request) Outputs() []Item {
	var outputs []Item
	for _, i := range r.Items {
		switch {
		case strings.HasSuffix(i.Type, "_output"):
			outputs = append(outputs, i)
		case i.Type == "message" && i.Role == "assistant", i.Type == "reasoning", strings.HasSuffix(i.Type, "_call"):
			outputs = nil
		}
	}
	return outputs
}

// Types returns the types of the items in order.
func (r Request) Types() []string {
	return lists.Map(r.Items, func(i Item) string { return i.Type })
}

// ToolNames returns the names of the tools in order, those of a namespace with its
// name and a dot before them, and the types of tools that have no name. Tools that
// the input adds come last.
func (r Request) ToolNames() []string {
	names := toolNames("", r.Tools)
	for _, i := range r.Items {
		names = append(names, toolNames("", i.Tools)...)
	}
	return names
}

func toolNames(prefix string, tools []Tool) []string {
	var names []string
	for _, t := range tools {
		switch {
		case t.Type == "namespace":
			names = append(names, toolNames(t.Name+".", t.Tools)...)
		case t.Name == "":
			names = append(names, t.Type)
		default:
			names = append(names, prefix+t.Name)
		}
	}
	return names
}

// tokens estimates the length of the input: four bytes are a token.
func (r Request) tokens() int {
	n := len(r.Instructions) / 4
	for _, t := range r.Tools {
		n += 8 + len(t.Parameters)/4
	}
	for _, i := range r.Items {
		n += itemTokens(i)
	}
	return n
}

func itemTokens(i Item) int { return 4 + len(i.Raw)/4 }
