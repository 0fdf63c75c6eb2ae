package outbox

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// opener is a platform where the first message opens a thread of its own.
type opener struct{ platform.Editor }

func (opener) Platform() messages.Platform         { return "p" }
func (opener) Capabilities() platform.Capabilities { return platform.Capabilities{} }
func (opener) Run(context.Context, platform.Sink) error {
	return nil
}

func (opener) Send(context.Context, messages.Outbound) (messages.Ref, error) {
	return messages.Ref{Conversation: messages.ConversationKey{Platform: "p", ID: "thread"}, Message: "m"}, nil
}

// TestPlaceRecordsTheMoveWithTheMessage sees to it that a crash leaves no
// conversation whose message is known under a key that its platform does not.
func TestPlaceRecordsTheMoveWithTheMessage(t *testing.T) {
	t.Parallel()
	o := New(Config{Adapters: map[messages.Platform]platform.Adapter{"p": opener{}}, Log: slog.New(slog.DiscardHandler)})
	from := messages.ConversationKey{Platform: "p", ID: "new-1"}
	records := 0
	record := func(_ context.Context, d messages.Delivery, moved *Move) error {
		records++
		if d.Message != "m" || d.State != messages.DeliveryPlaced || moved == nil || moved.From != from || moved.To != "thread" {
			t.Errorf("recorded %+v with %+v", d, moved)
		}
		return nil
	}
	now, err := o.Place(t.Context(), from, &messages.Delivery{ID: "d"}, record)
	if err != nil || now.ID != "thread" || records != 1 {
		t.Errorf("Place = %v, %v after %d records", now, err, records)
	}
	broken := errors.New("no database")
	now, err = o.Place(t.Context(), from, &messages.Delivery{ID: "d"}, func(context.Context, messages.Delivery, *Move) error { return broken })
	if now != from || err == nil {
		t.Errorf("Place = %v, %v without a record", now, err)
	}
}
