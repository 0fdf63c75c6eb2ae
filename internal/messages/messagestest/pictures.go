package messagestest

import (
	"fmt"

	"pgregory.net/rapid"

	"remote-agent/internal/messages"
)

// Pictured generates the arrays of arrays with some of the files of people and tools as
// pictures whose data is there.
func Pictured(arrays *rapid.Generator[[]messages.Message]) *rapid.Generator[[]messages.Message] {
	return rapid.Custom(func(t *rapid.T) []messages.Message {
		array := arrays.Draw(t, "array")
		for i, m := range array {
			for k, b := range m.Blocks {
				a, is := b.(messages.Attachment)
				if !is || m.Role == messages.RoleAssistant || !rapid.Bool().Draw(t, "shown") {
					continue
				}
				a.MediaType, a.Width, a.Height, a.Text = "image/png", 1, 1, ""
				a.File, a.Data = fmt.Sprint(i, k), fmt.Sprint("\x89PNG\r\n\x1a\n", i, k)
				m.Blocks[k] = a
			}
		}
		return array
	})
}

// Pictures counts the files of an array whose data is there.
func Pictures(array []messages.Message) (n int) {
	for _, m := range array {
		for _, b := range m.Blocks {
			if a, is := b.(messages.Attachment); is && a.Data != "" {
				n++
			}
		}
	}
	return n
}
