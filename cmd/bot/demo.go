package main

import (
	"os"

	"golang.org/x/term"

	"remote-agent/internal/tour"
)

// demoCommand plays a conversation against the emulators.
type demoCommand struct {
	Fast        bool `help:"Skip the pauses."`
	Interactive bool `help:"Chat with the bot yourself afterwards."`
}

func (c demoCommand) Run(p *program) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	opts := tour.Options{Out: p.stdout, Fast: c.Fast, Version: version(), Program: self, Environ: systemEnviron(p.environ)}
	if f, ok := p.stdout.(*os.File); ok && isTerminal(f) {
		noColor, _ := p.lookup("NO_COLOR")
		opts.Terminal, opts.Color = true, noColor == ""
		opts.Width, _, _ = term.GetSize(int(f.Fd())) //nolint:gosec // a descriptor fits
	}
	if c.Interactive {
		opts.Input = p.stdin
	}
	return tour.Run(p.ctx, opts)
}
