package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"remote-agent/internal/messages"
)

// signedCalls begins the signature of a messages.Thinking without text that is the
// extra_content of the calls of its message, a list with an element for each. Gemini signs
// calls in it, and refuses them without. Behind OpenRouter that is in the reasoning_details of
// the message, which it wants back from other models, too: they are one more element, a list.
// go-openai has no place for either.
const signedCalls = "calls:"

// carry puts the extra_content of a call where go-openai reads what nobody needs.
func carry(call map[string]any) {
	if extra := object(call["extra_content"]); len(extra) > 0 {
		if text, err := json.Marshal(extra); err == nil {
			call["type"] = string(text)
		}
	}
}

// carried returns what carry has put there, if anything.
func carried(call api.ToolCall) json.RawMessage {
	if extra := json.RawMessage(call.Type); isObject(extra) {
		return extra
	}
	return nil
}

// maxDetails is how many elements of reasoning_details are kept of an answer: one belongs to
// each call or thought.
const maxDetails = 2 * maxCalls

// detail is an element of reasoning_details.
type detail struct {
	Type      string          `json:"type"`
	ID        string          `json:"id,omitempty"`
	Format    string          `json:"format,omitempty"`
	Index     json.RawMessage `json:"index,omitempty"`
	Text      string          `json:"text,omitempty"`
	Summary   string          `json:"summary,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`

	text, summary, signature strings.Builder // of the pieces that came
}

// addDetails takes in what carries, in the place of a role, a piece of reasoning_details. A
// text comes in pieces, and its signature behind it.
func (a *answer) addDetails(role string) {
	var pieces []detail
	if !strings.HasPrefix(role, "[") || json.Unmarshal([]byte(role), &pieces) != nil {
		return
	}
	for i := range pieces {
		d, n := &pieces[i], len(a.details)
		if n == 0 || d.Data != "" || a.details[n-1].Type != d.Type || !bytes.Equal(a.details[n-1].Index, d.Index) {
			if n == maxDetails {
				return
			}
			a.details = append(a.details, d)
		}
		last := a.details[len(a.details)-1]
		last.text.WriteString(d.Text)
		last.summary.WriteString(d.Summary)
		last.signature.WriteString(d.Signature)
	}
}

// signature returns the block that keeps what came with the calls of an answer.
func (a *answer) signature(model string) (messages.Thinking, bool) {
	for _, d := range a.details {
		d.Text, d.Summary, d.Signature = d.text.String(), d.summary.String(), d.signature.String()
	}
	came := a.extras
	if details, err := json.Marshal(a.details); err == nil && len(a.details) > 0 {
		came = append(came, details)
	} else if !slices.ContainsFunc(came, isObject) {
		return messages.Thinking{}, false
	}
	list, err := json.Marshal(came)
	return messages.Thinking{Signature: signedCalls + string(list), Provider: string(Name), Model: model}, err == nil && len(a.calls) > 0
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// sign returns the encoded message with what came with its calls, if model made them.
func sign(encoded []byte, m messages.Message, model string) ([]byte, error) {
	var extras []json.RawMessage
	var details json.RawMessage
	for _, b := range m.Blocks {
		if t, ok := b.(messages.Thinking); ok && t.Provider == string(Name) && t.Model == model {
			var list []json.RawMessage
			if text, signed := strings.CutPrefix(t.Signature, signedCalls); signed && json.Unmarshal([]byte(text), &list) == nil {
				if n := len(list) - 1; n > 0 && list[n][0] == '[' {
					details, list = list[n], list[:n]
				}
				extras = append(extras, list...)
			}
		}
	}
	if len(extras) == 0 {
		return encoded, nil
	}
	var whole map[string]json.RawMessage
	var calls []map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &whole); err != nil {
		return nil, err
	}
	if whole["tool_calls"] == nil {
		return encoded, nil
	}
	if err := json.Unmarshal(whole["tool_calls"], &calls); err != nil {
		return nil, err
	}
	for i := range min(len(calls), len(extras)) {
		if isObject(extras[i]) {
			calls[i]["extra_content"] = extras[i]
		}
	}
	if details != nil {
		whole["reasoning_details"] = details
	}
	var err error
	if whole["tool_calls"], err = json.Marshal(calls); err != nil {
		return nil, err
	}
	return json.Marshal(whole)
}
