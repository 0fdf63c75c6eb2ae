package chat

import (
	"context"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/plan"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

func (tu *turns) undoCommand() *command.Command {
	return &command.Command{
		Name:    "undo",
		Usage:   "undo",
		Summary: "undo the last turn (files and messages)",
		Example: "undo",
		Rank:    10,
		Menu:    true,
		Lane:    command.Job,
		Needs:   command.Repositories,
		Takes:   command.NoWord,
		Past:    true,
		Run:     tu.runUndo,
	}
}

// undid begins the note on an entry whose turn has been taken back.
const undid = "undid "

// taken is a turn that was taken back.
type taken struct {
	entry    string   // the turn; empty if there was none
	messages int      // that left the array
	kept     []string // what could not be taken back
	files    string   // what became of the files, behind the number of messages
	plan     string   // what became of the plan that it made or carried out; may be empty
	before   bool     // by this very command, before a crash
}

// runUndo goes back to before the last turn: its files and its talk, together.
// What cannot be taken back is listed. It is safe to repeat after a crash: the
// transaction that takes the turn back notes so on the entry, and a second run
// does not take another one.
func (tu *turns) runUndo(ctx context.Context, r command.Request) (command.Reply, error) {
	t, err := tu.takeBack(ctx, r, false)
	switch {
	case err != nil:
		return command.Reply{}, err
	case t.entry == "":
		return command.Reply{Text: "There is nothing to undo here."}, nil
	case t.before:
		return command.Reply{Text: "↩ Undid the last turn."}, nil
	}
	return command.Reply{Text: fmt.Sprintf("↩ Undid the last turn: %s%s.%s%s",
		wording.Count(t.messages, "message", "messages"), t.files, t.plan, keptText(t.kept))}, nil
}

func keptText(kept []string) string {
	if len(kept) == 0 {
		return ""
	}
	return "\n\nNot undone:\n\n- " + strings.Join(kept, "\n- ")
}

// lastTurn returns the state before the last turn of a conversation. Turns before a
// fork belong to the session that it goes on from, which stays as it is: if there
// are only those, it is a fault.Invalid that says so.
func (tu *turns) lastTurn(ctx context.Context, conv sessions.Conversation) (last sessions.Checkpoint, ok bool, err error) {
	var (
		fork   sessions.Session
		forked bool
	)
	err = tu.store.InRead(ctx, func(tx *store.Tx) error {
		if last, ok, err = tx.Messages().LastCheckpoint(ctx, conv.ID); err != nil {
			return err
		}
		fork, forked, err = tx.Sessions().ForkAfter(ctx, conv.ID, last.SessionID)
		return err
	})
	switch {
	case err != nil:
		return last, false, fmt.Errorf("find the last turn: %w", err)
	case forked:
		return last, false, fault.Newf(fault.Invalid, "Nothing was undone: there is no turn since the fork. "+
			"The first %s to the previous session, which is unchanged, as are the files. "+
			"To continue from an earlier message, use `/fork <n>`.",
			strings.TrimPrefix(wording.Count(fork.Metadata.Forked(), "message belongs", "messages belong"), "1 "))
	}
	return last, ok, nil
}

// takeBack undoes the last turn of a conversation, once for a request. An agent's own
// session still has the turn, so it is given up; only where the same is asked again, and
// nothing had come of it, the agent keeps what it knows.
func (tu *turns) takeBack(ctx context.Context, r command.Request, again bool) (taken, error) {
	if entry, ok := strings.CutPrefix(r.Entry.Error, undid); ok {
		return taken{entry: entry, before: true}, nil
	}
	var t taken
	last, ok, err := tu.lastTurn(ctx, r.Conv)
	if err != nil || !ok {
		return t, err
	}
	t.entry = last.EntryID
	if err := tu.takeFilesBack(ctx, r.Conv, last, &t); err != nil {
		return t, err
	}
	err = tu.store.InTx(ctx, func(tx *store.Tx) (err error) {
		if t.plan, err = tu.takePlanBack(ctx, tx, r, last); err != nil { // first: it locks the conversation
			return err
		}
		if t.messages, err = tx.Messages().UndoTurn(ctx, last); err != nil {
			return err
		}
		if last.SessionID != "" && (!again || t.messages > 1) {
			if err := tx.Sessions().UpdateSession(ctx, last.SessionID, sessions.SessionUpdate{AssistantSessionID: new("")}); err != nil {
				return err
			}
		}
		done := undid + last.EntryID
		if err := tx.Inbox().UpdateEntry(ctx, r.Entry.ID, sessions.EntryUpdate{Error: &done}); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.Actor(), Action: "turn.undo", ConversationID: r.Conv.ID, Target: last.EntryID})
	})
	if err != nil {
		return t, fmt.Errorf("take the turn back: %w", err)
	}
	tu.engine.ForgetSession(last.SessionID)
	return t, nil
}

