package orchestrator

import (
	"context"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

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
