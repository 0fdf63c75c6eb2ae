package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/emulator/modelapi"
)

const (
	maxCallID = 40 // characters; some models allow more
	maxName   = 64
	maxTools  = 128
)

// fields are the request fields that the API knows.
var fields = []string{
	"audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs",
	"max_completion_tokens", "max_tokens", "messages", "metadata", "modalities", "model", "n",
	"parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key", "reasoning_effort",
	"response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream",
	"stream_options", "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user",
	"verbosity", "web_search_options",
}

func invalid(param, format string, args ...any) *APIError {
	return modelapi.Invalid(param, format, args...)
}

// parse decodes a request and checks it as the API does.
func parse(body []byte) (Request, *APIError) {
	var r Request
	known, e := modelapi.Decode(body, fields, &r,
		invalid("", "We could not parse the JSON body of your request. (HINT: This likely means you aren't "+
			"using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)"),
		func(name string) *APIError { return invalid(name, "Unrecognized request argument supplied: %s", name) },
		func(err error) *APIError { return invalid("", "Invalid type in the request: %v.", err) })
	if e != nil {
		return r, e
	}
	if r.Model == "" {
		return r, invalid("", "you must provide a model parameter")
	}
	if known["messages"] == nil {
		return r, invalid("messages", "Missing required parameter: 'messages'.")
	}
	if len(r.Messages) == 0 {
		return r, invalid("messages", "Invalid 'messages': empty array. Expected an array with minimum length 1, "+
			"but got an empty array instead.")
	}
	if e := checkOptions(r); e != nil {
		return r, e
	}
	if e := checkTools(r, known["tools"] != nil); e != nil {
		return r, e
	}
	for i, m := range r.Messages {
		if e := checkMessage(i, m); e != nil {
			return r, e
		}
	}
	return r, checkPairs(r.Messages)
}

