package acp

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
)

const (
	maxText     = 1 << 20  // of one message, in bytes; more is a runaway agent
	maxThought  = 64 << 10 // kept of the reasoning before one message
	maxPlan     = 100      // steps shown
	maxPlanText = 300      // of one step
)

// notification is the params of a session/update.
type notification struct {
	SessionID string `json:"sessionId"`
	Update    update `json:"update"`
}

// update is what is used of a session/update. It is read leniently: agents are
// ahead of the protocol's releases.
type update struct {
	Kind      string          `json:"sessionUpdate"`
	MessageID string          `json:"messageId"`
	Content   json.RawMessage `json:"content"` // a block, or the list of a tool call

	ToolCallID string          `json:"toolCallId"`
	Title      string          `json:"title"`
	Name       string          `json:"name"`
	ToolKind   string          `json:"kind"`
	Status     string          `json:"status"`
	RawInput   json.RawMessage `json:"rawInput"`
	RawOutput  json.RawMessage `json:"rawOutput"`

	Entries []struct {
		Content string `json:"content"`
		Status  string `json:"status"`
	} `json:"entries"`

	Used *int64 `json:"used"`
	Size *int64 `json:"size"`
	Cost *struct {
		Amount   float64 `json:"amount"`
		Currency string  `json:"currency"`
	} `json:"cost"`

	CurrentModeID string            `json:"currentModeId"`
	ConfigOptions []json.RawMessage `json:"configOptions"`

	Meta updateMeta `json:"_meta"`
}

// updateMeta is what the front ends of Claude Code and Codex say beyond the
// protocol.
type updateMeta struct {
	Model      string `json:"_claude/model"`
	ClaudeCode struct {
		ToolName        string `json:"toolName"`
		ParentToolUseID string `json:"parentToolUseId"` // of the call whose subagent this comes from
	} `json:"claudeCode"`
	TerminalDelta struct {
		Data string `json:"data"`
	} `json:"terminal_output_delta"`
	Terminal struct {
		Data string `json:"data"`
	} `json:"terminal_output"`
	TerminalExit *struct {
		ExitCode *int `json:"exit_code"`
	} `json:"terminal_exit"`
	Codex struct {
		ThreadStatus struct {
			Type string `json:"type"`
		} `json:"threadStatus"`
	} `json:"codex"`
}

// UnmarshalJSON never fails: _meta may hold anything.
func (m *updateMeta) UnmarshalJSON(b []byte) error {
	type plain updateMeta
	var p plain
	if json.Unmarshal(b, &p) == nil {
		*m = updateMeta(p)
	}
	return nil
}

// decoded decodes raw and reports whether it could. What cannot be read is of a
// kind that we do not know, and is left out.
func decoded(raw json.RawMessage, into any) bool { return json.Unmarshal(raw, into) == nil }

// block is a content block.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Data     string `json:"data"` // of a picture, in base64
	Resource struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	} `json:"resource"`
}

// text returns what of a block can be shown as text.
func (b block) text() string {
	switch b.Type {
	case "text":
		return b.Text
	case "resource_link":
		return "[" + oneLine(b.Name, 200) + "](" + oneLine(b.URI, 1000) + ")"
	case "resource":
		if b.Resource.Text != "" {
			return b.Resource.Text
		}
		return "[file " + oneLine(b.Resource.URI, 1000) + "]"
	case "image":
		return "[picture, not shown]"
	case "audio":
		return "[recording, not shown]"
	}
	return ""
}

// transcript turns the updates of one turn into events and messages. It is used
// by one goroutine.
type transcript struct {
	emit     assistant.Emit
	provider string
	suffix   string // makes the ids of calls unique in the session

	text      strings.Builder // of the assistant message that is not complete
	last      string          // the text that was complete last
	thought   strings.Builder
	messageID string
	said      bool // text came, or a call
	calls     map[string]*call
	order     []*call
	numbered  int
	held      int               // bytes of the calls that have not ended, and of the ids of all
	gallery   assistant.Gallery // of what was passed on to people
	mute      bool              // it passes nothing on

	// Codex says why its model could not be reached as a piece of the answer, and
	// that the turn has ended well. What tells is the state of its thread.
	failed  bool
	failure strings.Builder

	usage assistant.Usage
	model string
	mode  string
	cost  *float64 // the session's, as it was said last
}

