package inbox

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/messages"
)

// TestAlbumIsOneMessage: it has what is said with any of its messages, their files in order and
// up to a limit, and what they reply to once, although each of them brings it.
func TestAlbumIsOneMessage(t *testing.T) {
	t.Parallel()
	file := func(name, author string) messages.Attachment { return messages.Attachment{Name: name, Author: author} }
	quoted, quote := file("quoted", "Bob"), []messages.Quote{{Text: "look"}}
	first := messages.Inbound{Attachments: []messages.Attachment{file("1", ""), quoted}}
	whole := joined(first, messages.Inbound{Text: "both", Quotes: quote, Attachments: []messages.Attachment{file("1", ""), quoted, file("other", "Bob")}})
	whole = joined(whole, messages.Inbound{Text: "of them", Quotes: []messages.Quote{{Text: "another"}}})
	want := messages.Inbound{
		Text: "both\nof them", Quotes: quote, Attachments: []messages.Attachment{file("1", ""), quoted, file("1", ""), file("other", "Bob")},
	}
	if d := cmp.Diff(want, whole); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for n := range albumMost + 1 {
		whole = joined(whole, messages.Inbound{Attachments: []messages.Attachment{file(fmt.Sprint(n), "")}})
	}
	if n := len(whole.Attachments); n != albumMost {
		t.Errorf("it has %d files, want at most %d", n, albumMost)
	}
}
