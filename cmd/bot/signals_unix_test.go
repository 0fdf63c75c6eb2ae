//go:build unix

package main

import (
	"os"
	"syscall"
	"testing"

	"remote-agent/internal/waittest"
)

// A chat may take Ctrl-C for itself, on a terminal that makes a signal of it; what it
// calls to quit ends the program all the same. It sends a signal to the whole process, so
// it is not parallel.
func TestACaughtInterruptDoesNotEndTheProgram(t *testing.T) {
	press := func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
	}
	for name, quit := range map[string]func(s *signals){
		"quits":     func(s *signals) { s.interrupt() },
		"is closed": func(*signals) { press() },
	} {
		ctx, s, stop := awaitSignals()
		pressed := make(chan struct{}, 1)
		release := s.catch(func() { pressed <- struct{}{} })
		press()
		select {
		case <-pressed:
		case <-waittest.Late(t):
			t.Fatal("Ctrl-C is lost")
		}
		if ctx.Err() != nil {
			t.Error("a caught Ctrl-C ends the program")
		}
		if name == "is closed" {
			release()
		}
		quit(s)
		select {
		case <-ctx.Done():
		case <-waittest.Late(t):
			t.Errorf("a chat that %s does not end the program", name)
		}
		release()
		stop()
	}
}
