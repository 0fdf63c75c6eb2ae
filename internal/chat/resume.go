package chat

import (
	"context"

	"remote-agent/internal/command"
	"remote-agent/internal/people"
)

func (h *Handler) resumeCommand() command.Command {
	return command.Command{
		Name:    "resume",
		Usage:   "resume",
		Summary: "resume after a halt",
		Example: "resume",
		Owners:  true,
		Run:     h.runResume,
	}
}

func (h *Handler) runResume(ctx context.Context, r command.Request) (command.Reply, error) {
	said, err := h.config.People.Resume(ctx, people.Owner(r))
	return command.Reply{Text: "▶ " + said}, err
}
