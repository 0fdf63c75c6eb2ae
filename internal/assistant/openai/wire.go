package openai

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	api "github.com/sashabaranov/go-openai"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/modelhttp"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// wire returns the request in the API's form, but for its messages and tools: sender puts
// them in.
func (c *completion) wire() (api.ChatCompletionRequest, error) {
	if len(c.request.Array) == 0 {
		return api.ChatCompletionRequest{}, fault.New(fault.Invalid, "There is nothing to answer.")
	}
	req := api.ChatCompletionRequest{
		Model:    c.name,
		Messages: []api.ChatCompletionMessage{},
		Stream:   true,
	}
	if c.form&bare == 0 {
		req.StreamOptions = &api.StreamOptions{IncludeUsage: true}
	}
	if len(c.request.Tools) > 0 && (c.name == api.GPT6Sol || c.name == api.GPT6Luna) {
		// With reasoning, these take tools in another API only.
		req.ReasoningEffort = api.ReasoningEffortNone
	}
	if len(c.request.Tools) > 0 {
		req.Tools = []api.Tool{someTool} // go-openai refuses tools where a model takes none
	}
	if c.model.public {
		// Other servers refuse fields that they do not know.
		req.User = c.request.Conversation
	}
	return req, nil
}

// toolsMost is how many sets of tools are remembered: there are as many as modes and
// profiles that are at work.
const toolsMost = 8

// toolTexts remembers how sets of tools were encoded: they are the same in most requests.
// It is safe for concurrent use.
type toolTexts struct {
	mu    sync.Mutex // guards known
	known []toolText // most recently used first
}

type toolText struct {
	specs []messages.ToolSpec
	text  []byte
}

