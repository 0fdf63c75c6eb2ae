package messages

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The kinds of records. A kind that is not listed is a legacy row and is read
// as text.
const (
	RecordUser       = "user"
	RecordAssistant  = "assistant"
	RecordToolCall   = "tool_call"
	RecordToolResult = "tool_result"
	RecordTool       = "tool" // legacy name of tool_result; read, never written
	RecordThinking   = "thinking"
	RecordAttachment = "attachment"
	RecordSystem     = "system"
	RecordText       = "text" // text of a role that has no kind of its own
)

// ToRecords returns the stored form of m: one record for each block, in order,
// all with m.Seq. The first one carries ProviderMetadata. A message without
// blocks becomes one record of empty text, so that its number has a row.
//
// data_json has the format of seed 001 for tool calls and results. NUL and
// bytes that are not UTF-8 are replaced by U+FFFD, because PostgreSQL refuses
// them and a tool's output may hold anything.
func ToRecords(m Message) ([]Record, error) {
	if m.Role != RoleUser && m.Role != RoleAssistant && m.Role != RoleTool {
		return nil, fmt.Errorf("storing a message: unknown role %q", m.Role)
	}
	records := make([]Record, 0, max(1, len(m.Blocks)))
	for i, b := range m.Blocks {
		r, err := toRecord(m.Role, b)
		if err != nil {
			return nil, fmt.Errorf("storing block %d of a message: %w", i, err)
		}
		records = append(records, r)
	}
	if len(records) == 0 {
		records = append(records, Record{Kind: textKind(m.Role), Role: m.Role})
	}
	for i := range records {
		records[i].Seq = m.Seq
	}
	records[0].ProviderMetadata = m.ProviderMetadata
	return records, nil
}

type toolCallData struct {
	ToolCallID string `json:"tool_call_id"`
	Name       string `json:"name"`
	Arguments  string `json:"arguments"`
}

type toolResultData struct {
	ToolCallID string `json:"tool_call_id"`
	Name       string `json:"name,omitempty"`
	Output     string `json:"output"`
	Success    bool   `json:"success"`
	Summary    string `json:"summary,omitempty"`
}

type thinkingData struct {
	Signature string `json:"signature,omitempty"`
	Provider  string `json:"provider,omitempty"`
	Model     string `json:"model,omitempty"`
}

func toRecord(role Role, b Block) (Record, error) {
	r := Record{Role: role}
	var data any
	switch b := b.(type) {
	case Text:
		r.Kind, r.Content = textKind(role), storable(b.Text)
		return r, nil
	case ToolCall:
		r.Kind = RecordToolCall
		data = toolCallData{storable(b.ID), storable(b.Name), storable(b.Arguments)}
	case ToolResult:
		r.Kind = RecordToolResult
		data = toolResultData{storable(b.CallID), storable(b.Name), storable(b.Content), !b.IsError, storable(b.Summary)}
	case Thinking:
		r.Kind, r.Content = RecordThinking, storable(b.Text)
		data = thinkingData{storable(b.Signature), storable(b.Provider), storable(b.Model)}
	case Attachment:
		// The text of a file goes to content, where a search finds it.
		r.Kind, r.Content = RecordAttachment, storable(b.Text)
		b.Text = ""
		b.Name, b.MediaType = storable(b.Name), storable(b.MediaType)
		b.Source, b.Note, b.Author = storable(b.Source), storable(b.Note), storable(b.Author)
		data = b
	default:
		return Record{}, fmt.Errorf("unknown block %T", b)
	}
	encoded, err := json.Marshal(data)
	if err != nil {
		return Record{}, fmt.Errorf("encoding data_json of a %s: %w", r.Kind, err)
	}
	r.DataJSON = string(encoded)
	return r, nil
}

func textKind(role Role) string {
	switch role {
	case RoleUser:
		return RecordUser
	case RoleAssistant:
		return RecordAssistant
	case RoleTool:
	}
	return RecordText
}

