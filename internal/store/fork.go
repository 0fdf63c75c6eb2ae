package store

import (
	"context"
	"slices"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

// maxFork is how many messages a session may have that is forked.
const maxFork = 10_000

// ForkSession begins a session that goes on from the first n messages of another
// one, of the same conversation; n of 0 means all that it has. The other one is its
// parent. The active session of the conversation ends; nothing is deleted. It
// returns how many messages were taken over, and of how many.
//
// It is fault.NotFound if there is no such session, fault.Invalid if it has not that
// many messages, fault.Conflict while something runs or waits in the conversation,
// and fault.Exhausted above 10,000 messages. It locks the conversation's row.
func (t *Tx) ForkSession(ctx context.Context, id string, n int) (next sessions.Session, taken, of int, err error) {
	from, err := t.Session(ctx, id)
	if err != nil {
		return next, 0, 0, err
	}
	if err := t.lockConversationID(ctx, from.ConversationID); err != nil {
		return next, 0, 0, err
	}
	if open, err := t.CountWaiting(ctx, from.ConversationID); err != nil || open > 0 {
		if err == nil {
			err = fault.New(fault.Conflict, "Something still runs or waits there. Send /stop, or wait for it, and then fork.")
		}
		return next, 0, 0, err
	}
	all, err := t.MessagesBefore(ctx, id, 1<<62, maxFork+1)
	switch {
	case err != nil:
		return next, 0, 0, err
	case len(all) > maxFork:
		return next, 0, 0, fault.Newf(fault.Exhausted, "The session has more than %d messages and cannot be forked.", maxFork)
	case len(all) == 0:
		return next, 0, 0, fault.New(fault.Invalid, "The session has no messages to go on from.")
	case n < 0 || n > len(all):
		return next, 0, 0, fault.Newf(fault.Invalid, "The session has %d messages: choose 1 to %d.", len(all), len(all))
	case n == 0:
		n = len(all)
	}
	slices.Reverse(all)
	fork := messages.NewArray(all...).Fork(n)
	active, ok, err := t.ActiveSession(ctx, from.ConversationID)
	if err == nil && ok {
		err = t.DeactivateSession(ctx, active.ID, sessions.Completed, "fork")
	}
	if err != nil {
		return next, 0, 0, err
	}
	next, err = t.CreateSession(ctx, sessions.NewSession{
		ConversationID: from.ConversationID, CodebaseID: from.CodebaseID, ParentID: from.ID, Assistant: from.Assistant, AgentName: from.AgentName,
		AgentID: from.AgentID, Model: from.Model, SystemPrompt: from.SystemPrompt, Config: from.Config, UserPrompt: from.UserPrompt,
	})
	if err == nil {
		_, err = t.AppendMessages(ctx, next.ID, "", fork.Messages()...)
	}
	return next, fork.Len(), len(all), err
}
