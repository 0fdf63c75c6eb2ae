package messages

import (
	"encoding/json"
	"strings"
)

// Role says who speaks in a message array. System prompts are not messages:
// they travel beside the array (seed 001).
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one entry of a provider-agnostic message array. It is a value:
// blocks hold only strings and other values, so a copied slice of blocks is a
// deep copy.
type Message struct {
	Role   Role
	Blocks []Block

	// Seq is the message's number within its session, or zero for a message
	// that is not stored. The blocks of one stored message share it.
	Seq int64

	// ProviderMetadata is what the provider said about this message (ids, model,
	// finish reason), kept for the record and never sent back. May be nil.
	ProviderMetadata json.RawMessage
}

// Block is a part of a message. The set is closed; gochecksumtype checks that
// switches over it are complete.
//
//sumtype:decl
type Block interface{ block() }

type (
	// Text is what was said.
	Text struct{ Text string }

	// ToolCall is a request of the assistant to run a tool.
	ToolCall struct {
		ID   string // at most 40 characters of [A-Za-z0-9_-] after Repair
		Name string // at most 64 characters of [A-Za-z0-9_-]
		// Arguments is raw JSON text as the model wrote it. It may be invalid:
		// then the call is answered with an error and never run.
		Arguments string
	}

	// ToolResult answers the call with the same id. The files that a tool shows are
	// Attachments right behind its result, in the same message; see FilesOf.
	ToolResult struct {
		CallID  string
		Name    string // the tool, for people and for old records; may be empty
		Content string
		IsError bool

		// Summary is one line for people about what the call did, such as "Read 100
		// bytes"; it may be empty. It is kept for the record and never sent to a model.
		Summary string
	}

	// Thinking is reasoning that a provider wants back unmodified. It is
	// replayed only to the provider and model that wrote it.
	Thinking struct {
		Text      string
		Signature string // opaque
		Provider  string
		Model     string
	}
)

func (Text) block()       {}
func (ToolCall) block()   {}
func (ToolResult) block() {}
func (Thinking) block()   {}
func (Attachment) block() {}

// NewText returns a message of one text block.
func NewText(role Role, text string) Message {
	return Message{Role: role, Blocks: []Block{Text{Text: text}}}
}

// NewToolCall returns an assistant message of one tool call. arguments is JSON
// text.
func NewToolCall(id, name, arguments string) Message {
	return Message{Role: RoleAssistant, Blocks: []Block{ToolCall{ID: id, Name: name, Arguments: arguments}}}
}

// NewToolResult returns a tool message of one result.
func NewToolResult(callID, content string, isError bool) Message {
	return Message{Role: RoleTool, Blocks: []Block{ToolResult{CallID: callID, Content: content, IsError: isError}}}
}

// PlainText returns the text blocks of m, joined.
func (m Message) PlainText() string {
	var text strings.Builder
	for _, b := range m.Blocks {
		if t, ok := b.(Text); ok {
			text.WriteString(t.Text)
		}
	}
	return text.String()
}

// Record is the stored form of one block of a message: a row of agent_messages
// in the terms of seed 001. A message of several blocks is several records with
// the same Seq, in order.
type Record struct {
	Seq              int64
	Kind             string // user, assistant, tool_call, tool_result, tool (legacy), thinking, attachment, system
	Role             Role   // for kinds that several roles can have (attachment, thinking); else derived from Kind
	Content          string
	DataJSON         string // empty where Kind needs none
	ProviderMetadata json.RawMessage
}
