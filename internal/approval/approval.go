// Package approval holds the types and rules of what an assistant may do without
// asking, and of asking a person: what was shown is what runs, a decision is
// bound to one call and its arguments, it is taken once by a named person, and
// no answer is no. It does no I/O.
package approval

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
)

// Mode is how much may happen in a conversation without asking.
type Mode string

// The modes.
const (
	ModeAsk  Mode = "ask"  // read only
	ModeEdit Mode = "edit" // files of the worktree may change; everything else asks
	ModeAuto Mode = "auto" // nothing asks; for owners only
)

// ParseMode reads a mode; fault.Invalid names the ones that there are.
func ParseMode(text string) (Mode, error) {
	switch m := Mode(strings.ToLower(strings.TrimSpace(text))); m {
	case ModeAsk, ModeEdit, ModeAuto:
		return m, nil
	}
	return "", fault.New(fault.Invalid, "The modes are ask (read only), edit (files can be changed, commands need approval) and auto (no approvals; owners only).")
}

// State is the life of an approval:
//
//	waiting -> allowed | denied | expired | canceled (its turn has ended, or Note says why)
type State string

// The states.
const (
	Waiting  State = "waiting"
	Allowed  State = "allowed"
	Denied   State = "denied"
	Expired  State = "expired"
	Canceled State = "canceled"
)

// Notes on a question that is canceled while its turn goes on: an external agent had asked.
const (
	Restarted = "The bot restarted; not run. The agent asks again if it still needs this"
	Withdrawn = "The agent no longer asks; not run"
)

// TTL is how long a person has for a decision.
const TTL = 24 * time.Hour

// Tools that no model calls: what is asked when a turn reaches a limit, or before
// it can begin.
const (
	ToolClone    = "clone"    // a repository that is not on this machine
	ToolContinue = "continue" // the cap on rounds
	ToolBudget   = "budget"   // the budget of a turn
)

// Approval is a request to a person.
type Approval struct {
	Number         int64 // shown as "a-7"; unique over all conversations
	ConversationID string
	SessionID      string
	EntryID        string // the turn
	CodebaseID     string // empty without one
	CallID         string
	Tool           string
	Arguments      string // as the model gave them
	SHA256         string // of Tool and Arguments, see Sum
	Kind           assistant.PermissionKind
	Title          string // one line
	Detail         string // the exact effect, CommonMark
	Rule           string // what "always" would allow; empty where that is not offered
	Requester      string // the actor whose turn it is
	State          State
	DeliveryID     string // the message that asks
	DecidedBy      string // actor
	DecidedName    string // how they call themselves; not stored
	DecidedAt      time.Time
	Note           string // given with the decision
	CreatedAt      time.Time
	ExpiresAt      time.Time
}

// Name returns how people call the approval: "a-7".
func (a Approval) Name() string { return fmt.Sprintf("a-%d", a.Number) }

// ParseName reads "a-7" or "A-7".
func ParseName(text string) (int64, bool) {
	rest, ok := strings.CutPrefix(strings.ToLower(text), "a-")
	number, err := strconv.ParseInt(rest, 10, 64)
	return number, ok && err == nil && number > 0 && rest == strconv.FormatInt(number, 10)
}

// Permanent ends the Detail of a question to which only a yes for always is an answer.
const Permanent = "The agent accepts only a permanent permission for everything of this kind."

// OnlyAlways reports whether a yes for once is of no use to who asks.
func (a *Approval) OnlyAlways() bool { return a.Rule != "" && strings.HasSuffix(a.Detail, Permanent) }

// Question is what a person is asked, in a line.
func (a Approval) Question() string {
	switch {
	case a.Tool == ToolContinue, a.Tool == ToolBudget:
		return a.Title
	case a.Kind == assistant.KindExecute:
		return "run `" + strings.ReplaceAll(a.Title, "`", "'") + "`?"
	}
	return a.Title + "?"
}

// Outcome says what became of a settled approval, and by whom.
func (a Approval) Outcome() string {
	by := ""
	if a.DecidedBy != "" && a.DecidedBy != "system" {
		by = " by " + cmp.Or(a.DecidedName, a.DecidedBy)
	}
	switch a.State {
	case Allowed:
		return "✔ Approved" + by
	case Denied:
		return "✖ Denied" + by
	case Expired:
		return "Expired; not run"
	default:
		return cmp.Or(a.Note, "The turn ended; not run")
	}
}

