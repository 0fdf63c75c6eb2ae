package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"remote-agent/internal/emulator/modelapi"
)

const (
	maxMessages = 100_000
	maxBody     = 32 << 20
	minBudget   = 1024 // tokens of thinking
)

var (
	namePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	idPattern   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

	efforts = []string{"low", "medium", "high", "xhigh", "max"}

	// fields are the request fields that the API knows, betas included.
	fields = []string{
		"cache_control", "container", "context_management", "diagnostics", "inference_geo", "max_tokens",
		"mcp_servers", "messages", "metadata", "model", "output_config", "output_format", "service_tier",
		"speed", "stop_sequences", "stream", "system", "temperature", "thinking", "tool_choice", "tools",
		"top_k", "top_p",
	}
)

func invalid(format string, args ...any) *APIError {
	return &APIError{
		Status: http.StatusBadRequest, Type: "invalid_request_error", Message: fmt.Sprintf(format, args...),
	}
}

// ruleset is what depends on the endpoint and the server.
type ruleset struct {
	counting bool // count_tokens: nothing will be generated
	prefill  bool
	systems  bool                      // a message may have the role system
	paused   func([]ContentBlock) bool // whether an answer was paused there
}

// parse decodes a request and checks it as the API does.
func parse(body []byte, rules ruleset) (Request, *APIError) {
	var r Request
	known, e := modelapi.Decode(body, fields, &r, invalid("The request body is not valid JSON."),
		func(name string) *APIError { return invalid("%s: Extra inputs are not permitted", name) },
		func(err error) *APIError { return invalid("Invalid type in the request: %v", err) })
	if e != nil {
		return r, e
	}
	for _, name := range []string{"model", "messages", "max_tokens"} {
		if (known[name] == nil || string(known[name]) == "null") && (name != "max_tokens" || !rules.counting) {
			return r, invalid("%s: Field required", name)
		}
	}
	switch {
	case r.Model == "":
		return r, invalid("model: String should have at least 1 character")
	case len(r.Messages) == 0:
		return r, invalid("messages: at least one message is required")
	case len(r.Messages) > maxMessages:
		return r, invalid("messages: List should have at most %d items", maxMessages)
	}
	for _, check := range []func(*Request, ruleset) *APIError{
		checkOptions, checkThinking, checkTools, checkSystem, checkMessages, checkPairs, checkThoughts, checkEnd, checkCacheControl,
	} {
		if e := check(&r, rules); e != nil {
			return r, e
		}
	}
	return r, nil
}

func checkOptions(r *Request, rules ruleset) *APIError {
	switch {
	case r.MaxTokens != nil && *r.MaxTokens < 1:
		return invalid("max_tokens: Input should be greater than or equal to 1")
	case r.Temperature != nil && (*r.Temperature < 0 || *r.Temperature > 1):
		return invalid("temperature: range: 0..1")
	case r.TopP != nil && (*r.TopP < 0 || *r.TopP > 1):
		return invalid("top_p: range: 0..1")
	case r.OutputConfig.Effort != nil && !slices.Contains(efforts, *r.OutputConfig.Effort):
		return invalid("output_config.effort: Input should be one of: %s", strings.Join(efforts, ", "))
	}
	return nil
}

func checkThinking(r *Request, rules ruleset) *APIError {
	t := r.Thinking
	if t == nil || t.Type == "disabled" {
		return nil
	}
	switch {
	case t.Type != "enabled" && t.Type != "adaptive":
		return invalid("thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'", t.Type)
	case t.Type == "adaptive" && t.BudgetTokens != nil:
		return invalid("thinking.adaptive.budget_tokens: Extra inputs are not permitted")
	case t.Type == "enabled" && t.BudgetTokens == nil:
		return invalid("thinking.enabled.budget_tokens: Field required")
	case t.Type == "enabled" && *t.BudgetTokens < minBudget:
		return invalid("thinking.enabled.budget_tokens: Input should be greater than or equal to %d", minBudget)
	case t.Type == "enabled" && !rules.counting && *t.BudgetTokens >= *r.MaxTokens:
		return invalid("`max_tokens` must be greater than `thinking.budget_tokens`.")
	case r.Temperature != nil && *r.Temperature != 1:
		return invalid("`temperature` may only be set to 1 when thinking is enabled.")
	case r.ToolChoice != nil && (r.ToolChoice.Type == "any" || r.ToolChoice.Type == "tool"):
		return invalid("Thinking may not be enabled when tool_choice forces tool use.")
	}
	return nil
}

