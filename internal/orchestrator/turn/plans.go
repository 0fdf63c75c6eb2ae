package turn

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
	"remote-agent/internal/wording"
)

// takePlan decides that a plan runs now: the one that the request names, else
// the newest of the conversation. What was shown is what runs; who may not
// decide, or a plan that is settled, is a refusal. Without any plan it returns
// nil: the prompt then says that there is none.
func (r *run) takePlan(ctx context.Context, tx port.Tx) (*plan.Plan, error) {
	entry, b := r.d.entry, &r.d.begun
	p, named, err := plan.Find(ctx, tx.Proposals(), r.w.conv.ID, b.call.Invoked().Args)
	if fault.Is(err, fault.NotFound) {
		if named && b.prompt.Meta.Consumes == sessions.Plan {
			return nil, &refusal{err: err}
		}
		return nil, nil // an argument like any other
	}
	if err != nil {
		return nil, err
	}
	if p.DecidedName, err = sessions.NameOf(ctx, tx.People(), p.DecidedBy); err != nil {
		return nil, err
	}
	v, err := r.w.o.access.Authorize(ctx, tx, entry.In)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	state, err := plan.Decide(p, plan.Execute, plan.Decider{Actor: entry.In.Actor(), Owner: v.Role == sessions.Owner}, "", now)
	if err != nil {
		if !named && p.State != plan.Proposed && p.State != plan.Approved {
			return nil, nil // settled long ago: this request is not about it
		}
		if state == plan.Expired { // told once; the next request is not about it
			p.State, p.DecidedBy, p.DecidedAt = state, "system", now
			if err := tx.Proposals().SettlePlan(ctx, p); err != nil {
				return nil, err
			}
			if _, err := r.settleShown(ctx, tx, p, "Expired; nothing was run", 0); err != nil {
				return nil, err
			}
		}
		return nil, &refusal{err: err}
	}
	if err := r.madeHere(ctx, tx, p); err != nil {
		return nil, err
	}
	p.State, p.DecidedBy, p.DecidedAt = state, entry.In.Actor(), now
	if err := tx.Proposals().SettlePlan(ctx, p); err != nil {
		return nil, err
	}
	b.shown, err = r.settleShown(ctx, tx, p, command.RunRequested+wording.Who(entry.In.Sender.Name, p.DecidedBy), outbox.Hold)
	if err != nil {
		return nil, err
	}
	return &p, tx.Audit(ctx, sessions.AuditEntry{
		Actor: p.DecidedBy, Action: "plan.execute", ConversationID: r.w.conv.ID,
		Target: fmt.Sprintf("%s v%d", p.Name(), p.Version), Detail: fmt.Sprintf(`{"sha256":%q}`, p.SHA256),
	})
}

// madeHere refuses a plan that was made for another repository than the one that the
// conversation works on now.
func (r *run) madeHere(ctx context.Context, tx port.Tx, p plan.Plan) error {
	made, err := tx.Sessions().Session(ctx, p.SessionID)
	switch {
	case fault.Is(err, fault.NotFound): // deleted since
		return nil
	case err != nil:
		return err
	case made.CodebaseID == "" || made.CodebaseID == r.w.conv.CodebaseID:
		return nil
	}
	prefix := r.w.o.outbox.Prefix(r.w.conv.Key)
	return &refusal{err: fault.Newf(fault.Conflict, "Plan %[1]s was made for another repository than the one here, so it was not run. "+
		"Switch back with `%[2]srepo <name>`, then send `%[2]sexecute %[1]s`.", p.Name(), prefix)}
}

// needsPlan refuses to carry out a plan where none waits: a model could do nothing but
// say so. A session that another program left behind a planning command (seed 002) has
// its plan in its messages, and none on record.
func (r *run) needsPlan(ctx context.Context, tx port.Tx) error {
	b := &r.d.begun
	if b.plan != nil || b.work.Prompt != nil && b.prompt == b.work.Prompt || b.prompt.Meta.Consumes != sessions.Plan {
		return nil
	}
	s, active, err := r.w.activeSession(ctx, tx)
	if err != nil {
		return err
	}
	if active && sessions.Next(s.Metadata, b.prompt.Meta) != sessions.Continue {
		if _, settled, err := tx.Proposals().LatestPlan(ctx, r.w.conv.ID); err != nil || !settled {
			return err
		}
	}
	prefix := r.w.o.outbox.Prefix(r.w.conv.Key)
	return &refusal{err: fault.Newf(fault.NotFound, "There is no plan to run here. `%[1]splan <task>` writes one.", prefix)}
}

// needsGoal refuses a command that came with nothing to work on, where nothing was said in
// the session either.
func (r *run) needsGoal(ctx context.Context, tx port.Tx) error {
	entry, b, ready := r.d.entry, &r.d.begun, r.w.ready[r.d.entry.ID]
	if entry.State == sessions.EntryRunning || b.prompt == nil || b.prompt.Missing == "" || b.call.Invoked().Rest != "" || entry.In.Reference != "" ||
		len(entry.In.Quotes)+len(entry.In.Attachments)+len(ready.earlier)+len(ready.attachments) > 0 {
		return nil
	}
	if _, talked, err := r.w.activeSession(ctx, tx); err != nil || talked {
		return err
	}
	return &refusal{err: fault.New(fault.Invalid, b.prompt.Missing)}
}

