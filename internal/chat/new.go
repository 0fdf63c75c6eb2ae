package chat

import (
	"context"
	"fmt"

	"remote-agent/internal/command"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

func (ns *newSessions) newCommand() *command.Command {
	return &command.Command{
		Name:    "new",
		Aliases: []string{"reset"},
		Usage:   "new",
		Summary: "end this session; the next message starts a new one",
		Example: "new",
		Rank:    4,
		Reading: command.ReadingAside,
		Menu:    true,
		Lane:    command.Ahead,
		Takes:   command.NoWord,
		Past:    true,
		Run:     ns.runNew,
	}
}

// endedSession is the note on the entry of a command that has ended a session.
const endedSession = "ended the session"

// runNew ends the active session. A repeat after a crash does not end a
// session that began since, and says the same.
func (ns *newSessions) runNew(ctx context.Context, r command.Request) (command.Reply, error) {
	var (
		ended   bool
		waiting int
	)
	err := ns.store.InTx(ctx, func(tx *store.Tx) error {
		ended = false
		if _, _, err := tx.Conversations().GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant); err != nil { // locks it
			return err
		}
		s, active, err := tx.Sessions().ActiveSession(ctx, r.Conv.ID)
		if err != nil {
			return err
		}
		if waiting, err = tx.Inbox().CountWaiting(ctx, r.Conv.ID); err != nil {
			return err
		}
		if current, err := tx.Inbox().Entry(ctx, r.Entry.ID); err != nil || current.Error == endedSession {
			ended = err == nil
			return err
		}
		if !active {
			return nil
		}
		if since, err := tx.Inbox().BegunBehind(ctx, s, r.Entry.Seq); err != nil || since {
			return err
		}
		ended = true
		if err := tx.Inbox().UpdateEntry(ctx, r.Entry.ID, sessions.EntryUpdate{Error: new(endedSession)}); err != nil {
			return err
		}
		if err := tx.Sessions().DeactivateSession(ctx, s.ID, "reset"); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{
			Actor: r.Actor(), Action: "session.reset", ConversationID: r.Conv.ID, Target: s.ID,
		})
	})
	if err != nil {
		return command.Reply{}, err
	}
	_, runs := ns.engine.Running(r.Conv.ID)
	text := "Your next message starts a new session."
	if ended {
		text = "Session ended; nothing is deleted. " + text
	}
	switch {
	case runs && waiting > 1:
		text += fmt.Sprintf(" The running turn finishes in the old one; %s.", wording.Count(waiting-1, "waiting message starts", "waiting messages start")+" the new one")
	case runs:
		text += " The running turn finishes in the old one."
	}
	return command.Reply{Text: text}, nil
}
