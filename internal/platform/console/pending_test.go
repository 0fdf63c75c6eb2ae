package console

import (
	"errors"
	"testing"

	"remote-agent/internal/platform"
)

// TestAnOutcomeThatIsFasterThanTheMessage: a mark that comes before it is known what the
// message is called counts for it, and for no other.
func TestAnOutcomeThatIsFasterThanTheMessage(t *testing.T) {
	t.Parallel()
	p := newPending()
	p.begin()
	p.seen(Event{Message: "a", Mark: platform.MarkFailed})
	p.seen(Event{Message: "another screen's", Mark: platform.MarkFailed})
	if p.said("a", nil); p.open() != 0 || !p.anyFailed() {
		t.Errorf("%d are open, failed %v", p.open(), p.anyFailed())
	}

	p = newPending()
	p.seen(Event{Message: "b", Mark: platform.MarkDone}) // before anything was said here
	p.begin()
	if p.said("b", nil); p.open() != 1 {
		t.Errorf("%d are open, and one was said", p.open())
	}
	p.seen(Event{Message: "b", Mark: platform.MarkSeen})
	if p.open() != 1 {
		t.Error("a message that was only seen is over")
	}
	p.begin()
	if p.said("", errors.New("not sent")); p.open() != 1 {
		t.Errorf("%d are open after one that was not sent", p.open())
	}
	if p.seen(Event{Message: "b", Mark: platform.MarkDone}); p.open() != 0 || p.anyFailed() {
		t.Errorf("%d are open, failed %v", p.open(), p.anyFailed())
	}
}
