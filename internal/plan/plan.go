// Package plan holds the types and rules of plans: what an assistant proposes,
// what a person decides about it, and what may then run.
//
// What was shown is what runs: a plan's text is fixed per version, a decision is
// bound to a version and its SHA-256, it is taken once, and free text never
// approves. It does no I/O and is a leaf but for faults.
package plan

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/fault"
)

// State is the life of one version of a plan:
//
//	proposed -> approved -> executing -> done
//	         -> rejected | expired | superseded (by an edited version or a newer plan)
//
// With the turn that proposed it, it is undone: then it is rejected. The plan whose place it
// took, or one of which the turn that carried it out is undone, waits again: the same text is
// its next version, as approved as before.
type State string

// The states.
const (
	Proposed   State = "proposed"
	Approved   State = "approved"
	Rejected   State = "rejected"
	Expired    State = "expired"
	Superseded State = "superseded"
	Executing  State = "executing"
	Done       State = "done"
)

// TTL is how long a plan waits for a decision, and an approved one to be run.
const TTL = 24 * time.Hour

// Plan is one version of a plan. Versions of one plan share Number.
type Plan struct {
	ID             string // UUIDv7 of this version
	Number         int64  // shown as "p-9"; unique over all conversations
	Version        int    // 1, 2, ...
	ConversationID string
	SessionID      string // the session that planned
	EntryID        string // the request that led to it
	Goal           string // what was asked for
	Text           string // CommonMark, as it was shown
	SHA256         string // of Text, hex
	Author         string // "assistant", or the actor who edited it ("telegram/42")
	Requester      string // the actor who may decide, besides an owner
	State          State
	Head           string // commit the plan was made on; empty without a codebase
	DeliveryID     string // the message that shows it
	DecidedBy      string // actor
	DecidedName    string // how they call themselves; not stored
	DecidedAt      time.Time
	Note           string // given with the decision
	CreatedAt      time.Time
	ExpiresAt      time.Time
}

// Name returns how people call the plan: "p-9".
func (p Plan) Name() string { return fmt.Sprintf("p-%d", p.Number) }

// Open reports whether the plan can be decided on.
func (p Plan) Open(now time.Time) bool {
	return (p.State == Proposed || p.State == Approved) && now.Before(p.ExpiresAt)
}

// Sum returns the SHA-256 of a plan's text in hex.
func Sum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Decision is what a person says about a plan.
type Decision string

// The decisions.
const (
	Approve Decision = "approve"
	Reject  Decision = "reject"
	Execute Decision = "execute"
	Edit    Decision = "edit"
)

// Decider is who decides.
type Decider struct {
	Actor string
	Owner bool // of the bot
}

// Decide returns the state that follows from d on p at a time. shown is the
// SHA-256 of the text that the decision was made on; empty means the text that
// p has now. It is a fault.Forbidden for the wrong person and a fault.Conflict
// with a clear text for a plan that is settled, expired, or not what was shown.
//
// Executing a proposed plan approves it in the same step: the person who may
// approve it asked for exactly this text to run.
func Decide(p Plan, d Decision, by Decider, shown string, now time.Time) (State, error) {
	if by.Actor != p.Requester && !by.Owner {
		return p.State, fault.Newf(fault.Forbidden, "Only the person who asked for plan %s or an owner can decide on it.", p.Name())
	}
	if shown != "" && shown != p.SHA256 {
		return p.State, fault.Newf(fault.Conflict, "Plan %s has changed; the current version is %d.", p.Name(), p.Version)
	}
	waiting := p.State == Proposed || p.State == Approved
	if waiting && !now.Before(p.ExpiresAt) {
		return Expired, fault.Newf(fault.Conflict, "Plan %s has expired and was not run. Ask for a new one.", p.Name())
	}
	switch {
	case !waiting:
	case d == Approve && p.State == Proposed:
		return Approved, nil
	case d == Execute:
		return Executing, nil
	case d == Reject:
		return Rejected, nil
	case d == Edit:
		return Superseded, nil
	}
	who := ""
	if p.DecidedBy != "" && p.DecidedBy != "system" && p.DecidedBy != by.Actor {
		who = " by " + cmp.Or(p.DecidedName, p.DecidedBy) // somebody else was faster
	}
	return p.State, fault.Newf(fault.Conflict, "Plan %s (version %d) is already %s%s.", p.Name(), p.Version, p.State, who)
}

// Reader finds plans; a transaction of the database is one, and locks what it
// returns.
type Reader interface {
	// Plan returns the newest version of a plan by its number; fault.NotFound if
	// there is none.
	Plan(ctx context.Context, number int64) (Plan, error)

	// LatestPlan returns the plan of a conversation of which a version was stored last,
	// in that version; ok is false if there is none.
	LatestPlan(ctx context.Context, conversationID string) (p Plan, ok bool, err error)
}

// Find returns the plan of a conversation that the first argument names ("p-9" or
// "9"), else the newest one. named reports which it was. It is a fault.NotFound if
// there is none, and for the name of a plan of another conversation or of none, or of
// something else on which people decide ("a-7").
func Find(ctx context.Context, tx Reader, conversationID string, args []string) (p Plan, named bool, err error) {
	if len(args) > 0 {
		number, ok := ParseName(args[0])
		switch {
		case ok:
			p, err = tx.Plan(ctx, number)
			if fault.Is(err, fault.NotFound) || err == nil && p.ConversationID != conversationID {
				err = fault.Newf(fault.NotFound, "There is no plan p-%d here.", number)
			}
			return p, true, err
		case Names("pa", args):
			return p, true, fault.Newf(fault.NotFound, "%.40q is not a plan like p-3.", args[0])
		}
	}
	p, ok, err := tx.LatestPlan(ctx, conversationID)
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "There is no plan here yet.")
	}
	return p, false, err
}

// ParseName reads "p-9", "P-9" or "9". Anything else, such as "2fa", is not a plan.
func ParseName(arg string) (int64, bool) {
	rest := strings.TrimPrefix(strings.ToLower(arg), "p-")
	number, err := strconv.ParseInt(rest, 10, 64)
	return number, err == nil && number > 0 && rest == strconv.FormatInt(number, 10)
}

// Names reports whether the first argument is meant to name something by its number, behind
// one of the letters of kinds: "p-9" for "p". A decision on such a word must not fall on
// something else.
func Names(kinds string, args []string) bool {
	if len(args) == 0 || len(args[0]) < 3 || args[0][1] != '-' {
		return false
	}
	return strings.Contains(kinds, strings.ToLower(args[0][:1])) && args[0][2] >= '0' && args[0][2] <= '9'
}
