package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

const deliveryColumns = `
	id, conversation_id, event_id, seq, reply_to, placeholder, body, final, control, message_id,
	state, attempts, next_ms, error, created_ms, buttons, only_for, file_name, file`

func scanDelivery(d *messages.Delivery) []any {
	return []any{
		&d.ID, text{&d.ConversationID}, text{&d.EventID}, &d.Seq, &d.ReplyTo, &d.Placeholder, &d.Text, &d.Final,
		&d.Control, &d.Message, &d.State, &d.Attempts, msTime{&d.NextAt}, &d.Error, msTime{&d.CreatedAt},
		buttonList{&d.Buttons}, &d.OnlyFor, &d.FileName, &d.File,
	}
}

// addDeliverySQL gives a delivery the number that is $4 below the last one of its
// conversation.
const addDeliverySQL = `
	INSERT INTO deliveries (` + deliveryColumns + `)
	VALUES ($1, $2, $3, (SELECT delivery_seq FROM remote_agent_conversations WHERE id = $2) - $4,
		$5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`

// addDeliveryArgs sets the ID, State and CreatedAt of d if they are empty.
func addDeliveryArgs(redact redaction, d *messages.Delivery, below int64) ([]any, error) {
	if d.ID == "" {
		id, err := newID()
		if err != nil {
			return nil, err
		}
		d.ID = messages.DeliveryID(id)
	}
	d.State = cmp.Or(d.State, messages.DeliveryPending)
	if d.CreatedAt.IsZero() {
		d.CreatedAt = time.Now()
	}
	buttons, err := encodeButtons(d.Buttons)
	return []any{
		string(d.ID), d.ConversationID, orNull(d.EventID), below, string(d.ReplyTo), d.Placeholder, d.Text, d.Final,
		d.Control, string(d.Message), string(d.State), d.Attempts, millis(d.NextAt), redact.said(d.Error), millis(d.CreatedAt),
		buttons, string(d.OnlyFor), d.FileName, bytesOrNull(d.File),
	}, err
}

// AddDelivery stores a delivery and assigns its Seq, and its ID, State and
// CreatedAt if they are empty. It locks the conversation's row.
func (t *Deliveries) AddDelivery(ctx context.Context, d *messages.Delivery) error {
	ok, err := t.tx.one(ctx, []any{&d.Seq}, `
		UPDATE remote_agent_conversations SET delivery_seq = delivery_seq + 1 WHERE id = $1
		RETURNING delivery_seq`, d.ConversationID)
	if err := missing(ok, err, "conversation"); err != nil {
		return err
	}
	t.tx.touches(d.ConversationID)
	return t.AddNumbered(ctx, d)
}

// AddNumbered stores a delivery whose number AdmitEntry kept: it is the last one
// of its conversation.
func (t *Deliveries) AddNumbered(ctx context.Context, d *messages.Delivery) error {
	args, err := addDeliveryArgs(t.tx.redact, d, 0)
	if err != nil {
		return err
	}
	return wrap(t.tx.later(ctx, addDeliverySQL, args...), "store delivery")
}

const updateDeliverySQL = `
	UPDATE deliveries SET
		placeholder = $2, body = $3, final = $4, message_id = $5, state = $6, attempts = $7, next_ms = $8,
		error = $9, reply_to = $10, buttons = $11, only_for = $12, control = $13
	WHERE id = $1`

func updateDeliveryArgs(redact redaction, d messages.Delivery) ([]any, error) {
	buttons, err := encodeButtons(d.Buttons)
	if d.State == messages.DeliverySent {
		d.Placeholder = "" // it is the beginning of the text, for a message that is not there yet
	}
	return []any{
		string(d.ID), d.Placeholder, d.Text, d.Final, string(d.Message), string(d.State), d.Attempts,
		millis(d.NextAt), redact.said(d.Error), string(d.ReplyTo), buttons, string(d.OnlyFor), d.Control,
	}, err
}

// UpdateDelivery replaces state, texts, buttons, whom it is for, platform message
// id, attempts, next time and error of a delivery, and who brings it out. Its file
// never changes.
func (t *Deliveries) UpdateDelivery(ctx context.Context, d messages.Delivery) error {
	args, err := updateDeliveryArgs(t.tx.redact, d)
	if err != nil {
		return err
	}
	if err := t.tx.change(ctx, "update delivery", "delivery", updateDeliverySQL, args...); err != nil {
		return err
	}
	t.tx.touches(d.ConversationID)
	return nil
}

