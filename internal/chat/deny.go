package chat

import (
	"context"
	"strings"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/plan"
)

func (de *decisions) denyCommand() *command.Command {
	return &command.Command{
		Name:    "deny",
		Usage:   "deny [a-7] [why]",
		Summary: "deny a request",
		Example: "deny a-7 use the staging database",
		Run:     de.runDeny,
	}
}

func (de *decisions) runDeny(ctx context.Context, r command.Request) (command.Reply, error) {
	if len(r.Call.Args) > 0 && strings.HasPrefix(strings.ToLower(r.Call.Args[0]), "a-") {
		return de.decideApproval(ctx, r, approval.Deny) // it also says what is wrong with the name
	}
	if plan.Names("p", r.Call.Args) { // no note on whatever else waits
		return de.decide(ctx, r, planVerdict(r, plan.Reject))
	}
	asked, _, err := de.openQuestions(ctx, r)
	switch {
	case err != nil:
		return command.Reply{}, err
	case len(asked) == 0:
		return command.Reply{}, fault.New(fault.NotFound, "No pending approvals here.")
	case len(asked) > 1:
		return de.which(r, r.Call.Name, asked, "")
	}
	return de.decideOn(ctx, r, asked[0].Number, approval.Deny, r.Call.Rest)
}
