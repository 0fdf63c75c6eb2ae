package chat

import (
	"context"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/plan"
)

func (de *decisions) rejectCommand() *command.Command {
	return &command.Command{
		Name:    "reject",
		Usage:   "reject [plan] [reason]",
		Summary: "reject a plan",
		Example: "reject p-3 Too large",
		Run:     de.runReject,
	}
}

func (de *decisions) runReject(ctx context.Context, r command.Request) (command.Reply, error) {
	return de.decideAny(ctx, r, approval.Deny, plan.Reject)
}
