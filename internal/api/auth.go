package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"remote-agent/internal/apikey"
	"remote-agent/internal/store"
)

const realm = "remote-agent"

// What a client may cost.
const (
	keyRate     = rate.Limit(20) // requests a second with one key
	keyBurst    = 60
	failedRate  = rate.Limit(1.0 / 6) // wrong keys a second from one address
	failedBurst = 10

	// touchPatience is how long a request waits for its note when the key was used.
	touchPatience = 2 * time.Second
)

// nobody is compared with when there is no key of an id, so that the answer
// takes as long as one to a wrong secret.
var nobody = apikey.Key{Hash: strings.Repeat("0", 64)}

// authenticate returns the key of a request. A wrong one is counted against the
// address that it came from; an address with too many is not even looked up,
// unless with the id of a key that was used lately: several programs may come
// from one address.
func (a *API) authenticate(r *http.Request, now time.Time) (apikey.Key, error) {
	token, given := bearer(r.Header.Values("Authorization"))
	if !given {
		return apikey.Key{}, unauthorized(codeKeyMissing, "")
	}
	from := a.config.Proxies.Client(r)
	id, ok := apikey.ID(token)
	if wait := a.failed.Wait(from, now); wait > 0 && (!ok || !a.keys.Knows(id)) {
		return apikey.Key{}, rateLimited(wait)
	}
	if !ok {
		return apikey.Key{}, a.refuse(r.Context(), from, codeKeyInvalid, now)
	}
	k, err := a.find(r.Context(), id)
	if gone(err) {
		nobody.Matches(token)
		return k, a.refuse(r.Context(), from, codeKeyInvalid, now)
	}
	if err != nil {
		return k, err
	}
	if !k.Matches(token) {
		return k, a.refuse(r.Context(), from, codeKeyInvalid, now)
	}
	switch k.State(now) {
	case apikey.Expired:
		return k, a.refuse(r.Context(), from, codeKeyExpired, now)
	case apikey.Revoked:
		return k, a.refuse(r.Context(), from, codeKeyRevoked, now)
	case apikey.Live:
	}
	if wait := a.keys.Take(id, now); wait > 0 {
		return k, rateLimited(wait)
	}
	a.touch(r.Context(), k, now)
	return k, nil
}

func (a *API) find(ctx context.Context, id string) (apikey.Key, error) {
	return store.Within(ctx, a.config.Store.InRead, func(tx *store.Tx) (apikey.Key, error) { return tx.SignIn().APIKey(ctx, id) })
}

// touch notes that a key was used, once an hour. If that fails, or takes too long, the
// request goes on: the note is for people only.
func (a *API) touch(ctx context.Context, k apikey.Key, now time.Time) {
	used := apikey.UsedAt(now)
	if !k.LastUsedAt.Before(used) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, touchPatience)
	defer cancel()
	if err := a.config.Store.InTx(ctx, func(tx *store.Tx) error { return tx.SignIn().TouchAPIKey(ctx, k.ID, used) }); err != nil {
		a.log.WarnContext(ctx, "could not note when a key was used", "key", k.Name, "err", err)
	}
}

// refuse counts a wrong key against an address.
func (a *API) refuse(ctx context.Context, from, code string, now time.Time) error {
	a.log.DebugContext(ctx, "a key was refused", "address", from, "code", code)
	if a.failed.Take(from, now) == 0 && a.failed.Wait(from, now) > 0 {
		a.warned.Do(func() {
			a.log.WarnContext(ctx, "an address sent too many wrong keys and is blocked for a while", "address", from)
		})
	}
	return unauthorized(code, "invalid_token")
}

// bearer returns the token of a request; given is false if it has no credentials.
// Those of another kind, and two at once, are given and no token.
func bearer(headers []string) (token string, given bool) {
	if len(headers) == 0 {
		return "", false
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if len(headers) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return "", true
	}
	return strings.TrimSpace(token), true
}

var refusals = map[string]string{
	codeKeyMissing: "An API key is required: Authorization: Bearer rak_... Create one with `bot key create`.",
	codeKeyInvalid: "Unknown API key.",
	codeKeyExpired: "The API key has expired.",
	codeKeyRevoked: "The API key was revoked.",
}

func unauthorized(code, oauthError string) *problem {
	challenge := `Bearer realm="` + realm + `"`
	if oauthError != "" {
		challenge += `, error="` + oauthError + `"`
	}
	return &problem{
		Status: http.StatusUnauthorized, Code: code, Detail: refusals[code],
		header: map[string]string{"WWW-Authenticate": challenge},
	}
}
