package store

import (
	"context"
	"fmt"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

// Identity returns a person; ok is false if nothing is known.
func (t *Tx) Identity(
	ctx context.Context, p messages.Platform, id messages.UserID,
) (i sessions.Identity, ok bool, err error) {
	ok, err = t.one(ctx, []any{
		&i.Platform, &i.UserID, &i.Name, &i.Role, msTime{&i.RefusedAt}, msTime{&i.CreatedAt},
	}, `
		SELECT platform_type, user_id, name, role, refused_ms, created_ms
		FROM identities WHERE platform_type = $1 AND user_id = $2`, string(p), string(id))
	return i, ok, wrap(err, "read identity")
}

// SaveIdentity inserts or replaces a person. The time of creation is kept.
func (t *Tx) SaveIdentity(ctx context.Context, i sessions.Identity) error {
	if i.UserID == "" {
		return fault.New(fault.Invalid, "An identity needs a user id.")
	}
	if i.Role == "" {
		i.Role = sessions.Stranger
	}
	if i.CreatedAt.IsZero() {
		i.CreatedAt = time.Now()
	}
	var refused any
	if !i.RefusedAt.IsZero() {
		refused = millis(i.RefusedAt)
	}
	_, err := t.exec(ctx, `
		INSERT INTO identities (platform_type, user_id, name, role, refused_ms, created_ms)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (platform_type, user_id) DO UPDATE
		SET name = excluded.name, role = excluded.role, refused_ms = excluded.refused_ms`,
		string(i.Platform), string(i.UserID), i.Name, string(i.Role), refused, millis(i.CreatedAt))
	return wrap(err, "save identity")
}

// HasOwner reports whether a platform has an owner.
func (t *Tx) HasOwner(ctx context.Context, p messages.Platform) (bool, error) {
	var one int
	ok, err := t.one(ctx, []any{&one}, `
		SELECT 1 FROM identities WHERE platform_type = $1 AND role = 'owner' LIMIT 1`, string(p))
	return ok, wrap(err, "look for an owner")
}

// SaveOwnerCode stores the SHA-256 (hex) of a one-time code that makes its
// sender the owner on a platform, replacing earlier ones of that platform.
func (t *Tx) SaveOwnerCode(ctx context.Context, p messages.Platform, hash string, expires time.Time) error {
	_, err := t.exec(ctx, `
		INSERT INTO owner_codes (platform_type, code_hash, expires_ms) VALUES ($1, $2, $3)
		ON CONFLICT (platform_type) DO UPDATE
		SET code_hash = excluded.code_hash, expires_ms = excluded.expires_ms`,
		string(p), hash, millis(expires))
	return wrap(err, "save owner code")
}

// UseOwnerCode reports whether hash is a valid code of the platform, and uses it
// up. Of two callers at once one is told so.
func (t *Tx) UseOwnerCode(ctx context.Context, p messages.Platform, hash string) (bool, error) {
	n, err := t.exec(ctx, `
		DELETE FROM owner_codes WHERE platform_type = $1 AND code_hash = $2 AND expires_ms > {now}`,
		string(p), hash)
	return n == 1, wrap(err, "use owner code")
}

// Audit appends to the audit log. The database refuses every change to it.
func (t *Tx) Audit(ctx context.Context, e sessions.AuditEntry) error {
	_, err := t.exec(ctx, `
		INSERT INTO audit_log (at_ms, actor, action, conversation_id, target, detail)
		VALUES ({now}, $1, $2, $3, $4, $5)`, e.Actor, e.Action, e.ConversationID, e.Target, e.Detail)
	if err != nil {
		return fmt.Errorf("append to audit log: %w", err)
	}
	return nil
}
