package chat

import (
	"context"
	"fmt"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/plan"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

func (de *decisions) editCommand() *command.Command {
	return &command.Command{
		Name:    "edit",
		Usage:   "edit [plan] <text>",
		Summary: "replace a plan with your own text",
		Example: "edit p-3 1. Write the test. 2. Guard the map.",
		Run:     de.runEdit,
	}
}

func (de *decisions) runEdit(ctx context.Context, r command.Request) (command.Reply, error) {
	v := planVerdict(r, plan.Edit)
	if v.text == "" {
		return command.Reply{}, fault.New(fault.Invalid, "Write the new text of the plan after the command: `/edit p-1 1. ...`.")
	}
	return de.decide(ctx, r, v)
}

// askForText opens a dialog with the plan, where the platform has dialogs, or
// says what to type.
func (de *decisions) askForText(ctx context.Context, r command.Request, b command.Button) (command.Reply, error) {
	name := fmt.Sprintf("p-%d", b.Number)
	p, err := store.Within(ctx, de.store.InTx, func(tx *store.Tx) (plan.Plan, error) { return tx.Proposals().Plan(ctx, b.Number) }) // Plan locks
	if err != nil {
		return command.Reply{}, err
	}
	by := plan.Decider{Actor: r.Actor(), Owner: r.Role == sessions.Owner}
	if _, err := plan.Decide(p, plan.Edit, by, b.SHA256, time.Now()); err != nil {
		return command.Reply{}, err
	}
	dialoger, ok := de.platforms[r.Conv.Key.Platform].(platform.Dialoger)
	if !ok || r.Entry.In.Trigger == "" {
		return command.Reply{Text: fmt.Sprintf("Send `/edit %s` and the new text after it.", name)}, nil
	}
	err = dialoger.OpenDialog(ctx, r.Entry.In, platform.Dialog{
		Trigger: r.Entry.In.Trigger, ID: b.ID, Title: "Plan " + name, Label: "The plan to execute",
		Text: p.Text, Submit: "Save",
	})
	if err != nil {
		de.log.InfoContext(ctx, "could not open a dialog", "conversation", r.Conv.Key, "err", err)
		return command.Reply{Text: fmt.Sprintf("Send `/edit %s` and the new text after it.", name)}, nil
	}
	return command.Reply{}, nil
}

// newVersion stores a person's text as the next version of a plan and shows it.
func (de *decisions) newVersion(ctx context.Context, tx *store.Tx, r command.Request, old plan.Plan, text string) (command.Reply, error) {
	next := plan.Plan{
		Number: old.Number, ConversationID: old.ConversationID, SessionID: old.SessionID, EntryID: old.EntryID,
		Goal: old.Goal, Text: text, Author: r.Actor(), Requester: old.Requester, State: plan.Proposed, Head: old.Head,
	}
	if err := tx.Proposals().InsertPlan(ctx, &next); err != nil {
		return command.Reply{}, err
	}
	old.State = plan.Superseded
	edits, err := de.settledMessage(ctx, tx, r, old)
	if err != nil {
		return command.Reply{}, err
	}
	shown, buttons, err := command.ShowPlan(ctx, tx.Buttons(), next, de.prefix(r.Conv.Key), de.pages, de.caps(r.Conv.Key.Platform).Buttons)
	return command.Reply{Text: shown, Buttons: buttons, Edits: edits, Plan: &next}, err
}
