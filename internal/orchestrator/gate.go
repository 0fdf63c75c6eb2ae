package orchestrator

import (
	"context"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// gatePatience is how long a platform may take to say whether somebody may use
// the bot.
const gatePatience = 15 * time.Second

// gate returns who decides on a platform who may use the bot, or nil.
func (o *Orchestrator) gate(p messages.Platform) platform.Gatekeeper {
	g, _ := o.adapters[p].(platform.Gatekeeper)
	return g
}

// admitted asks the platform whether the sender of a message may use the bot
// there. It is asked outside of transactions: when a message has arrived, and
// again when it is acted on. No answer is no; then err says why.
func (o *Orchestrator) admitted(ctx context.Context, in messages.Inbound) (bool, error) {
	g := o.gate(in.Conversation.Platform)
	if g == nil {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, gatePatience)
	defer cancel()
	ok, err := g.Admits(ctx, in)
	if err != nil {
		o.config.Log.WarnContext(ctx, "Could not check who may use the bot, so nobody may",
			"conversation", in.Conversation, "sender", in.Sender.ID, "err", err)
	}
	return ok && err == nil, err
}

// arrive follows the acceptance of a message on a platform with a gatekeeper or
// with marks for outcomes: who may not is told so at once, also while a turn
// runs, and everybody else sees that the message arrived, unless one of theirs that
// waits before it shows it.
func (o *Orchestrator) arrive(ctx context.Context, entry sessions.Entry, mark bool) {
	if ok, err := o.admitted(ctx, entry.In); !ok {
		if err := o.turnAway(ctx, entry, err); err != nil {
			o.config.Log.WarnContext(ctx, "Could not refuse a message; it is refused when its turn comes", "entry", entry.ID, "err", err)
		}
		return
	}
	if mark {
		o.outbox.MarkOutcome(ctx, entry, platform.MarkSeen)
	}
}

// turnAway refuses an entry whose sender may not use the bot, unless its turn
// has begun: then the turn has asked the gatekeeper itself.
func (o *Orchestrator) turnAway(ctx context.Context, entry sessions.Entry, why error) error {
	refuse := false
	err := o.config.Storage.InTx(ctx, func(tx Tx) error {
		refuse = false
		if _, _, err := tx.GetOrCreateConversation(ctx, entry.In.Conversation, string(o.config.Default)); err != nil { // locks it
			return err
		}
		current, err := tx.Entry(ctx, entry.ID)
		if err != nil || current.State != sessions.EntryWaiting {
			return err
		}
		state, reason := sessions.EntryRefused, "not admitted"
		if why != nil {
			reason = why.Error()
		}
		if err := tx.UpdateEntry(ctx, entry.ID, sessions.EntryUpdate{State: &state, Error: &reason}); err != nil {
			return err
		}
		refuse, err = o.outbox.RefusalDue(ctx, tx, entry.In)
		return err
	})
	if err == nil && refuse {
		o.outbox.RefuseUnadmitted(entry.In, why)
	}
	return err
}

// acceptClosed ends the session of what was closed. Nobody is answered.
func (o *Orchestrator) acceptClosed(ctx context.Context, tx Tx, a accepted) (accepted, error) {
	if first, err := o.firstOfGesture(ctx, tx, a.entry.In); err != nil || !first {
		return a, err
	}
	a, err := o.store(ctx, tx, a)
	if err != nil || !a.fresh {
		return a, err
	}
	conv, err := tx.FindConversation(ctx, a.entry.In.Conversation)
	if fault.Is(err, fault.NotFound) {
		return a, nil
	}
	if err != nil {
		return a, err
	}
	a.closed = &conv
	s, active, err := tx.ActiveSession(ctx, conv.ID)
	if err != nil || !active {
		return a, err
	}
	if err := tx.DeactivateSession(ctx, s.ID, "closed"); err != nil {
		return a, err
	}
	return a, tx.Audit(ctx, sessions.AuditEntry{Actor: "system", Action: "session.closed", ConversationID: conv.ID, Target: s.ID})
}

// release gives back what a closed conversation holds: its worktree, whose state
// is saved, and an agent's process. While something still runs or waits there it
// stays; the sweep of idle worktrees comes later.
func (o *Orchestrator) release(ctx context.Context, conv sessions.Conversation) {
	waiting := 0
	err := o.config.Storage.InRead(ctx, func(tx Tx) error {
		var err error
		waiting, err = tx.CountWaiting(ctx, conv.ID)
		return err
	})
	if err != nil || waiting > 0 {
		return
	}
	o.releaseAgent(conv)
	if o.config.Workshop == nil || conv.CodebaseID == "" {
		return
	}
	if err := o.config.Workshop.Release(ctx, conv); err != nil {
		o.config.Log.InfoContext(ctx, "Could not free a worktree; the sweep does", "conversation", conv.Key, "err", err)
	}
}
