package chat

import (
	"context"

	"remote-agent/internal/command"
	"remote-agent/internal/people"
)

func (h *Handler) haltCommand() command.Command {
	return command.Command{
		Name:    "halt",
		Usage:   "halt [why]",
		Summary: "stop everything, everywhere, until resume",
		Example: "halt deploying a new version",
		Rank:    6,
		Details: "`stop` stops only what runs here.",
		Owners:  true,
		Run:     h.runHalt,
	}
}

func (h *Handler) runHalt(ctx context.Context, r command.Request) (command.Reply, error) {
	said, err := h.config.People.Halt(ctx, people.Owner(r), r.Call.Rest)
	return command.Reply{Text: "⏸ " + said + " `/resume` ends it."}, err
}
