package responses

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/emulator/modelapi"
)

const (
	maxWord  = 64 // characters of a name or an id of a call
	maxTools = 128
)

var (
	// fields are the request fields that the API knows.
	fields = []string{
		"background", "client_metadata", "context_management", "conversation", "include", "input", "instructions",
		"max_output_tokens", "max_tool_calls", "metadata", "model", "moderation", "parallel_tool_calls",
		"previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier",
		"store", "stream", "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p",
		"truncation", "user",
	}

	// providerTools run at the provider. They can be offered; the model never
	// calls them here.
	providerTools = []string{
		"apply_patch", "code_interpreter", "computer_use_preview", "file_search", "image_generation", "local_shell", "mcp",
		"shell", "tool_search", "web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11",
	}

	// outputs names, for each kind of call, the kind of its output.
	outputs = map[string]string{
		"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output",
		"local_shell_call": "local_shell_call_output",
	}
)

func invalid(param, format string, args ...any) *APIError {
	return modelapi.Invalid(param, format, args...)
}

// parse decodes a request and checks it as the API does.
func parse(body []byte) (Request, *APIError) {
	var r Request
	_, e := modelapi.Decode(body, fields, &r,
		invalid("", "We could not parse the JSON body of your request. The OpenAI API expects a JSON payload, "+
			"but what was sent was not valid JSON."),
		func(name string) *APIError { return coded("unknown_parameter", name, "Unknown parameter: '%s'.", name) },
		func(err error) *APIError { return invalid("", "Invalid type in the request: %v.", err) })
	if e != nil {
		return r, e
	}
	switch {
	case r.Model == "":
		return r, missing("model")
	case len(r.RawInput) == 0 || string(r.RawInput) == "null":
		return r, missing("input")
	case r.MaxOutputTokens != nil && *r.MaxOutputTokens < 16:
		return r, invalid("max_output_tokens", "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got %d instead.", *r.MaxOutputTokens)
	case r.PreviousResponseID != "":
		return r, coded("previous_response_not_found", "previous_response_id", "Previous response with id '%s' not found.", r.PreviousResponseID)
	}
	if e := r.readInput(); e != nil {
		return r, e
	}
	r.Tokens = r.tokens()
	if e := checkTools("tools", r.Tools); e != nil {
		return r, e
	}
	for n, item := range r.Items {
		if e := checkItem(r.Model, fmt.Sprintf("input[%d]", n), item); e != nil {
			return r, e
		}
	}
	return r, checkPairs(r.Items)
}

func missing(param string) *APIError {
	return coded("missing_required_parameter", param, "Missing required parameter: '%s'.", param)
}

func coded(code, param, format string, args ...any) *APIError {
	e := invalid(param, format, args...)
	e.Code = code
	return e
}

