package turn

import (
	"context"

	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/sessions"
)

// placeholder returns the delivery that shows the turn until it ends: that of
// an earlier attempt, or a new one. It is nil where messages cannot be edited.
func (w *worker) placeholder(ctx context.Context, tx port.Tx, entry sessions.Entry) (*messages.Delivery, error) {
	if !w.o.outbox.ShowsProgress(w.conv.Key.Platform) {
		return nil, nil
	}
	if entry.State == sessions.EntryRunning || entry.Attempts > 0 { // else nothing was shown yet
		if d, err := openPlaceholder(ctx, tx, entry); err != nil || d != nil {
			return d, err
		}
	}
	d := outbox.Answer(w.conv.ID, entry, "")
	d.Final = false
	if err := w.addFirst(ctx, tx, &d); err != nil {
		return nil, err
	}
	d.State = messages.DeliveryPending // nothing was sent yet, as this process knows
	return &d, nil
}

// notice stores a notice that comes before the placeholder. A number that was kept
// for that is not the last one any more, and is left out.
func (w *worker) notice(ctx context.Context, tx port.Tx, entry sessions.Entry, text string) error {
	w.numbered = 0
	return outbox.AddNotice(ctx, tx, w.conv.ID, entry.ID, text)
}

// addFirst stores the placeholder, under the number that was kept for it if there
// is one, and knows then that it is the last delivery.
func (w *worker) addFirst(ctx context.Context, tx port.Tx, d *messages.Delivery) error {
	if w.numbered > 0 {
		w.numbered--
		return tx.Deliveries().AddNumbered(ctx, d)
	}
	if err := tx.Deliveries().AddDelivery(ctx, d); err != nil {
		return err
	}
	if d.Seq == w.conv.DeliverySeq+1 { // else notices came before it
		w.conv.DeliverySeq = d.Seq
	}
	return nil
}

// openPlaceholder finds the placeholder of an entry that has not ended.
func openPlaceholder(ctx context.Context, tx port.Tx, entry sessions.Entry) (*messages.Delivery, error) {
	all, err := tx.Deliveries().EntryDeliveries(ctx, entry.ID)
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		if !d.Final && !d.Control && d.State != messages.DeliveryFailed {
			return &d, nil
		}
	}
	return nil, nil
}
