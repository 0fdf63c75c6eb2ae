package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/background"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// maxEditTries is how often a message that cannot be edited is sent anew.
const maxEditTries = 3

// maxWhispers is how often what only one person sees is tried if it may be there: nobody can
// look that up, and each try may show it once more.
const maxWhispers = 3

// What is shown of a text that the platform refuses to show: the file that has it, or
// that nothing can be shown.
const (
	refusedFile = "This platform refuses to show the text of this message. The file has it."
	refusedText = "The answer is ready, but this platform refuses to show its text. " +
		"It is kept in the session; ask for it in plainer words."
)

// Record writes down where the message of a delivery is and, in the same
// transaction, with moved that its conversation has another id from now on. It may be
// called again.
type Record func(ctx context.Context, d messages.Delivery, moved *Move) error

// Move is a conversation that its platform now has under another id.
type Move struct {
	From messages.ConversationKey
	To   string
}

// Key is the new key.
func (m Move) Key() messages.ConversationKey {
	return messages.ConversationKey{Platform: m.From.Platform, ID: m.To}
}

// Apply gives the conversation its new id. If that has a conversation of its own
// already, both stay. m may be nil.
func (m *Move) Apply(ctx context.Context, tx port.Tx) error {
	if m == nil {
		return nil
	}
	conv, err := tx.Conversations().FindConversation(ctx, m.From)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	key := m.Key()
	if _, err := tx.Conversations().FindConversation(ctx, key); !fault.Is(err, fault.NotFound) {
		return err
	}
	if err := tx.Conversations().UpdateConversation(ctx, conv.ID, sessions.ConversationUpdate{Key: &key}); err != nil {
		return err
	}
	if err := tx.Conversations().MoveHome(ctx, m.From, key); err != nil {
		return err
	}
	return tx.Audit(ctx, sessions.AuditEntry{
		Actor: "system", Action: "conversation.move", ConversationID: conv.ID, Target: key.String(),
	})
}

// Send makes one delivery visible: the platform message is created if it is
// not there, its id recorded, and then edited to the final text. Where sends are
// idempotent the text is sent directly. It reports where the conversation is
// now, and whether the delivery is over (sent or failed); if not, d says when to
// try again. It returns an error only if ctx ended or record failed. It is safe to repeat at any point; see
// docs/architecture.md, "Placeholder, then edit".
func (o *Outbox) Send(ctx context.Context, key messages.ConversationKey, d *messages.Delivery, record Record) (now messages.ConversationKey, done bool, err error) {
	adapter := o.Adapters[key.Platform]
	if adapter == nil {
		d.State, d.Error = messages.DeliveryFailed, "platform is not configured"
		o.Metrics.Delivered(string(key.Platform), "failed")
		return key, true, nil
	}
	for {
		key, err = o.sendOnce(ctx, adapter, key, d, record)
		if err == nil {
			failpoint.Hit(failpoint.SentUnrecorded)
			d.State, d.Error, d.NextAt = messages.DeliverySent, "", time.Time{}
			o.Metrics.Delivered(string(key.Platform), "sent")
			return key, true, nil
		}
		if ctx.Err() != nil {
			return key, false, context.Cause(ctx)
		}
		if rec, is := errors.AsType[*recordError](err); is {
			return key, false, rec.err
		}
		if moved, is := errors.AsType[*platform.MovedError](err); is {
			if key, err = o.follow(ctx, Move{From: key, To: moved.To}); err != nil {
				return key, false, err
			}
			continue
		}
		again, err := o.afterFailure(ctx, key, d, err, record)
		if err != nil {
			return key, false, err
		}
		if !again {
			return key, d.State == messages.DeliveryFailed, nil
		}
	}
}

// SendHeld sends deliveries that this process stored to be sent at once. What has
// to wait is left to the conversation's worker.
func (o *Outbox) SendHeld(ctx context.Context, key messages.ConversationKey, open []messages.Delivery) error {
	for _, d := range open {
		begun := d.Text
		record := func(ctx context.Context, d messages.Delivery, moved *Move) error {
			return o.Storage.InTx(ctx, func(tx port.Tx) error {
				if err := moved.Apply(ctx, tx); err != nil {
					return err
				}
				return tx.Deliveries().RecordSending(ctx, d, begun)
			})
		}
		at, done, err := o.Send(ctx, key, &d, func(ctx context.Context, d messages.Delivery, moved *Move) error {
			if d.State != messages.DeliverySent && d.State != messages.DeliveryFailed && d.NextAt.Before(time.Now().Add(Hold)) {
				d.NextAt = time.Now().Add(Hold)
			}
			return record(ctx, d, moved)
		})
		if errors.Is(err, background.ErrShutdown) {
			d.NextAt = time.Now() // the next process need not wait
			hurry, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLast)
			defer cancel()
			return errors.Join(err, record(hurry, d, nil))
		}
		if err != nil {
			return err
		}
		key = at
		if err = record(ctx, d, nil); err != nil {
			return fmt.Errorf("record an answer: %w", err)
		}
		if !done {
			return nil
		}
	}
	return nil
}

