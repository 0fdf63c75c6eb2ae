//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"

	"remote-agent/internal/web"
)

// startAgain replaces this process by a new start of the same program, with the same
// arguments, environment and number: a service manager sees no end. Sockets that it has
// handed over stay open.
func startAgain() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	web.PassOn(os.LookupEnv)
	if err := syscall.Exec(self, os.Args, os.Environ()); err != nil { //nolint:gosec // this very program
		return fmt.Errorf("start again: %w", err)
	}
	return nil
}
