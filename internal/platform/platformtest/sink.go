// Package platformtest is the contract suite that every adapter passes, and the
// recording sink that it uses.
package platformtest

import (
	"context"
	"slices"
	"sync"

	"remote-agent/internal/messages"
)

// Sink records what adapters pass on. It stores like a database: a repeated
// event changes nothing, and a batch is stored whole or not at all. The zero
// value is ready. It is safe for concurrent use.
type Sink struct {
	// BeforeAccept, if set, is called before a batch is stored. An error from it
	// is returned to the adapter and nothing is stored.
	BeforeAccept func(events []messages.Inbound) error

	mu      sync.Mutex // guards what follows
	events  []messages.Inbound
	raws    []messages.RawEvent
	calls   int
	changed chan struct{} // closed at the next change; nil if nobody waits
}

// Accept implements platform.Sink.
func (s *Sink) Accept(ctx context.Context, events ...messages.Inbound) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.BeforeAccept != nil {
		if err := s.BeforeAccept(events); err != nil {
			s.update(func() { s.calls++ })
			return err
		}
	}
	s.update(func() {
		s.calls++
		for _, e := range events {
			if !slices.ContainsFunc(s.events, func(o messages.Inbound) bool { return o.Account == e.Account && o.Event == e.Event }) {
				s.events = append(s.events, e)
			}
		}
	})
	return nil
}

// Keep implements platform.Sink.
func (s *Sink) Keep(ctx context.Context, raw messages.RawEvent) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.update(func() {
		for _, o := range s.raws {
			if o.Event == raw.Event && string(o.Raw) == string(raw.Raw) {
				return
			}
		}
		s.raws = append(s.raws, raw)
	})
	return nil
}

func (s *Sink) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Events returns the events that were stored, in order.
func (s *Sink) Events() []messages.Inbound {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// Kept returns the events that were kept raw, in order.
func (s *Sink) Kept() []messages.RawEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.raws)
}

// Calls returns how often Accept was called.
func (s *Sink) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Wait waits until done reports true, asking after every change, and returns
// the error of ctx if it never does.
func (s *Sink) Wait(ctx context.Context, done func() bool) error {
	for {
		s.mu.Lock()
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		if done() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
