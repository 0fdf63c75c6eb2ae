package messagestest

import (
	"pgregory.net/rapid"

	"remote-agent/internal/messages"
)

// Arrays generates arrays of any form, which mostly break the rules of every
// provider. texts are the ids, names and contents in them.
func Arrays(texts *rapid.Generator[string]) *rapid.Generator[[]messages.Message] {
	block := rapid.Custom(func(t *rapid.T) messages.Block {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return messages.Text{Text: texts.Draw(t, "text")}
		case 1:
			return messages.ToolCall{ID: texts.Draw(t, "id"), Name: texts.Draw(t, "name"), Arguments: texts.Draw(t, "arguments")}
		case 2:
			return messages.ToolResult{CallID: texts.Draw(t, "id"), Content: texts.Draw(t, "content"), Summary: texts.Draw(t, "summary"), IsError: rapid.Bool().Draw(t, "error")}
		case 3:
			return messages.Thinking{Text: texts.Draw(t, "thought"), Signature: texts.Draw(t, "signature"), Provider: texts.Draw(t, "provider")}
		default:
			return messages.Attachment{Name: texts.Draw(t, "name"), Text: texts.Draw(t, "text")}
		}
	})
	message := rapid.Custom(func(t *rapid.T) messages.Message {
		return messages.Message{
			Role:   rapid.SampledFrom([]messages.Role{messages.RoleUser, messages.RoleAssistant, messages.RoleTool}).Draw(t, "role"),
			Blocks: rapid.SliceOfN(block, 0, 4).Draw(t, "blocks"),
		}
	})
	return rapid.SliceOfN(message, 0, 12)
}