func checkTools(r *Request, _ ruleset) *APIError {
	seen := map[string]bool{}
	for i, t := range r.Tools {
		at := fmt.Sprintf("tools.%d", i)
		if !namePattern.MatchString(t.Name) {
			return invalid("%s.name: String should match pattern '%s'", at, namePattern)
		}
		if seen[t.Name] {
			return invalid("tools: Tool names must be unique.")
		}
		seen[t.Name] = true
		if t.Type != "" && t.Type != "custom" {
			continue // runs at the provider, or has a schema that it knows
		}
		var schema struct {
			Type string `json:"type"`
		}
		switch {
		case len(t.InputSchema) == 0:
			return invalid("%s.custom.input_schema: Field required", at)
		case json.Unmarshal(t.InputSchema, &schema) != nil || t.InputSchema[0] != '{':
			return invalid("%s.custom.input_schema: Input should be a valid dictionary", at)
		case schema.Type != "object":
			return invalid("%s.custom.input_schema.type: Input should be 'object'", at)
		}
	}
	if c := r.ToolChoice; c != nil {
		switch {
		case !slices.Contains([]string{"auto", "any", "tool", "none"}, c.Type):
			return invalid("tool_choice: Input tag '%s' found using 'type' does not match any of the expected tags: 'any', 'auto', 'none', 'tool'", c.Type)
		case len(r.Tools) == 0:
			return invalid("tool_choice may only be specified while providing tools.")
		case c.Type == "tool" && !seen[c.Name]:
			return invalid("Tool '%s' not found in provided tools", c.Name)
		}
	}
	return nil
}

func checkSystem(r *Request, _ ruleset) *APIError {
	if len(r.RawSystem) == 0 || string(r.RawSystem) == "null" || string(r.RawSystem) == `""` {
		return nil
	}
	list, ok := blocks(r.RawSystem)
	if !ok {
		return invalid("system: Input should be a valid string or a list of text blocks")
	}
	for i, b := range list {
		list[i].at = fmt.Sprintf("system.%d", i)
		if b.Type != "text" {
			return invalid("system.%d.type: Input should be 'text'", i)
		}
		if e := checkText("system", b); e != nil {
			return e
		}
	}
	r.system = list
	return nil
}