// of returns tools as a JSON array; nil for none.
func (t *toolTexts) of(specs []messages.ToolSpec) ([]byte, error) {
	if len(specs) == 0 {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.IndexFunc(t.known, func(k toolText) bool {
		return slices.EqualFunc(k.specs, specs, func(a, b messages.ToolSpec) bool {
			return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
		})
	})
	if at >= 0 {
		found := t.known[at]
		t.known = slices.Insert(slices.Delete(t.known, at, at+1), 0, found)
		return found.text, nil
	}
	tools, err := toTools(specs)
	if err != nil {
		return nil, err
	}
	list, err := json.Marshal(tools)
	if err != nil {
		return nil, err
	}
	made := toolText{specs: slices.Clone(specs), text: list}
	t.known = slices.Insert(t.known, 0, made)
	t.known = t.known[:min(len(t.known), toolsMost)]
	return made.text, nil
}

// toTools describes tools, in order and byte for byte the same every time.
// Whether several are called at once is left to the model.
func toTools(specs []messages.ToolSpec) ([]api.Tool, error) {
	tools := make([]api.Tool, len(specs))
	for i, s := range specs {
		schema := s.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		if !json.Valid(schema) {
			return nil, fault.Newf(fault.Invalid, "The tool %s has a schema that is not JSON. An operator needs to check its source.", s.Name)
		}
		tools[i] = api.Tool{
			Type:     api.ToolTypeFunction,
			Function: &api.FunctionDefinition{Name: s.Name, Description: s.Description, Parameters: schema},
		}
	}
	return tools, nil
}

// someTool stands in a request for its tools.
var someTool = api.Tool{Type: api.ToolTypeFunction}

// bridge stands between results of tools and a message of the user for models that want it.
var bridge = messages.NewText(messages.RoleAssistant, "I have the results.")

// joins reports whether m, of a person, becomes one message with what tools showed before it:
// some servers want the roles to take turns.
func joins(before, m messages.Message) bool {
	return before.Role == messages.RoleTool && m.Role == messages.RoleUser && assistant.ShowsFiles(before)
}

// encoded returns what sender puts into the request. The messages begin with the system
// prompt.
func (c *completion) encoded() (f fields, err error) {
	key := c.request.Conversation + "\x00" + c.name + "\x00" + strconv.Itoa(int(c.form))
	said := c.request.Array
	if c.form&bridged != 0 {
		said = nil
		for i, m := range c.request.Array {
			if m.Role == messages.RoleUser && i > 0 && c.request.Array[i-1].Role == messages.RoleTool {
				said = append(said, bridge)
			}
			said = append(said, m)
		}
	}
	array, err := c.model.encodings.Array(key, said, modelhttp.Encoder{Encode: c.encode, Joins: joins})
	if err != nil {
		return f, err
	}
	if f.tools, err = c.model.tools.of(c.request.Tools); err != nil {
		return f, err
	}
	if strings.TrimSpace(c.request.System) == "" {
		f.messages = [][]byte{array}
		return f, nil
	}
	system, err := json.Marshal(api.ChatCompletionMessage{Role: api.ChatMessageRoleSystem, Content: c.request.System})
	f.messages = [][]byte{append(system, ','), array}
	return f, err
}

// encode appends messages in the API's form, as toWire maps them; see modelhttp.Encoder.
func (c *completion) encode(to []byte, array []messages.Message) ([]byte, error) {
	replay := ""
	if c.form&reasons != 0 {
		replay = c.name
	}
	for i := 0; i < len(array); i++ {
		m := array[i]
		elements := c.elements(m, replay)
		if files := toolFiles(m); len(files) > 0 {
			if c.form&bridged != 0 {
				elements = append(elements, c.elements(bridge, replay)...)
			}
			if i+1 < len(array) { // it joins m
				i++
				files = append(files, toShown(array[i]).Content...)
			}
			elements = append(elements, shown{Role: api.ChatMessageRoleUser, Content: files})
		}
		for _, w := range elements {
			element, err := json.Marshal(w)
			if err == nil {
				element, err = sign(element, m, c.name)
			}
			if err != nil {
				return nil, err
			}
			if len(to) > 0 && to[len(to)-1] != ',' {
				to = append(to, ',')
			}
			to = append(to, element...)
		}
	}
	return to, nil
}

// elements maps a message, but for the files of tools that are shown.
func (c *completion) elements(m messages.Message, replay string) (elements []any) {
	if m.Role != messages.RoleTool && assistant.ShowsFiles(m) {
		return []any{toShown(m)}
	}
	for _, w := range toWire([]messages.Message{m}, replay) {
		if c.form&short != 0 {
			shorten(&w)
		}
		elements = append(elements, w)
	}
	return elements
}

// shorten makes the ids of calls what Mistral's models take, nine letters and digits.
func shorten(w *api.ChatCompletionMessage) {
	short := func(id string) string {
		if len(id) == 9 && !strings.ContainsAny(id, "_-") {
			return id
		}
		sum := sha256.Sum256([]byte(id))
		return hex.EncodeToString(sum[:])[:9]
	}
	for i := range w.ToolCalls {
		w.ToolCalls[i].ID = short(w.ToolCalls[i].ID)
	}
	if w.ToolCallID != "" {
		w.ToolCallID = short(w.ToolCallID)
	}
}

// shown is a message of a user with pictures or documents. go-openai has no parts for
// documents.
type shown struct {
	Role    string `json:"role"`
	Content []part `json:"content"`
}

type part struct {
	Type     string                   `json:"type"`
	Text     string                   `json:"text,omitempty"`
	ImageURL *api.ChatMessageImageURL `json:"image_url,omitempty"`
	File     *filePart                `json:"file,omitempty"`
}

type filePart struct {
	Name string `json:"filename"`
	Data string `json:"file_data"`
}

// toShown maps a message of a user whose files are shown.
func toShown(m messages.Message) shown {
	w := shown{Role: string(m.Role)}
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case messages.Text:
			w.Content = append(w.Content, part{Type: "text", Text: b.Text})
		case messages.Attachment:
			w.Content = append(w.Content, filePartOf(b))
		case messages.ToolCall, messages.ToolResult, messages.Thinking:
		}
	}
	return w
}

