//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// hangups returns a channel that gets a value for SIGHUP, which does not end the
// process any more until stop is called. Signals that come close together are one.
//
// Nor does SIGPIPE, which Go makes of a write to a stderr that nobody reads any more: a
// daemon works on without its log when what collects that has died, and systemd would take
// this end for one that was asked for. It is not ignored, because programs would inherit that.
func hangups() (received <-chan os.Signal, stop func()) {
	c, unread := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	signal.Notify(unread, syscall.SIGPIPE)
	return c, func() {
		signal.Stop(c)
		signal.Stop(unread)
	}
}
