package work

import (
	"context"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/plan"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

// verdict is a decision that somebody took.
type verdict struct {
	decision plan.Decision
	args     []string // the plan may be named by the first
	text     string   // note, reason, or the new text of an edit
	shown    string   // SHA-256 of what the decision was made on; empty for the current text
}

func (s *Shop) runApprove(ctx context.Context, r command.Request) (command.Reply, error) {
	if names(r) {
		return s.core.ApproveByName(ctx, r, approval.Once)
	}
	return s.decide(ctx, r, named(r, plan.Approve))
}

func (s *Shop) runReject(ctx context.Context, r command.Request) (command.Reply, error) {
	if names(r) {
		return s.core.ApproveByName(ctx, r, approval.Deny)
	}
	return s.decide(ctx, r, named(r, plan.Reject))
}

func (s *Shop) runEdit(ctx context.Context, r command.Request) (command.Reply, error) {
	v := named(r, plan.Edit)
	if v.text == "" {
		return command.Reply{}, fault.New(fault.Invalid, "Write the new text of the plan after the command: `/edit p-1 1. ...`.")
	}
	return s.decide(ctx, r, v)
}

// names reports whether the first argument is the name of a question about a
// tool, such as a-7, and not of a plan.
func names(r command.Request) bool {
	if len(r.Call.Args) == 0 {
		return false
	}
	_, ok := approval.ParseName(r.Call.Args[0])
	return ok
}

// named reads "[plan] [text]".
func named(r command.Request, d plan.Decision) verdict {
	v := verdict{decision: d, text: r.Call.Rest}
	if len(r.Call.Args) > 0 {
		if _, ok := orchestrator.PlanNumber(r.Call.Args[0]); ok {
			v.args = r.Call.Args[:1]
			v.text = strings.TrimSpace(strings.TrimPrefix(r.Call.Rest, r.Call.Args[0]))
		}
	}
	return v
}

// Pressed answers a button under a plan, or the dialog that one opened. What a
// button means is what was stored when it was shown; the press itself carries
// nothing.
func (s *Shop) Pressed(ctx context.Context, r command.Request) (command.Reply, error) {
	in := r.Entry.In
	var b orchestrator.Button
	err := s.storage.InRead(ctx, func(tx orchestrator.Tx) error {
		var err error
		b, err = tx.Button(ctx, in.Action)
		return err
	})
	switch {
	case fault.Is(err, fault.NotFound), err == nil && b.ConversationID != r.Conv.ID:
		return command.Reply{}, fault.New(fault.NotFound, "This button has expired. Nothing was done.")
	case err != nil:
		return command.Reply{}, err
	case orchestrator.IsApproval(b):
		return s.core.PressedApproval(ctx, r, b)
	}
	v := verdict{
		decision: b.Decision, args: []string{fmt.Sprintf("p-%d", b.PlanNumber)}, text: strings.TrimSpace(in.Text), shown: b.SHA256,
	}
	if b.Decision == plan.Edit && v.text == "" {
		return s.askForText(ctx, r, b)
	}
	return s.decide(ctx, r, v)
}

// askForText opens a dialog with the plan, where the platform has dialogs, or
// says what to type.
func (s *Shop) askForText(ctx context.Context, r command.Request, b orchestrator.Button) (command.Reply, error) {
	name := fmt.Sprintf("p-%d", b.PlanNumber)
	dialoger, ok := s.adapters[r.Conv.Key.Platform].(platform.Dialoger)
	if !ok || r.Entry.In.Trigger == "" {
		return command.Reply{Text: fmt.Sprintf("Send `/edit %s` and the new text after it.", name)}, nil
	}
	var p plan.Plan
	err := s.storage.InTx(ctx, func(tx orchestrator.Tx) error {
		var err error
		p, err = tx.Plan(ctx, b.PlanNumber)
		return err
	})
	if err != nil {
		return command.Reply{}, err
	}
	err = dialoger.OpenDialog(ctx, r.Entry.In, platform.Dialog{
		Trigger: r.Entry.In.Trigger, ID: b.ID, Title: "Plan " + name, Label: "The plan, as it is to be carried out",
		Text: p.Text, Submit: "Save",
	})
	if err != nil {
		s.log.InfoContext(ctx, "Could not open a dialog", "conversation", r.Conv.Key, "err", err)
		return command.Reply{Text: fmt.Sprintf("Send `/edit %s` and the new text after it.", name)}, nil
	}
	return command.Reply{}, nil
}

// decide settles a plan, once: the row is locked, the rule is plan.Decide, and
// what people see of the plan is changed in the same step.
func (s *Shop) decide(ctx context.Context, r command.Request, v verdict) (command.Reply, error) {
	var (
		reply   command.Reply
		refused error
	)
	err := s.storage.InTx(ctx, func(tx orchestrator.Tx) error {
		reply, refused = command.Reply{}, nil
		p, _, err := orchestrator.FindPlan(ctx, tx, r.Conv.ID, v.args)
		if err != nil {
			return err
		}
		by := plan.Decider{Actor: r.Actor(), Owner: r.Role == sessions.Owner}
		now := time.Now()
		state, err := plan.Decide(p, v.decision, by, v.shown, now)
		if err != nil {
			refused = err
			if state == p.State {
				return nil
			}
		}
		before := p
		p.State, p.DecidedBy, p.DecidedAt, p.Note = state, by.Actor, now, v.text
		switch {
		case refused != nil: // it has expired
			p.DecidedBy, p.Note = "system", ""
			reply.Edits, err = settledMessage(ctx, tx, r, p)
			if err != nil {
				return err
			}
			return tx.SettlePlan(ctx, p)
		case v.decision == plan.Edit:
			reply, err = s.newVersion(ctx, tx, r, before, v.text)
		case v.decision == plan.Execute:
			// The turn itself takes the plan: what is decided here is only that
			// it is asked for. Its name goes along, so that no other plan runs.
			reply = command.Reply{Then: "/execute " + p.Name()}
			p.State, p.DecidedBy, p.Note = before.State, before.DecidedBy, before.Note
			reply.Edits, err = settledMessage(ctx, tx, r, p)
			return err
		default:
			reply, err = settle(ctx, tx, r, p)
		}
		if err != nil {
			return err
		}
		return audit(ctx, tx, r, p, v.decision)
	})
	if err != nil {
		return command.Reply{}, err
	}
	if refused != nil && len(reply.Edits) == 0 {
		return command.Reply{}, refused
	}
	if refused != nil {
		reply.Text = "✖ " + fault.Public(refused)
	}
	return reply, nil
}

// settle stores an approval or a rejection.
func settle(ctx context.Context, tx orchestrator.Tx, r command.Request, p plan.Plan) (command.Reply, error) {
	if err := tx.SettlePlan(ctx, p); err != nil {
		return command.Reply{}, err
	}
	edits, err := settledMessage(ctx, tx, r, p)
	if err != nil {
		return command.Reply{}, err
	}
	text := fmt.Sprintf("✔ Plan %s, version %d, is approved. `/execute %s` runs it.", p.Name(), p.Version, p.Name())
	if p.State == plan.Rejected {
		text = fmt.Sprintf("✖ Plan %s is rejected; nothing was run.", p.Name())
	}
	return command.Reply{Text: text, Edits: edits}, nil
}

// newVersion stores a person's text as the next version of a plan and shows it.
func (s *Shop) newVersion(ctx context.Context, tx orchestrator.Tx, r command.Request, old plan.Plan, text string) (command.Reply, error) {
	next := plan.Plan{
		Number: old.Number, ConversationID: old.ConversationID, SessionID: old.SessionID, EntryID: old.EntryID,
		Goal: old.Goal, Text: text, Author: r.Actor(), Requester: old.Requester, State: plan.Proposed, Head: old.Head,
	}
	if err := tx.InsertPlan(ctx, &next); err != nil {
		return command.Reply{}, err
	}
	old.State = plan.Superseded
	edits, err := settledMessage(ctx, tx, r, old)
	if err != nil {
		return command.Reply{}, err
	}
	shown, buttons, err := s.core.ShowPlan(ctx, tx, r.Conv, next)
	return command.Reply{Text: shown, Buttons: buttons, Edits: edits, Plan: &next}, err
}

// settledMessage returns the message that shows a plan, without its buttons and
// with what became of it. There is none if it was not delivered yet.
func settledMessage(ctx context.Context, tx orchestrator.Tx, r command.Request, p plan.Plan) ([]messages.Delivery, error) {
	if p.DeliveryID == "" {
		return nil, nil
	}
	d, err := tx.Delivery(ctx, messages.DeliveryID(p.DeliveryID))
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case d.Message == "" && r.Entry.In.Kind == messages.KindAction:
		d.Message = r.Entry.In.Message // pressed before our own record of sending it
	case d.Message == "":
		return nil, nil
	}
	d.Buttons = nil
	d.Text += "\n\n**" + outcome(p) + "**"
	return []messages.Delivery{d}, nil
}

// outcome says what became of a plan.
func outcome(p plan.Plan) string {
	by := ""
	if p.DecidedBy != "" && p.DecidedBy != "system" {
		by = " by " + p.DecidedBy
	}
	switch p.State {
	case plan.Approved:
		return "✔ Approved" + by
	case plan.Rejected:
		return "✖ Rejected" + by
	case plan.Expired:
		return "Expired: nothing was run"
	case plan.Superseded:
		return "Replaced by a newer version"
	default:
		return "▶ Running"
	}
}

func audit(ctx context.Context, tx orchestrator.Tx, r command.Request, p plan.Plan, d plan.Decision) error {
	return tx.Audit(ctx, sessions.AuditEntry{
		Actor: r.Actor(), Action: "plan." + string(d), ConversationID: r.Conv.ID,
		Target: fmt.Sprintf("%s v%d", p.Name(), p.Version), Detail: fmt.Sprintf(`{"sha256":%q}`, p.SHA256),
	})
}