// Sum returns the SHA-256 in hex that binds a decision to a call.
func Sum(tool, arguments string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s", len(tool), tool) //nolint:errcheck // a hash takes everything
	h.Write([]byte(arguments))
	return hex.EncodeToString(h.Sum(nil))
}

// Ruling is what the rules say of a call before anybody is asked.
type Ruling int

// The rulings.
const (
	Allow  Ruling = iota
	Refuse        // with a reason for the model
	Ask           // a person decides
)

// Judge applies the mode of a conversation to a call. ruled is set if an allow
// rule of the codebase names it. ModeAuto counts for an owner's turns only, and no mode
// answers what an agent wants to know of a person.
func Judge(mode Mode, kind assistant.PermissionKind, owner, ruled bool) (Ruling, string) {
	if mode == ModeAuto && !owner {
		mode = ModeEdit
	}
	switch {
	case kind == assistant.KindRead:
		return Allow, ""
	case mode == ModeAsk:
		return Refuse, "not run: this conversation is read-only now. Describe what you would do; a person can allow changes with /mode edit."
	case kind == assistant.KindQuestion:
		return Ask, ""
	case mode == ModeAuto, ruled, kind == assistant.KindWrite:
		return Allow, ""
	}
	return Ask, ""
}

// Decision is what a person says.
type Decision string

// The decisions. Buttons are stored with them.
const (
	Once   Decision = "allow"
	Always Decision = "allow_always"
	Deny   Decision = "deny"
)

// Decider is who decides.
type Decider struct {
	Actor  string
	Owner  bool
	Here   bool // takes part in the conversation that asks, and may talk to the bot
	Linked bool // is who asked, with another account
	Second bool // the rule is that somebody else than the requester decides
}

// Decide returns the state that follows from d on a at a time. shown is the
// SHA-256 that the decision was made on; empty where it was named by number. It
// is fault.Forbidden for the wrong person, and fault.Conflict with a clear text
// for an approval that is settled, expired, or about something else.
func Decide(a Approval, d Decision, by Decider, shown string, now time.Time) (State, error) {
	requester := by.Actor == a.Requester
	switch {
	case d == Deny && (requester || by.Owner || by.Here): // anybody may say no
	case by.Second && (requester || by.Linked):
		return a.State, fault.Newf(fault.Forbidden, "Someone else has to decide on %s: approvals need a second person here.", a.Name())
	case by.Second && !by.Owner && !by.Here, !by.Second && !requester && !by.Owner:
		return a.State, fault.Newf(fault.Forbidden, "Only the person who asked or an owner can decide on %s.", a.Name())
	}
	switch {
	case shown != "" && shown != a.SHA256:
		return a.State, fault.Newf(fault.Conflict, "%s has changed since then. Nothing was decided.", a.Name())
	case a.State != Waiting && a.DecidedBy != "" && a.DecidedBy != "system" && a.DecidedBy != by.Actor: // somebody else was faster
		return a.State, fault.Newf(fault.Conflict, "%s is already %s by %s.", a.Name(), a.State, cmp.Or(a.DecidedName, a.DecidedBy))
	case a.State != Waiting:
		return a.State, fault.Newf(fault.Conflict, "%s is already %s.", a.Name(), a.State)
	case !now.Before(a.ExpiresAt):
		return Expired, fault.Newf(fault.Conflict, "%s has expired; nothing was run.", a.Name())
	case d == Always && a.Rule == "":
		return a.State, fault.Newf(fault.Invalid, "%s can only be approved once.", a.Name())
	case d == Once && a.OnlyAlways():
		return a.State, fault.Newf(fault.Invalid, "%s can only be approved for always: add the word always.", a.Name())
	case d == Once, d == Always:
		return Allowed, nil
	case d == Deny:
		return Denied, nil
	}
	return a.State, fault.Newf(fault.Invalid, "There is no decision %q.", d)
}

// Rule allows calls of a tool in a codebase from now on.
type Rule struct {
	ID         int64
	CodebaseID string
	Tool       string
	Rule       string // compared byte by byte with tool.Effect.Rule
	CreatedBy  string
	CreatedAt  time.Time
}