func checkOptions(r Request) *APIError {
	switch {
	case r.StreamOptions != nil && !r.Stream:
		return invalid("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case r.MaxTokens != nil && r.MaxCompletionTokens != nil:
		return invalid("max_tokens", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	case r.MaxTokens != nil && *r.MaxTokens < 1:
		return invalid("max_tokens", "Invalid 'max_tokens': integer below minimum value.")
	case r.MaxCompletionTokens != nil && *r.MaxCompletionTokens < 1:
		return invalid("max_completion_tokens", "Invalid 'max_completion_tokens': integer below minimum value.")
	case r.Temperature != nil && (*r.Temperature < 0 || *r.Temperature > 2):
		return invalid("temperature", "Invalid 'temperature': must be between 0 and 2.")
	case r.TopP != nil && (*r.TopP < 0 || *r.TopP > 1):
		return invalid("top_p", "Invalid 'top_p': must be between 0 and 1.")
	case r.Choices != nil && *r.Choices != 1:
		return invalid("n", "The emulator answers with one choice only.")
	}
	return nil
}

func checkTools(r Request, given bool) *APIError {
	if given && len(r.Tools) == 0 {
		return invalid("tools", "Invalid 'tools': empty array. Expected an array with minimum length 1, "+
			"but got an empty array instead.")
	}
	if !given && len(r.ToolChoice) > 0 && string(r.ToolChoice) != "null" {
		return invalid("tool_choice", "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
	}
	if !given && r.ParallelToolCalls != nil {
		return invalid("parallel_tool_calls", "Invalid value for 'parallel_tool_calls': "+
			"'parallel_tool_calls' is only allowed when 'tools' are specified.")
	}
	if len(r.Tools) > maxTools {
		return invalid("tools", "Invalid 'tools': array too long. Expected an array with maximum length %d, "+
			"but got an array with length %d instead.", maxTools, len(r.Tools))
	}
	seen := map[string]bool{}
	for i, t := range r.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		if t.Type != "function" {
			return invalid(at+".type", "Invalid value: '%s'. Supported values are: 'function'.", t.Type)
		}
		if e := checkName(at+".function.name", t.Function.Name); e != nil {
			return e
		}
		if seen[t.Function.Name] {
			return invalid("tools", "Tool names must be unique: '%s'.", t.Function.Name)
		}
		seen[t.Function.Name] = true
		if p := t.Function.Parameters; len(p) > 0 && string(p) != "null" && p[0] != '{' {
			return invalid(at+".function.parameters", "Invalid schema for function '%s': not an object.", t.Function.Name)
		}
	}
	return nil
}

func checkName(param, name string) *APIError {
	if name == "" {
		return invalid(param, "Invalid '%s': empty string. Expected a string with minimum length 1, "+
			"but got an empty string instead.", param)
	}
	return modelapi.CheckWord(param, name, maxName)
}

func checkMessage(i int, m Message) *APIError {
	at := fmt.Sprintf("messages[%d]", i)
	switch m.Role {
	case "system", "developer", "user", "assistant", "tool":
	case "":
		return invalid(at+".role", "Missing required parameter: '%s.role'.", at)
	default:
		return invalid(at+".role", "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', "+
			"'function', 'tool', and 'developer'.", m.Role)
	}
	if e := checkContent(at+".content", m); e != nil {
		return e
	}
	if m.Role != "assistant" && m.ToolCalls != nil {
		return invalid(at+".tool_calls", "Unknown parameter: '%s.tool_calls'.", at)
	}
	if m.Role == "assistant" && m.ToolCalls != nil && len(m.ToolCalls) == 0 {
		return invalid(at+".tool_calls", "Invalid '%s.tool_calls': empty array. Expected an array with minimum length 1, "+
			"but got an empty array instead.", at)
	}
	if m.Role == "tool" && m.ToolCallID == "" {
		return invalid(at+".tool_call_id", "Missing required parameter: '%s.tool_call_id'.", at)
	}
	return checkCalls(at, m.ToolCalls)
}

func checkCalls(at string, calls []ToolCall) *APIError {
	seen := map[string]bool{}
	for i, c := range calls {
		at := fmt.Sprintf("%s.tool_calls[%d]", at, i)
		if c.ID == "" {
			return invalid(at+".id", "Missing required parameter: '%s.id'.", at)
		}
		if e := modelapi.CheckWord(at+".id", c.ID, maxCallID); e != nil {
			return e
		}
		if seen[c.ID] {
			return invalid(at+".id", "Duplicate tool call id '%s'.", c.ID)
		}
		seen[c.ID] = true
		if c.Type != "function" {
			return invalid(at+".type", "Invalid value: '%s'. Supported values are: 'function'.", c.Type)
		}
		if e := checkName(at+".function.name", c.Function.Name); e != nil {
			return e
		}
		if c.Function.Arguments == nil {
			return invalid(at+".function.arguments", "Missing required parameter: '%s.function.arguments'.", at)
		}
	}
	return nil
}

// checkContent refuses content that is missing or empty. Only an assistant that
// calls tools may say nothing, and only a tool may return an empty text.
func checkContent(param string, m Message) *APIError {
	mayBeEmpty := m.Role == "assistant" && len(m.ToolCalls) > 0
	raw := m.RawContent
	if len(raw) == 0 || string(raw) == "null" {
		if mayBeEmpty {
			return nil
		}
		return invalid(param, "Invalid value for 'content': expected a string, got null.")
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if text == "" && !mayBeEmpty && m.Role != "tool" {
			return invalid(param, "Invalid '%s': empty string.", param)
		}
		return nil
	}
	var parts []part
	if json.Unmarshal(raw, &parts) != nil {
		return invalid(param, "Invalid type for '%s': expected one of a string or array of objects.", param)
	}
	if len(parts) == 0 {
		return invalid(param, "Invalid '%s': empty array.", param)
	}
	for i, p := range parts {
		at := fmt.Sprintf("%s[%d]", param, i)
		switch {
		case p.Type == "text" && p.Text == "":
			return invalid(at+".text", "Invalid '%s.text': empty string.", at)
		case p.Type == "text", p.Type == "refusal" && m.Role == "assistant":
		case slices.Contains([]string{"image_url", "input_audio", "file"}, p.Type) && m.Role == "user":
			if e := checkFile(at, p); e != nil {
				return e
			}
		case p.Type == "image_url":
			message := strings.TrimSuffix(param, ".content")
			return invalid(message, "Invalid '%s'. Image URLs are only allowed for messages with role 'user', "+
				"but this message with role '%s' contains an image URL.", message, m.Role)
		default:
			return invalid(at+".type", "Invalid value: '%s' in a message with role '%s'.", p.Type, m.Role)
		}
	}
	return nil
}

// checkPairs requires that every call is answered exactly once, directly after
// the message that made it, and that nothing else is answered.
func checkPairs(messages []Message) *APIError {
	open := []string{}     // calls of the last assistant message without an answer
	answered := []string{} // and those with one
	closeCalls := func() *APIError {
		if len(open) == 0 {
			return nil
		}
		return invalid("messages", "An assistant message with 'tool_calls' must be followed by tool messages responding "+
			"to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
	}
	for i, m := range messages {
		if m.Role != "tool" {
			if e := closeCalls(); e != nil {
				return e
			}
			open, answered = open[:0], answered[:0]
			for _, c := range m.ToolCalls {
				open = append(open, c.ID)
			}
			continue
		}
		n := slices.Index(open, m.ToolCallID)
		param := fmt.Sprintf("messages[%d].tool_call_id", i)
		if n < 0 && slices.Contains(answered, m.ToolCallID) {
			return invalid(param, "Duplicate response to tool_call_id '%s'.", m.ToolCallID)
		}
		if n < 0 && len(open)+len(answered) > 0 {
			return invalid(param, "Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.",
				m.ToolCallID)
		}
		if n < 0 {
			return invalid(fmt.Sprintf("messages.[%d].role", i), "Invalid parameter: messages with role 'tool' must be "+
				"a response to a preceeding message with 'tool_calls'.") //nolint:misspell // as the API spells it
		}
		answered = append(answered, open[n])
		open = slices.Delete(open, n, n+1)
	}
	return closeCalls()
}
