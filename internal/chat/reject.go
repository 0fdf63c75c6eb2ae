package chat

import (
	"context"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/plan"
)

func (h *Handler) rejectCommand() command.Command {
	return command.Command{
		Name:    "reject",
		Usage:   "reject [plan] [reason]",
		Summary: "reject a plan",
		Example: "reject p-3 Too large",
		Run:     h.runReject,
	}
}

func (h *Handler) runReject(ctx context.Context, r command.Request) (command.Reply, error) {
	return h.decideAny(ctx, r, approval.Deny, plan.Reject)
}
