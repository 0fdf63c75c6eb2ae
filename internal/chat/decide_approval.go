package chat

import (
	"context"
	"strings"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/wording"
)

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
