package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// maxEditTries is how often a message that cannot be edited is sent anew.
const maxEditTries = 3

// refusedText replaces a text that the platform refuses to show.
const refusedText = "I have an answer, but this platform refuses to show its text. " +
	"It is kept in the session; ask me to put it more plainly."

// deliverAll brings out deliveries in order until one has to wait. The
// transaction of the next step records what became of them.
func (w *worker) deliverAll(open []messages.Delivery) error {
	for _, d := range open {
		begun := d.Text
		record := func(ctx context.Context, d messages.Delivery) error {
			return w.hold(ctx, func(tx Tx) error { return tx.RecordSending(ctx, d, begun) })
		}
		if w.untried[d.ID] {
			d.State = messages.DeliveryPending // so that it is not looked up for nothing
			delete(w.untried, d.ID)
		}
		key, done, err := w.o.bring(w.ctx, w.conv.Key, &d, record)
		w.conv.Key = key
		if err != nil {
			return err
		}
		w.sent = append(w.sent, sending{d, begun})
		if !done {
			return nil // the rest waits behind it
		}
	}
	return nil
}

// bring makes one delivery visible: the platform message is created if it is
// not there, its id recorded, and then edited to the final text. Where sends are
// idempotent the text is sent directly. It reports where the conversation is
// now, and whether the delivery is over (sent or failed); if not, d says when to
// try again. It returns an error only if ctx ended or record failed. It is safe to repeat at any point; see
// docs/architecture.md, "Placeholder, then edit".
func (o *Orchestrator) bring(ctx context.Context, key messages.ConversationKey, d *messages.Delivery, record recordFunc) (now messages.ConversationKey, done bool, err error) {
	adapter := o.adapters[key.Platform]
	if adapter == nil {
		d.State, d.Error = messages.DeliveryFailed, "platform is not configured"
		o.config.Metrics.Delivered(string(key.Platform), "failed")
		return key, true, nil
	}
	for {
		key, err = o.sendOnce(ctx, adapter, key, d, record)
		if err == nil {
			failpoint.Hit(failpoint.SentUnrecorded)
			d.State, d.Error, d.NextAt = messages.DeliverySent, "", time.Time{}
			o.config.Metrics.Delivered(string(key.Platform), "sent")
			return key, true, nil
		}
		if ctx.Err() != nil {
			return key, false, context.Cause(ctx)
		}
		if rec, is := errors.AsType[*recordError](err); is {
			return key, false, rec.err
		}
		if moved, is := errors.AsType[*platform.MovedError](err); is {
			if key, err = o.follow(ctx, key, moved.To); err != nil {
				return key, false, err
			}
			continue
		}
		again := o.afterFailure(ctx, key, d, err)
		if !again {
			return key, d.State == messages.DeliveryFailed, nil
		}
	}
}

// recordFunc writes a delivery down.
type recordFunc func(ctx context.Context, d messages.Delivery) error

// recordError is a failure of ours, not of the platform.
type recordError struct{ err error }

func (e *recordError) Error() string { return e.err.Error() }

// sendOnce tries to make d visible once. It returns where the conversation is
// now.
func (o *Orchestrator) sendOnce(ctx context.Context, adapter platform.Adapter, key messages.ConversationKey, d *messages.Delivery, record recordFunc) (messages.ConversationKey, error) {
	if filer, ok := adapter.(platform.Filer); ok && d.FileName != "" {
		ref, err := filer.SendFile(ctx, platform.File{
			Delivery: d.ID, Conversation: key, ReplyTo: d.ReplyTo, Name: d.FileName, Data: d.File, Caption: d.Text,
		})
		d.Message = ref.Message
		return key, err
	}
	editor, canEdit := adapter.(platform.Editor)
	if d.Message == "" && (!canEdit || d.OnlyFor != "" || adapter.Capabilities().IdempotentSend) {
		again := d.State == messages.DeliverySending
		ref, err := o.post(ctx, adapter, d.ConversationID, outbound(key, *d, d.Text))
		if err != nil {
			return key, err
		}
		d.Message = ref.Message
		if key, err = o.settledIn(ctx, key, ref); err != nil || !again || !canEdit || d.OnlyFor != "" {
			return key, err
		}
		// What was found may be an earlier attempt with the placeholder's text.
		return key, editor.Edit(ctx, platform.Edit{Ref: messages.Ref{Conversation: key, Message: d.Message}, Text: d.Text, Buttons: d.Buttons})
	}
	if d.Message == "" {
		var err error
		if key, err = o.placeRecorded(ctx, adapter, key, d, record); err != nil {
			return key, err
		}
	}
	return key, editor.Edit(ctx, platform.Edit{Ref: messages.Ref{Conversation: key, Message: d.Message}, Text: d.Text, Buttons: d.Buttons})
}