// checkMessages checks each message by itself and merges neighbors.
func checkMessages(r *Request, rules ruleset) *APIError {
	var merged []Message
	for i, m := range r.Messages {
		switch {
		case m.Role == "user", m.Role == "assistant", m.Role == "system" && rules.systems && i > 0:
		case m.Role == "system":
			return invalid("messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role.")
		default:
			return invalid("messages.%d.role: Input should be 'user' or 'assistant'", i)
		}
		if i == 0 && m.Role != "user" {
			return invalid("messages: first message must use the \"user\" role")
		}
		list, ok := blocks(m.RawContent)
		if !ok {
			return invalid("messages.%d.content: Input should be a valid string or list", i)
		}
		if len(list) == 0 && (m.Role != "assistant" || i < len(r.Messages)-1) {
			return invalid("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
		for j := range list {
			list[j].at = fmt.Sprintf("messages.%d.content.%d", i, j)
			if e := checkBlock(m.Role, list[j]); e != nil {
				return e
			}
		}
		m.Blocks = list
		if n := len(merged); n > 0 && merged[n-1].Role == m.Role {
			merged[n-1].Blocks = append(merged[n-1].Blocks, m.Blocks...)
			continue
		}
		merged = append(merged, m)
	}
	r.Messages = merged
	return nil
}

func checkText(at string, b ContentBlock) *APIError {
	switch {
	case b.Text == nil:
		return invalid("%s.text: Field required", b.at)
	case *b.Text == "" && b.CacheControl != nil:
		return invalid("%s.text: cache_control cannot be set for empty text blocks", b.at)
	case *b.Text == "":
		return invalid("%s: text content blocks must be non-empty", at)
	case strings.TrimSpace(*b.Text) == "":
		return invalid("%s: text content blocks must contain non-whitespace text", at)
	}
	return nil
}

// checkSource checks the bytes of an image or a document: their form, and that they
// begin as the type says.
func checkSource(b ContentBlock) *APIError {
	if b.Type != "image" && b.Type != "document" || b.Source != nil && b.Source.Type != "base64" {
		return nil
	}
	if b.Source == nil {
		return invalid("%s.%s.source: Field required", b.at, b.Type)
	}
	beginnings := map[string]string{"image/jpeg": "\xff\xd8\xff", "image/png": "\x89PNG", "image/gif": "GIF8", "image/webp": "RIFF"}
	if b.Type == "document" {
		beginnings = map[string]string{"application/pdf": "%PDF-"}
	}
	begin, ok := beginnings[b.Source.MediaType]
	switch {
	case !ok:
		return invalid("%s.%s.source.base64.media_type: Input should be another media type than '%s'", b.at, b.Type, b.Source.MediaType)
	case len(b.Source.Data) > 5<<20 && b.Type == "image":
		return invalid("%s.image.source.base64: image exceeds 5 MB maximum: %d bytes > 5242880 bytes", b.at, len(b.Source.Data))
	case !strings.HasPrefix(string(b.Source.Data), begin):
		return invalid("%s.%s.source.base64.data: The content does not appear to be a valid %s", b.at, b.Type, b.Source.MediaType)
	}
	return nil
}

func checkBlock(role string, b ContentBlock) *APIError {
	unexpected := invalid("%s: Input tag '%s' found using 'type' does not match any of the expected tags of a message with role '%s'", b.at, b.Type, role)
	switch b.Type {
	case "text":
		return checkText("messages", b)
	case "image", "document", "search_result", "container_upload":
		if role != "user" {
			return unexpected
		}
		return checkSource(b)
	case "tool_result":
		if role != "user" {
			return invalid("%s: `tool_result` blocks can only be in `user` messages", b.at)
		}
		return checkResult(b)
	}
	if role != "assistant" {
		return unexpected
	}
	switch {
	case b.Type == "tool_use":
		return checkCall(b)
	case b.Type == "thinking" && b.Thinking == nil:
		return invalid("%s.thinking.thinking: Field required", b.at)
	case b.Type == "thinking" && b.Signature == nil:
		return invalid("%s.thinking.signature: Field required", b.at)
	case b.Type == "redacted_thinking" && b.Data == nil:
		return invalid("%s.redacted_thinking.data: Field required", b.at)
	case b.Type == "thinking", b.Type == "redacted_thinking":
		if b.CacheControl != nil {
			return invalid("%s.%s.cache_control: Extra inputs are not permitted", b.at, b.Type)
		}
		return nil
	case b.Type == "server_tool_use", b.Type == "mcp_tool_use", strings.HasSuffix(b.Type, "_tool_result"):
		return nil // what ran at the provider
	}
	return unexpected
}

func checkCall(b ContentBlock) *APIError {
	switch {
	case !idPattern.MatchString(b.ID):
		return invalid("%s.tool_use.id: String should match pattern '%s'", b.at, idPattern)
	case !namePattern.MatchString(b.Name):
		return invalid("%s.tool_use.name: String should match pattern '%s'", b.at, namePattern)
	case len(b.Input) == 0:
		return invalid("%s.tool_use.input: Field required", b.at)
	case b.Input[0] != '{':
		return invalid("%s.tool_use.input: Input should be a valid dictionary", b.at)
	}
	return nil
}

func checkResult(b ContentBlock) *APIError {
	if !idPattern.MatchString(b.ToolUseID) {
		return invalid("%s.tool_result.tool_use_id: String should match pattern '%s'", b.at, idPattern)
	}
	content := b.Content
	if string(content) == "null" {
		content = nil
	}
	var list []ContentBlock
	if len(content) > 0 {
		var ok bool
		if list, ok = blocks(content); !ok {
			return invalid("%s.tool_result.content: Input should be a valid string or list", b.at)
		}
	}
	if len(list) == 0 && b.IsError {
		return invalid("%s.tool_result: content cannot be empty if `is_error` is true", b.at)
	}
	for i, c := range list {
		c.at = fmt.Sprintf("%s.tool_result.content.%d", b.at, i)
		if b.IsError && c.Type != "text" {
			return invalid("%s.tool_result: all content must be type `text` if `is_error` is true", b.at)
		}
		switch c.Type {
		case "text":
			// The text of a tool may be blank, but not missing.
			if c.Text == nil || *c.Text == "" && content[0] == '[' {
				return invalid("%s: text content blocks must be non-empty", c.at)
			}
		case "image", "document":
			if e := checkSource(c); e != nil {
				return e
			}
		case "search_result", "tool_reference":
		default:
			return invalid("%s: Input tag '%s' found using 'type' does not match any of the expected tags", c.at, c.Type)
		}
	}
	return nil
}
