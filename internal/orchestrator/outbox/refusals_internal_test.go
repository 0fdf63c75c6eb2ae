package outbox

import (
	"testing"
	"time"

	"remote-agent/internal/messages"
)

// TestAReminderOutlivesARepeatedTransaction: the closure that stores a stranger's message may
// run twice, and its second run finds the same.
func TestAReminderOutlivesARepeatedTransaction(t *testing.T) {
	t.Parallel()
	const p = messages.Platform("telegram")
	o := &Outbox{refusals: map[messages.Platform]*refusals{p: newRefusals()}}
	in := messages.Inbound{Event: "1"}
	in.Conversation.Platform, in.Sender.ID = p, "7"
	for run := range 2 {
		if !o.AnswerAgain(in, true, time.Hour) {
			t.Errorf("run %d: nothing is said", run+1)
		}
	}
	in.Event = "2"
	if o.AnswerAgain(in, true, time.Hour) {
		t.Error("the next message of the hour is answered, too")
	}
}
