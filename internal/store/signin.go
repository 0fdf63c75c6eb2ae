package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"remote-agent/internal/live"
	"remote-agent/internal/signin"
)

const webSessionColumns = `id, token_hash, platform_type, user_id, client, created_ms, last_used_ms, expires_ms, revoked_ms`

func scanWebSession(s *signin.Session) []any {
	return []any{
		&s.ID, &s.Hash, (*string)(&s.Platform), (*string)(&s.Account.ID), &s.Client,
		msTime{&s.CreatedAt}, msTime{&s.LastUsedAt}, msTime{&s.ExpiresAt}, msTime{&s.RevokedAt},
	}
}

// SaveSignInLink stores a link, and deletes those that expired before now.
func (t *SignIn) SaveSignInLink(ctx context.Context, l signin.Link, now time.Time) error {
	if _, err := t.tx.exec(ctx, `DELETE FROM sign_in_links WHERE expires_ms <= $1`, millis(now)); err != nil {
		return fmt.Errorf("drop old links: %w", err)
	}
	return t.tx.run(ctx, "store a link", `INSERT INTO sign_in_links (token_hash, platform_type, user_id, expires_ms) VALUES ($1, $2, $3, $4)`,
		l.Hash, string(l.Platform), string(l.ID), millis(l.ExpiresAt))
}

// TakeSignInLink uses a link up, by the hash of its token. ok is false if there is none
// that is still good at now. Of two callers at once one gets it.
func (t *SignIn) TakeSignInLink(ctx context.Context, hash string, now time.Time) (l signin.Link, ok bool, err error) {
	ok, err = t.tx.one(ctx, []any{&l.Hash, (*string)(&l.Platform), (*string)(&l.ID), msTime{&l.ExpiresAt}}, `
		DELETE FROM sign_in_links WHERE token_hash = $1 RETURNING token_hash, platform_type, user_id, expires_ms`, hash)
	return l, ok && now.Before(l.ExpiresAt), wrap(err, "use a link")
}

// SignInLink returns a link that is good at now without using it; ok is false if there
// is none.
func (t *SignIn) SignInLink(ctx context.Context, hash string, now time.Time) (l signin.Link, ok bool, err error) {
	ok, err = t.tx.one(ctx, []any{&l.Hash, (*string)(&l.Platform), (*string)(&l.ID), msTime{&l.ExpiresAt}}, `
		SELECT token_hash, platform_type, user_id, expires_ms FROM sign_in_links WHERE token_hash = $1`, hash)
	return l, ok && now.Before(l.ExpiresAt), wrap(err, "look at a link")
}

// InsertWebSession stores a session, and deletes those that ended long before it.
func (t *SignIn) InsertWebSession(ctx context.Context, s signin.Session) error {
	if _, err := t.tx.exec(ctx, `DELETE FROM web_sessions WHERE expires_ms <= $1`, millis(s.CreatedAt)); err != nil {
		return fmt.Errorf("drop old sessions of browsers: %w", err)
	}
	return t.tx.run(ctx, "store a session of a browser", `
		INSERT INTO web_sessions (id, token_hash, platform_type, user_id, client, created_ms, last_used_ms, expires_ms)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		s.ID, s.Hash, string(s.Platform), string(s.Account.ID), s.Client, millis(s.CreatedAt), millis(s.LastUsedAt), millis(s.ExpiresAt))
}

const webSessionSQL = `SELECT ` + webSessionColumns + ` FROM web_sessions WHERE token_hash = $1`

// WebSession returns a session by the hash of its token, also one that has ended;
// fault.NotFound if there is none.
func (t *SignIn) WebSession(ctx context.Context, hash string) (signin.Session, error) {
	return rowOf(ctx, t.tx, "session", scanWebSession, webSessionSQL, hash)
}

// WebSessions returns the sessions of an account (the zero value: of all) that are good
// at now, the one that began last first, up to limit: those that began until a moment in
// milliseconds (0: all).
func (t *SignIn) WebSessions(ctx context.Context, of signin.Account, now time.Time, until int64, limit int) (list []signin.Session, err error) {
	return rowsOf(ctx, t.tx, "list sessions of browsers", scanWebSession, `SELECT `+webSessionColumns+` FROM web_sessions
		WHERE revoked_ms = 0 AND expires_ms > $1 AND last_used_ms > $2 AND (platform_type = $3 AND user_id = $4 OR $3 = '') AND created_ms <= $5
		ORDER BY created_ms DESC, id LIMIT $6`,
		millis(now), millis(now.Add(-signin.Idle)), string(of.Platform), string(of.ID), cmp.Or(until, 1<<62), limit)
}

// RevokeWebSession ends a session for good, and returns it; done is false if it had
// ended already. fault.NotFound if there is none.
func (t *SignIn) RevokeWebSession(ctx context.Context, id string) (s signin.Session, done bool, err error) {
	n, err := t.tx.exec(ctx, `UPDATE web_sessions SET revoked_ms = {now} WHERE id = $1 AND revoked_ms = 0`, id)
	if err != nil {
		return s, false, wrap(err, "end a session of a browser")
	}
	t.tx.touch(live.Browser(id))
	s, err = rowOf(ctx, t.tx, "session", scanWebSession, `SELECT `+webSessionColumns+` FROM web_sessions WHERE id = $1`, id)
	return s, n == 1, err
}

// TouchWebSession stores when a session was last used. It never goes back.
func (t *SignIn) TouchWebSession(ctx context.Context, id string, at time.Time) error {
	return t.tx.run(ctx, "note the use of a session", `UPDATE web_sessions SET last_used_ms = $2 WHERE id = $1 AND last_used_ms < $2`, id, millis(at))
}

// LastSeen returns when an account last had a turn or used a page; zero if never.
func (t *SignIn) LastSeen(ctx context.Context, a signin.Account) (at time.Time, err error) {
	_, err = t.tx.one(ctx, []any{msTime{&at}}, `
		SELECT max(seen) FROM (
			SELECT max(at_ms) AS seen FROM usage_records WHERE actor = $1
			UNION ALL SELECT max(last_used_ms) FROM web_sessions WHERE platform_type = $2 AND user_id = $3) AS uses`,
		a.String(), string(a.Platform), string(a.ID))
	return at, wrap(err, "look when somebody was seen")
}