// takeFilesBack restores the files of a turn, in the repository that it worked on: the
// conversation may have been switched since. Where their state is lost, as on another machine,
// there is nothing to restore, and what was said is taken back all the same.
func (tu *turns) takeFilesBack(ctx context.Context, conv sessions.Conversation, last sessions.Checkpoint, t *taken) error {
	t.files = "; the files are as they were before it"
	if last.Ref == "" {
		return nil
	}
	in, err := store.Within(ctx, tu.store.InRead, func(tx *store.Tx) (sessions.Session, error) { return tx.Sessions().Session(ctx, last.SessionID) })
	if err != nil {
		return fmt.Errorf("find the session of the turn: %w", err)
	}
	if in.CodebaseID != "" {
		conv.CodebaseID = in.CodebaseID
	}
	_, tree, err := tu.work.Worktree(ctx, conv)
	if err != nil {
		return err
	}
	restored, err := tu.space.Restore(ctx, tree, last.Ref)
	if fault.Is(err, fault.NotFound) {
		t.files, t.kept = "", []string{"the files (their earlier state is not on this machine)"}
		return nil
	}
	if err != nil {
		return fmt.Errorf("restore the files: %w", err)
	}
	t.kept = restored.NotUndone
	return nil
}

// takePlanBack settles the plan of a turn that is taken back, in the same transaction, and
// says what became of it. What the turn proposed goes with it, and what that took the place of
// waits again; what it carried out can be carried out again.
func (tu *turns) takePlanBack(ctx context.Context, tx *store.Tx, r command.Request, last sessions.Checkpoint) (string, error) {
	p, ok, err := tx.Proposals().LatestPlan(ctx, r.Conv.ID)
	if err != nil || !ok {
		return "", err
	}
	if p.EntryID == last.EntryID {
		said, err := tu.rejectUndone(ctx, tx, r, p, last.SessionID)
		if err != nil {
			return "", err
		}
		before, err := tx.Proposals().ReplacedPlan(ctx, r.Conv.ID, p.Number)
		if err != nil || before == 0 {
			return said, err
		}
		if p, err = tx.Proposals().Plan(ctx, before); err != nil {
			return "", err
		}
		again, err := reopen(ctx, tx, p)
		return said + again, err
	}
	if last.SessionID == "" {
		return "", nil
	}
	in, err := tx.Sessions().Session(ctx, last.SessionID)
	if err != nil {
		return "", err
	}
	name, _ := in.Metadata[sessions.MetaPlan].(string)
	number, ok := plan.ParseName(name)
	if !ok {
		return "", nil
	}
	if before, err := tx.Messages().MessagesBefore(ctx, in.ID, last.Seq, 1); err != nil || len(before) > 0 {
		return "", err // another turn of its session
	}
	// It need not be the latest: another one may have been made since, and taken back.
	if p, err = tx.Proposals().Plan(ctx, number); err != nil || p.State != plan.Done || p.ConversationID != r.Conv.ID {
		return "", err
	}
	return reopen(ctx, tx, p)
}

// reopen has a plan wait again, as approved as it was. Where it was shown it stays settled.
func reopen(ctx context.Context, tx *store.Tx, p plan.Plan) (string, error) {
	by, at, note, said := p.DecidedBy, p.DecidedAt, p.Note, "waits"
	err := tx.Proposals().InsertPlan(ctx, &p)
	if err == nil && by != "" {
		said = "is approved"
		p.State, p.DecidedBy, p.DecidedAt, p.Note = plan.Approved, by, at, note
		err = tx.Proposals().SettlePlan(ctx, p)
	}
	return fmt.Sprintf(" Plan p-%[1]d %[2]s again: `/execute p-%[1]d`.", p.Number, said), err
}

// rejectUndone rejects a plan whose turn is taken back, if it is open. Its session has no
// plan for a command that carries one out.
func (tu *turns) rejectUndone(ctx context.Context, tx *store.Tx, r command.Request, p plan.Plan, session string) (string, error) {
	if session != "" {
		err := tx.Sessions().UpdateSession(ctx, session, sessions.SessionUpdate{Metadata: sessions.Remember(sessions.CommandMeta{})})
		if err != nil {
			return "", err
		}
	}
	now := time.Now()
	if !p.Open(now) {
		return "", nil
	}
	p.State, p.DecidedBy, p.DecidedAt, p.Note = plan.Rejected, r.Actor(), now, "Its turn was undone."
	if err := tx.Proposals().SettlePlan(ctx, p); err != nil {
		return "", err
	}
	shown, err := tu.settledMessage(ctx, tx, r, p)
	if err != nil {
		return "", err
	}
	for _, d := range shown {
		if err := tx.Deliveries().RewriteDelivery(ctx, d.ID, d.Text); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf(" Plan %s is rejected.", p.Name()), nil
}
