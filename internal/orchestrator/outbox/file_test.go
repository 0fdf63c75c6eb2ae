package outbox

import (
	"context"
	"testing"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// asides is an editor that notes which texts are no answer.
type asides struct {
	platform.Editor
	shown map[string]bool
}

func (a asides) Edit(_ context.Context, e platform.Edit) error {
	a.shown[e.Text] = e.Aside
	return nil
}

// TestWhoSaysThatTheBotIsHalted: only the bot does. What a model says is an answer, also if it
// says the same.
func TestWhoSaysThatTheBotIsHalted(t *testing.T) {
	t.Parallel()
	shown := make(map[string]bool)
	for _, d := range []messages.Delivery{
		{Text: haltedNotice + ": a fire.", Control: true}, {Text: haltedNotice + ", I was told."}, {Text: "You are ann.", Control: true},
	} {
		if err := new(Outbox).show(t.Context(), asides{shown: shown}, messages.ConversationKey{}, d); err != nil {
			t.Error(err)
		}
	}
	for text, want := range map[string]bool{haltedNotice + ": a fire.": true, haltedNotice + ", I was told.": false, "You are ann.": false} {
		if got, ok := shown[text]; !ok || got != want {
			t.Errorf("%q is no answer: %v, want %v", text, got, want)
		}
	}
}
