package inbox

import (
	"context"
	"sync"

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

// seen remembers the events that this process has stored last, and those that it is storing
// now: what comes twice, as each mention on Slack does, then asks nothing of the database,
// and of two that come at once the second does not hold up a transaction that others
// share. An event that it does not remember is recognized in the database.
type seen struct {
	*platform.Recent[eventName, struct{}]

	mu      sync.Mutex // guards storing
	storing map[eventName]chan struct{}
}

func newSeen() *seen {
	return &seen{Recent: platform.NewRecent[eventName, struct{}](mostSeen), storing: make(map[eventName]chan struct{})}
}

// enter waits for calls that are storing one of events already, and has later ones wait
// until leave is called. No two calls wait for each other, for each waits only for those
// that came before it, and once: if such a call fails, the events are stored by who waited.
func (s *seen) enter(ctx context.Context, events []messages.Inbound) (leave func(), err error) {
	mine := make(chan struct{})
	var names []eventName
	var others []chan struct{}
	s.mu.Lock()
	for _, in := range events {
		name := nameOf(in)
		switch other, ok := s.storing[name]; {
		case !ok:
			s.storing[name] = mine
			names = append(names, name)
		case other != mine:
			others = append(others, other)
		}
	}
	s.mu.Unlock()
	leave = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, name := range names {
			delete(s.storing, name)
		}
		close(mine)
	}
	for _, other := range others {
		select {
		case <-other:
		case <-ctx.Done():
			leave()
			return nil, ctx.Err()
		}
	}
	return leave, nil
}

// tell splits events into those that may be new and what becomes of the others.
func (s *seen) tell(events []messages.Inbound) (fresh []messages.Inbound, repeated []accepted) {
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
func (s *seen) stored(events []messages.Inbound) {
	for _, in := range events {
		s.Put(nameOf(in), struct{}{})
	}
}
