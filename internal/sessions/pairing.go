package sessions

import (
	"time"

	"remote-agent/internal/messages"
)

// PairingState is the life of a request to be let in:
//
//	waiting -> allowed | denied
type PairingState string

// The states.
const (
	PairingWaiting PairingState = "waiting"
	PairingAllowed PairingState = "allowed"
	PairingDenied  PairingState = "denied"
)

// What requests to be let in cost at most.
const (
	// PairingTTL is how long a request waits for an owner, and how long somebody is
	// not asked about again who was denied.
	PairingTTL = 24 * time.Hour

	// MaxPairings is how many requests that nobody allowed there may be in PairingTTL,
	// on all platforms together.
	MaxPairings = 20
)

// Pairing is the request of a stranger to be let in.
type Pairing struct {
	Number       int64
	Platform     messages.Platform
	UserID       messages.UserID
	Name         string // as they call themselves; never used to decide
	Conversation string // their private chat, by its id on the platform
	Code         string // tells people apart; it gives nobody a right
	State        PairingState
	Cards        []messages.DeliveryID // of the messages that ask owners
	AskedAt      time.Time
	DecidedBy    string // actor
	DecidedAt    time.Time
}

// Account names who asks as the audit log does: "telegram/42".
func (p Pairing) Account() string { return string(p.Platform) + "/" + string(p.UserID) }

// Waits reports whether an owner can decide on the request.
func (p Pairing) Waits(now time.Time) bool {
	return p.State == PairingWaiting && now.Before(p.AskedAt.Add(PairingTTL))
}

// Settled reports whether nobody is asked about the person again for now: they wait,
// or were denied less than PairingTTL ago.
func (p Pairing) Settled(now time.Time) bool {
	return p.Waits(now) || p.State == PairingDenied && now.Before(p.DecidedAt.Add(PairingTTL))
}
