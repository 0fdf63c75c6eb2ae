package outbox

import (
	"context"
	"log/slog"
	"testing"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// sender keeps what is sent.
type sender struct {
	platform.Adapter
	sent []messages.Outbound
}

func (s *sender) Send(_ context.Context, out messages.Outbound) (messages.Ref, error) {
	s.sent = append(s.sent, out)
	return messages.Ref{}, nil
}

// TestWhatIsNotKeptIsForOnePerson: such as a code that makes two accounts one.
func TestWhatIsNotKeptIsForOnePerson(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in   messages.Inbound
		sent int
		only messages.UserID
	}{
		"InPrivate": {messages.Inbound{Private: true}, 1, ""},
		"Whispered": {messages.Inbound{Whispered: true}, 1, "42"},
		"InPublic":  {messages.Inbound{}, 0, ""},
	} {
		s := new(sender)
		o := New(Config{Adapters: map[messages.Platform]platform.Adapter{"p": s}, Log: slog.New(slog.DiscardHandler)})
		tt.in.Conversation, tt.in.Sender.ID = messages.ConversationKey{Platform: "p", ID: "c"}, "42"
		o.SendUnkept(t.Context(), tt.in, "the code")
		if len(s.sent) != tt.sent || len(s.sent) == 1 && s.sent[0].OnlyFor != tt.only {
			t.Errorf("%s: sent %+v", name, s.sent)
		}
	}
}

// TestNoticeThatBelongsToNoMessageNotifies: no answer does so for it, so that it begins with its
// first words.
func TestNoticeThatBelongsToNoMessageNotifies(t *testing.T) {
	t.Parallel()
	for entry, begins := range map[string]string{"": "A new …", "e1": ""} {
		tx := new(recorded)
		if err := AddNotice(t.Context(), tx, "c1", entry, "A new room"); err != nil {
			t.Fatal(err)
		}
		if d := tx.all[0]; d.Placeholder != begins || d.Text != "A new room" {
			t.Errorf("with entry %q: %+v", entry, d)
		}
	}
}
