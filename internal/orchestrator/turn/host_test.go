package turn

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/messages"
)

// TestSecretsOfAMessage are taken out of all that is shown and stored, but for what goes back
// to its provider as it came, and for what a model's call runs.
func TestSecretsOfAMessage(t *testing.T) {
	t.Parallel()
	o := &Turns{config: Config{Redact: func(s string) string { return strings.ReplaceAll(s, "sesame", "[secret]") }}}
	said := messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{
		messages.Text{Text: "It is sesame."},
		messages.Thinking{Text: "It may be sesame."},
		messages.Thinking{Text: "It was sesame.", Signature: "signed"},
		messages.ToolCall{ID: "c1", Name: "open", Arguments: `{"word":"sesame"}`},
		messages.ToolResult{CallID: "c1", Content: "sesame opened it", Summary: "sesame"},
		messages.Attachment{Name: "a.txt", Text: "b"},
	}}
	want := messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{
		messages.Text{Text: "It is [secret]."},
		messages.Thinking{Text: "It may be [secret]."},
		messages.Thinking{Text: "It was sesame.", Signature: "signed"},
		messages.ToolCall{ID: "c1", Name: "open", Arguments: `{"word":"sesame"}`},
		messages.ToolResult{CallID: "c1", Content: "[secret] opened it", Summary: "[secret]"},
		messages.Attachment{Name: "a.txt", Text: "b"},
	}}
	if diff := cmp.Diff(want, o.redactMessage(said, false)); diff != "" {
		t.Errorf("of a model (-want +got):\n%s", diff)
	}
	want.Blocks[3] = messages.ToolCall{ID: "c1", Name: "open", Arguments: `{"word":"[secret]"}`}
	if diff := cmp.Diff(want, o.redactMessage(said, true)); diff != "" {
		t.Errorf("of an agent (-want +got):\n%s", diff)
	}
	if text := said.Blocks[0].(messages.Text).Text; text != "It is sesame." { //nolint:forcetypeassert // it is one
		t.Errorf("what was handed in became %q", text)
	}
}

// TestReasoningIsKeptInWholeLines: of what is too long the oldest goes, up to the end of its
// line, so that no half of a secret is left that nobody knows any more.
func TestReasoningIsKeptInWholeLines(t *testing.T) {
	t.Parallel()
	p := &progress{changed: make(chan struct{}, 1)}
	first := strings.Repeat("a", maxThoughts-10) + "sesame"
	for _, piece := range []string{first, "\n", "then this\n", "and that"} {
		p.thought(piece)
	}
	if p.thoughts != "then this\nand that" {
		t.Errorf("%d bytes are kept, that begin with %.20q", len(p.thoughts), p.thoughts)
	}
	for range 3 { // one without an end is not kept for ever
		p.thought(strings.Repeat("c", maxThoughts))
	}
	if p.thoughts != ("then this\nand that" + strings.Repeat("c", maxThoughts))[:maxThoughts] {
		t.Errorf("%d bytes are kept, that begin with %.20q", len(p.thoughts), p.thoughts)
	}
	p.thoughts = "x\n" + strings.Repeat("b", maxThoughts-2)
	p.thought("c")
	if p.thoughts != strings.Repeat("b", maxThoughts-2)+"c" {
		t.Errorf("%d bytes are kept, that begin with %.20q", len(p.thoughts), p.thoughts)
	}
}
