package orchestrator

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
)

// takePlan decides that a plan runs now: the one that the request names, else
// the newest of the conversation. What was shown is what runs; who may not
// decide, or a plan that is settled, is a refusal. Without any plan it returns
// nil: the prompt then says that there is none.
func (w *worker) takePlan(ctx context.Context, tx Tx, entry sessions.Entry, b *begunTurn) (*plan.Plan, error) {
	p, named, err := FindPlan(ctx, tx, w.conv.ID, b.call.Invoked().Args)
	if fault.Is(err, fault.NotFound) {
		if named && b.prompt.Meta.Consumes == sessions.Plan {
			return nil, &refusal{err: err}
		}
		return nil, nil // an argument like any other
	}
	if err != nil {
		return nil, err
	}
	v, err := w.o.access.Authorize(ctx, tx, entry.In)
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
			if err := tx.SettlePlan(ctx, p); err != nil {
				return nil, err
			}
		}
		return nil, &refusal{err: err}
	}
	p.State, p.DecidedBy, p.DecidedAt = state, entry.In.Actor(), now
	if err := tx.SettlePlan(ctx, p); err != nil {
		return nil, err
	}
	return &p, tx.Audit(ctx, sessions.AuditEntry{
		Actor: p.DecidedBy, Action: "plan.execute", ConversationID: w.conv.ID,
		Target: fmt.Sprintf("%s v%d", p.Name(), p.Version), Detail: fmt.Sprintf(`{"sha256":%q}`, p.SHA256),
	})
}

// choosePrompt decides which prompt a turn runs, and whether it carries a plan
// out: a command that consumes plans does, and so does one that says nothing of
// plans if a plan is named ("/ship p-2"). "/execute p-2", which is what people are
// told to send, does even where a command of the repository has taken the name for
// something else.
func (o *Orchestrator) choosePrompt(b *begunTurn) {
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
	_, ok := PlanNumber(args[0])
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
		if n, ok := PlanNumber(call.Args[0]); ok && n == b.plan.Number {
			call = call.WithoutFirst()
		}
	}
	call.Rest = strings.TrimSpace(b.plan.Note + "\n" + call.Rest)
	return call, b.plan.Text
}

// FindPlan returns the plan of a conversation that the first argument names
// ("p-9" or "9"), else the newest one, locked. named reports which it was. It is
// a fault.NotFound if there is none, also for a plan of another conversation.
func FindPlan(ctx context.Context, tx Tx, conversationID string, args []string) (p plan.Plan, named bool, err error) {
	if len(args) > 0 {
		if number, ok := PlanNumber(args[0]); ok {
			p, err = tx.Plan(ctx, number)
			if fault.Is(err, fault.NotFound) || err == nil && p.ConversationID != conversationID {
				err = fault.Newf(fault.NotFound, "There is no plan p-%d here.", number)
			}
			return p, true, err
		}
	}
	p, ok, err := tx.LatestPlan(ctx, conversationID)
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "There is no plan here yet.")
	}
	return p, false, err
}

// PlanNumber reads "p-9", "P-9" or "9". Anything else, such as "2fa", is not a
// plan.
func PlanNumber(arg string) (int64, bool) {
	rest := strings.TrimPrefix(strings.ToLower(arg), "p-")
	number, err := strconv.ParseInt(rest, 10, 64)
	return number, err == nil && number > 0 && rest == strconv.FormatInt(number, 10)
}

// drift says how the codebase has moved since the plan was made.
func (b *begunTurn) drift() string {
	if b.plan == nil || b.plan.Head == "" || b.work.Head == "" || b.plan.Head == b.work.Head {
		return ""
	}
	return fmt.Sprintf("⚠ The branch has moved since plan %s was made: from `%.10s` to `%.10s`. The plan is carried out on what is there now.",
		b.plan.Name(), b.plan.Head, b.work.Head)
}

// joinNotices puts what the person should know into one message.
func joinNotices(notices ...string) string {
	all := slices.DeleteFunc(notices, func(s string) bool { return s == "" })
	return strings.Join(all, "\n\n")
}

// propose stores the answer of a planning turn as a plan.
func (w *worker) propose(ctx context.Context, tx Tx, d decision, text string) (plan.Plan, error) {
	p := plan.Plan{
		ConversationID: w.conv.ID,
		SessionID:      d.begun.session.ID,
		EntryID:        d.entry.ID,
		Goal:           d.begun.call.Invoked().Rest,
		Text:           text,
		Author:         "assistant",
		Requester:      d.entry.In.Actor(),
		State:          plan.Proposed,
		Head:           d.begun.work.Head,
	}
	err := tx.InsertPlan(ctx, &p)
	return p, err
}

// ShowPlan returns how a plan that waits is shown: its text, how to decide on
// it, and buttons where the platform has them. Each button is bound to the
// version that is shown.
func (o *Orchestrator) ShowPlan(ctx context.Context, tx Tx, conv sessions.Conversation, p plan.Plan) (string, []messages.Button, error) {
	prefix, name := o.outbox.Prefix(conv.Key.Platform), p.Name()
	text := fmt.Sprintf("%s\n\n---\n\n📋 **Plan %s, version %d.** `%sexecute %s` runs exactly this; `%sedit %s <text>` replaces it; `%sreject %s` drops it. "+
		"Only the one who asked, or an owner, decides; it expires in %d hours.",
		p.Text, name, p.Version, prefix, name, prefix, name, prefix, name, int(plan.TTL/time.Hour))
	if a := o.adapters[conv.Key.Platform]; a == nil || !a.Capabilities().Buttons {
		return text, nil, nil
	}
	var buttons []messages.Button
	for _, b := range []struct {
		decision plan.Decision
		label    string
		style    messages.ButtonStyle
	}{
		{plan.Execute, "Approve and run", messages.ButtonPrimary},
		{plan.Approve, "Approve", messages.ButtonPlain},
		{plan.Edit, "Edit", messages.ButtonPlain},
		{plan.Reject, "Reject", messages.ButtonDanger},
	} {
		id := rand.Text()
		err := tx.SaveButton(ctx, Button{
			ID: id, ConversationID: conv.ID, Decision: b.decision, PlanNumber: p.Number, SHA256: p.SHA256, ExpiresAt: p.ExpiresAt,
		})
		if err != nil {
			return "", nil, err
		}
		buttons = append(buttons, messages.Button{ID: id, Label: b.label, Style: b.style})
	}
	return text, buttons, nil
}

// finishPlan moves the plan that a turn carried out to its next state: done, or
// back to approved if it did not come to its end.
func finishPlan(ctx context.Context, tx Tx, entry sessions.Entry, b begunTurn, state plan.State) error {
	if !b.executes {
		return nil
	}
	p, ok, err := tx.LatestPlan(ctx, entry.ConversationID)
	if err != nil || !ok || p.State != plan.Executing {
		return err
	}
	p.State = state
	return tx.SettlePlan(ctx, p)
}