// storable returns s without what no database takes.
func storable(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// FromRecord returns the message of one block that r stores. ok is false for a
// system record: system prompts are not messages. Records of one Seq are blocks
// of one message.
//
// The kind decides the role, except where several roles can have it
// (attachment, thinking, legacy kinds): there Record.Role decides, and a
// missing one is the usual role of the kind. A missing "success" counts as
// false (seed 001); a required field that is missing or not a string is an
// error.
func FromRecord(r Record) (m Message, ok bool, err error) {
	m = Message{Seq: r.Seq, ProviderMetadata: r.ProviderMetadata}
	var b Block
	switch r.Kind {
	case RecordSystem:
		return Message{}, false, nil
	case RecordUser:
		m.Role, b = RoleUser, Text{Text: r.Content}
	case RecordAssistant:
		m.Role, b = RoleAssistant, Text{Text: r.Content}
	case RecordToolCall:
		m.Role = RoleAssistant
		b, err = decodeToolCall(r.DataJSON)
	case RecordToolResult, RecordTool:
		m.Role = RoleTool
		b, err = decodeToolResult(r.DataJSON)
	case RecordThinking:
		m.Role = roleOr(r.Role, RoleAssistant)
		b, err = decodeThinking(r)
	case RecordAttachment:
		m.Role = roleOr(r.Role, RoleUser)
		b, err = decodeAttachment(r)
	default:
		m.Role, b = roleOr(r.Role, RoleUser), Text{Text: r.Content}
	}
	if err != nil {
		return Message{}, false, fmt.Errorf("reading a %s record: %w", r.Kind, err)
	}
	m.Blocks = []Block{b}
	return m, true, nil
}

func roleOr(role, usual Role) Role {
	switch role {
	case RoleUser, RoleAssistant, RoleTool:
		return role
	}
	return usual
}

// fields is a decoded data_json. Keys are compared exactly, which
// encoding/json does not do for struct fields.
type fields map[string]json.RawMessage

func decodeFields(data string) (fields, error) {
	var f fields
	if err := json.Unmarshal([]byte(data), &f); err != nil {
		// The decoder's text may quote the data; the offset is enough.
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, fmt.Errorf("data_json is not JSON (offset %d)", syntax.Offset)
		}
		return nil, errors.New("data_json is not an object")
	}
	if f == nil {
		return nil, errors.New("data_json is not an object")
	}
	return f, nil
}

// text returns the string at key; ok is false if there is none.
func (f fields) text(key string) (s string, ok bool) {
	raw := f[key]
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(raw, &s) == nil
}

func (f fields) required(key string) (string, error) {
	s, ok := f.text(key)
	if !ok {
		return "", fmt.Errorf("data_json has no string %q", key)
	}
	return s, nil
}

func decodeToolCall(data string) (Block, error) {
	f, err := decodeFields(data)
	if err != nil {
		return nil, err
	}
	var c ToolCall
	if c.ID, err = f.required("tool_call_id"); err != nil {
		return nil, err
	}
	if c.Name, err = f.required("name"); err != nil {
		return nil, err
	}
	if c.Arguments, err = f.required("arguments"); err != nil {
		return nil, err
	}
	return c, nil
}

func decodeToolResult(data string) (Block, error) {
	f, err := decodeFields(data)
	if err != nil {
		return nil, err
	}
	var r ToolResult
	if r.CallID, err = f.required("tool_call_id"); err != nil {
		return nil, err
	}
	if r.Content, err = f.required("output"); err != nil {
		return nil, err
	}
	r.Name, _ = f.text("name")
	r.Summary, _ = f.text("summary")
	r.IsError = string(f["success"]) != "true"
	return r, nil
}

func decodeThinking(r Record) (Block, error) {
	t := Thinking{Text: r.Content}
	if r.DataJSON == "" {
		return t, nil
	}
	f, err := decodeFields(r.DataJSON)
	if err != nil {
		return nil, err
	}
	t.Signature, _ = f.text("signature")
	t.Provider, _ = f.text("provider")
	t.Model, _ = f.text("model")
	return t, nil
}

func decodeAttachment(r Record) (Block, error) {
	if r.DataJSON == "" {
		return nil, errors.New("data_json is missing")
	}
	f, err := decodeFields(r.DataJSON)
	if err != nil {
		return nil, err
	}
	a := Attachment{Text: r.Content}
	if a.Name, err = f.required("name"); err != nil {
		return nil, err
	}
	a.MediaType, _ = f.text("media_type")
	a.Source, _ = f.text("source")
	a.Note, _ = f.text("note")
	a.File, _ = f.text("file")
	a.Author, _ = f.text("author")
	for _, number := range []struct {
		name string
		to   any
	}{{"size", &a.Size}, {"width", &a.Width}, {"height", &a.Height}, {"pages", &a.Pages}, {"seconds", &a.Seconds}} {
		if raw, ok := f[number.name]; ok && json.Unmarshal(raw, number.to) != nil {
			return nil, fmt.Errorf("data_json has a %q that is not a whole number", number.name)
		}
	}
	return a, nil
}