// RecordSending is UpdateDelivery for whoever is bringing d out and has begun with
// the text begun. If the delivery has another text by now, as a question that was
// decided on meanwhile, that text stays and is what the message is edited to next:
// only where the message is gets recorded, or that one may be on its way.
func (t *Deliveries) RecordSending(ctx context.Context, d messages.Delivery, begun string) error {
	args, err := updateDeliveryArgs(t.tx.redact, d)
	if err != nil {
		return err
	}
	n, err := t.tx.exec(ctx, updateDeliverySQL+` AND body = $14`, append(args, begun)...)
	if err != nil || n > 0 {
		return wrap(err, "record a delivery")
	}
	state := messages.DeliveryPlaced
	if d.Message == "" {
		state = messages.DeliverySending
	}
	n, err = t.tx.exec(ctx, `UPDATE deliveries SET message_id = $2, state = $3, final = $4, next_ms = 0 WHERE id = $1 AND ($2 <> '' OR $5)`,
		string(d.ID), string(d.Message), string(state), true, d.State == messages.DeliverySending)
	if err != nil {
		return fmt.Errorf("record a changed delivery: %w", err)
	}
	if n == 0 && d.Message != "" {
		return notFound("delivery")
	}
	return nil
}

// RewriteDelivery gives a delivery that was not given up another text, without buttons:
// its message is edited, or, if nobody knows of one yet, the text is what is shown.
// Whoever is bringing it out learns of it, see RecordSending.
func (t *Deliveries) RewriteDelivery(ctx context.Context, id messages.DeliveryID, text string) error {
	return t.tx.run(ctx, "rewrite a delivery", `
		UPDATE deliveries SET body = $2, buttons = '[]', next_ms = 0, state = CASE WHEN message_id <> '' THEN 'placed' ELSE state END
		WHERE id = $1 AND state <> 'failed'`, string(id), text)
}

// Delivery returns a delivery by id; fault.NotFound if there is none.
func (t *Deliveries) Delivery(ctx context.Context, id messages.DeliveryID) (messages.Delivery, error) {
	return rowOf(ctx, t.tx, "delivery", scanDelivery, `SELECT `+deliveryColumns+` FROM deliveries WHERE id = $1`, string(id))
}

const openDeliveriesSQL = `
	SELECT ` + deliveryColumns + ` FROM deliveries
	WHERE conversation_id = $1 AND state IN ('pending', 'sending', 'placed') AND control = $2
	ORDER BY seq`

const allOpenDeliveriesSQL = `
	SELECT ` + deliveryColumns + ` FROM deliveries
	WHERE conversation_id = $1 AND state IN ('pending', 'sending', 'placed')
	ORDER BY seq`

// OpenDeliveries returns the deliveries of a conversation that are neither sent
// nor failed, in order, control ones or the others.
func (t *Deliveries) OpenDeliveries(ctx context.Context, conversationID string, control bool) ([]messages.Delivery, error) {
	return t.deliveries(ctx, openDeliveriesSQL, conversationID, control)
}

// AllOpenDeliveries returns both kinds of OpenDeliveries, in order.
func (t *Deliveries) AllOpenDeliveries(ctx context.Context, conversationID string) ([]messages.Delivery, error) {
	return t.deliveries(ctx, allOpenDeliveriesSQL, conversationID)
}

// EntryDeliveries returns all deliveries that answer an entry, in order.
func (t *Deliveries) EntryDeliveries(ctx context.Context, entryID string) ([]messages.Delivery, error) {
	return t.deliveries(ctx, `SELECT `+deliveryColumns+` FROM deliveries WHERE event_id = $1 ORDER BY seq`, entryID)
}

func (t *Deliveries) deliveries(ctx context.Context, query string, args ...any) ([]messages.Delivery, error) {
	return rowsOf(ctx, t.tx, "read deliveries", scanDelivery, query, args...)
}

func encodeButtons(buttons []messages.Button) (string, error) {
	if len(buttons) == 0 {
		return "[]", nil
	}
	return encodeJSON(buttons, fault.Invalid, "buttons")
}

// ToldSince reports whether a text was put into a conversation at or after a time.
func (t *Deliveries) ToldSince(ctx context.Context, conversationID, text string, since time.Time) (bool, error) {
	ok, err := t.tx.exists(ctx, `
		SELECT 1 FROM deliveries WHERE conversation_id = $1 AND created_ms >= $2 AND body = $3 LIMIT 1`,
		conversationID, millis(since), text)
	return ok, wrap(err, "look for a notice")
}
