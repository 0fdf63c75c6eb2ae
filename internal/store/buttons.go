package store

import (
	"context"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/plan"
)

// SaveButton stores what pressing a button means. Its ID has 1 to 40 bytes of
// [A-Za-z0-9_-], or it is a fault.Invalid; one that is taken is a
// fault.Conflict. Without ExpiresAt it lives for plan.TTL.
func (t *Buttons) SaveButton(ctx context.Context, b command.Button) error {
	if !validButtonID(b.ID) {
		return fault.New(fault.Invalid, "A button needs an id of up to 40 letters, digits, hyphens and underscores.")
	}
	if b.ExpiresAt.IsZero() {
		b.ExpiresAt = time.Now().Add(plan.TTL)
	}
	n, err := t.tx.exec(ctx, `
		INSERT INTO buttons (id, conversation_id, decision, plan_number, sha256, expires_ms)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (id) DO NOTHING`,
		b.ID, b.ConversationID, b.Decision, b.Number, b.SHA256, millis(b.ExpiresAt))
	if err == nil && n == 0 {
		return fault.New(fault.Conflict, "There is a button with this id already.")
	}
	return wrap(err, "store button")
}

// Button returns a stored button; fault.NotFound if there is none or it has
// expired. Reading does not use it up.
func (t *Buttons) Button(ctx context.Context, id string) (command.Button, error) {
	var b command.Button
	ok, err := t.tx.one(ctx, []any{
		&b.ID, text{&b.ConversationID}, &b.Decision, &b.Number, &b.SHA256, msTime{&b.ExpiresAt},
	}, buttonSQL, id)
	b.On = subjectOf(b.Decision)
	return found(b, ok, err, "button")
}

func validButtonID(id string) bool {
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return id != "" && len(id) <= maxButtonID
}
