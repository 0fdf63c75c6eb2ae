package chat

import (
	"context"
	"fmt"
	"strconv"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
)

func (pf *preferences) verboseCommand() *command.Command {
	return &command.Command{
		Name:    "verbose",
		Usage:   "verbose 0|1|2",
		Summary: "set how much detail to show during work",
		Example: "verbose 2",
		Reading: command.ReadingAside,
		Run:     pf.runVerbose,
	}
}

func (pf *preferences) runVerbose(ctx context.Context, r command.Request) (command.Reply, error) {
	const usage = "Use `/verbose 0` (result only), `1` (a line per step) or `2` (every call with its output)."
	if len(r.Call.Args) != 1 {
		return command.Reply{}, fault.New(fault.Invalid, usage)
	}
	level, err := strconv.Atoi(r.Call.Args[0])
	if err != nil || level < 0 || level > 2 {
		return command.Reply{}, fault.New(fault.Invalid, usage)
	}
	err = choose(ctx, pf.store, r, "verbose", r.Call.Args[0], func(s *sessions.Settings) { s.Verbose = &level })
	return command.Reply{Text: fmt.Sprintf("Verbosity is %d from the next turn on.", level)}, err
}
