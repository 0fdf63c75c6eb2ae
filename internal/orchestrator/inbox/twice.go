package inbox

import (
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// mostSeen is how many of the events that were accepted last a process remembers.
const mostSeen = 1024

// eventName is what tells one event from all others.
type eventName struct {
	platform messages.Platform
	account  string
	event    messages.EventID
}

func nameOf(in messages.Inbound) eventName {
	return eventName{in.Conversation.Platform, in.Account, in.Event}
}

// seen remembers the events that this process has stored last: what comes twice, as each
// mention on Slack does, then asks nothing of the database. An event that it does not
// remember is recognized there.
type seen struct {
	*platform.Recent[eventName, struct{}]
}

func newSeen() seen { return seen{platform.NewRecent[eventName, struct{}](mostSeen)} }

// tell splits events into those that may be new and what becomes of the others.
func (s seen) tell(events []messages.Inbound) (fresh []messages.Inbound, repeated []accepted) {
	fresh = make([]messages.Inbound, 0, len(events))
	for _, in := range events {
		if _, known := s.Get(nameOf(in)); known {
			repeated = append(repeated, accepted{entry: sessions.Entry{In: in}})
		} else {
			fresh = append(fresh, in)
		}
	}
	return fresh, repeated
}

// stored notes that events are in the database, or come to nothing there: they have been
// committed.
func (s seen) stored(events []messages.Inbound) {
	for _, in := range events {
		s.Put(nameOf(in), struct{}{})
	}
}
