package outbox

import (
	"context"
	"fmt"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// Whisper tells one person something, best effort.
func (o *Outbox) Whisper(ctx context.Context, to messages.Inbound, text string) {
	w, ok := o.Adapters[to.Conversation.Platform].(platform.Whisperer)
	if !ok {
		return
	}
	if err := w.Whisper(ctx, to, text); err != nil {
		o.Log.InfoContext(ctx, "could not send a private note", "conversation", to.Conversation, "err", err)
	}
}

// SendUnkept sends a text to the sender of a command without a record of it.
func (o *Outbox) SendUnkept(ctx context.Context, in messages.Inbound, text string) {
	adapter := o.Adapters[in.Conversation.Platform]
	if adapter == nil || !in.Private && !in.Whispered {
		return
	}
	out := messages.Outbound{Delivery: NewID(), Conversation: in.Conversation, Text: text}
	if in.Whispered {
		out.OnlyFor, out.ReplyTo = in.Sender.ID, in.Message
	}
	if _, err := adapter.Send(ctx, out); err != nil {
		o.Log.InfoContext(ctx, "could not send what is not kept; the person has to ask again", "conversation", in.Conversation, "err", err)
	}
}

// haltedNotice begins the notice of AddHalted.
const haltedNotice = "⏸ The bot is halted"

// AddHalted stores the notice that a message is kept and answered after the halt:
// once in a conversation and halt, and never for a standing task. It is returned, nil
// if there is none. Where it is held, this process sends it at once; else the
// conversation's worker does.
func (o *Outbox) AddHalted(ctx context.Context, tx port.Tx, conv sessions.Conversation, entry sessions.Entry, state sessions.ServiceState, held bool) (*messages.Delivery, error) {
	if entry.In.Schedule != 0 {
		return nil, nil //nolint:nilnil // nobody wrote
	}
	text := fmt.Sprintf(haltedNotice+"%s. Your message is saved and will be answered after `%sresume`.",
		wording.Because(state.HaltReason), o.Prefix(conv.Key))
	if told, err := tx.Deliveries().ToldSince(ctx, conv.ID, text, state.HaltedAt); err != nil || told {
		return nil, err
	}
	d := Held(conv.ID, entry, text)
	if !held {
		d.NextAt, d.State = time.Time{}, messages.DeliveryPending
	}
	if entry.In.Whispered {
		d.OnlyFor, d.Asker = entry.In.Sender.ID, entry.In.Sender
	}
	err := tx.Deliveries().AddDelivery(ctx, &d)
	d.State = messages.DeliveryPending // nothing was sent yet, as this process knows
	return &d, err
}

// SendNotice sends a notice that was stored to be sent at once.
func (o *Outbox) SendNotice(ctx context.Context, key messages.ConversationKey, d messages.Delivery) {
	if err := o.SendHeld(ctx, key, []messages.Delivery{d}); err != nil && ctx.Err() == nil {
		o.Log.InfoContext(ctx, "could not send a notice; it is told later", "conversation", key, "err", err)
	}
}

// What is said of a stored event that is damaged, and kept on record of it.
const (
	TextUnreadable  = "✖ What you sent was damaged in the database before I got to it, so I could not read it. Please send it again."
	ErrUnreadable   = "what is stored of it is damaged"
	ownerUnreadable = "⚠ A message that waited was damaged in the database and could not be answered. Its sender was asked to send it again. " +
		"Check the disk, and run `bot doctor`. The log names the message."
)

// TellUnreadable tells operators, and owners at most once a day, that an event was set
// aside because it is damaged in the database. It is a part of the transaction that does so:
// nobody finds the event again.
func (o *Outbox) TellUnreadable(ctx context.Context, tx port.Tx, entry sessions.Entry) error {
	o.Log.ErrorContext(ctx, "a message that is damaged in the database is set aside", "conversation", entry.In.Conversation, "entry", entry.ID)
	owners, err := o.Owners(ctx, tx)
	if err != nil {
		return err
	}
	return tell(ctx, tx, owners, ownerUnreadable)
}

// tell stores a notice for chats that were not told the same within a day.
func tell(ctx context.Context, tx port.Tx, chats []sessions.Conversation, text string) error {
	for _, chat := range chats {
		told, err := tx.Deliveries().ToldSince(ctx, chat.ID, text, time.Now().Add(-toldEvery))
		if err == nil && !told {
			err = AddNotice(ctx, tx, chat.ID, "", text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
