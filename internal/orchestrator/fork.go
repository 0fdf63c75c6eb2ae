package orchestrator

import (
	"context"
	"fmt"
	"strconv"

	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
)

// runFork begins a session that goes on from a message of the active one. The files
// stay as they are. A repeat after a crash finds the fork and does nothing.
func (o *Orchestrator) runFork(ctx context.Context, r Request) (Reply, error) {
	n := 0
	if len(r.Call.Args) > 0 {
		var err error
		if n, err = strconv.Atoi(r.Call.Args[0]); err != nil || n < 1 || len(r.Call.Args) > 1 {
			return Reply{}, fault.Newf(fault.Invalid, "Say with which message to go on: `%[1]sfork 4` keeps the first four, `%[1]sfork` all of them.", o.prefix(r.Conv.Key.Platform))
		}
	}
	var taken, of int
	err := o.config.Storage.InTx(ctx, func(tx Tx) error {
		taken, of = 0, 0
		if _, _, err := tx.GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant); err != nil { // locks it
			return err
		}
		s, active, err := tx.ActiveSession(ctx, r.Conv.ID)
		if err != nil {
			return err
		}
		if !active {
			return fault.New(fault.Invalid, "There is no session here to fork; your next message starts one.")
		}
		if s.ParentID != "" && s.StartedAt.After(r.Entry.AcceptedAt) {
			taken = int(s.LastSeq)
			return nil
		}
		done, err := tx.ForkSession(ctx, sessions.Fork{From: s.ID, N: n, Before: r.Entry.Seq})
		if err != nil {
			return err
		}
		taken, of = done.Taken, done.Of
		return tx.Audit(ctx, sessions.AuditEntry{
			Actor: r.Actor(), Action: "session.fork", ConversationID: r.Conv.ID, Target: done.Session.ID,
			Detail: fmt.Sprintf(`{"from":%q,"messages":%d,"of":%d}`, s.ID, taken, of),
		})
	})
	if err != nil {
		return Reply{}, err
	}
	text := fmt.Sprintf("🍴 A fresh session goes on with %s", count(taken, "message", "messages"))
	if of > 0 {
		text += fmt.Sprintf(" of %d", of)
	}
	return Reply{Text: text + ". The session before it ended; nothing is deleted, and the files stay as they are."}, nil
}
