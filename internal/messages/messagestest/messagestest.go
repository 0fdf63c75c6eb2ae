// Package messagestest checks requests against the rules of the model APIs, as
// far as they concern the message array. The rules are written from the
// providers' documentation and know nothing of package messages, so that they
// can find its mistakes.
package messagestest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

var (
	idPattern   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)
	namePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
)

type openAIMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function *struct {
			Name      string  `json:"name"`
			Arguments *string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// OpenAI reports the first rule of Chat Completions that the request body
// breaks. It is stricter than the API in one point: a request must not end with
// an assistant message.
func OpenAI(body []byte) error {
	var req struct {
		Messages []openAIMessage `json:"messages"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return fmt.Errorf("not a request: %w", err)
	}
	if len(req.Messages) == 0 {
		return fmt.Errorf("messages is empty")
	}
	waiting := map[string]bool{}
	for i, m := range req.Messages {
		if m.Role != "tool" && len(waiting) > 0 {
			return fmt.Errorf("messages[%d]: %d calls were not answered before it", i, len(waiting))
		}
		if err := m.check(i, waiting); err != nil {
			return fmt.Errorf("messages[%d] (%s): %w", i, m.Role, err)
		}
	}
	if len(waiting) > 0 {
		return fmt.Errorf("the last calls were not answered")
	}
	if req.Messages[len(req.Messages)-1].Role == "assistant" {
		return fmt.Errorf("the last message is the assistant's")
	}
	return nil
}

func (m openAIMessage) check(index int, waiting map[string]bool) error {
	switch m.Role {
	case "system", "developer":
		if index != 0 {
			return fmt.Errorf("not at the beginning")
		}
		return m.hasContent()
	case "user":
		return m.hasContent()
	case "assistant":
		return m.checkAssistant(waiting)
	case "tool":
		if !waiting[m.ToolCallID] {
			return fmt.Errorf("answers %q, which no call right before it has", m.ToolCallID)
		}
		delete(waiting, m.ToolCallID)
		return m.hasContent()
	}
	return fmt.Errorf("unknown role")
}

func (m openAIMessage) checkAssistant(waiting map[string]bool) error {
	if len(m.ToolCalls) == 0 {
		return m.hasContent()
	}
	for _, c := range m.ToolCalls {
		switch {
		case c.Type != "function" || c.Function == nil:
			return fmt.Errorf("call %q is not a function", c.ID)
		case !idPattern.MatchString(c.ID):
			return fmt.Errorf("bad call id %q", c.ID)
		case waiting[c.ID]:
			return fmt.Errorf("call id %q is there twice", c.ID)
		case !namePattern.MatchString(c.Function.Name):
			return fmt.Errorf("bad function name %q", c.Function.Name)
		case c.Function.Arguments == nil || *c.Function.Arguments == "":
			return fmt.Errorf("call %q has no arguments", c.ID)
		}
		waiting[c.ID] = true
	}
	return nil
}

func (m openAIMessage) hasContent() error {
	var text string
	if err := json.Unmarshal(m.Content, &text); err == nil && strings.TrimSpace(text) != "" {
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(m.Content, &parts); err != nil || len(parts) == 0 {
		return fmt.Errorf("no content: %.40s", m.Content)
	}
	for _, p := range parts {
		switch {
		case p.Type == "text" && strings.TrimSpace(p.Text) == "":
			return fmt.Errorf("blank content part")
		case p.Type != "text" && m.Role != "user":
			return fmt.Errorf("a part of type %q", p.Type)
		}
	}
	return nil
}

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Signature string          `json:"signature"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
}

// checkResult: in a result are texts and, if the call did not fail, pictures and documents.
func (b anthropicBlock) checkResult() error {
	var content []anthropicBlock
	if len(b.Content) == 0 || b.Content[0] == '"' {
		return nil
	}
	if err := json.Unmarshal(b.Content, &content); err != nil {
		return fmt.Errorf("content of result %q: %w", b.ToolUseID, err)
	}
	for _, c := range content {
		switch {
		case c.Type == "text" && strings.TrimSpace(c.Text) == "":
			return fmt.Errorf("blank text in result %q", b.ToolUseID)
		case c.Type == "text", !b.IsError && (c.Type == "image" || c.Type == "document"):
		default:
			return fmt.Errorf("block of type %q in result %q (error: %t)", c.Type, b.ToolUseID, b.IsError)
		}
	}
	return nil
}

// Anthropic reports the first rule of the Messages API that the request body
// breaks. Content must be blocks. It is stricter than the API in that roles
// must alternate and the last message must be the user's.
func Anthropic(body []byte) error {
	var req struct {
		Messages []struct {
			Role    string           `json:"role"`
			Content []anthropicBlock `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return fmt.Errorf("not a request: %w", err)
	}
	if len(req.Messages) == 0 {
		return fmt.Errorf("messages is empty")
	}
	var waiting []string
	ids := map[string]bool{}
	for i, m := range req.Messages {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want {
			return fmt.Errorf("messages[%d] is by %q, want %q", i, m.Role, want)
		}
		if len(m.Content) == 0 {
			return fmt.Errorf("messages[%d] is empty", i)
		}
		var err error
		if m.Role == "user" {
			err = checkAnthropicUser(m.Content, waiting)
		} else {
			waiting, err = checkAnthropicAssistant(m.Content, ids)
		}
		if err != nil {
			return fmt.Errorf("messages[%d] (%s): %w", i, m.Role, err)
		}
	}
	if len(req.Messages)%2 == 0 {
		return fmt.Errorf("the last message is the assistant's")
	}
	return nil
}

func checkAnthropicUser(blocks []anthropicBlock, waiting []string) error {
	answered := map[string]bool{}
	text := false
	for _, b := range blocks {
		switch b.Type {
		case "tool_result":
			if text {
				return fmt.Errorf("result %q after text", b.ToolUseID)
			}
			if answered[b.ToolUseID] {
				return fmt.Errorf("second result for %q", b.ToolUseID)
			}
			answered[b.ToolUseID] = true
			if err := b.checkResult(); err != nil {
				return err
			}
		case "text":
			text = true
			if strings.TrimSpace(b.Text) == "" {
				return fmt.Errorf("blank text")
			}
		case "image", "document":
			text = true // results come before it, too
		default:
			return fmt.Errorf("block of type %q", b.Type)
		}
	}
	for _, id := range waiting {
		if !answered[id] {
			return fmt.Errorf("no result for %q", id)
		}
	}
	if len(answered) != len(waiting) {
		return fmt.Errorf("%d results for %d calls", len(answered), len(waiting))
	}
	return nil
}

func checkAnthropicAssistant(blocks []anthropicBlock, ids map[string]bool) (waiting []string, err error) {
	spoke := false
	for _, b := range blocks {
		switch b.Type {
		case "tool_use":
			switch {
			case !idPattern.MatchString(b.ID):
				return nil, fmt.Errorf("bad id %q", b.ID)
			case ids[b.ID]:
				return nil, fmt.Errorf("id %q is there twice", b.ID)
			case !namePattern.MatchString(b.Name):
				return nil, fmt.Errorf("bad name %q", b.Name)
			case !bytes.HasPrefix(bytes.TrimSpace(b.Input), []byte("{")):
				return nil, fmt.Errorf("input of %q is not an object", b.ID)
			}
			ids[b.ID] = true
			spoke = true
			waiting = append(waiting, b.ID)
		case "text":
			spoke = true
			if len(waiting) > 0 {
				return nil, fmt.Errorf("text after a call")
			}
			if strings.TrimSpace(b.Text) == "" {
				return nil, fmt.Errorf("blank text")
			}
		case "thinking":
			if b.Signature == "" {
				return nil, fmt.Errorf("thinking without a signature")
			}
		default:
			return nil, fmt.Errorf("block of type %q", b.Type)
		}
	}
	if !spoke {
		return nil, fmt.Errorf("nothing but thinking")
	}
	return waiting, nil
}
