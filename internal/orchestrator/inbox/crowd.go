package inbox

import (
	"context"
	"fmt"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/sessions"
)

// overflowed is the error of an entry that was refused because too much of the same
// person waits.
const overflowed = "overflow"

// everywhere is how many times as much may wait of one person in all conversations
// of a platform as in one of them.
const everywhere = 10

// crowd looks at what waits of the sender of a message that has to wait, too: the
// first of theirs in a conversation has the mark, and beyond the limit a message is refused. That is
// recorded without its text and told once until what waited then is worked off.
func (i *Inbox) crowd(ctx context.Context, tx port.Tx, a accepted) (accepted, error) {
	in := a.entry.In
	most := i.MaxWaiting()
	all, here, since, err := tx.Inbox().WaitingOf(ctx, in, a.entry.ConversationID, everywhere*most)
	if err != nil {
		return a, err
	}
	waiting, place := here, "here"
	if all >= everywhere*most {
		waiting, place = all, "in all your conversations"
	}
	if a.behind = here > 0; waiting < most {
		return a, nil
	}
	told, err := tx.Inbox().RefusedSince(ctx, in, overflowed, since)
	if err != nil {
		return a, err
	}
	a.overflow, a.waits = true, false
	a.entry.State, a.entry.Error = sessions.EntryRefused, overflowed
	withoutText(&a.entry.In)
	if a, err = i.store(ctx, tx, a); err != nil || !a.fresh || told {
		return a, err
	}
	d := outbox.Held(a.entry.ConversationID, a.entry, fmt.Sprintf("You have %d messages queued %s, which is the limit, so this one was not accepted. "+
		"Wait for some answers, or drop the queue with `%sstop`. There is no notice for further messages.",
		waiting, place, i.Outbox.Prefix(in.Conversation)))
	d.ReplyTo = in.Message
	if in.Whispered {
		d.OnlyFor = in.Sender.ID
	}
	a.notice = &d
	return a, tx.Deliveries().AddDelivery(ctx, &d)
}

// acceptLoop records that a message of a loop came. It gets a mark, and /status
// tells of it: an answer would be answered.
func (i *Inbox) acceptLoop(ctx context.Context, tx port.Tx, a accepted) (accepted, error) {
	conv, err := tx.Conversations().FindConversation(ctx, a.entry.In.Conversation)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return a, err
	}
	a.loop, a.entry.ConversationID = true, conv.ID
	a.entry.State, a.entry.Error = sessions.EntryRefused, sessions.ErrorLoop
	withoutText(&a.entry.In)
	return i.store(ctx, tx, a)
}

// withoutText takes out of an event what its sender wrote.
func withoutText(in *messages.Inbound) {
	in.Text, in.Quotes, in.Attachments, in.Cited, in.Opening, in.Raw = "", nil, nil, nil, "", nil
}
