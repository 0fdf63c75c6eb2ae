package anthropic

import (
	"slices"
	"strings"
)

// checkPairs requires that every call is answered exactly once, in the message
// after it and before anything else, and that nothing else is answered.
func checkPairs(r *Request, _ ruleset) *APIError {
	used := map[string]bool{}
	var open []string // calls of the message before, in order
	for _, m := range r.Messages {
		if m.Role == "user" {
			if e := checkAnswers(m, open); e != nil {
				return e
			}
			open = nil
			continue
		}
		if len(open) > 0 {
			return unanswered(m.Blocks[0].at, open)
		}
		for _, b := range m.Blocks {
			if b.Type == "tool_use" {
				if used[b.ID] {
					return invalid("messages: `tool_use` ids must be unique")
				}
				used[b.ID] = true
				open = append(open, b.ID)
			} else if len(open) > 0 && b.Type == "text" {
				return invalid("%s: text cannot follow `tool_use` blocks in a message", b.at)
			}
		}
	}
	if len(open) > 0 {
		return unanswered("messages", open)
	}
	return nil
}

func unanswered(at string, ids []string) *APIError {
	return invalid("%s: `tool_use` ids were found without `tool_result` blocks immediately after: %s. "+
		"Each `tool_use` block must have a corresponding `tool_result` block in the next message.", at, strings.Join(ids, ", "))
}

func checkAnswers(m Message, calls []string) *APIError {
	answered := map[string]bool{}
	other := false
	for _, b := range m.Blocks {
		if b.Type != "tool_result" {
			other = true
			continue
		}
		switch {
		case !slices.Contains(calls, b.ToolUseID):
			return invalid("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. "+
				"Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", b.at, b.ToolUseID)
		case answered[b.ToolUseID]:
			return invalid("%s: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", b.at, b.ToolUseID)
		case other:
			// The API does not look for results behind other content.
			return unanswered(b.at, []string{b.ToolUseID})
		}
		answered[b.ToolUseID] = true
	}
	var missing []string
	for _, id := range calls {
		if !answered[id] {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		return unanswered(m.Blocks[0].at, missing)
	}
	return nil
}

// checkEnd refuses an array that ends with the assistant, unless it continues a
// turn that was paused.
func checkEnd(r *Request, rules ruleset) *APIError {
	last := r.Messages[len(r.Messages)-1]
	if last.Role != "assistant" || rules.counting || rules.paused(last.Blocks) {
		return nil
	}
	if !rules.prefill {
		return invalid("This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	if r.Thinking != nil && r.Thinking.Type != "disabled" {
		return invalid("messages: the final assistant message cannot be prefilled when thinking is enabled")
	}
	text := last.PlainText()
	if text != strings.TrimRight(text, " \t\r\n") {
		return invalid("messages: final assistant content cannot end with trailing whitespace")
	}
	return nil
}
