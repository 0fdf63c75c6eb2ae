package turn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// ruling is what the rules, or a person, say of a call.
type ruling struct {
	verdict    assistant.Verdict
	waits      bool // a person has been asked and has not decided
	approval   approval.Approval
	deliveries []messages.Delivery // the question, if it is new
	denied     error               // why a turn may not go on
}

// waits reports whether a turn ended because a person is asked.
func waits(err error) bool { return errors.Is(err, assistant.ErrWaiting) }

// holdFor is how long the deliveries of a question belong to the process that
// asks.
type holdFor time.Duration

const holdForSender = holdFor(outbox.Hold)

// consult finds what a person decided about a call, or asks. It is repeated when
// the turn runs again, with the same call.
func (r *run) consult(ctx context.Context, tx port.Tx, a approval.Approval, hold holdFor) (ruling, error) {
	a.ConversationID, a.SessionID, a.EntryID = r.w.conv.ID, r.d.begun.session.ID, r.d.entry.ID
	a.CodebaseID, a.Requester = r.w.conv.CodebaseID, r.d.entry.In.Actor()
	a.Title, a.Detail = wording.Head(r.w.o.redact(a.Title), 300), r.w.o.redact(a.Detail)
	if a.Kind != assistant.KindExecute { // which is shown as code
		a.Title = wording.Literal(a.Title)
	}
	before, asked, err := tx.Questions().CallApproval(ctx, r.d.entry.ID, a.CallID)
	if err == nil && !asked && hold > 0 {
		asked, err = r.passOn(ctx, tx, &a)
		before = a
	}
	if err != nil {
		return ruling{}, err
	}
	// In another repository the same words are another thing, and so is what an agent shows
	// otherwise: not all of it is in the arguments.
	changed := hold > 0 && before.Detail != plainText(a.Detail)
	if !asked || changed || before.SHA256 != approval.Sum(a.Tool, a.Arguments) || before.CodebaseID != a.CodebaseID {
		return r.question(ctx, tx, a, hold)
	}
	result := ruling{approval: before}
	switch before.State {
	case approval.Allowed:
		result.verdict = assistant.Verdict{Allow: true, Always: before.OnlyAlways()}
	case approval.Denied:
		result.verdict.Reason = "not run: a person denied it" + wording.Because(before.Note) + ". Do not try the same in another way; suggest an alternative instead."
	case approval.Waiting:
		if time.Now().Before(before.ExpiresAt) {
			result.waits = true
			return result, nil
		}
		if err := r.w.o.expire(ctx, tx, before); err != nil {
			return ruling{}, err
		}
		fallthrough
	case approval.Expired, approval.Canceled:
		result.verdict.Reason = "not run: it was not approved in time."
	}
	return result, nil
}

// unshown says to a model, and to people, why nobody can be asked about an effect: they would
// not see all of it. Both are empty if they would. A credential is one word; where more than
// that is masked, what only looks like one could hide a command.
func (o *Turns) unshown(detail string) (reason, notice string) {
	if detail == "" {
		return "not run: it is too long to be shown, so nobody can allow it. Do it in smaller steps.",
			"⚠ This is too long to be shown whole, so it was denied: "
	}
	const separators = " \t\r\n;|&<>()`$"
	shown := o.redact(detail)
	for i := range separators {
		if s := separators[i : i+1]; strings.Count(detail, s) > strings.Count(shown, s) {
			return "not run: part of it looks like a credential, which is never shown, so nobody can allow it. Read credentials from a file.",
				"⚠ Part of this looks like a credential and cannot be shown, so it was denied: "
		}
	}
	return "", ""
}

// audit records that a question was asked, or what became of it. more is further fields of
// JSON, each behind a comma.
func audit(ctx context.Context, tx port.Tx, a *approval.Approval, actor, what, more string) error {
	return tx.Audit(ctx, sessions.AuditEntry{
		Actor: actor, Action: "approval." + what, ConversationID: a.ConversationID, Target: a.Name(),
		Detail: fmt.Sprintf(`{"tool":%q,"sha256":%q%s}`, a.Tool, a.SHA256, more),
	})
}