// readInput reads the input: a text stands for one user message.
func (r *Request) readInput() *APIError {
	if r.RawInput[0] == '"' {
		raw, err := json.Marshal(map[string]any{"type": "message", "role": "user", "content": r.RawInput})
		if err != nil {
			return invalid("input", "Invalid type for 'input'.")
		}
		r.Items = []Item{{Type: "message", Role: "user", RawContent: r.RawInput, Raw: raw}}
		return nil
	}
	if json.Unmarshal(r.RawInput, &r.Items) != nil {
		return invalid("input", "Invalid type for 'input': expected a string or an array of objects.")
	}
	if len(r.Items) == 0 {
		return invalid("input", "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	return nil
}

func checkTools(param string, tools []Tool) *APIError {
	if len(tools) > maxTools {
		return invalid(param, "Invalid '%s': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", param, maxTools, len(tools))
	}
	seen := map[string]bool{}
	for i, t := range tools {
		at := fmt.Sprintf("%s[%d]", param, i)
		switch {
		case t.Type == "":
			return missing(at + ".type")
		case slices.Contains(providerTools, t.Type):
			continue
		case !slices.Contains([]string{"function", "custom", "namespace"}, t.Type):
			return invalid(at+".type", "Invalid value: '%s'.", t.Type)
		}
		if e := checkWord(at+".name", t.Name); e != nil {
			return e
		}
		if seen[t.Name] {
			return invalid("tools", "Tool names must be unique: '%s'.", t.Name)
		}
		seen[t.Name] = true
		if p := t.Parameters; t.Type == "function" && len(p) > 0 && string(p) != "null" && p[0] != '{' {
			return invalid(at+".parameters", "Invalid schema for function '%s': not an object.", t.Name)
		}
		if e := checkTools(at+".tools", t.Tools); e != nil {
			return e
		}
	}
	return nil
}

// checkWord checks the length and the characters of a name or an id.
func checkWord(param, word string) *APIError {
	if word == "" {
		return missing(param)
	}
	return modelapi.CheckWord(param, word, maxWord)
}

func checkItem(model, at string, i Item) *APIError {
	switch i.Type {
	case "message":
		return checkMessage(at, i)
	case "function_call", "custom_tool_call", "local_shell_call":
		return checkCall(at, i)
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		if e := checkWord(at+".call_id", i.CallID); e != nil {
			return e
		}
		return checkOutput(at+".output", i.RawOutput)
	case "reasoning":
		if i.Summary == nil {
			return missing(at + ".summary")
		}
		return checkReasoning(model, i)
	case "":
		return missing(at + ".type")
	case "additional_tools":
		return checkTools(at+".tools", i.Tools)
	case "agent_message", "compaction", "compaction_summary", "context_compaction", "image_generation_call",
		"mcp_approval_request", "mcp_approval_response", "mcp_call", "mcp_list_tools", "tool_search_call", "tool_search_output", "web_search_call":
		return nil // what ran at the provider
	}
	return invalid(at+".type", "Invalid value: '%s'.", i.Type)
}

func checkMessage(at string, i Item) *APIError {
	types := []string{"input_text", "input_image", "input_file"}
	switch i.Role {
	case "user", "system", "developer":
	case "assistant":
		types = []string{"output_text", "refusal"}
	default:
		return invalid(at+".role", "Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", i.Role)
	}
	raw := i.RawContent
	if len(raw) == 0 || string(raw) == "null" {
		return missing(at + ".content")
	}
	if raw[0] == '"' {
		return nil
	}
	var parts []part
	if json.Unmarshal(raw, &parts) != nil {
		return invalid(at+".content", "Invalid type for '%s.content': expected one of an array of objects or string.", at)
	}
	for n, p := range parts {
		at := fmt.Sprintf("%s.content[%d]", at, n)
		if !slices.Contains(types, p.Type) {
			return invalid(at, "Invalid value: '%s'. Supported values are: '%s'.", p.Type, strings.Join(types, "', '"))
		}
		if strings.HasSuffix(p.Type, "_text") && p.Text == nil {
			return missing(at + ".text")
		}
	}
	return nil
}

func checkCall(at string, i Item) *APIError {
	if e := checkWord(at+".call_id", i.CallID); e != nil {
		return e
	}
	switch {
	case i.Type == "local_shell_call" && len(i.Action) == 0:
		return missing(at + ".action")
	case i.Type == "local_shell_call":
		return nil
	case i.Type == "function_call" && i.Arguments == nil:
		return missing(at + ".arguments")
	case i.Type == "custom_tool_call" && i.Input == nil:
		return missing(at + ".input")
	}
	return checkWord(at+".name", i.Name)
}

// checkOutput takes a text or a list of content.
func checkOutput(param string, raw json.RawMessage) *APIError {
	var text string
	if json.Unmarshal(raw, &text) == nil && len(raw) > 0 && raw[0] == '"' {
		return nil
	}
	var parts []part
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &parts) != nil {
		return invalid(param, "Invalid type for '%s': expected one of an array of objects or string.", param)
	}
	for n, p := range parts {
		if !slices.Contains([]string{"input_text", "input_image", "input_file", "encrypted_content"}, p.Type) {
			return invalid(fmt.Sprintf("%s[%d]", param, n), "Invalid value: '%s'.", p.Type)
		}
	}
	return nil
}

// checkPairs requires that every call is answered exactly once, by an output of
// its kind after it, and that nothing else is answered. What is between them does
// not matter.
func checkPairs(items []Item) *APIError {
	open := map[string]string{} // the kind of output that a call waits for
	var order []string
	answered := map[string]bool{}
	for _, i := range items {
		if output, isCall := outputs[i.Type]; isCall {
			if open[i.CallID] != "" || answered[i.CallID] {
				return invalid("input", "Duplicate call_id '%s'.", i.CallID)
			}
			open[i.CallID] = output
			order = append(order, i.CallID)
			continue
		}
		if !slices.Contains([]string{"function_call_output", "custom_tool_call_output", "local_shell_call_output"}, i.Type) {
			continue
		}
		switch {
		case answered[i.CallID]:
			return invalid("input", "Duplicate tool output for call_id %s.", i.CallID)
		case open[i.CallID] != i.Type:
			return invalid("input", "No tool call found for %s with call_id %s.", describeOutput(i.Type), i.CallID)
		}
		answered[i.CallID] = true
		delete(open, i.CallID)
	}
	for _, id := range order {
		if open[id] != "" {
			return invalid("input", "No tool output found for %s %s.", strings.TrimSuffix(describeOutput(open[id]), " output"), id)
		}
	}
	return nil
}

func describeOutput(kind string) string { return strings.ReplaceAll(kind, "_", " ") }
