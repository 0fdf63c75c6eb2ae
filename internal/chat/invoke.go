package chat

import "remote-agent/internal/command"

// invokeCommand is seed 002's long form of another command. What it means is
// command.Call.Invoked; alone it is answered by Unknown.
func invokeCommand() *command.Command {
	return &command.Command{
		Name:    command.Invoke,
		Usage:   "command-invoke <name> [arguments]",
		Summary: "run a repository command, `plan-feature` or `execute` by name",
		Example: "command-invoke plan-feature add a --json flag",
		Reading: command.ReadingAnywhere,
		Hidden:  true,
		Lane:    command.Turn,
	}
}
