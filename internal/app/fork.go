package app

import (
	"context"
	"fmt"

	"remote-agent/internal/config"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// ForkSession begins a session that goes on from the first n messages of another
// one; n of 0 means all.
func ForkSession(ctx context.Context, cfg config.Config, env Env, id string, n int) error {
	if done, err := inDaemon(ctx, cfg, env, callFork, forkCall{id, n}); done {
		return err
	}
	return withExisting(ctx, cfg, env, true, func(s *store.Store) error {
		var done sessions.Forked
		err := s.InTx(ctx, func(tx *store.Tx) error {
			_, err := tx.Care().MeasureSession(ctx, id) // checks the id
			if err != nil {
				return err
			}
			if done, err = tx.Sessions().ForkSession(ctx, sessions.Fork{From: id, N: n}); err != nil || done.Again {
				return err
			}
			return tx.Audit(ctx, sessions.AuditEntry{
				Actor: "cli", Action: "session.fork", ConversationID: done.Session.ConversationID, Target: done.Session.ID,
				Detail: fmt.Sprintf(`{"from":%q,"messages":%d,"of":%d}`, id, done.Taken, done.Of),
			})
		})
		if err == nil {
			say(env.Stdout, "%s continues with %d of %s; the conversation's next message goes to it\n", done.Session.ID, done.Taken, count(done.Of, "message"))
		}
		return err
	})
}
