package store

import (
	"context"
	"time"

	"remote-agent/internal/apikey"
	"remote-agent/internal/fault"
)

const apiKeyColumns = `id, name, secret_hash, scopes, created_ms, expires_ms, revoked_ms, last_used_ms`

// A scope that this binary does not know allows nothing.
func scanAPIKey(k *apikey.Key) []any {
	return []any{
		&k.ID, &k.Name, &k.Hash, wordList[apikey.Scope]{&k.Scopes},
		msTime{&k.CreatedAt}, msTime{&k.ExpiresAt}, msTime{&k.RevokedAt}, msTime{&k.LastUsedAt},
	}
}

// InsertAPIKey stores a new key. A name that a key has which was not revoked is a
// fault.Conflict.
func (t *SignIn) InsertAPIKey(ctx context.Context, k apikey.Key) error {
	n, err := t.tx.exec(ctx, `
		INSERT INTO api_keys (id, name, secret_hash, scopes, created_ms, expires_ms)
		VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (name) WHERE revoked_ms = 0 DO NOTHING`,
		k.ID, k.Name, k.Hash, joinWords(k.Scopes), millis(k.CreatedAt), millis(k.ExpiresAt))
	if err == nil && n == 0 {
		return fault.Newf(fault.Conflict, "A key named %s already exists; revoke it first, or choose another name.", k.Name)
	}
	return wrap(err, "store API key")
}

const apiKeySQL = `SELECT ` + apiKeyColumns + ` FROM api_keys WHERE id = $1`

// APIKey returns a key by id, also one that is revoked or expired;
// fault.NotFound if there is none.
func (t *SignIn) APIKey(ctx context.Context, id string) (apikey.Key, error) {
	return rowOf(ctx, t.tx, "key", scanAPIKey, apiKeySQL, id)
}

// APIKeys returns all keys, the newest first.
func (t *SignIn) APIKeys(ctx context.Context) ([]apikey.Key, error) {
	return rowsOf(ctx, t.tx, "list API keys", scanAPIKey, `SELECT `+apiKeyColumns+` FROM api_keys ORDER BY created_ms DESC, id DESC`)
}

// HasAPIKeys reports whether a key was ever made.
func (t *SignIn) HasAPIKeys(ctx context.Context) (bool, error) {
	ok, err := t.tx.exists(ctx, `SELECT 1 FROM api_keys LIMIT 1`)
	return ok, wrap(err, "look for API keys")
}

// RevokeAPIKey ends a key for good and returns it; done is false if it was
// revoked already. fault.NotFound if there is none.
func (t *SignIn) RevokeAPIKey(ctx context.Context, id string) (k apikey.Key, done bool, err error) {
	n, err := t.tx.exec(ctx, `UPDATE api_keys SET revoked_ms = {now} WHERE id = $1 AND revoked_ms = 0`, id)
	if err != nil {
		return k, false, wrap(err, "revoke API key")
	}
	k, err = t.APIKey(ctx, id)
	return k, n == 1, err
}

// TouchAPIKey stores when a key was last used. It never goes back.
func (t *SignIn) TouchAPIKey(ctx context.Context, id string, at time.Time) error {
	return t.tx.run(ctx, "note the use of an API key", `UPDATE api_keys SET last_used_ms = $2 WHERE id = $1 AND last_used_ms < $2`, id, millis(at))
}
