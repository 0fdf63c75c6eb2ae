//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// hangups returns a channel that gets a value for SIGHUP, which does not end the
// process any more until stop is called. Signals that come close together are one.
func hangups() (received <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}
