package orchestrator

import (
	"context"
	"fmt"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
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
func (o *Orchestrator) crowd(ctx context.Context, tx Tx, a accepted) (accepted, error) {
	in := a.entry.In
	if seen, err := tx.HasEntry(ctx, in); err != nil || seen {
		return a, err // a repeated event changes nothing; storing it finds that out
	}
	most := o.config.MaxWaiting
	all, here, since, err := tx.WaitingOf(ctx, in, a.entry.ConversationID, everywhere*most)
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
	told, err := tx.RefusedSince(ctx, in, overflowed, since)
	if err != nil {
		return a, err
	}
	a.overflow, a.waits = true, false
	a.entry.State, a.entry.Error = sessions.EntryRefused, overflowed
	withoutText(&a.entry.In)
	if a, err = o.store(ctx, tx, a); err != nil || !a.fresh || told {
		return a, err
	}
	d := &messages.Delivery{
		ID: newDeliveryID(), ConversationID: a.entry.ConversationID, EventID: a.entry.ID, ReplyTo: in.Message, Control: true, Final: true,
		Text: fmt.Sprintf("%d of your messages are waiting %s, which is as many as I keep, so I did not take this one. "+
			"I take new ones as soon as I have answered some; `%sstop` drops those that wait. I will not say this again for each message.",
			waiting, place, o.prefix(in.Conversation.Platform)),
		State: messages.DeliveryPending, NextAt: time.Now().Add(controlHold),
	}
	if in.Whispered {
		d.OnlyFor = in.Sender.ID
	}
	a.notice = d
	return a, tx.AddDelivery(ctx, d)
}

// withoutText takes out of an event what its sender wrote.
func withoutText(in *messages.Inbound) {
	in.Text, in.Quotes, in.Attachments, in.Cited, in.Opening, in.Raw = "", nil, nil, nil, "", nil
}

// noticeWaiting tells the sender of a message that it waits, where the platform
// has no marks for that.
func (o *Orchestrator) noticeWaiting(ctx context.Context, tx Tx, entry sessions.Entry) error {
	if _, ok := o.adapters[entry.In.Conversation.Platform].(platform.Marker); ok {
		return nil
	}
	d := messages.Delivery{
		ID: newDeliveryID(), ConversationID: entry.ConversationID, EventID: entry.ID, Control: true, Final: true,
		Text: "Your message waits its turn.", State: messages.DeliveryPending, NextAt: time.Now().Add(controlHold),
	}
	return tx.AddDelivery(ctx, &d)
}

// markQueued shows the sender that a message waits: by a mark, or by bringing
// out the notice that noticeWaiting stored.
func (o *Orchestrator) markQueued(ctx context.Context, entry sessions.Entry) {
	defer o.marked(entry)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	key := entry.In.Conversation
	if marker, ok := o.adapters[key.Platform].(platform.Marker); ok {
		o.mark(ctx, marker, entry, platform.MarkQueued)
		return
	}
	var open []messages.Delivery
	err := o.config.Storage.InRead(ctx, func(tx Tx) error {
		all, err := tx.EntryDeliveries(ctx, entry.ID)
		open = nil
		for _, d := range all {
			if d.Control && d.State == messages.DeliveryPending {
				open = append(open, d)
			}
		}
		return err
	})
	if err == nil {
		err = o.bringControl(ctx, key, open)
	}
	if err != nil {
		o.config.Log.InfoContext(ctx, "Could not tell that a message waits", "conversation", key, "err", err)
	}
}

// willMark announces that this process is about to mark a message: whoever takes
// the mark away waits for that, so that the two calls keep their order.
func (o *Orchestrator) willMark(entry sessions.Entry) {
	o.marks.Store(entry.ID, make(chan struct{}))
}

// marked says that the mark of a message is there, or never will be.
func (o *Orchestrator) marked(entry sessions.Entry) {
	if done, ok := o.marks.LoadAndDelete(entry.ID); ok {
		close(done.(chan struct{}))
	}
}

// unmark takes the mark of a message away when its turn begins or is dropped,
// also a mark that a process before this one has put there.
func (o *Orchestrator) unmark(entry sessions.Entry) {
	marker, ok := o.adapters[entry.In.Conversation.Platform].(platform.Marker)
	if !ok || !entry.In.Queued || o.marksOutcomes(entry.In.Conversation.Platform) {
		return
	}
	pending, _ := o.marks.Load(entry.ID)
	o.spawn(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		if done, ok := pending.(chan struct{}); ok {
			select {
			case <-done:
			case <-ctx.Done():
			}
		}
		o.mark(ctx, marker, entry, platform.MarkNone)
	})
}

func (o *Orchestrator) mark(ctx context.Context, marker platform.Marker, entry sessions.Entry, mark platform.Mark) {
	err := marker.Mark(ctx, messages.Ref{Conversation: entry.In.Conversation, Message: entry.In.Message}, mark)
	if err != nil {
		o.config.Log.DebugContext(ctx, "Could not mark a message", "conversation", entry.In.Conversation, "err", err)
	}
}