// choosePrompt decides which prompt a turn runs, and whether it carries a plan
// out: a command that consumes plans does, and so does one that says nothing of
// plans if a plan is named ("/ship p-2"). "/execute p-2", which is what people are
// told to send, does even where a command of the repository has taken the name for
// something else.
func (o *Turns) choosePrompt(b *begunTurn) {
	b.prompt = b.work.Prompt
	builtin, ok := o.builtinPrompt(b.call)
	if b.prompt == nil && ok {
		b.prompt = &builtin
	}
	if b.prompt == nil {
		return
	}
	meta, named := b.prompt.Meta, namesPlan(b.call)
	switch {
	case meta.Consumes == sessions.Plan:
		b.executes = true
	case !named:
	case meta.Produces != sessions.Plan && !meta.Declared:
		b.executes = true
	case builtin.Meta.Consumes == sessions.Plan:
		b.prompt, b.executes = &builtin, true
	}
}

// namesPlan reports whether the first argument of a command is the name of a plan
// in full ("p-9").
func namesPlan(call command.Call) bool {
	args := call.Invoked().Args
	if len(args) == 0 || !strings.HasPrefix(strings.ToLower(args[0]), "p-") {
		return false
	}
	_, ok := plan.ParseName(args[0])
	return ok
}

// planned returns the call of a turn as its prompt gets it, and the text of the
// plan. A plan that is there in full is not named again; what was said when it was
// approved comes before what is said now.
func (b *begunTurn) planned() (command.Call, string) {
	if b.plan == nil {
		return b.call, ""
	}
	call := b.call.Invoked()
	if len(call.Args) > 0 {
		if n, ok := plan.ParseName(call.Args[0]); ok && n == b.plan.Number {
			call = call.WithoutFirst()
		}
	}
	call.Rest = strings.TrimSpace(b.plan.Note + "\n" + call.Rest)
	return call, b.plan.Text
}

// drift says how the codebase has moved since the plan was made.
func (b *begunTurn) drift() string {
	if b.plan == nil || b.plan.Head == "" || b.work.Head == "" || b.plan.Head == b.work.Head {
		return ""
	}
	return fmt.Sprintf("⚠ The branch has moved since plan %s was written: from `%.10s` to `%.10s`. The plan runs on the current state.",
		b.plan.Name(), b.plan.Head, b.work.Head)
}

// joinNotices puts what the person should know into one message.
func joinNotices(notices ...string) string {
	all := slices.DeleteFunc(notices, func(s string) bool { return s == "" })
	return strings.Join(all, "\n\n")
}

// settleShown takes the buttons off the message that shows a plan, if they are there still,
// and says there what became of it. For hold the message is left to sendShown.
func (r *run) settleShown(ctx context.Context, tx port.Tx, p plan.Plan, outcome string, hold time.Duration) ([]messages.Delivery, error) {
	if p.DeliveryID == "" {
		return nil, nil
	}
	d, err := tx.Deliveries().Delivery(ctx, messages.DeliveryID(p.DeliveryID))
	if fault.Is(err, fault.NotFound) || err == nil && (d.State != messages.DeliverySent || len(d.Buttons) == 0) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d.Text, d.Buttons = command.SettledPlan(d.Text, outcome, r.w.caps().Fits), nil
	d.Control, d.State, d.NextAt = true, messages.DeliveryPlaced, time.Now().Add(hold)
	return []messages.Delivery{d}, tx.Deliveries().UpdateDelivery(ctx, d)
}

// sendShown changes the message of a plan that was settled, once that is on record.
func (r *run) sendShown() {
	key, shown := r.w.conv.Key, r.d.begun.shown
	if r.d.begun.shown = nil; shown != nil {
		r.w.o.background.Go(func(ctx context.Context) { _ = r.w.o.outbox.SendHeld(ctx, key, shown) }) // else a worker does
	}
}

// propose stores the answer of a planning turn as a plan. It takes the place of one that
// waits.
func (r *run) propose(ctx context.Context, tx port.Tx, text string) (plan.Plan, error) {
	r.d.begun.shown = nil // of an earlier run of this function
	before, replaces, err := tx.Proposals().LatestPlan(ctx, r.w.conv.ID)
	if err != nil {
		return before, err
	}
	p := plan.Plan{
		ConversationID: r.w.conv.ID,
		SessionID:      r.d.begun.session.ID,
		EntryID:        r.d.entry.ID,
		Goal:           r.d.begun.call.Invoked().Rest,
		Text:           text,
		Author:         "assistant",
		Requester:      r.d.entry.In.Actor(),
		State:          plan.Proposed,
		Head:           r.d.begun.work.Head,
	}
	if err = tx.Proposals().InsertPlan(ctx, &p); err != nil || !replaces || before.State != plan.Proposed && before.State != plan.Approved {
		return p, err
	}
	r.d.begun.shown, err = r.settleShown(ctx, tx, before, "Replaced by plan "+p.Name(), outbox.Hold)
	return p, err
}

// finishPlan moves the plan that a turn carried out to its next state: done, or
// back to approved if it did not come to its end.
func finishPlan(ctx context.Context, tx port.Tx, entry sessions.Entry, b begunTurn, state plan.State) error {
	if !b.executes {
		return nil
	}
	p, ok, err := tx.Proposals().LatestPlan(ctx, entry.ConversationID)
	if err != nil || !ok || p.State != plan.Executing {
		return err
	}
	p.State = state
	return tx.Proposals().SettlePlan(ctx, p)
}
