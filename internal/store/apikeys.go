package store

import (
	"context"
	"strings"
	"time"

	"remote-agent/internal/apikey"
	"remote-agent/internal/fault"
)

const apiKeyColumns = `id, name, secret_hash, scopes, created_ms, expires_ms, revoked_ms, last_used_ms`

func scanAPIKey(k *apikey.Key, scopes *string) []any {
	return []any{
		&k.ID, &k.Name, &k.Hash, scopes,
		msTime{&k.CreatedAt}, msTime{&k.ExpiresAt}, msTime{&k.RevokedAt}, msTime{&k.LastUsedAt},
	}
}

// splitScopes reads stored scopes. One that this binary does not know allows
// nothing.
func splitScopes(stored string) (list []apikey.Scope) {
	for s := range strings.FieldsSeq(stored) {
		list = append(list, apikey.Scope(s))
	}
	return list
}

// InsertAPIKey stores a new key. A name that a key has which was not revoked is a
// fault.Conflict.
func (t *SignIn) InsertAPIKey(ctx context.Context, k apikey.Key) error {
	scopes := make([]string, len(k.Scopes))
	for i, s := range k.Scopes {
		scopes[i] = string(s)
	}
	n, err := t.tx().exec(ctx, `
		INSERT INTO api_keys (id, name, secret_hash, scopes, created_ms, expires_ms)
		VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (name) WHERE revoked_ms = 0 DO NOTHING`,
		k.ID, k.Name, k.Hash, strings.Join(scopes, " "), millis(k.CreatedAt), millis(k.ExpiresAt))
	if err == nil && n == 0 {
		return fault.Newf(fault.Conflict, "A key named %s already exists; revoke it first, or choose another name.", k.Name)
	}
	return wrap(err, "store API key")
}

const apiKeySQL = `SELECT ` + apiKeyColumns + ` FROM api_keys WHERE id = $1`

// APIKey returns a key by id, also one that is revoked or expired;
// fault.NotFound if there is none.
func (t *SignIn) APIKey(ctx context.Context, id string) (apikey.Key, error) {
	var k apikey.Key
	var scopes string
	ok, err := t.tx().one(ctx, scanAPIKey(&k, &scopes), apiKeySQL, id)
	k.Scopes = splitScopes(scopes)
	return found(k, ok, err, "key")
}

// APIKeys returns all keys, the newest first.
func (t *SignIn) APIKeys(ctx context.Context) (list []apikey.Key, err error) {
	err = t.tx().each(ctx, func(scan func(...any) error) error {
		var k apikey.Key
		var scopes string
		err := scan(scanAPIKey(&k, &scopes)...)
		k.Scopes = splitScopes(scopes)
		list = append(list, k)
		return err
	}, `SELECT `+apiKeyColumns+` FROM api_keys ORDER BY created_ms DESC, id DESC`)
	return list, wrap(err, "list API keys")
}

// HasAPIKeys reports whether a key was ever made.
func (t *SignIn) HasAPIKeys(ctx context.Context) (bool, error) {
	var one int
	ok, err := t.tx().one(ctx, []any{&one}, `SELECT 1 FROM api_keys LIMIT 1`)
	return ok, wrap(err, "look for API keys")
}

// RevokeAPIKey ends a key for good and returns it; done is false if it was
// revoked already. fault.NotFound if there is none.
func (t *SignIn) RevokeAPIKey(ctx context.Context, id string) (k apikey.Key, done bool, err error) {
	n, err := t.tx().exec(ctx, `UPDATE api_keys SET revoked_ms = {now} WHERE id = $1 AND revoked_ms = 0`, id)
	if err != nil {
		return k, false, wrap(err, "revoke API key")
	}
	k, err = t.APIKey(ctx, id)
	return k, n == 1, err
}

// TouchAPIKey stores when a key was last used. It never goes back.
func (t *SignIn) TouchAPIKey(ctx context.Context, id string, at time.Time) error {
	_, err := t.tx().exec(ctx, `UPDATE api_keys SET last_used_ms = $2 WHERE id = $1 AND last_used_ms < $2`, id, millis(at))
	return wrap(err, "note the use of an API key")
}
