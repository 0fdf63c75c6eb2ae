package openai

import (
	"encoding/json"
	"slices"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"remote-agent/internal/messages"
)

// signedCalls begins the signature of a messages.Thinking without text that is the
// extra_content of the calls of its message, a list with an element for each. Gemini signs
// calls in it, and refuses them without. go-openai has no place for it.
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

// signature returns the block that keeps what came with the calls of an answer.
func (a *answer) signature(model string) (messages.Thinking, bool) {
	if len(a.calls) == 0 || !slices.ContainsFunc(a.extras, isObject) {
		return messages.Thinking{}, false
	}
	list, err := json.Marshal(a.extras)
	return messages.Thinking{Signature: signedCalls + string(list), Provider: string(Name), Model: model}, err == nil
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// sign returns the encoded message with what came with its calls, if model made them.
func sign(encoded []byte, m messages.Message, model string) ([]byte, error) {
	var extras []json.RawMessage
	for _, b := range m.Blocks {
		if t, ok := b.(messages.Thinking); ok && t.Provider == string(Name) && t.Model == model {
			var list []json.RawMessage
			if text, signed := strings.CutPrefix(t.Signature, signedCalls); signed && json.Unmarshal([]byte(text), &list) == nil {
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
	var err error
	if whole["tool_calls"], err = json.Marshal(calls); err != nil {
		return nil, err
	}
	return json.Marshal(whole)
}
