package chat

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

func (ns *newSessions) forkCommand() *command.Command {
	return &command.Command{
		Name:    "fork",
		Usage:   "fork [n] [here|thread]",
		Summary: "continue from message n in a new session; thread: in a separate thread with its own files",
		Example: "fork 12 thread",
		Lane:    command.Ahead,
		Files:   true,
		Past:    true,
		Run:     ns.runFork,
	}
}

// forkOrder is what somebody who gives /fork wants.
type forkOrder struct {
	n     int  // messages to go on from; 0 means all
	aside bool // in a thread or topic of its own
}

func (ns *newSessions) forkOrder(r command.Request) (f forkOrder, err error) {
	var place string
	for _, arg := range r.Call.Args {
		n, numErr := strconv.Atoi(arg)
		word := strings.ToLower(arg)
		switch {
		case numErr == nil && n > 0 && f.n == 0:
			f.n = n
		case place == "" && (word == "here" || word == "thread" || word == "topic"):
			place = word
		default:
			return f, fault.Newf(fault.Invalid, "Specify how many messages to keep: `%[1]sfork 4` keeps the first four, `%[1]sfork` all of them. "+
				"Add `thread` to continue in a separate thread or topic.", ns.prefix(r.Conv.Key))
		}
	}
	f.aside = place == "thread" || place == "topic"
	return f, nil
}

// runFork begins a session that goes on from a message of the active one: here,
// where the files stay as they are, or in a place of its own.
func (ns *newSessions) runFork(ctx context.Context, r command.Request) (command.Reply, error) {
	order, err := ns.forkOrder(r)
	switch {
	case err != nil:
		return command.Reply{}, err
	case order.aside:
		return ns.forkAside(ctx, r, order.n)
	}
	return ns.forkHere(ctx, r, order.n)
}

// forkedSession is the note on the entry of a command that has forked a session here.
const forkedSession = "forked the session"

// forkHere forks in the same conversation. A repeat after a crash finds the fork and
// does nothing.
func (ns *newSessions) forkHere(ctx context.Context, r command.Request, n int) (command.Reply, error) {
	var done sessions.Forked
	err := whenIdle(ctx, ns.store, func(tx *store.Tx) error {
		done = sessions.Forked{}
		s, err := forkable(ctx, tx, r)
		if err != nil {
			return err
		}
		if current, err := tx.Inbox().Entry(ctx, r.Entry.ID); err != nil || current.Error == forkedSession {
			done.Taken = s.Metadata.Forked()
			return err
		}
		if err := tx.Inbox().UpdateEntry(ctx, r.Entry.ID, sessions.EntryUpdate{Error: new(forkedSession)}); err != nil {
			return err
		}
		if done, err = tx.Sessions().ForkSession(ctx, sessions.Fork{From: s.ID, N: n, Before: r.Entry.Seq}); err != nil || done.Again {
			return err
		}
		return tx.Audit(ctx, forkAudit(r, s, done))
	})
	if errors.Is(err, sessions.ErrBusy) {
		err = busy(ns.prefix(r.Conv.Key), "fork")
	}
	if err != nil {
		return command.Reply{}, err
	}
	return command.Reply{Text: "🍴 A new session continues with " + takenText(done) + ". The previous session ended; nothing is deleted, and the files are unchanged."}, nil
}

// forkable returns the session to fork, with the conversation's row locked.
func forkable(ctx context.Context, tx *store.Tx, r command.Request) (sessions.Session, error) {
	if _, _, err := tx.Conversations().GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant); err != nil { // locks it
		return sessions.Session{}, err
	}
	s, active, err := tx.Sessions().ActiveSession(ctx, r.Conv.ID)
	if err == nil && !active {
		err = fault.New(fault.Invalid, "There is no session here to fork; your next message starts one.")
	}
	return s, err
}

func forkAudit(r command.Request, from sessions.Session, done sessions.Forked) sessions.AuditEntry {
	return sessions.AuditEntry{
		Actor: r.Actor(), Action: "session.fork", ConversationID: r.Conv.ID, Target: done.Session.ID,
		Detail: fmt.Sprintf(`{"from":%q,"messages":%d,"of":%d,"conversation":%q}`, from.ID, done.Taken, done.Of, done.Session.ConversationID),
	}
}

// takenText says with how much a fork goes on.
func takenText(done sessions.Forked) string {
	text := wording.Count(done.Taken, "message", "messages")
	if done.Of > 0 {
		text += fmt.Sprintf(" of %d", done.Of)
	}
	return text
}
