// Package signin is how people get into the pages in the browser: a link that works
// once, and the session that it begins. It does no I/O; package store keeps the rows,
// and of both tokens only the SHA-256.
package signin

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"remote-agent/internal/messages"
)

const (
	// LinkLife is how long a link is good.
	LinkLife = 5 * time.Minute

	// SessionLife is how long a session lasts that a link began.
	SessionLife = 30 * 24 * time.Hour

	// Idle ends a session that is not used for so long.
	Idle = 7 * 24 * time.Hour

	// maxClient is how much is kept of what a browser calls itself, in bytes.
	maxClient = 200
)

// Account is whose link or session it is: a person on a platform, who has the rights
// that they have there.
type Account struct {
	Platform messages.Platform
	ID       messages.UserID
}

// String names the account as the audit log does.
func (a Account) String() string { return string(a.Platform) + "/" + string(a.ID) }

// Link signs somebody in, once.
type Link struct {
	Account

	Hash      string // of the token
	ExpiresAt time.Time
}

// NewLink makes a link for an account, and its token, which has 130 random bits.
func NewLink(a Account, now time.Time) (l Link, token string) {
	token = rand.Text()
	return Link{Account: a, Hash: Hash(token), ExpiresAt: now.Add(LinkLife).UTC().Truncate(time.Millisecond)}, token
}

// Session is somebody who is signed in with one browser.
type Session struct {
	Account

	ID         string // no secret
	Hash       string // of the token, which is the cookie
	Client     string // what the browser called itself when it began
	CreatedAt  time.Time
	LastUsedAt time.Time // to the minute
	ExpiresAt  time.Time
	RevokedAt  time.Time // zero: it was not
}

// NewSession makes a session that ends after life, whether or not it is used, and its
// token, which has 260 random bits.
func NewSession(a Account, client string, now time.Time, life time.Duration) (s Session, token string) {
	token = rand.Text() + rand.Text()
	now = now.UTC().Truncate(time.Millisecond)
	client = strings.ToValidUTF8(client[:min(len(client), maxClient)], "")
	return Session{
		Account: a, ID: strings.ToLower(rand.Text())[:10], Hash: Hash(token), Client: client,
		CreatedAt: now, LastUsedAt: now, ExpiresAt: now.Add(life),
	}, token
}

// Live reports whether the session is good.
func (s Session) Live(now time.Time) bool {
	return s.RevokedAt.IsZero() && now.Before(s.ExpiresAt) && now.Before(s.LastUsedAt.Add(Idle))
}

// Hash is what is stored of a token. Tokens are random, so that there is nothing which
// a slow hash or a salt would protect.
func Hash(token string) string {
	sum := sha256.Sum256([]byte("web:" + token))
	return hex.EncodeToString(sum[:])
}
