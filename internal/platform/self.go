package platform

import (
	"context"
	"sync/atomic"

	"remote-agent/internal/fault"
)

// Self is who a bot is on its platform, which is asked once and then known. It is
// safe for concurrent use.
type Self[T any] struct {
	known  atomic.Pointer[T]
	asking chan struct{} // has room for the one who asks
}

// NewSelf returns a Self that is not known yet.
func NewSelf[T any]() *Self[T] { return &Self[T]{asking: make(chan struct{}, 1)} }

// Load returns what is known, or nil.
func (s *Self[T]) Load() *T { return s.known.Load() }

// Store makes it known.
func (s *Self[T]) Store(me *T) { s.known.Store(me) }

// Get returns what is known, and asks if nothing is: one asks, the others wait for
// its answer or the end of ctx. ask stores what it finds out. The error is that of
// ask, or a fault of the kind of ctx.
func (s *Self[T]) Get(ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	if me := s.known.Load(); me != nil {
		return *me, nil
	}
	select {
	case s.asking <- struct{}{}:
	case <-ctx.Done():
		var none T
		return none, fault.Wrap(ctx.Err(), fault.KindOf(ctx.Err()), "finding out who the bot is")
	}
	defer func() { <-s.asking }()
	if me := s.known.Load(); me != nil {
		return *me, nil
	}
	return ask(ctx)
}
