package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
)

// signals are what tells the program to end.
type signals struct {
	received chan os.Signal
	caught   atomic.Pointer[func()] // what SIGINT does instead; may be nil
}

// awaitSignals returns a context that ends with the first SIGINT or SIGTERM. The second
// one ends the process at once, whatever it is doing.
func awaitSignals() (ctx context.Context, s *signals, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	s = &signals{received: make(chan os.Signal, 2)}
	signal.Notify(s.received, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	go func() {
		end := cancel
		for {
			select {
			case sig := <-s.received:
				if handle := s.caught.Load(); handle != nil && sig == os.Interrupt {
					(*handle)()
					continue
				}
				end()
				end = func() { os.Exit(exitFailed) }
			case <-over:
				return
			}
		}
	}()
	return ctx, s, sync.OnceFunc(func() {
		signal.Stop(s.received)
		close(over)
		cancel()
	})
}

// interrupt does what SIGINT does that nobody has caught, for a terminal that passes
// Ctrl-C on as a key.
func (s *signals) interrupt() {
	select {
	case s.received <- syscall.SIGTERM:
	default: // two are on their way
	}
}

// catch has SIGINT call handle, which must not wait, until release is called.
func (s *signals) catch(handle func()) (release func()) {
	s.caught.Store(&handle)
	return func() { s.caught.CompareAndSwap(&handle, nil) }
}
