package openai

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"remote-agent/internal/emulator/modelapi"
	"remote-agent/internal/lists"
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
	return lists.Map(r.Messages, func(m Message) string { return m.Role })
}

// tokens estimates the length of the prompt: four bytes of content are a token.
func (r *Request) tokens() int {
	n := 0
	for _, m := range r.Messages {
		n += 4 + len(m.Text())/4 + 1000*len(m.Files())
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
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL *struct {
		URL string `json:"url"`
	} `json:"image_url"`
	File *struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
		ID   string `json:"file_id"`
	} `json:"file"`
}

// File is a picture or a document that a message shows.
type File struct {
	Name, MediaType string
	Data            []byte
}

// Files returns what a message shows besides text, of what is in the request itself.
func (m Message) Files() (files []File) {
	var parts []part
	if json.Unmarshal(m.RawContent, &parts) != nil {
		return nil
	}
	for _, p := range parts {
		if f, ok := p.file(); ok {
			files = append(files, f)
		}
	}
	return files
}

// Files returns what all messages show.
func (r Request) Files() (files []File) {
	for _, m := range r.Messages {
		files = append(files, m.Files()...)
	}
	return files
}

// file decodes the data URL of a part.
func (p part) file() (f File, ok bool) {
	address := ""
	switch {
	case p.ImageURL != nil:
		address = p.ImageURL.URL
	case p.File != nil:
		f.Name, address = p.File.Name, p.File.Data
	}
	head, encoded, ok := strings.Cut(strings.TrimPrefix(address, "data:"), ";base64,")
	if !ok || !strings.HasPrefix(address, "data:") {
		return f, false
	}
	var err error
	f.MediaType = head
	f.Data, err = base64.StdEncoding.DecodeString(encoded)
	return f, err == nil && len(f.Data) > 0
}

// imageTypes are what the API takes as pictures.
var imageTypes = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

// maxImage is the largest request with pictures.
const maxImage = 50 << 20

// checkFile checks a part that shows something, as the API does.
func checkFile(at string, p part) *APIError {
	f, ok := p.file()
	switch {
	case p.Type == "image_url" && p.ImageURL == nil, p.Type == "file" && p.File == nil:
		return invalid(at+"."+p.Type, "Missing required parameter: '%s.%s'.", at, p.Type)
	case p.Type == "image_url" && strings.HasPrefix(p.ImageURL.URL, "http"):
		return nil
	case p.Type == "image_url" && (!ok || !slices.Contains(imageTypes, f.MediaType) || len(f.Data) > maxImage):
		return invalid(at, "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].")
	case p.Type == "file" && p.File.ID == "" && (!ok || f.Name == "" || f.MediaType != "application/pdf"):
		return invalid(at, "Invalid file data: '%s.file.file_data'. Expected a base64-encoded data URL with an 'application/pdf' MIME type, and a 'filename'.", at)
	}
	return nil
}