// placeRecorded sends the placeholder of d and records its id. The id is on
// record before the message gets its final text: a crash between the two can
// leave a stray placeholder, never a second answer.
func (o *Orchestrator) placeRecorded(ctx context.Context, adapter platform.Adapter, key messages.ConversationKey, d *messages.Delivery, record recordFunc) (messages.ConversationKey, error) {
	text := d.Placeholder
	if text == "" {
		text = platform.Placeholder
	}
	ref, err := o.post(ctx, adapter, d.ConversationID, outbound(key, *d, text))
	if err != nil {
		if fault.Uncertain(err) {
			d.State = messages.DeliverySending
		}
		return key, err
	}
	d.Message, d.State = ref.Message, messages.DeliveryPlaced
	if err := record(ctx, *d); err != nil {
		return key, &recordError{err: fmt.Errorf("record a placeholder: %w", err)}
	}
	return o.settledIn(ctx, key, ref)
}

// settledIn follows a conversation that came into being with its first message,
// such as a thread that a slash command opened.
func (o *Orchestrator) settledIn(ctx context.Context, key messages.ConversationKey, ref messages.Ref) (messages.ConversationKey, error) {
	if ref.Conversation == key || ref.Conversation.ID == "" {
		return key, nil
	}
	moved, err := o.follow(ctx, key, ref.Conversation.ID)
	if err != nil {
		return key, &recordError{err: err}
	}
	return moved, nil
}

func outbound(key messages.ConversationKey, d messages.Delivery, text string) messages.Outbound {
	return messages.Outbound{
		Delivery:     d.ID,
		Conversation: key,
		ReplyTo:      d.ReplyTo,
		Text:         text,
		Buttons:      buttonsFor(d, text),
		OnlyFor:      d.OnlyFor,
		Asker:        d.Asker,
		Again:        d.State == messages.DeliverySending,
	}
}

// buttonsFor returns the buttons of a delivery if text is its final one.
func buttonsFor(d messages.Delivery, text string) []messages.Button {
	if text != d.Text {
		return nil
	}
	return d.Buttons
}

// afterFailure decides what becomes of a delivery that failed. It reports
// whether to try again at once; otherwise d says when, or that it is given up.
func (o *Orchestrator) afterFailure(ctx context.Context, key messages.ConversationKey, d *messages.Delivery, err error) (again bool) {
	kind := fault.KindOf(err)
	d.Error = err.Error()
	log := o.config.Log.With("conversation", key, "delivery", d.ID, "err", err)
	after, retry := fault.Retry(err)
	if kind != fault.RateLimited {
		d.Attempts++
	}
	switch {
	case fault.Uncertain(err):
		d.State, retry = messages.DeliverySending, true
		if d.Message != "" {
			d.State = messages.DeliveryPlaced
		}
	case retry && d.Message == "":
		d.State = messages.DeliveryPending
	case kind == fault.Unauthorized:
		after, retry = time.Minute, true
	}
	switch {
	case retry:
		d.NextAt = time.Now().Add(max(after, backoff(d.Attempts, deliveryPause)))
		outcome := "retried"
		if kind == fault.RateLimited {
			outcome = "rate_limited"
			d.NextAt = time.Now().Add(after)
		}
		o.config.Metrics.Delivered(string(key.Platform), outcome)
		log.InfoContext(ctx, "A delivery has to wait", "until", d.NextAt)
		return false
	case kind == fault.NotFound && d.Message != "" && d.Attempts < maxEditTries:
		d.Message, d.State = "", messages.DeliveryPending // deleted or too old: send anew
		return true
	case (kind == fault.Invalid || kind == fault.Unsupported) && d.Text != refusedText && d.FileName == "":
		log.ErrorContext(ctx, "The platform refuses a text; a notice takes its place")
		d.Text = refusedText
		return true
	}
	d.State = messages.DeliveryFailed
	o.config.Metrics.Delivered(string(key.Platform), "failed")
	log.WarnContext(ctx, "A delivery was given up")
	return false
}

// follow moves a conversation to the id that its platform now uses.
func (o *Orchestrator) follow(ctx context.Context, from messages.ConversationKey, to string) (messages.ConversationKey, error) {
	err := o.config.Storage.InTx(ctx, func(tx Tx) error { return o.moveConversation(ctx, tx, from, to) })
	if err != nil {
		return from, fmt.Errorf("follow a conversation that moved: %w", err)
	}
	return messages.ConversationKey{Platform: from.Platform, ID: to}, nil
}