// passOn gives a call what a person said to one just like it, of which the agent did not hear
// before the turn was interrupted. That one never ran, and the answer is this call's from now on.
func (r *run) passOn(ctx context.Context, tx port.Tx, a *approval.Approval) (passed bool, err error) {
	yes, ok, err := tx.Questions().UnheardApproval(ctx, a.EntryID, approval.Sum(a.Tool, a.Arguments), unheard)
	same := a.CodebaseID == yes.CodebaseID && a.Kind == yes.Kind && plainText(a.Title) == yes.Title && plainText(a.Detail) == yes.Detail
	if err != nil || !ok || !same || !time.Now().Before(yes.ExpiresAt) {
		return false, err
	}
	a.ExpiresAt = yes.ExpiresAt
	if err := tx.Questions().InsertApproval(ctx, a); err != nil {
		return false, err
	}
	a.State, a.DecidedBy, a.DecidedAt, a.Note = yes.State, yes.DecidedBy, yes.DecidedAt, yes.Note
	if err := tx.Questions().SettleApproval(ctx, *a); err != nil {
		return false, err
	}
	return true, audit(ctx, tx, a, "system", string(a.State), fmt.Sprintf(`,"as":%q`, yes.Name()))
}

// question stores an approval and the message that asks.
func (r *run) question(ctx context.Context, tx port.Tx, a approval.Approval, hold holdFor) (ruling, error) {
	r.w.asked.Store(true)
	if err := tx.Questions().InsertApproval(ctx, &a); err != nil {
		return ruling{}, err
	}
	text, buttons, err := r.w.o.showApproval(ctx, tx, r.w.conv, a)
	if err != nil {
		return ruling{}, err
	}
	result := ruling{waits: true, approval: a}
	parts := r.w.o.outbox.Split(r.w.conv.Key.Platform, text)
	for i, part := range parts {
		q := outbox.Answer(r.w.conv.ID, r.d.entry, part)
		q.Control = true
		if i == 0 {
			q.Placeholder = outbox.Beginning(part) // it notifies
		}
		if hold > 0 {
			q.NextAt = time.Now().Add(time.Duration(hold))
		}
		if i == len(parts)-1 {
			q.Buttons = buttons
			a.DeliveryID = string(q.ID)
		}
		if err := tx.Deliveries().AddDelivery(ctx, &q); err != nil {
			return ruling{}, err
		}
		q.State = messages.DeliveryPending
		if hold == 0 {
			r.w.untried[q.ID] = true // the worker brings it itself, and nobody has sent it yet
		}
		result.deliveries = append(result.deliveries, q)
	}
	if err := tx.Questions().SettleApproval(ctx, a); err != nil { // records where it is shown
		return ruling{}, err
	}
	result.approval = a
	return result, audit(ctx, tx, &a, a.Requester, "ask", "")
}

// showApproval returns how a question is shown: the exact effect, who decides,
// and buttons where the platform has them.
func (o *Turns) showApproval(ctx context.Context, tx port.Tx, conv sessions.Conversation, a approval.Approval) (string, []messages.Button, error) {
	prefix, name := o.outbox.Prefix(conv.Key), a.Name()
	who := "The person who asked or an owner"
	if o.config.SecondApprover {
		who = "Someone other than the person who asked"
	}
	run, always, only := "` to run", "", a.OnlyAlways()
	if only {
		run = " always` to allow " + covered(a) + " from now on"
	} else if a.Rule != "" {
		always = fmt.Sprintf(" · `%sapprove %s always` to allow %s from now on", prefix, name, covered(a))
	}
	text := fmt.Sprintf("✋ **%s: %s**\n\n%s\n\n---\n\n`%sapprove %s%s · `%sdeny %s` to refuse%s\n\n%s can decide. Without an answer, it expires in %d hours and is not run.%s",
		name, a.Question(), a.Detail, prefix, name, run, prefix, name, always, who, int(time.Until(a.ExpiresAt).Round(time.Hour)/time.Hour), o.outbox.Open("/approvals/"+name))
	if adapter := o.outbox.Adapters[conv.Key.Platform]; adapter == nil || !adapter.Capabilities().Buttons {
		return text, nil, nil
	}
	var choices []command.Choice
	if !only {
		choices = append(choices, command.Choice{Decision: string(approval.Once), Label: verb(a), Style: messages.ButtonPrimary})
	}
	if a.Rule != "" {
		choices = append(choices, command.Choice{Decision: string(approval.Always), Label: "Always allow this", Style: messages.ButtonPlain})
	}
	choices = append(choices, command.Choice{Decision: string(approval.Deny), Label: "Don't run", Style: messages.ButtonPlain})
	buttons, err := command.Offer(ctx, tx.Buttons(), command.Button{
		ConversationID: conv.ID, On: command.OnApproval, Number: a.Number, SHA256: a.SHA256, ExpiresAt: a.ExpiresAt,
	}, choices...)
	return text, buttons, err
}

