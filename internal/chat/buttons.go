package chat

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// Press answers a button: that of a running turn, one under a plan or a question, or
// the dialog that one opened. What a button means is what was stored when it was
// shown; the press itself carries nothing.
func (h *Handler) Press(ctx context.Context, r command.Request) (command.Reply, error) {
	in := r.Entry.In
	if upTo, ok := command.StopPressed(in.Action, r.Conv.ID); ok {
		return h.turns.pressedStop(ctx, r, upTo)
	}
	if seq, what, ok := command.TurnPressed(in.Action, r.Conv.ID); ok {
		if r.Role == sessions.Reader && what != command.Full { // as /retry and /model
			return command.Reply{}, errReadOnly()
		}
		return h.turns.pressedTurn(ctx, r, seq, what)
	}
	b, err := store.Within(ctx, h.store.InRead, func(tx *store.Tx) (command.Button, error) { return tx.Buttons().Button(ctx, in.Action) })
	switch {
	case fault.Is(err, fault.NotFound), err == nil && b.ConversationID != r.Conv.ID:
		return command.Reply{}, fault.New(fault.NotFound, "This button has expired; nothing was done.")
	case err != nil:
		return command.Reply{}, err
	case b.On == command.OnPairing:
		return h.access.pressedPairing(ctx, r, b)
	case r.Role == sessions.Reader:
		return command.Reply{}, fault.New(fault.Forbidden, "You have read-only access; someone else has to decide.")
	case b.On == command.OnApproval:
		return h.decisions.decided(ctx, r, orchestrator.Decision{Number: b.Number, Decision: approval.Decision(b.Decision), Shown: b.SHA256})
	}
	v := verdict{
		decision: plan.Decision(b.Decision), args: []string{fmt.Sprintf("p-%d", b.Number)}, text: strings.TrimRightFunc(in.Text, unicode.IsSpace), shown: b.SHA256,
	}
	if v.decision == plan.Edit && v.text == "" {
		return h.decisions.askForText(ctx, r, b)
	}
	return h.decisions.decide(ctx, r, v)
}
