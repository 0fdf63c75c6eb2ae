// Package apikey is the keys that programs use to read and delete data over
// HTTP: what a key looks like, what it may do and how long it holds. It does no
// I/O; package store keeps the rows.
package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/pattern"
)

// Scope is one thing that a key may do. No scope includes another.
type Scope string

// The scopes. What changes data has a scope of its own.
const (
	SessionsRead  Scope = "sessions:read"  // conversations, sessions, messages, tool calls
	SessionsWrite Scope = "sessions:write" // delete and fork sessions, delete conversations
	MemoriesRead  Scope = "memories:read"  // what is remembered of people
	MemoriesWrite Scope = "memories:write" // forget it
	AgentsRead    Scope = "agents:read"    // agent profiles
	AgentsWrite   Scope = "agents:write"   // delete them
	UsageRead     Scope = "usage:read"     // what was used, and what it cost
)

// Scopes returns all scopes.
func Scopes() []Scope {
	return []Scope{SessionsRead, SessionsWrite, MemoriesRead, MemoriesWrite, AgentsRead, AgentsWrite, UsageRead}
}

// ParseScopes reads names of scopes and drops repeated ones. No name, and a name
// of no scope, is fault.Invalid.
func ParseScopes(names []string) ([]Scope, error) {
	all := lists.Map(Scopes(), func(s Scope) string { return string(s) })
	var scopes []Scope
	for _, name := range names {
		s := Scope(strings.ToLower(strings.TrimSpace(name)))
		switch {
		case !slices.Contains(Scopes(), s):
			return nil, fault.Newf(fault.Invalid, "unknown scope %q; use %s", name, strings.Join(all, ", "))
		case !slices.Contains(scopes, s):
			scopes = append(scopes, s)
		}
	}
	if len(scopes) == 0 {
		return nil, fault.Newf(fault.Invalid, "a key needs at least one scope: %s", strings.Join(all, ", "))
	}
	return scopes, nil
}

// MaxLife is the longest time that a key with an end holds.
const MaxLife = 10 * 366 * 24 * time.Hour

const (
	prefix     = "rak_"
	idLength   = 10
	minLife    = time.Minute
	textLength = 52 // two rand.Text of at least 128 bits each
)

var (
	names  = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	ids    = pattern.Lazy(`^[a-z2-7]{10}$`)
	tokens = pattern.Lazy(`^rak_([a-z2-7]{10})_[a-z2-7]{52}$`)
)

// Key is a key as it is stored. The secret is not in it.
type Key struct {
	ID     string // part of the token, and no secret
	Name   string // what people call it; the audit log has it
	Scopes []Scope

	// Hash is the SHA-256 of the token in hex. The token is random with 260 bits,
	// so there is nothing that a slow hash or a salt would protect: nobody guesses
	// it, and no two are the same.
	Hash string

	CreatedAt  time.Time
	ExpiresAt  time.Time // zero: never
	RevokedAt  time.Time // zero: not revoked
	LastUsedAt time.Time // to the hour; zero: never
}

// New makes a key that holds for life from now on, zero for ever, and the token
// to show to a person once. fault.Invalid says what is wrong with the name, the
// scopes or the life.
func New(name string, scopes []Scope, life time.Duration, now time.Time) (k Key, token string, err error) {
	switch {
	case !names.MatchString(name):
		return k, "", fault.Newf(fault.Invalid, "%q is not a valid key name: use 1 to 64 of A-Z a-z 0-9 . _ -, starting with a letter or digit", name)
	case len(scopes) == 0:
		return k, "", fault.New(fault.Invalid, "a key needs at least one scope")
	case life != 0 && (life < minLife || life > MaxLife):
		return k, "", fault.New(fault.Invalid, "a key lasts from a minute to ten years, such as 90d; or never for a key that does not expire")
	}
	id := strings.ToLower(rand.Text())[:idLength]
	token = prefix + id + "_" + strings.ToLower(rand.Text() + rand.Text())[:textLength]
	now = now.UTC().Truncate(time.Millisecond)
	k = Key{ID: id, Name: name, Scopes: slices.Clone(scopes), Hash: hash(token), CreatedAt: now}
	if life != 0 {
		k.ExpiresAt = now.Add(life)
	}
	return k, token, nil
}

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// ID returns the id in a token; ok is false for a text that cannot be one.
func ID(token string) (id string, ok bool) {
	m := tokens.FindStringSubmatch(token)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// ParseID returns the id that a person named: itself, or by its token. Anything
// else is fault.Invalid; the text is not repeated, it may be a secret.
func ParseID(text string) (string, error) {
	if id, ok := ID(text); ok {
		return id, nil
	}
	if !ids.MatchString(text) {
		return "", fault.New(fault.Invalid, "not a key ID (ten letters and digits); `bot key list` shows them")
	}
	return text, nil
}

// Matches reports whether token is the key's. How long it takes does not depend
// on how much of it is right.
func (k Key) Matches(token string) bool {
	return subtle.ConstantTimeCompare([]byte(hash(token)), []byte(k.Hash)) == 1
}

// Allows reports whether the key has a scope. Every key has the empty one.
func (k Key) Allows(s Scope) bool { return s == "" || slices.Contains(k.Scopes, s) }

// State says whether a key holds.
type State string

// The states of a key.
const (
	Live    State = "live"
	Expired State = "expired"
	Revoked State = "revoked"
)

// State returns the state at a time. A key that was revoked stays so.
func (k Key) State(now time.Time) State {
	switch {
	case !k.RevokedAt.IsZero():
		return Revoked
	case !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt):
		return Expired
	}
	return Live
}

// UsedAt is what is stored of a use at a time: the hour. So a key that is used
// all the time costs a write an hour.
func UsedAt(now time.Time) time.Time { return now.UTC().Truncate(time.Hour) }