// covered says what a rule would allow: that of a command, and of an agent's call, is all
// that is shown; others are wider.
func covered(a approval.Approval) string {
	if a.Kind == assistant.KindExecute || a.Rule == a.Arguments {
		return "it"
	}
	return "every call for `" + strings.ReplaceAll(a.Rule, "`", "'") + "`"
}

func verb(a approval.Approval) string {
	switch {
	case a.Tool == approval.ToolContinue, a.Tool == approval.ToolBudget:
		return "Continue"
	case a.Tool == approval.ToolClone:
		return "Clone it"
	case a.Kind == assistant.KindExecute:
		return "Run it"
	}
	return "Allow"
}

// settledQuestion changes the message that asked: no buttons, and what became of
// it. ok is false if there is none.
func (o *Turns) settledQuestion(ctx context.Context, tx port.Tx, key messages.ConversationKey, a approval.Approval, pressed messages.MessageID, hold time.Duration) (d messages.Delivery, ok bool, err error) {
	if a.DeliveryID == "" {
		return d, false, nil
	}
	d, err = tx.Deliveries().Delivery(ctx, messages.DeliveryID(a.DeliveryID))
	if fault.Is(err, fault.NotFound) {
		return d, false, nil
	}
	if err != nil {
		return d, false, err
	}
	if d.Message == "" {
		d.Message = pressed // pressed before our own record of sending it
	}
	d.Buttons = nil
	end := "\n\n**" + a.Outcome() + "**"
	if !o.outbox.Caps(key.Platform).Fits(d.Text + end) {
		d.Text = "**" + a.Name() + ":** " + a.Question() // the whole of it is in the database
	}
	d.Text += end
	d.NextAt = time.Time{}
	if hold > 0 {
		d.NextAt = time.Now().Add(hold)
	}
	if d.Message != "" {
		d.State, d.Final = messages.DeliveryPlaced, true
	}
	return d, true, tx.Deliveries().UpdateDelivery(ctx, d)
}

// settledAs are the names of what became of questions, for the metrics.
var settledAs = map[approval.State]string{
	approval.Allowed: "approved", approval.Denied: "denied", approval.Expired: "expired", approval.Canceled: "withdrawn",
}

// settle stores what became of a question, and counts it once that is committed.
func (o *Turns) settle(ctx context.Context, tx port.Tx, a approval.Approval) error {
	if err := tx.Questions().SettleApproval(ctx, a); err != nil {
		return err
	}
	tx.AfterCommit(func() { o.config.Metrics.Approval(settledAs[a.State], a.DecidedAt.Sub(a.CreatedAt)) })
	return nil
}

// expire settles an approval that nobody decided in time.
func (o *Turns) expire(ctx context.Context, tx port.Tx, a approval.Approval) error {
	conv, err := tx.Conversations().Conversation(ctx, a.ConversationID)
	if err != nil {
		return err
	}
	a.State, a.DecidedBy, a.DecidedAt = approval.Expired, "system", time.Now()
	if err := o.settle(ctx, tx, a); err != nil {
		return err
	}
	if err := audit(ctx, tx, &a, a.DecidedBy, string(a.State), ""); err != nil {
		return err
	}
	_, _, err = o.settledQuestion(ctx, tx, conv.Key, a, "", 0)
	return err
}

// cancelQuestions settles what a turn asked when it ends, or for the reason of note.
func (o *Turns) cancelQuestions(ctx context.Context, tx port.Tx, entry sessions.Entry, note string) error {
	open, err := tx.Questions().EntryApprovals(ctx, entry.ID)
	if err != nil {
		return err
	}
	for _, a := range open {
		a.State, a.DecidedBy, a.DecidedAt, a.Note = approval.Canceled, "system", time.Now(), note
		if err := o.settle(ctx, tx, a); err != nil {
			return err
		}
		if _, _, err := o.settledQuestion(ctx, tx, entry.In.Conversation, a, "", 0); err != nil {
			return err
		}
	}
	return nil
}

// Decision is what a person says about an approval.
type Decision struct {
	Number   int64
	Decision approval.Decision
	Note     string
	Shown    string // SHA-256 of what the decision was made on; empty where it was named
}

