package inbox

import (
	"context"

	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
)

// afterAccept starts what the transaction decided. Nothing here may be
// necessary: if the process dies now, the sweep finds the work.
func (i *Inbox) afterAccept(ctx context.Context, a accepted) {
	p := a.entry.In.Conversation.Platform
	if a.fresh && a.entry.State == sessions.EntryWaiting && (i.Access.Gated(p) || i.Outbox.MarksOutcomes(p)) {
		if i.Outbox.MarksOutcomes(p) {
			i.Outbox.WillMark(a.entry) // before the work begins that marks its end
		}
		defer i.arrives(a)
	}
	if a.notice != nil {
		i.Background.Go(func(ctx context.Context) { i.Outbox.SendNotice(ctx, a.entry.In.Conversation, *a.notice) })
	}
	if a.fresh && a.withdrawn != nil {
		i.Outbox.Unmark(*a.withdrawn)
	}
	command := a.fresh && a.entry.Lane == sessions.LaneControl && a.entry.State == sessions.EntryWaiting
	if !command {
		i.Control.Dismiss(a.entry.In.Event)
	}
	switch {
	case !a.fresh:
		i.Log.DebugContext(ctx, "ignored a repeated event", "conversation", a.entry.In.Conversation, "event", a.entry.In.Event)
	case a.closed != nil:
		conv := *a.closed
		i.Background.Go(func(ctx context.Context) { i.Turns.Release(ctx, conv) })
	case a.left != nil:
		for _, conv := range a.left {
			i.Background.Go(func(ctx context.Context) {
				if _, err := i.Turns.Stop(ctx, conv, conv.InboxSeq, "system"); err != nil {
					i.Log.WarnContext(ctx, "could not stop the work for a chat that removed the bot", "conversation", conv.Key, "err", err)
				}
			})
		}
	case a.work != nil:
		a.work.Start(ctx)
	case a.entry.State == sessions.EntryRefused:
		i.refused(ctx, a)
	case command:
		i.Control.Start(a.entry)
	case a.waits && i.Outbox.MarksOutcomes(a.entry.In.Conversation.Platform):
		// Its mark says that it arrived, see arrive.
	case a.waits:
		if !i.Background.Go(func(ctx context.Context) { i.Outbox.ShowWaiting(ctx, a.entry) }) {
			i.Outbox.Marked(a.entry)
		}
	}
}

// refused follows an entry that was refused as it came.
func (i *Inbox) refused(ctx context.Context, a accepted) {
	in := a.entry.In
	switch {
	case a.overflow:
		i.Metrics.Overflowed(string(in.Conversation.Platform))
		return
	case a.loop:
		i.Outbox.MarkEnd(a.entry, false)
		return
	}
	i.Metrics.Refused(string(in.Conversation.Platform))
	if s := i.strangers[in.Conversation.Platform]; s != nil {
		s.recorded()
	}
	i.Log.InfoContext(ctx, "refused a stranger", "conversation", in.Conversation, "entry", a.entry.ID, "sender", in.Sender.ID)
	if a.answer != "" {
		i.Outbox.Refuse(in, a.answer)
	}
	if a.pairs != nil {
		i.Background.Go(func(ctx context.Context) {
			if err := i.pair(ctx, *a.pairs); err != nil && ctx.Err() == nil {
				i.Log.WarnContext(ctx, "could not ask the owners about a stranger; it is tried with their next message", "err", err)
			}
		})
	}
}

// arrives has arrive run in the background, unless the process stops.
func (i *Inbox) arrives(a accepted) {
	entry := a.entry
	if !i.Background.Go(func(ctx context.Context) { i.arrive(ctx, entry, !a.behind, a.waits || a.taker != "") }) && i.Outbox.MarksOutcomes(entry.In.Conversation.Platform) {
		i.Outbox.Marked(entry)
	}
}

// arrive follows the acceptance of a message on a platform with a gatekeeper or
// with marks for outcomes: who may not is told so at once, also while a turn
// runs, and everybody else sees that the message arrived, unless one of theirs that
// waits before it shows it. With elsewhere another process may work on it.
func (i *Inbox) arrive(ctx context.Context, entry sessions.Entry, mark, elsewhere bool) {
	if i.Outbox.MarksOutcomes(entry.In.Conversation.Platform) {
		defer i.Outbox.Marked(entry)
	}
	if ok, err := i.Access.Admitted(ctx, entry.In); !ok {
		if _, passes := fault.Retry(err); passes { // the platform is away: its turn asks again
			return
		}
		if err := i.Control.Refuse(ctx, entry, err); err != nil {
			i.Log.WarnContext(ctx, "could not refuse a message; it is refused when its turn comes", "entry", entry.ID, "err", err)
		}
		return
	}
	if mark {
		i.Outbox.MarkSeen(ctx, entry, elsewhere)
	}
}
