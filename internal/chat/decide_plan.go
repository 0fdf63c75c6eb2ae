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
			return tx.Proposals().SettlePlan(ctx, p)
		case v.decision == plan.Edit:
			reply, err = de.newVersion(ctx, tx, r, before, v.text)
		case v.decision == plan.Execute:
			// The turn itself takes the plan: what is decided here is only that
			// it is asked for. Its name goes along, so that no other plan runs.
			reply, err = requestRun(ctx, tx, r, p)
			return err
		default:
			reply, err = settlePlan(ctx, tx, r, p)
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
func requestRun(ctx context.Context, tx *store.Tx, r command.Request, p plan.Plan) (command.Reply, error) {
	p.State = plan.Executing
	reply := command.Reply{Then: "/execute " + p.Name()}
	edits, err := settledMessage(ctx, tx, r, p)
	if err != nil || len(edits) == 0 {
		return reply, err
	}
	before := strings.TrimSuffix(edits[0].Text, bold(planOutcome(r, p)))
	requested := strings.HasPrefix(before[max(strings.LastIndex(before, "\n\n"), 0):], "\n\n**"+runRequested)
	if pressed := r.Entry.In.Message; pressed != "" {
		if requested {
			return reply, fault.Newf(fault.Conflict, "Plan %s was already sent to run. If it was stopped, `/execute %s` starts it again.", p.Name(), p.Name())
		}
		reply.Once = fmt.Sprintf("execute-%s-v%d-%s", p.Name(), p.Version, pressed)
	}
	if !requested {
		reply.Edits = edits
	}
	return reply, nil
}

// settlePlan stores an approval or a rejection.
func settlePlan(ctx context.Context, tx *store.Tx, r command.Request, p plan.Plan) (command.Reply, error) {
	if err := tx.Proposals().SettlePlan(ctx, p); err != nil {
		return command.Reply{}, err
	}
	edits, err := settledMessage(ctx, tx, r, p)
	if err != nil {
		return command.Reply{}, err
	}
	text := fmt.Sprintf("✔ Approved plan %s, version %d. `/execute %s` runs it.", p.Name(), p.Version, p.Name())
	if p.State == plan.Rejected {
		text = fmt.Sprintf("✖ Rejected plan %s; nothing was run.", p.Name())
	}
	return command.Reply{Text: text, Edits: edits}, nil
}

// settledMessage returns the message that shows a plan, without its buttons and
// with what became of it. There is none if it was not delivered yet.
func settledMessage(ctx context.Context, tx *store.Tx, r command.Request, p plan.Plan) ([]messages.Delivery, error) {
	if p.DeliveryID == "" {
		return nil, nil
	}
	d, err := tx.Deliveries().Delivery(ctx, messages.DeliveryID(p.DeliveryID))
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
	d.Text += bold(planOutcome(r, p))
	return []messages.Delivery{d}, nil
}

// bold is a paragraph at the end of a message that shows a plan.
func bold(outcome string) string { return "\n\n**" + outcome + "**" }

// runRequested is what the outcome of a plan that is to run begins with.
const runRequested = "▶ Run requested by "

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
		return runRequested + wording.Who(r.Entry.In.Sender.Name, r.Actor())
	}
}

func auditPlan(ctx context.Context, tx *store.Tx, r command.Request, p plan.Plan, d plan.Decision) error {
	return tx.Audit(ctx, sessions.AuditEntry{
		Actor: r.Actor(), Action: "plan." + string(d), ConversationID: r.Conv.ID,
		Target: fmt.Sprintf("%s v%d", p.Name(), p.Version), Detail: fmt.Sprintf(`{"sha256":%q}`, p.SHA256),
	})
}
