package chat

import (
	"context"

	"remote-agent/internal/command"
	"remote-agent/internal/people"
)

func (ac *access) haltCommand() *command.Command {
	return &command.Command{
		Name:    "halt",
		Usage:   "halt [why]",
		Summary: "stop all work everywhere until resume",
		Example: "halt deploying a new version",
		Rank:    6,
		Details: "`stop` affects only this conversation.",
		Owners:  true,
		Run:     ac.runHalt,
	}
}

func (ac *access) runHalt(ctx context.Context, r command.Request) (command.Reply, error) {
	said, err := ac.people.Halt(ctx, people.Owner(r), r.Call.Rest)
	return command.Reply{Text: "⏸ " + said + " `/resume` ends the halt."}, err
}
