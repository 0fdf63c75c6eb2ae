package main

import "remote-agent/internal/fault"

// benchCommand measures the program against the emulators.
type benchCommand struct{}

// Run implements the command.
func (benchCommand) Run(*program) error {
	return fault.New(fault.Unsupported, "bench is not part of this build")
}
