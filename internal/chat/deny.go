package chat

import (
	"context"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
)

func (h *Handler) denyCommand() command.Command {
	return command.Command{
		Name:    "deny",
		Usage:   "deny a-7 [why]",
		Summary: "do not allow what was asked",
		Example: "deny a-7 use the staging database",
		Run:     h.runDeny,
	}
}

func (h *Handler) runDeny(ctx context.Context, r command.Request) (command.Reply, error) {
	return h.decideApproval(ctx, r, approval.Deny)
}
