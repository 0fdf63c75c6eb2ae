package chat

import (
	"context"

	"remote-agent/internal/command"
	"remote-agent/internal/people"
)

func (ac *access) resumeCommand() *command.Command {
	return &command.Command{
		Name:    "resume",
		Usage:   "resume",
		Summary: "resume after a halt",
		Example: "resume",
		Owners:  true,
		Run:     ac.runResume,
	}
}

func (ac *access) runResume(ctx context.Context, r command.Request) (command.Reply, error) {
	said, err := ac.people.Resume(ctx, people.Owner(r))
	return command.Reply{Text: "▶ " + said}, err
}