// apply takes one update.
func (t *transcript) apply(u update) error {
	subagent := u.Meta.ClaudeCode.ParentToolUseID != "" // what it says is for the agent, which has it as the result of its call
	switch u.Kind {
	case "agent_message_chunk", "agent_thought_chunk":
		var b block
		thought := u.Kind == "agent_thought_chunk"
		if !decoded(u.Content, &b) || b.text() == "" || subagent && !thought {
			return nil
		}
		if !thought {
			text, err := t.shown(b)
			if err != nil {
				return err
			}
			return t.say(u.MessageID, text)
		}
		if t.thought.Len() < maxThought && !subagent {
			t.thought.WriteString(b.text())
		}
		return t.emit(assistant.ThoughtDelta{Text: b.text()})
	case "tool_call", "tool_call_update":
		return t.tool(u)
	case "plan":
		return t.plan(u)
	case "usage_update":
		t.measure(u)
	case "current_mode_update":
		t.mode = u.CurrentModeID
	case "config_option_update":
		for _, raw := range u.ConfigOptions {
			if category, choice, ok := decodeOption(raw); ok && category == "mode" {
				t.mode = choice.current
			}
		}
	case "session_info_update":
		if status := u.Meta.Codex.ThreadStatus.Type; status != "" {
			t.failed = status == "systemError"
		}
	}
	return nil // unknown, or about something that we do not show
}

// shown returns what is said for a block, and passes a picture on to people.
func (t *transcript) shown(b block) (string, error) {
	data, _ := base64.StdEncoding.DecodeString(b.Data) // of what is none, the beginning may be there
	if b.Type != "image" || t.mute || base64.StdEncoding.EncodedLen(len(data)) != len(b.Data) {
		return b.text(), nil
	}
	name, show := t.gallery.Add(data)
	if !show {
		return b.text(), nil
	}
	return "[" + name + "]", t.emit(assistant.FileMade{Name: name, Data: data})
}

func (t *transcript) say(messageID, text string) error {
	if t.failed {
		if t.failure.Len() < errDetail {
			t.failure.WriteString(text)
		}
		return nil
	}
	if err := t.tellAll(); err != nil { // the agent went on
		return err
	}
	if messageID != t.messageID && t.text.Len() > 0 && !strings.HasSuffix(t.text.String(), "\n") {
		text = "\n\n" + text
	}
	t.messageID, t.said = messageID, true
	if t.text.Len()+len(text) > maxText {
		return errTooMuch
	}
	t.text.WriteString(text)
	return t.emit(assistant.TextDelta{Text: text})
}

func (t *transcript) plan(u update) error {
	var steps []assistant.Step
	for _, e := range u.Entries[:min(len(u.Entries), maxPlan)] {
		steps = append(steps, assistant.Step{
			Text: oneLine(e.Content, maxPlanText), Done: e.Status == "completed", Now: e.Status == "in_progress",
		})
	}
	return t.emit(assistant.PlanUpdated{Steps: steps})
}

func (t *transcript) measure(u update) {
	if u.Used != nil && *u.Used >= 0 {
		t.usage.ContextUsed = *u.Used
	}
	if u.Size != nil && *u.Size >= 0 {
		t.usage.ContextSize = *u.Size
	}
	if u.Cost != nil && u.Cost.Currency == "USD" && u.Cost.Amount >= 0 {
		t.cost = &u.Cost.Amount
	}
	if u.Meta.Model != "" {
		t.model = oneLine(u.Meta.Model, 200)
	}
}

// complete returns the assistant message so far, with more blocks at its end,
// and begins the next one.
func (t *transcript) complete(more ...messages.Block) messages.Message {
	m := messages.Message{Role: messages.RoleAssistant}
	if t.thought.Len() > 0 {
		m.Blocks = append(m.Blocks, messages.Thinking{Text: strings.ToValidUTF8(t.thought.String(), "\uFFFD"), Provider: t.provider, Model: t.model})
	}
	if t.text.Len() > 0 {
		t.last = t.text.String()
		m.Blocks = append(m.Blocks, messages.Text{Text: t.last})
	}
	m.Blocks = append(m.Blocks, more...)
	t.text.Reset()
	t.thought.Reset()
	t.said = true
	return m
}

// oneLine returns text as one line of at most n bytes without control
// characters.
func oneLine(text string, n int) string {
	if len(text) > 4*n {
		text = text[:4*n]
	}
	text = strings.Join(strings.FieldsFunc(text, func(c rune) bool {
		return unicode.IsSpace(c) || unicode.IsControl(c) || c == utf8.RuneError
	}), " ")
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n-len("…")], "") + "…"
}
