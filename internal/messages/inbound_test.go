package messages_test

import (
	"fmt"
	"testing"

	"remote-agent/internal/messages"
)

// A standing task keeps who switched the task on and where, and nothing of what they wrote.
func TestAnOriginKeepsWhoAndWhere(t *testing.T) {
	t.Parallel()
	repository := &messages.Repository{URL: "https://example.com/a.git"}
	in := messages.Inbound{
		Account: "a", Event: "e", Aliases: []messages.EventID{"f"}, Kind: messages.KindAction, Message: "m", Text: "/schedule on", Action: "x", Trigger: "y",
		Conversation: messages.ConversationKey{Platform: "p", ID: "c"}, Sender: messages.Sender{ID: "42", Name: "Ann"}, Private: true, Whispered: true,
		Opening: "o", Queued: true, Quotes: []messages.Quote{{Text: "q"}}, Attachments: []messages.Attachment{{Name: "n"}}, Repository: repository, Reference: "r", Raw: []byte("{}"),
	}
	got := fmt.Sprintf("%+v", in.Origin())
	want := fmt.Sprintf("%+v", messages.Inbound{
		Account: "a", Event: "e", Kind: messages.KindMessage, Conversation: in.Conversation, Sender: in.Sender, Private: true, Repository: repository, Reference: "r",
	})
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
