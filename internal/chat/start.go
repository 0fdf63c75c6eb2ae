package chat

import (
	"context"
	"fmt"

	"remote-agent/internal/command"
	"remote-agent/internal/sessions"
)

func (h *Handler) startCommand() *command.Command {
	return &command.Command{
		Name:    "start",
		Usage:   "start",
		Summary: "say hello",
		Example: "start",
		Reading: command.ReadingAnywhere,
		Hidden:  true,
		Run:     h.runStart,
	}
}

func (h *Handler) runStart(_ context.Context, r command.Request) (command.Reply, error) {
	prefix := h.prefix(r.Conv.Key)
	hello := "Hello."
	if r.Role == sessions.Owner {
		hello = "Hello. You are the owner of this bot."
	}
	return command.Reply{Text: fmt.Sprintf("%s Just write: every message is answered by **%s**. `%shelp` shows the commands.",
		hello, r.Conv.Assistant, prefix)}, nil
}