// recordLast is how long it may take to record, in a process that stops, what it leaves.
const recordLast = 5 * time.Second

// recordError is a failure of ours, not of the platform.
type recordError struct{ err error }

func (e *recordError) Error() string { return e.err.Error() }

// sendOnce tries to make d visible once. It returns where the conversation is
// now.
func (o *Outbox) sendOnce(ctx context.Context, adapter platform.Adapter, key messages.ConversationKey, d *messages.Delivery, record Record) (messages.ConversationKey, error) {
	if filer, ok := adapter.(platform.Filer); ok && d.FileName != "" {
		return o.sendFile(ctx, filer, key, d, record)
	}
	editor, canEdit := adapter.(platform.Editor)
	if !canEdit {
		d.Message = "" // if it is there, as a question that was decided on, what it says now is a message of its own
	}
	whole := d.Whole && d.State == messages.DeliveryPending
	if d.Message == "" && (!canEdit || whole || d.OnlyFor != "" || adapter.Capabilities().IdempotentSend) {
		again := d.State == messages.DeliverySending
		ref, err := o.post(ctx, adapter, d.ConversationID, outbound(key, *d, d.Text))
		if err != nil {
			return key, err
		}
		d.Message = ref.Message
		if moved := movedBy(key, ref); moved != nil {
			if key, err = o.follow(ctx, *moved); err != nil {
				return key, &recordError{err: err}
			}
		}
		if !again || !canEdit || d.OnlyFor != "" {
			return key, nil
		}
		// What was found may be an earlier attempt with the placeholder's text.
		return key, editor.Edit(ctx, platform.Edit{Ref: messages.Ref{Conversation: key, Message: d.Message}, Text: d.Text, Buttons: d.Buttons})
	}
	if d.Message == "" {
		var err error
		if key, err = o.Place(ctx, key, d, record); err != nil {
			return key, err
		}
	}
	return key, o.show(ctx, editor, key, *d)
}

// Place sends the placeholder of d on a configured platform and records its id. One that
// says nothing yet notifies nobody, where the platform can do that. The
// id is on record before the message gets its final text: a crash between the two can
// leave a stray placeholder, never a second answer. A conversation that came into
// being with its first message, such as a thread that a slash command opened, gets
// its id with the same record. It returns where the conversation is now.
func (o *Outbox) Place(ctx context.Context, key messages.ConversationKey, d *messages.Delivery, record Record) (messages.ConversationKey, error) {
	adapter, text := o.Adapters[key.Platform], d.Placeholder
	if text == "" || !adapter.Capabilities().SilentEdits {
		text = platform.Placeholder
	}
	out := outbound(key, *d, text)
	out.Silent, out.Optional = text == platform.Placeholder || !d.Final, !d.Final && adapter.Capabilities().PlaceholderAfter > 0
	ref, err := o.post(ctx, adapter, d.ConversationID, out)
	if err != nil {
		if fault.Uncertain(err) {
			d.State = messages.DeliverySending
		}
		return key, err
	}
	d.Message, d.State = ref.Message, messages.DeliveryPlaced
	moved := movedBy(key, ref)
	if err := record(ctx, *d, moved); err != nil {
		return key, &recordError{err: fmt.Errorf("record a placeholder: %w", err)}
	}
	if moved != nil {
		key = moved.Key()
	}
	return key, nil
}

// movedBy returns how a conversation moved with a message; nil if it did not.
func movedBy(key messages.ConversationKey, ref messages.Ref) *Move {
	if ref.Conversation == key || ref.Conversation.ID == "" {
		return nil
	}
	return &Move{From: key, To: ref.Conversation.ID}
}

