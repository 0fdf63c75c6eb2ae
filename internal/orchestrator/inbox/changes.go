package inbox

import (
	"context"
	"slices"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/access"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
)

// known returns the conversation of what happened to a message, locked, so that no turn
// begins there meanwhile; it has no ID if nobody talked there.
func known(ctx context.Context, tx port.Tx, a *accepted) (conv sessions.Conversation, err error) {
	conv, err = tx.Conversations().FindConversation(ctx, a.entry.In.Conversation)
	if fault.Is(err, fault.NotFound) {
		return sessions.Conversation{}, nil
	}
	if err == nil {
		conv, _, err = tx.Conversations().GetOrCreateConversation(ctx, conv.Key, conv.Assistant)
	}
	a.entry.ConversationID = conv.ID
	return conv, err
}

// withdraw drops the message that an event is about, if it waits for its turn. A message
// of an album stays: what is said with it may stand at another one.
func (i *Inbox) withdraw(ctx context.Context, tx port.Tx, a *accepted) (bool, error) {
	waiting, err := tx.Inbox().WaitingEntries(ctx, a.entry.ConversationID, 0, withdrawnAmong)
	n := slices.IndexFunc(waiting, func(e sessions.Entry) bool {
		return e.In.Message == a.entry.In.Message && e.Attempts == 0 && e.In.Album == ""
	})
	if err != nil || n < 0 {
		return false, err
	}
	a.withdrawn = &waiting[n]
	return true, i.Turns.Withdraw(ctx, tx, waiting[n])
}

// withdrawnAmong is among how many messages that wait one is looked for.
const withdrawnAmong = 1000

// acceptEdit replaces a message whose turn has not started, or drops it if it became a
// command, which is given. A later edit is kept in the record, without its text, and
// changes nothing. An edit that calls the bot is a message if that was none: who forgot
// to mention the bot adds it.
func (i *Inbox) acceptEdit(ctx context.Context, tx port.Tx, a accepted, v access.Verdict) (accepted, error) {
	conv, err := known(ctx, tx, &a)
	if err != nil {
		return a, err
	}
	in := a.entry.In
	in.Kind = messages.KindMessage
	if in.Calls {
		if heard, err := tx.Inbox().HasMessage(ctx, conv.ID, in.Message); err != nil {
			return a, err
		} else if !heard {
			a.entry.In = in
			return i.acceptMessage(ctx, tx, a, v, false)
		}
	}
	if conv.ID != "" {
		lane, err := i.lane(ctx, tx, conv, in)
		if err != nil {
			return a, err
		}
		if lane == sessions.LaneControl {
			if ok, err := i.withdraw(ctx, tx, &a); err != nil {
				return a, err
			} else if ok {
				a.entry.In = in
				return i.acceptMessage(ctx, tx, a, v, false)
			}
		}
	}
	withoutText(&a.entry.In) // the message that it changes has it, or was answered before
	a, err = i.store(ctx, tx, a)
	if err != nil || !a.fresh || conv.ID == "" {
		return a, err
	}
	in.Queued = true // what it replaces waits, and may have the mark that says so
	if in.Album != "" {
		return a, editAlbum(ctx, tx, conv.ID, in)
	}
	_, err = tx.Inbox().ReplaceWaiting(ctx, conv.ID, in.Message, in)
	return a, err
}

// acceptDeleted drops a message that was deleted before its turn began, or before it is heard
// of, if it has a name by which it is known then. Platforms tell of all that is deleted where
// the bot is, so nothing else is kept of others.
func (i *Inbox) acceptDeleted(ctx context.Context, tx port.Tx, a accepted) (accepted, error) {
	if _, err := i.firstOfGesture(ctx, tx, a.entry.In); err != nil {
		return a, err
	}
	conv, err := known(ctx, tx, &a)
	if err != nil || conv.ID == "" {
		return a, err
	}
	withoutText(&a.entry.In) // platforms repeat the words that were deleted
	if ok, err := i.withdraw(ctx, tx, &a); err != nil || !ok {
		return a, err
	}
	a.withdrawn = nil // there is nothing to take a mark from
	if a, err = i.store(ctx, tx, a); err != nil || !a.fresh {
		return a, err
	}
	return a, i.Queue.Enqueue(ctx, tx, queue.Job{Kind: queue.KindTurn, Key: conv.ID})
}

// acceptGone follows the removal of the bot from a chat: what runs and waits there and in
// its topics is stopped, and their standing tasks end.
func (i *Inbox) acceptGone(ctx context.Context, tx port.Tx, a accepted) (accepted, error) {
	conv, err := known(ctx, tx, &a)
	if err != nil {
		return a, err
	}
	if a, err = i.store(ctx, tx, a); err != nil || !a.fresh {
		return a, err
	}
	if conv.ID != "" {
		conv.InboxSeq = a.entry.Seq
		a.left = append(a.left, conv)
	}
	if in := a.entry.In; in.Below != "" {
		below, err := tx.Conversations().ConversationsBelow(ctx, in.Conversation.Platform, in.Below)
		if err != nil {
			return a, err
		}
		a.left = append(a.left, below...)
	}
	for _, conv := range a.left {
		ended, err := tx.Tasks().EndSchedule(ctx, conv.ID)
		if err == nil && ended {
			err = tx.Audit(ctx, sessions.AuditEntry{Actor: "system", Action: "schedule.off", ConversationID: conv.ID})
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

// acceptMigration moves a conversation to the id its platform now uses.
func (i *Inbox) acceptMigration(ctx context.Context, tx port.Tx, a accepted) (accepted, error) {
	a, err := i.store(ctx, tx, a)
	if err != nil || !a.fresh {
		return a, err
	}
	return a, (&outbox.Move{From: a.entry.In.Conversation, To: a.entry.In.MigratedTo}).Apply(ctx, tx)
}

// acceptClosed ends the session of what was closed, unless more was said there since: it may be
// open again, and was closed long before this is heard of. Nor does it if what was said last has not
// begun, which would begin without what was said before. Nobody is answered.
func (i *Inbox) acceptClosed(ctx context.Context, tx port.Tx, a accepted) (accepted, error) {
	if first, err := i.firstOfGesture(ctx, tx, a.entry.In); err != nil || !first {
		return a, err
	}
	a, err := i.store(ctx, tx, a)
	if err != nil || !a.fresh {
		return a, err
	}
	conv, err := tx.Conversations().FindConversation(ctx, a.entry.In.Conversation)
	if fault.Is(err, fault.NotFound) {
		return a, nil
	}
	if err != nil {
		return a, err
	}
	last, err := tx.Inbox().EntryNumbered(ctx, conv.ID, conv.InboxSeq)
	switch {
	case fault.Is(err, fault.NotFound), fault.Is(err, fault.Internal), last.In.Kind == messages.KindUnreadable: // which must hold nothing up
	case err != nil || last.In.SentAt.After(a.entry.In.SentAt) || last.State == sessions.EntryWaiting:
		return a, err
	}
	a.closed = &conv
	s, active, err := tx.Sessions().ActiveSession(ctx, conv.ID)
	if err != nil || !active {
		return a, err
	}
	if err := tx.Sessions().DeactivateSession(ctx, s.ID, "closed"); err != nil {
		return a, err
	}
	return a, tx.Audit(ctx, sessions.AuditEntry{Actor: "system", Action: "session.closed", ConversationID: conv.ID, Target: s.ID})
}
