package inbox

import (
	"context"
	"slices"
	"strings"

	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/order"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
)

// taker returns which other process is to work on a conversation that nobody holds; empty
// if this one is.
func (i *Inbox) taker(conv sessions.Conversation) string {
	if i.Outbox.Caps(conv.Key.Platform).Local {
		return ""
	}
	return i.Turns.Elsewhere(conv.HomeKey())
}

// worksElsewhere reports whether another process works on a conversation, or is the one to,
// and so has its files.
func (i *Inbox) worksElsewhere(conv sessions.Conversation) bool {
	if conv.Leased {
		return conv.Owner != i.Turns.Owner()
	}
	return i.taker(conv) != ""
}

// wakeUp has somebody work on what nobody starts at once: the process that it falls to, or
// whoever is free.
func (i *Inbox) wakeUp(ctx context.Context, tx port.Tx, plan []accepted) error {
	var (
		jobs    []queue.Job
		offered []accepted
	)
	for _, a := range plan {
		switch {
		case a.rings && a.taker != "":
			offered = append(offered, a)
		case a.rings:
			jobs = append(jobs, queue.Job{Kind: queue.KindTurn, Key: a.entry.ConversationID, Behind: a.crowd})
		}
	}
	// Whoever takes them locks conversations in the order in which they are locked here.
	order.By(offered, func(a, b accepted) int {
		if by := strings.Compare(a.taker, b.taker); by != 0 {
			return by
		}
		return strings.Compare(a.entry.In.Conversation.String(), b.entry.In.Conversation.String())
	})
	for n := 0; n < len(offered); {
		taker, ids := offered[n].taker, []string(nil)
		for ; n < len(offered) && offered[n].taker == taker; n++ {
			ids = append(ids, offered[n].entry.ConversationID)
		}
		if err := tx.Leases().Offer(ctx, taker, slices.Compact(ids)...); err != nil {
			return err
		}
	}
	return i.Queue.Enqueue(ctx, tx, jobs...)
}
