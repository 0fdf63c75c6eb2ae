package export

import (
	"bytes"
	"testing"

	"remote-agent/internal/fault"
)

// FuzzExamine reads files that somebody made up: they are refused as invalid, or
// what examine returns lies within them.
func FuzzExamine(f *testing.F) {
	head := `{"type":"export","format":"remote-agent-export","version":3,"schema":13}` + "\n"
	f.Add([]byte(head + `{"type":"shared_end","counts":{},"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}` + "\n" + `{"type":"end","conversations":0}` + "\n"))
	f.Add([]byte(head + `{"type":"identity","row":{"name":"x"}}` + "\n" + `{"type":"shared_end"}` + "\n"))
	f.Add([]byte(head + `{"type":"conversation","row":{"id":"1","platform_type":"t","platform_conversation_id":"2"}}` + "\n" + `{"type":"conversation_end","id":"1"}` + "\n"))
	f.Add([]byte("null\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		shared, blocks, err := examine(bytes.NewReader(file))
		if err != nil {
			if !fault.Is(err, fault.Invalid) || fault.Public(err) == "" {
				t.Errorf("error = %v, want fault.Invalid with words for people", err)
			}
			return
		}
		if shared.offset > int64(len(file)) {
			t.Errorf("the shared part begins at %d of %d", shared.offset, len(file))
		}
		for _, b := range blocks {
			if b.offset < shared.offset || b.offset >= int64(len(file)) || b.line < 2 {
				t.Errorf("a conversation is at %d of %d, line %d", b.offset, len(file), b.line)
			}
		}
	})
}
