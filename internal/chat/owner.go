package chat

import (
	"context"

	"remote-agent/internal/command"
	"remote-agent/internal/people"
)

func (h *Handler) ownerCommand() command.Command {
	return command.Command{
		Name:    "owner",
		Usage:   "owner [add|rm <id>]",
		Summary: "who owns the bot",
		Example: "owner add telegram/42",
		Owners:  true,
		Run:     h.runOwner,
	}
}

func (h *Handler) runOwner(ctx context.Context, r command.Request) (command.Reply, error) {
	return h.changePeople(ctx, r, "owner", map[string]change{"add": h.config.People.AddOwner, "rm": h.config.People.RemoveOwner, "remove": h.config.People.RemoveOwner}, people.Owners)
}
