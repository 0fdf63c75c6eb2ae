package chat

import (
	"context"
	"strings"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/plan"
)

func (de *decisions) approveCommand() *command.Command {
	return &command.Command{
		Name:    "approve",
		Usage:   "approve [name] [note]",
		Summary: "approve a plan or a request",
		Example: "approve p-3",
		Rank:    11,
		Details: "`approve` alone approves the only thing waiting here. `approve a-7` approves that request; `approve a-7 always` also allows the same from now on.",
		Menu:    true,
		Run:     de.runApprove,
	}
}

func (de *decisions) runApprove(ctx context.Context, r command.Request) (command.Reply, error) {
	return de.decideAny(ctx, r, approval.Once, plan.Approve)
}

// decideAny decides on what the first argument names. Without a name it is the one
// question that waits here, else the plan; where there are several, it asks which.
func (de *decisions) decideAny(ctx context.Context, r command.Request, on approval.Decision, onPlan plan.Decision) (command.Reply, error) {
	if plan.Names("a", r.Call.Args) {
		return de.decideApproval(ctx, r, on)
	}
	v := planVerdict(r, onPlan)
	if len(v.args) > 0 {
		return de.decide(ctx, r, v)
	}
	asked, planned, err := de.openQuestions(ctx, r)
	switch {
	case err != nil:
		return command.Reply{}, err
	case len(asked) == 0:
		return de.decide(ctx, r, v)
	case len(asked) > 1, planned != "":
		return de.which(r, r.Call.Name, asked, planned)
	}
	return de.decideOn(ctx, r, asked[0].Number, on, r.Call.Rest)
}

// planVerdict reads "[plan] [text]".
func planVerdict(r command.Request, d plan.Decision) verdict {
	v := verdict{decision: d, text: r.Call.Rest}
	if len(r.Call.Args) > 0 {
		if _, ok := plan.ParseName(r.Call.Args[0]); ok || plan.Names("pa", r.Call.Args) {
			v.args = r.Call.Args[:1]
			v.text = strings.TrimSpace(strings.TrimPrefix(r.Call.Rest, r.Call.Args[0]))
		}
	}
	return v
}
