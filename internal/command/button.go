package command

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/plan"
)

// Subject is the kind of thing that a button decides on.
type Subject string

// The subjects.
const (
	OnPlan     Subject = "plan"
	OnApproval Subject = "approval" // a question about a tool call
	OnPairing  Subject = "pairing"  // a stranger who requests access
)

// What owners say of a stranger.
const (
	LetIn     = "let_in"
	LetInRead = "let_in_read" // to ask, and to change nothing
	LetOut    = "let_out"
)

// Button is what pressing a messages.Button means. It is kept under a random id,
// which is all that the platform gets to see.
type Button struct {
	ID             string // at most 40 bytes of [A-Za-z0-9_-]
	ConversationID string
	On             Subject
	Number         int64  // of the plan, the approval or the pairing
	Decision       string // a plan.Decision, an approval.Decision, or LetIn and the like
	SHA256         string // of what was shown
	ExpiresAt      time.Time
}

// Choice is a decision that a button offers.
type Choice struct {
	Decision string
	Label    string
	Style    messages.ButtonStyle
}

// ButtonStore keeps buttons; a transaction of the database is one.
type ButtonStore interface {
	SaveButton(ctx context.Context, b Button) error
}

// Offer stores a button for each choice, all of them as b otherwise is, and
// returns them as a platform shows them.
func Offer(ctx context.Context, tx ButtonStore, b Button, choices ...Choice) ([]messages.Button, error) {
	buttons := make([]messages.Button, len(choices))
	for i, c := range choices {
		b.ID, b.Decision = rand.Text(), c.Decision
		if err := tx.SaveButton(ctx, b); err != nil {
			return nil, err
		}
		buttons[i] = messages.Button{ID: b.ID, Label: c.Label, Style: c.Style}
	}
	return buttons, nil
}

// OpenLink returns a link to a page in the browser below the address of all, with a space
// before it; nothing if there are none.
func OpenLink(pages, path string) string {
	if pages == "" {
		return ""
	}
	return " [Open](" + pages + path + ")"
}

// RunRequested is what the outcome of a plan that is to run begins with; who asked for it follows.
const RunRequested = "▶ Run requested by "

// planMark is between a plan and how to decide on it.
const planMark = "\n\n---\n\n📋 "

// ShowPlan returns how a plan that waits is shown: its text, how to decide on it, a link
// to its page below pages, and buttons, if the platform has them. Each button is bound to
// the version that is shown.
func ShowPlan(ctx context.Context, tx ButtonStore, p plan.Plan, prefix, pages string, withButtons bool) (string, []messages.Button, error) {
	name := p.Name()
	text := fmt.Sprintf("%s\n\n---\n\n📋 **Plan %s, version %d.** `%sexecute %s` to run · `%sedit %s <text>` to replace · `%sreject %s` to drop\n\n"+
		"The person who asked or an owner can decide. Expires in %d hours.%s",
		p.Text, name, p.Version, prefix, name, prefix, name, prefix, name, int(plan.TTL/time.Hour), OpenLink(pages, "/approvals/"+name))
	if !withButtons {
		return text, nil, nil
	}
	b := Button{ConversationID: p.ConversationID, On: OnPlan, Number: p.Number, SHA256: p.SHA256, ExpiresAt: p.ExpiresAt}
	buttons, err := Offer(ctx, tx, b,
		Choice{string(plan.Execute), "Approve and run", messages.ButtonPrimary},
		Choice{string(plan.Approve), "Approve", messages.ButtonPlain},
		Choice{string(plan.Edit), "Edit", messages.ButtonPlain},
		Choice{string(plan.Reject), "Reject", messages.ButtonDanger},
	)
	return text, buttons, err
}

// SettledPlan returns what the message that shows a plan says once nobody can decide on it
// any more: also what became of it. Where a message cannot hold that as well, it takes the
// place of how to decide.
func SettledPlan(shown, outcome string, fits func(text string) bool) string {
	end := "\n\n**" + outcome + "**"
	if i := strings.LastIndex(shown, planMark); i >= 0 && !fits(shown+end) {
		name, _, _ := strings.Cut(shown[i:], " `")
		shown = shown[:i] + name
	}
	return shown + end
}

// TurnAction is what a button does to a turn that failed, or whose answer was abridged.
type TurnAction string

// The actions.
const (
	Retry      TurnAction = "retry" // it has failed for good: as /retry
	RetryNow   TurnAction = "now"   // it waits for its next try
	OtherModel TurnAction = "model" // likewise: with another model
	Full       TurnAction = "full"  // its answer was abridged: as /full
)

const turnPrefix = "turn-"

// TurnButton is the id of a button for the turn of an entry with a sequence number. It
// needs no record.
func TurnButton(conversationID string, seq int64, what TurnAction) string {
	return turnPrefix + conversationID[len(conversationID)-12:] + "-" + strconv.FormatInt(seq, 10) + "-" + string(what)
}

// TurnPressed reports whether the id of a button is one of TurnButton, and returns for
// which turn it is. seq is 0 for one of another conversation.
func TurnPressed(id, conversationID string) (seq int64, what TurnAction, ok bool) {
	rest, ok := strings.CutPrefix(id, turnPrefix)
	if !ok {
		return 0, "", false
	}
	where, rest, _ := strings.Cut(rest, "-")
	digits, action, _ := strings.Cut(rest, "-")
	seq, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || seq < 0 || len(where) != 12 || !strings.HasSuffix(conversationID, where) {
		return 0, "", true
	}
	return seq, TurnAction(action), true
}

const stopPrefix = "stop-"

// StopButton is the id of the button that stops the turn of an entry with a
// sequence number. It needs no record: it does what /stop does, for turns up to
// that one.
func StopButton(conversationID string, seq int64) string {
	return stopPrefix + conversationID[len(conversationID)-12:] + "-" + strconv.FormatInt(seq, 10)
}

// StopPressed reports whether the id of a button is one of StopButton, and returns
// up to which entry it stops. seq is 0 for one of another conversation.
func StopPressed(id, conversationID string) (seq int64, ok bool) {
	rest, ok := strings.CutPrefix(id, stopPrefix)
	if !ok {
		return 0, false
	}
	where, digits, _ := strings.Cut(rest, "-")
	seq, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || seq < 0 || len(where) != 12 || !strings.HasSuffix(conversationID, where) {
		return 0, true
	}
	return seq, true
}
