package chat

import (
	"context"
	"strings"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/plan"
	"remote-agent/internal/wording"
)

func (de *decisions) approveCommand() command.Command {
	return command.Command{
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
	if namesApproval(r) {
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

// namesApproval reports whether the first argument is the name of a question about a
// tool, such as a-7, and not of a plan.
func namesApproval(r command.Request) bool {
	if len(r.Call.Args) == 0 {
		return false
	}
	_, ok := approval.ParseName(r.Call.Args[0])
	return ok
}

// planVerdict reads "[plan] [text]".
func planVerdict(r command.Request, d plan.Decision) verdict {
	v := verdict{decision: d, text: r.Call.Rest}
	if len(r.Call.Args) > 0 {
		if _, ok := plan.ParseName(r.Call.Args[0]); ok {
			v.args = r.Call.Args[:1]
			v.text = strings.TrimSpace(strings.TrimPrefix(r.Call.Rest, r.Call.Args[0]))
		}
	}
	return v
}

func (de *decisions) rejectCommand() command.Command {
	return command.Command{
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

func (de *decisions) denyCommand() command.Command {
	return command.Command{
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

// decideApproval decides on the question about a tool call that the first argument
// names.
func (de *decisions) decideApproval(ctx context.Context, r command.Request, d approval.Decision) (command.Reply, error) {
	number, ok := approval.ParseName(r.Call.Args[0])
	if !ok {
		return command.Reply{}, fault.Newf(fault.Invalid, "%q is not an approval like a-7. `/approvals` lists them.", wording.Head(r.Call.Args[0], 40))
	}
	return de.decideOn(ctx, r, number, d, strings.TrimSpace(strings.TrimPrefix(r.Call.Rest, r.Call.Args[0])))
}

// decideOn decides on a question by its number. "always" as the note of an approval
// allows the same from now on.
func (de *decisions) decideOn(ctx context.Context, r command.Request, number int64, d approval.Decision, note string) (command.Reply, error) {
	if d == approval.Once && strings.EqualFold(note, "always") {
		d, note = approval.Always, ""
	}
	return de.decided(ctx, r, orchestrator.Decision{Number: number, Decision: d, Note: note})
}

// decided has the engine settle a question, and says what became of it.
func (de *decisions) decided(ctx context.Context, r command.Request, v orchestrator.Decision) (command.Reply, error) {
	a, err := de.settle(ctx, r, v)
	switch {
	case err != nil:
		return command.Reply{}, err
	case r.Entry.In.Kind == messages.KindAction && a.ConversationID == r.Conv.ID:
		return command.Reply{Note: a.Outcome()}, nil // the question shows it to all
	}
	return reply("%s: %s.", a.Name(), a.Outcome())
}