// toolFiles returns the files that tools show in a message, as a message of the user has them:
// the API takes none in the message of a tool.
func toolFiles(m messages.Message) (parts []part) {
	for at, b := range m.Blocks {
		r, is := b.(messages.ToolResult)
		if !is {
			continue
		}
		files := slices.DeleteFunc(messages.FilesOf(m, at), func(a messages.Attachment) bool { return a.Data == "" })
		if len(files) > 0 {
			parts = append(parts, part{Type: "text", Text: assistant.ShownBy(r, files)})
		}
		for _, a := range files {
			parts = append(parts, filePartOf(a))
		}
	}
	return parts
}

func filePartOf(a messages.Attachment) part {
	if a.Data == "" {
		return part{Type: "text", Text: assistant.AttachmentText(a)}
	}
	data := "data:" + a.MediaType + ";base64," + base64.StdEncoding.EncodeToString([]byte(a.Data))
	if a.Width > 0 {
		return part{Type: "image_url", ImageURL: &api.ChatMessageImageURL{URL: data}}
	}
	return part{Type: "file", File: &filePart{Name: a.Name, Data: data}}
}

// toWire maps a repaired array to Chat Completions, and nothing else. Text goes
// out as a plain string, which every compatible server takes. Thinking is left
// out: the API has no place for it, but for replay, the model that wrote it and wants
// it back. Each message is mapped by itself.
func toWire(array []messages.Message, replay string) []api.ChatCompletionMessage {
	wire := make([]api.ChatCompletionMessage, 0, len(array))
	for _, m := range array {
		if m.Role == messages.RoleTool {
			wire = appendResults(wire, m)
			continue
		}
		w := api.ChatCompletionMessage{Role: string(m.Role)}
		var parts []string
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case messages.Text:
				parts = append(parts, b.Text)
			case messages.Attachment:
				parts = append(parts, assistant.AttachmentText(b))
			case messages.ToolCall:
				w.ToolCalls = append(w.ToolCalls, api.ToolCall{
					ID: b.ID, Type: api.ToolTypeFunction,
					Function: api.FunctionCall{Name: b.Name, Arguments: arguments(b.Arguments)},
				})
			case messages.Thinking:
				if replay != "" && b.Provider == string(Name) && b.Model == replay {
					w.ReasoningContent += b.Text
				}
			case messages.ToolResult:
			}
		}
		if replay != "" && m.Role == messages.RoleAssistant && w.ReasoningContent == "" {
			w.ReasoningContent = " " // it was not kept, or is of another model; the field has to be there
		}
		w.Content = strings.Join(parts, "\n\n")
		wire = append(wire, w)
	}
	return wire
}

func appendResults(wire []api.ChatCompletionMessage, m messages.Message) []api.ChatCompletionMessage {
	for at, b := range m.Blocks {
		r, ok := b.(messages.ToolResult)
		if !ok {
			continue
		}
		content := r.Content
		for _, a := range messages.FilesOf(m, at) {
			if a.Data == "" {
				content += "\n" + assistant.AttachmentText(a)
			}
		}
		if strings.TrimSpace(content) == "" {
			// go-openai leaves empty content out, and the API wants it there.
			content = "(no output)"
		}
		if r.IsError {
			// The API has no flag for it.
			content = "ERROR: " + content
		}
		wire = append(wire, api.ChatCompletionMessage{Role: api.ChatMessageRoleTool, ToolCallID: r.CallID, Content: content})
	}
	return wire
}

// arguments returns raw if it is a JSON object, else an empty one: servers that
// put it into a template refuse the request otherwise, and the result of such a
// call says that its arguments were bad.
func arguments(raw string) string {
	if strings.HasPrefix(strings.TrimSpace(raw), "{") && json.Valid([]byte(raw)) {
		return raw
	}
	return "{}"
}
