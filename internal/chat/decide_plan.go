package chat

import (
	"context"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// verdict is a decision that somebody took.
type verdict struct {
	decision plan.Decision
	args     []string // the plan may be named by the first
	text     string   // note, reason, or the new text of an edit
	shown    string   // SHA-256 of what the decision was made on; empty for the current text
}

// decide settles a plan, once: the row is locked, the rule is plan.Decide, and
// what people see of the plan is changed in the same step.
func (de *decisions) decide(ctx context.Context, r command.Request, v verdict) (command.Reply, error) {
	var (
		reply   command.Reply
		refused error
	)
	err := de.store.InTx(ctx, func(tx *store.Tx) error {
		reply, refused = command.Reply{}, nil
		p, _, err := plan.Find(ctx, tx.Proposals(), r.Conv.ID, v.args)
		if err != nil {
			return err
		}
		if p.DecidedName, err = sessions.NameOf(ctx, tx.People(), p.DecidedBy); err != nil {
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
			reply.Edits, err = de.settledMessage(ctx, tx, r, p)
			if err != nil {
				return err
			}
			return tx.Proposals().SettlePlan(ctx, p)
		case v.decision == plan.Edit:
			reply, err = de.newVersion(ctx, tx, r, before, v.text)
		case v.decision == plan.Execute:
			// The turn itself takes the plan: what is decided here is only that
			// it is asked for. Its name goes along, so that no other plan runs.
			reply, err = de.requestRun(ctx, tx, r, p)
			return err
		default:
			reply, err = de.settlePlan(ctx, tx, r, p)
		}
		if err != nil {
			return err
		}
		return auditPlan(ctx, tx, r, p, v.decision)
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

// requestRun has a plan run, once for each message that shows it: the plan can wait for
// its turn, and people press again meanwhile.
func (de *decisions) requestRun(ctx context.Context, tx *store.Tx, r command.Request, p plan.Plan) (command.Reply, error) {
	p.State = plan.Executing
	reply := command.Reply{Then: "/execute " + p.Name()}
	d, ok, err := planMessage(ctx, tx, r, p)
	if err != nil || !ok {
		return reply, err
	}
	requested := strings.HasPrefix(d.Text[max(strings.LastIndex(d.Text, "\n\n"), 0):], "\n\n**"+command.RunRequested)
	if pressed := r.Entry.In.Message; pressed != "" {
		if requested {
			return reply, fault.Newf(fault.Conflict, "Plan %s was already sent to run. If it was stopped, `/execute %s` starts it again.", p.Name(), p.Name())
		}
		reply.Once = fmt.Sprintf("execute-%s-v%d-%s", p.Name(), p.Version, pressed)
	}
	if !requested {
		reply.Edits = []messages.Delivery{de.settledText(r, d, p)}
	}
	return reply, nil
}

// settlePlan stores an approval or a rejection.
func (de *decisions) settlePlan(ctx context.Context, tx *store.Tx, r command.Request, p plan.Plan) (command.Reply, error) {
	if err := tx.Proposals().SettlePlan(ctx, p); err != nil {
		return command.Reply{}, err
	}
	edits, err := de.settledMessage(ctx, tx, r, p)
	if err != nil {
		return command.Reply{}, err
	}
	text := fmt.Sprintf("✔ Approved plan %s, version %d. `/execute %s` runs it.", p.Name(), p.Version, p.Name())
	if p.State == plan.Rejected {
		text = fmt.Sprintf("✖ Rejected plan %s; nothing was run.", p.Name())
	}
	return command.Reply{Text: text, Edits: edits}, nil
}

// planMessage returns the message that shows a plan. There is none if it was not
// delivered yet.
func planMessage(ctx context.Context, tx *store.Tx, r command.Request, p plan.Plan) (d messages.Delivery, ok bool, err error) {
	if p.DeliveryID == "" {
		return d, false, nil
	}
	d, err = tx.Deliveries().Delivery(ctx, messages.DeliveryID(p.DeliveryID))
	switch {
	case fault.Is(err, fault.NotFound):
		return d, false, nil
	case err != nil:
		return d, false, err
	case d.Message == "" && r.Entry.In.Kind == messages.KindAction:
		d.Message = r.Entry.In.Message // pressed before our own record of sending it
	}
	return d, d.Message != "", nil
}

// settledMessage returns the message that shows a plan, without its buttons and
// with what became of it.
func (on platforms) settledMessage(ctx context.Context, tx *store.Tx, r command.Request, p plan.Plan) ([]messages.Delivery, error) {
	d, ok, err := planMessage(ctx, tx, r, p)
	if err != nil || !ok {
		return nil, err
	}
	return []messages.Delivery{on.settledText(r, d, p)}, nil
}

// settledText changes the message that shows a plan.
func (on platforms) settledText(r command.Request, d messages.Delivery, p plan.Plan) messages.Delivery {
	d.Buttons = nil
	d.Text = command.SettledPlan(d.Text, planOutcome(r, p), on.caps(r.Conv.Key.Platform).Fits)
	return d
}

// planOutcome says what became of a plan that somebody decides on.
func planOutcome(r command.Request, p plan.Plan) string {
	by := ""
	if p.DecidedBy == r.Actor() {
		by = " by " + wording.Who(r.Entry.In.Sender.Name, p.DecidedBy)
	}
	switch p.State {
	case plan.Approved:
		return "✔ Approved" + by
	case plan.Rejected:
		return "✖ Rejected" + by
	case plan.Expired:
		return "Expired; nothing was run"
	case plan.Superseded:
		return "Replaced by a newer version"
	default:
		return command.RunRequested + wording.Who(r.Entry.In.Sender.Name, r.Actor())
	}
}

func auditPlan(ctx context.Context, tx *store.Tx, r command.Request, p plan.Plan, d plan.Decision) error {
	return tx.Audit(ctx, sessions.AuditEntry{
		Actor: r.Actor(), Action: "plan." + string(d), ConversationID: r.Conv.ID,
		Target: fmt.Sprintf("%s v%d", p.Name(), p.Version), Detail: fmt.Sprintf(`{"sha256":%q}`, p.SHA256),
	})
}
