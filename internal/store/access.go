package store

import (
	"cmp"
	"context"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/live"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

const identityColumns = `
	i.platform_type, i.user_id, i.name, CASE WHEN i.reads AND i.role = 'stranger' THEN 'reader' ELSE i.role END, i.refused_ms, i.created_ms, i.granted_by, i.granted_ms, i.removed_ms`

func scanIdentity(i *sessions.Identity) []any {
	return []any{
		text{(*string)(&i.Platform)}, text{(*string)(&i.UserID)}, text{&i.Name}, text{(*string)(&i.Role)}, msTime{&i.RefusedAt}, msTime{&i.CreatedAt},
		text{&i.GrantedBy}, msTime{&i.GrantedAt}, msTime{&i.RemovedAt},
	}
}

// Identity returns a person; ok is false if nothing is known.
func (t *People) Identity(
	ctx context.Context, p messages.Platform, id messages.UserID,
) (i sessions.Identity, ok bool, err error) {
	ok, err = t.tx.one(ctx, scanIdentity(&i), `
		SELECT `+identityColumns+`
		FROM identities i WHERE i.platform_type = $1 AND i.user_id = $2`, string(p), string(id))
	return i, ok, wrap(err, "read identity")
}

const stateColumns = `s.access_seq, s.halted_ms, s.halted_by, s.halt_reason`

func scanState(s *sessions.ServiceState) []any {
	return []any{&s.AccessSeq, msTime{&s.HaltedAt}, &s.HaltedBy, &s.HaltReason}
}

// Access implements sessions.PeopleStore.
func (t *People) Access(ctx context.Context, p messages.Platform, id messages.UserID) (a sessions.Access, err error) {
	ok, err := t.tx.one(ctx, append(scanState(&a.ServiceState), scanIdentity(&a.Identity)...), `
		SELECT `+stateColumns+`, `+identityColumns+`
		FROM service_state s LEFT JOIN identities i ON i.platform_type = $1 AND i.user_id = $2
		WHERE s.id = 1`, string(p), string(id))
	a.Known = a.UserID != ""
	return found(a, ok, err, "state of the service")
}

// ServiceState returns what holds for the whole service.
func (t *People) ServiceState(ctx context.Context) (s sessions.ServiceState, err error) {
	ok, err := t.tx.one(ctx, scanState(&s), `SELECT `+stateColumns+` FROM service_state s WHERE s.id = 1`)
	return found(s, ok, err, "state of the service")
}

// Halt has nothing start from the next transaction on, until Resume. It reports
// false, and changes nothing, if the service is halted already.
func (t *People) Halt(ctx context.Context, by, reason string) (bool, error) {
	n, err := t.tx.exec(ctx, `
		UPDATE service_state SET access_seq = access_seq + 1, halted_ms = {now}, halted_by = $1, halt_reason = $2
		WHERE id = 1 AND halted_ms = 0`, by, reason)
	return n == 1, wrap(err, "halt")
}

// Resume ends a halt. It reports false if there is none.
func (t *People) Resume(ctx context.Context) (bool, error) {
	n, err := t.tx.exec(ctx, `
		UPDATE service_state SET access_seq = access_seq + 1, halted_ms = 0, halted_by = '', halt_reason = ''
		WHERE id = 1 AND halted_ms > 0`)
	return n == 1, wrap(err, "resume")
}

// SaveIdentity implements sessions.PeopleStore. What somebody may do is changed by SetRole
// only.
func (t *People) SaveIdentity(ctx context.Context, i sessions.Identity) error {
	if i.UserID == "" {
		return fault.New(fault.Invalid, "An identity needs a user id.")
	}
	i.Role = cmp.Or(i.Role, sessions.Stranger)
	if i.CreatedAt.IsZero() {
		i.CreatedAt = time.Now()
	}
	role, reads := storedRole(i.Role)
	var refused any
	if !i.RefusedAt.IsZero() {
		refused = millis(i.RefusedAt)
	}
	return t.tx.run(ctx, "save identity", `
		INSERT INTO identities (platform_type, user_id, name, role, refused_ms, created_ms, granted_by, reads)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (platform_type, user_id) DO UPDATE
		SET name = excluded.name, refused_ms = excluded.refused_ms`,
		string(i.Platform), string(i.UserID), i.Name, role, refused, millis(i.CreatedAt), i.GrantedBy, reads)
}

// storedRole is how a role is stored: a reader is a stranger who may ask, so that a
// binary that does not know readers refuses them.
func storedRole(r sessions.Role) (role string, reads bool) {
	if r == sessions.Reader {
		return string(sessions.Stranger), true
	}
	return string(r), false
}

// SetRole implements sessions.PeopleStore. Every process sees the change with the next
// look at ServiceState. The name is kept if name is empty.
func (t *People) SetRole(ctx context.Context, i sessions.Identity, by string, removed bool) error {
	if i.UserID == "" {
		return fault.New(fault.Invalid, "An identity needs a user id.")
	}
	if removed {
		i.Role = sessions.Stranger
	}
	// First the row that all changes have in common: they are taken one by one.
	t.tx.touch(live.Access)
	if err := t.tx.run(ctx, "set role", `UPDATE service_state SET access_seq = access_seq + 1 WHERE id = 1`); err != nil {
		return err
	}
	role, reads := storedRole(i.Role)
	if err := t.tx.run(ctx, "set role", `
		INSERT INTO identities (platform_type, user_id, name, role, created_ms, granted_by, granted_ms, removed_ms, reads)
		VALUES ($1, $2, $3, $4, {now}, $5, {now}, CASE WHEN $6 THEN {now} ELSE 0 END, $7)
		ON CONFLICT (platform_type, user_id) DO UPDATE SET
			name = CASE WHEN excluded.name = '' THEN identities.name ELSE excluded.name END,
			role = excluded.role, reads = excluded.reads, granted_by = excluded.granted_by, granted_ms = excluded.granted_ms, removed_ms = excluded.removed_ms`,
		string(i.Platform), string(i.UserID), i.Name, role, by, removed, reads); err != nil || !removed {
		return err
	}
	// What waits for a decision in their name is refused now, not when it expires.
	return t.tx.run(ctx, "wake what waits for a decision", `
		UPDATE inbound_events SET next_ms = 0 WHERE state IN ('waiting', 'running') AND id IN (
			SELECT event_id FROM approvals WHERE state = 'waiting' AND requester = $1)`, string(i.Platform)+"/"+string(i.UserID))
}

// Roles returns everybody who was given a role or removed, by platform and id.
func (t *People) Roles(ctx context.Context) (list []sessions.Identity, err error) {
	return rowsOf(ctx, t.tx, "list roles", scanIdentity, `SELECT `+identityColumns+` FROM identities i WHERE i.role <> 'stranger' OR i.reads OR i.removed_ms > 0
		ORDER BY i.platform_type, i.user_id`)
}

// HasOwner reports whether a platform has an owner.
func (t *People) HasOwner(ctx context.Context, p messages.Platform) (bool, error) {
	ok, err := t.tx.exists(ctx, `
		SELECT 1 FROM identities WHERE platform_type = $1 AND role = 'owner' LIMIT 1`, string(p))
	return ok, wrap(err, "look for an owner")
}

// SamePerson reports whether two accounts are linked to each other.
func (t *People) SamePerson(ctx context.Context, a, b string) (bool, error) {
	ok, err := t.tx.exists(ctx, `SELECT 1 FROM memory_accounts a JOIN memory_accounts b ON b.user_id = a.user_id WHERE a.account = $1 AND b.account = $2`, a, b)
	return ok, wrap(err, "look for a linked account")
}

// SaveOwnerCode implements sessions.PeopleStore.
func (t *People) SaveOwnerCode(ctx context.Context, p messages.Platform, hash string, expires time.Time) error {
	return t.tx.run(ctx, "save owner code", `
		INSERT INTO owner_codes (platform_type, code_hash, expires_ms) VALUES ($1, $2, $3)
		ON CONFLICT (platform_type) DO UPDATE
		SET code_hash = excluded.code_hash, expires_ms = excluded.expires_ms`,
		string(p), hash, millis(expires))
}

// UseOwnerCode implements sessions.PeopleStore. Of two callers at once one is told so.
func (t *People) UseOwnerCode(ctx context.Context, p messages.Platform, hash string) (bool, error) {
	n, err := t.tx.exec(ctx, `
		DELETE FROM owner_codes WHERE platform_type = $1 AND code_hash = $2 AND expires_ms > {now}`,
		string(p), hash)
	return n == 1, wrap(err, "use owner code")
}

// PrivateConversation implements sessions.PeopleStore.
func (t *People) PrivateConversation(ctx context.Context, p messages.Platform, id messages.UserID, since time.Time) (sessions.Conversation, error) {
	var conversation string
	ok, err := t.tx.one(ctx, []any{text{&conversation}}, `
		SELECT conversation_id FROM inbound_events
		WHERE accepted_ms >= $3 AND data IS NOT NULL AND platform_type = $1 AND sender = $2 AND conversation_id IS NOT NULL
			AND CAST(data AS TEXT) LIKE '%"private":true%'
		ORDER BY accepted_ms DESC LIMIT 1`, string(p), string(id), millis(since))
	if err := missing(ok, err, "private conversation"); err != nil {
		return sessions.Conversation{}, err
	}
	return t.tx.Conversations().Conversation(ctx, conversation)
}
