package work

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/sessions"
)

// undid begins the note on an entry whose turn has been taken back.
const undid = "undid "

// taken is a turn that was taken back.
type taken struct {
	entry    string   // the turn; empty if there was none
	messages int      // that left the array
	kept     []string // what could not be taken back
	before   bool     // by this very command, before a crash
}

// runUndo goes back to before the last turn: its files and its talk, together.
// What cannot be taken back is listed. It is safe to repeat after a crash: the
// transaction that takes the turn back notes so on the entry, and a second run
// does not take another one.
func (s *Shop) runUndo(ctx context.Context, r command.Request) (command.Reply, error) {
	t, err := s.takeBack(ctx, r)
	switch {
	case err != nil:
		return command.Reply{}, err
	case t.entry == "":
		return command.Reply{Text: "There is no turn to take back here."}, nil
	case t.before:
		return command.Reply{Text: "↩ Took the last turn back."}, nil
	}
	return command.Reply{Text: fmt.Sprintf("↩ Took the last turn back: %s and the files as they were before it.%s",
		plural(t.messages, "message"), keptText(t.kept))}, nil
}

func keptText(kept []string) string {
	if len(kept) == 0 {
		return ""
	}
	return "\n\nNot taken back:\n\n- " + strings.Join(kept, "\n- ")
}

// runRetry takes the last turn back and runs its request again, with a note if
// there is one.
func (s *Shop) runRetry(ctx context.Context, r command.Request) (command.Reply, error) {
	t, err := s.takeBack(ctx, r)
	if err != nil {
		return command.Reply{}, err
	}
	if t.entry == "" {
		return command.Reply{Text: "There is no turn to run again here."}, nil
	}
	var before sessions.Entry
	err = s.storage.InRead(ctx, func(tx orchestrator.Tx) error {
		var err error
		before, err = tx.Entry(ctx, t.entry)
		return err
	})
	if err != nil {
		return command.Reply{}, fmt.Errorf("read the last request: %w", err)
	}
	if before.In.Kind != messages.KindMessage {
		return command.Reply{}, fault.New(fault.Unsupported, "The last turn did not begin with a message, so it cannot be run again. Its files and talk are taken back.")
	}
	again := before.In
	if note := strings.TrimSpace(r.Call.Rest); note != "" {
		again.Text += "\n\n" + note
	}
	return command.Reply{Text: "↻ Again, from where it began." + keptText(t.kept), Again: &again}, nil
}

// lastTurn returns the state before the last turn of a conversation. Turns before a
// fork belong to the session that it goes on from, which stays as it is: if there
// are only those, it is a fault.Invalid that says so.
func (s *Shop) lastTurn(ctx context.Context, conv sessions.Conversation) (last sessions.Checkpoint, ok bool, err error) {
	var (
		fork   sessions.Session
		forked bool
	)
	err = s.storage.InRead(ctx, func(tx orchestrator.Tx) error {
		if last, ok, err = tx.LastCheckpoint(ctx, conv.ID); err != nil {
			return err
		}
		fork, forked, err = tx.ForkAfter(ctx, conv.ID, last.SessionID)
		return err
	})
	switch {
	case err != nil:
		return last, false, fmt.Errorf("find the last turn: %w", err)
	case forked:
		return last, false, fault.Newf(fault.Invalid, "Nothing was taken back: there is no turn since the fork. "+
			"The %s that it began with belong to the session before it, which stays as it is, and so do the files. "+
			"`/fork <n>` goes on from an earlier message.", plural(fork.Metadata.Forked(), "message"))
	}
	return last, ok, nil
}

// takeBack undoes the last turn of a conversation, once for a request.
func (s *Shop) takeBack(ctx context.Context, r command.Request) (taken, error) {
	if entry, ok := strings.CutPrefix(r.Entry.Error, undid); ok {
		return taken{entry: entry, before: true}, nil
	}
	var t taken
	last, ok, err := s.lastTurn(ctx, r.Conv)
	if err != nil || !ok {
		return t, err
	}
	t.entry = last.EntryID
	if last.Ref != "" {
		_, tree, err := s.workOf(ctx, r.Conv)
		if err != nil {
			return t, err
		}
		restored, err := s.space.Restore(ctx, tree, last.Ref)
		if err != nil {
			return t, fmt.Errorf("restore the files: %w", err)
		}
		t.kept = restored.NotUndone
	}
	err = s.storage.InTx(ctx, func(tx orchestrator.Tx) error {
		var err error
		if t.messages, err = tx.UndoTurn(ctx, last); err != nil {
			return err
		}
		done := undid + last.EntryID
		if err := tx.UpdateEntry(ctx, r.Entry.ID, sessions.EntryUpdate{Error: &done}); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: r.Actor(), Action: "turn.undo", ConversationID: r.Conv.ID, Target: last.EntryID})
	})
	if err != nil {
		return t, fmt.Errorf("take the turn back: %w", err)
	}
	s.core.ForgetSession(last.SessionID)
	return t, nil
}