// Decide settles an approval, once, and lets the turn that asked go on, wherever it
// is, and returns it as it is now. Any conversation will do: what was asked in one
// can be decided in another by somebody who may.
func (o *Turns) Decide(ctx context.Context, r command.Request, v Decision) (approval.Approval, error) {
	var (
		a       approval.Approval
		shown   messages.Delivery
		has     bool
		conv    sessions.Conversation
		refused error
	)
	err := o.config.Storage.InTx(ctx, func(tx port.Tx) error {
		refused, has = nil, false
		var err error
		if a, err = tx.Questions().Approval(ctx, v.Number); err != nil {
			return err
		}
		if conv, err = tx.Conversations().Conversation(ctx, a.ConversationID); err != nil {
			return err
		}
		if a.DecidedName, err = sessions.NameOf(ctx, tx.People(), a.DecidedBy); err != nil {
			return err
		}
		by, err := o.decider(ctx, tx, r, a)
		if err != nil {
			return err
		}
		state, err := approval.Decide(a, v.Decision, by, v.Shown, time.Now())
		if err != nil {
			refused = err
			if state == a.State {
				if a.DecidedBy == r.Actor() && !a.DecidedAt.Before(r.Entry.AcceptedAt.Truncate(time.Millisecond)) {
					refused, a.DecidedName = nil, wording.Who(r.Entry.In.Sender.Name, "") // this very command, before a crash
				}
				return nil
			}
		}
		a.State, a.DecidedBy, a.DecidedAt, a.Note = state, r.Actor(), time.Now(), wording.Head(v.Note, 500)
		a.DecidedName = wording.Who(r.Entry.In.Sender.Name, "")
		if refused != nil {
			a.DecidedBy, a.Note = "system", ""
		}
		var pressed messages.MessageID
		if r.Entry.In.Kind == messages.KindAction {
			pressed = r.Entry.In.Message
		}
		shown, has, err = o.settleApproval(ctx, tx, conv.Key, a, v.Decision, pressed)
		return err
	})
	if err != nil {
		return a, err
	}
	o.decided.tell(a.Number)
	o.background.Go(func(ctx context.Context) {
		if has && shown.Message != "" { // else whoever is sending the question shows it
			_ = o.outbox.SendHeld(ctx, conv.Key, []messages.Delivery{shown}) // else the conversation's worker does
		}
		_ = o.Ring(ctx, conv.ID) // else its job rings
	})
	return a, refused
}

// decider is who decides on a, as they are at this moment: they may have lost their access
// since they were let in.
func (o *Turns) decider(ctx context.Context, tx port.Tx, r command.Request, a approval.Approval) (approval.Decider, error) {
	by := approval.Decider{Actor: r.Actor(), Here: a.ConversationID == r.Conv.ID, Second: o.config.SecondApprover}
	who, err := o.access.Judge(ctx, tx, r.Entry.In)
	if err != nil {
		return by, err
	}
	switch who.Role {
	case sessions.Stranger:
		return by, fault.New(fault.Forbidden, "You can no longer use this bot.")
	case sessions.Reader:
		return by, fault.New(fault.Forbidden, "You have read-only access; someone else has to decide.")
	case sessions.Owner:
		by.Owner = true
	case sessions.User:
	}
	if by.Second {
		by.Linked, err = tx.People().SamePerson(ctx, by.Actor, a.Requester)
	}
	return by, err
}

// settleApproval stores a decision and wakes the turn that waits for it.
func (o *Turns) settleApproval(ctx context.Context, tx port.Tx, key messages.ConversationKey, a approval.Approval, d approval.Decision, pressed messages.MessageID) (messages.Delivery, bool, error) {
	if err := o.settle(ctx, tx, a); err != nil {
		return messages.Delivery{}, false, err
	}
	if d == approval.Always && a.State == approval.Allowed {
		err := tx.Questions().SaveRule(ctx, approval.Rule{CodebaseID: a.CodebaseID, Tool: a.Tool, Rule: a.Rule, CreatedBy: a.DecidedBy})
		if err != nil {
			return messages.Delivery{}, false, err
		}
	}
	shown, has, err := o.settledQuestion(ctx, tx, key, a, pressed, outbox.Hold)
	if err != nil {
		return shown, has, err
	}
	if a.EntryID != "" {
		now := time.Now()
		if err := tx.Inbox().UpdateEntry(ctx, a.EntryID, sessions.EntryUpdate{NextAt: &now}); err != nil {
			return shown, has, err
		}
	}
	if err := o.config.Queue.Enqueue(ctx, tx, queue.Job{Kind: queue.KindTurn, Key: a.ConversationID}); err != nil {
		return shown, has, err
	}
	return shown, has, audit(ctx, tx, &a, a.DecidedBy, string(a.State), fmt.Sprintf(`,"always":%t`, d == approval.Always && a.State == approval.Allowed))
}
