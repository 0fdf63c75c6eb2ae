package main

import "remote-agent/internal/fault"

// demoCommand plays a conversation against the emulators.
type demoCommand struct{}

// Run implements the command.
func (demoCommand) Run(*program) error {
	return fault.New(fault.Unsupported, "demo is not part of this build")
}
