package messages

import "encoding/json"

// ToolSpec describes a tool to a model.
type ToolSpec struct {
	Name        string // at most 64 characters of [A-Za-z0-9_-]
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments, which are an object
}

// OpenCalls returns the calls of the last assistant message of an array that no
// later message answers, in order. They are left over when a turn was put aside
// between the model's request and the end of its tools.
func OpenCalls(array []Message) []ToolCall {
	last := len(array) - 1
	for last >= 0 && array[last].Role == RoleTool {
		last--
	}
	if last < 0 || array[last].Role != RoleAssistant {
		return nil
	}
	answered := make(map[string]bool)
	for _, m := range array[last+1:] {
		for _, b := range m.Blocks {
			if r, ok := b.(ToolResult); ok {
				answered[r.CallID] = true
			}
		}
	}
	var open []ToolCall
	for _, b := range array[last].Blocks {
		if c, ok := b.(ToolCall); ok && !answered[c.ID] {
			open = append(open, c)
		}
	}
	return open
}

// FilesOf returns the files that came with the result of a tool that is m.Blocks[at]: those right
// behind it.
func FilesOf(m Message, at int) []Attachment {
	var files []Attachment
	for _, b := range filesOf(m, at) {
		if a, ok := b.(Attachment); ok {
			files = append(files, a)
		}
	}
	return files
}

func filesOf(m Message, at int) []Block {
	if m.Role != RoleTool { // what else a message has is of somebody else
		return nil
	}
	end := at + 1
	for end < len(m.Blocks) {
		if _, ok := m.Blocks[end].(Attachment); !ok {
			break
		}
		end++
	}
	return m.Blocks[at+1 : end]
}