// follow moves a conversation to the id that its platform now uses.
func (o *Outbox) follow(ctx context.Context, m Move) (messages.ConversationKey, error) {
	err := o.Storage.InTx(ctx, func(tx port.Tx) error { return m.Apply(ctx, tx) })
	if err != nil {
		return m.From, fmt.Errorf("follow a conversation that moved: %w", err)
	}
	return m.Key(), nil
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

// anew takes the message of a delivery back, which cannot be edited, and has the
// delivery sent in another one. That the old one is gone is on record first: whoever
// goes on after a crash would edit it otherwise, fail, and not look for the new one.
func (o *Outbox) anew(ctx context.Context, key messages.ConversationKey, d *messages.Delivery, record Record) error {
	o.TakeBack(ctx, messages.Ref{Conversation: key, Message: d.Message})
	d.Message, d.State, d.NextAt = "", messages.DeliverySending, time.Time{}
	if err := record(ctx, *d, nil); err != nil {
		return fmt.Errorf("record that a message is sent anew: %w", err)
	}
	d.State = messages.DeliveryPending // this process knows that it was not sent yet
	return nil
}

// afterFailure decides what becomes of a delivery that failed. It reports
// whether to try again at once; otherwise d says when, or that it is given up. An error
// is one of record.
func (o *Outbox) afterFailure(ctx context.Context, key messages.ConversationKey, d *messages.Delivery, err error, record Record) (again bool, failed error) {
	kind := fault.KindOf(err)
	d.Error = err.Error()
	log := o.Log.With("conversation", key, "delivery", d.ID, "err", err)
	if kind != fault.RateLimited {
		d.Attempts++
	}
	pause, retry := sending.Next(d.Attempts, err)
	if d.OnlyFor != "" && fault.Uncertain(err) && d.Attempts >= maxWhispers {
		retry = false
	}
	switch {
	case fault.Uncertain(err) && d.Message != "":
		d.State = messages.DeliveryPlaced
	case fault.Uncertain(err):
		d.State = messages.DeliverySending
	case retry && d.Message == "" && kind != fault.Unauthorized:
		d.State = messages.DeliveryPending
	}
	switch {
	case retry:
		d.NextAt = time.Now().Add(pause)
		outcome := "retried"
		if kind == fault.RateLimited {
			outcome = "rate_limited"
		}
		o.Metrics.Delivered(string(key.Platform), outcome)
		log.InfoContext(ctx, "a delivery has to wait", "until", d.NextAt)
		return false, nil
	case kind == fault.NotFound && d.Message != "" && d.Attempts < maxEditTries:
		if err := o.anew(ctx, key, d, record); err != nil { // deleted or too old
			return false, err
		}
		return true, nil
	case (kind == fault.Invalid || kind == fault.Unsupported) && d.Text != refusedText && d.FileName == "":
		log.ErrorContext(ctx, "the platform refuses a text; a notice takes its place")
		d.Text = refusedText
		return true, nil
	}
	if d.FileName != "" && kind != fault.Gone {
		log.WarnContext(ctx, "the platform refuses a file; a notice takes its place")
		d.Text = o.withoutFile(key, *d)
		d.FileName, d.File = "", nil
		return true, nil
	}
	if d.Message != "" && d.State == messages.DeliveryPlaced {
		o.TakeBack(ctx, messages.Ref{Conversation: key, Message: d.Message})
	}
	d.State = messages.DeliveryFailed
	o.Metrics.Delivered(string(key.Platform), "failed")
	log.WarnContext(ctx, "a delivery was given up")
	o.MarkAnswered(ctx, key.Platform, *d)
	if kind == fault.Forbidden || kind == fault.Gone {
		o.tellUnheard(ctx, key, *d, fault.Public(err))
	}
	return false, nil
}

// withoutFile is what is said in the place of a file that the platform refuses.
func (o *Outbox) withoutFile(key messages.ConversationKey, d messages.Delivery) string {
	switch {
	case strings.HasPrefix(d.Text, "⚠"):
		return d.Text // what this said before; the file is stored beside it
	case d.Text != "":
		return fmt.Sprintf("✂ The middle is left out here, and the file with the whole answer cannot be posted. `%sfull` posts it as text.", o.Prefix(key))
	case d.Control:
		return fmt.Sprintf("⚠ `%s` cannot be posted as a file.", d.FileName)
	default: // code, which was taken out of the answer
		return fmt.Sprintf("⚠ `%s` cannot be posted as a file. `%sfull` posts the answer as text.", d.FileName, o.Prefix(key))
	}
}

// actor is who something is sent for, as the audit log names them.
func actor(key messages.ConversationKey, asker messages.Sender) string {
	if asker.ID == "" {
		return "system"
	}
	return string(key.Platform) + "/" + string(asker.ID)
}

// post sends a new message. Where messages are comments that anybody may read, it is
// written down first: once for a delivery, however often it is tried.
func (o *Outbox) post(ctx context.Context, adapter platform.Adapter, conversationID string, out messages.Outbound) (messages.Ref, error) {
	if adapter.Capabilities().Comments {
		by := actor(out.Conversation, out.Asker)
		err := o.Storage.InTx(ctx, func(tx port.Tx) error {
			return Audit(ctx, tx, sessions.AuditEntry{
				Actor: by, Action: "comment.post", ConversationID: conversationID, Target: out.Conversation.String(), Effect: "comment:" + string(out.Delivery),
			}, map[string]any{"delivery": out.Delivery})
		})
		if err != nil {
			return messages.Ref{}, &recordError{err: fmt.Errorf("record a comment: %w", err)}
		}
	}
	return adapter.Send(ctx, out)
}
