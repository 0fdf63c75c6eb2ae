package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/platform/console"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// What a deletion cannot reach, as the commands say it.
const (
	remains = "may remain: earlier backups and exports, the messages on the platform, what model providers or external agents keep, " +
		"and copies made by the file system or the disk\n"
	remainsBeside   = "it is overwritten in the database file (bot scrub rewrites the whole file; the bot pauses meanwhile)\n"
	remainsPostgres = "PostgreSQL keeps deleted rows in its files until the space is reused (bot scrub rewrites the tables), " +
		"and in its write-ahead log, archives and replicas until they are recycled\n"
)

// finishErasing removes what a deletion has left in the files of the database, as
// far as that holds nobody up, and says what may remain. On SQLite the file is
// rewritten, unless a daemon works on it: that would wait meanwhile.
func finishErasing(ctx context.Context, cfg config.Config, env Env, s *store.Store) error {
	lite := s.Dialect() == "sqlite"
	if err := s.Scrub(ctx, lite && env.daemon == nil); err != nil {
		return fmt.Errorf("deleted, but traces remain in the database files; run bot scrub to remove them: %w", err)
	}
	switch {
	case lite && env.daemon != nil:
		say(env.Stdout, remainsBeside)
	case lite:
		say(env.Stdout, "the database file was rewritten: no deleted data remains in it\n")
	default:
		say(env.Stdout, remainsPostgres)
	}
	sayRemains(cfg, env)
	return nil
}

// sayRemains says what no deletion reaches.
func sayRemains(cfg config.Config, env Env) {
	say(env.Stdout, remains)
	if _, err := os.Lstat(historyPath(cfg)); err == nil {
		say(env.Stdout, "the history of what was typed at the console remains: %s (delete this file to remove it)\n", historyPath(cfg))
	}
}

// forgetTyped deletes what was typed at the console. A chat that is open knows it until
// it ends.
func forgetTyped(cfg config.Config, env Env) error {
	err := os.Remove(historyPath(cfg))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &fault.Error{Kind: fault.Unavailable, Err: err,
			Public: fmt.Sprintf("The history of what was typed at the console could not be deleted: delete %s.", historyPath(cfg))}
	}
	say(env.Stdout, "deleted the history of what was typed at the console\n")
	return nil
}

// Scrub rewrites the database so that nothing of what was deleted before is left in
// its files. On SQLite everything waits until it is done; on PostgreSQL each table is
// locked while it is rewritten.
func Scrub(ctx context.Context, cfg config.Config, env Env) error {
	if done, err := inDaemon(ctx, cfg, env, callScrub, nil); done {
		return err
	}
	return withExisting(ctx, cfg, env, true, func(s *store.Store) error {
		if err := s.Scrub(ctx, true); err != nil {
			return err
		}
		say(env.Stdout, "rewrote the database: no deleted data remains in its tables and indexes\n")
		if s.Dialect() != "sqlite" {
			say(env.Stdout, "PostgreSQL's write-ahead log, archives and replicas may still contain it until they are recycled\n")
		}
		sayRemains(cfg, env)
		return nil
	})
}

// RemoveConversation deletes a conversation, named by its id or as platform/id, or
// says what that would delete.
func RemoveConversation(ctx context.Context, cfg config.Config, env Env, named string, really bool) error {
	if named == "" {
		return fault.New(fault.Invalid, "Specify the conversation by its ID or as platform/id, such as telegram/42; bot sessions list shows them.")
	}
	if really {
		if done, err := inDaemon(ctx, cfg, env, callRemoveConversation, nameCall{named}); done {
			return err
		}
	}
	return withExisting(ctx, cfg, env, really, func(s *store.Store) error {
		var r store.Removed
		var atConsole bool
		do, remove := s.InRead, (*store.Care).MeasureConversation
		if really {
			do, remove = s.InTx, (*store.Care).RemoveConversation
		}
		err := do(ctx, func(tx *store.Tx) error {
			id, err := conversationID(ctx, tx, named)
			if err != nil {
				return err
			}
			if atConsole, err = isAtConsole(ctx, tx, id); err != nil {
				return err
			}
			if r, err = remove(tx.Care(), ctx, id); err != nil || !really {
				return err
			}
			return tx.Audit(ctx, sessions.AuditEntry{Actor: "cli", Action: "conversation.remove", Target: id})
		})
		switch {
		case err != nil:
			return err
		case !really:
			say(env.Stdout, "would remove the conversation with %s\nnothing was removed; run again with --yes to remove it\n", counted(r))
			return nil
		}
		say(env.Stdout, "removed the conversation with %s\n"+
			"kept: memories of its people (bot person forget), usage totals, the audit log, and its branch and saved files in the repository\n", counted(r))
		if atConsole {
			err = forgetTyped(cfg, env)
		}
		return errors.Join(finishErasing(ctx, cfg, env, s), err)
	})
}

// isAtConsole reports whether a conversation is that of the person at the console.
func isAtConsole(ctx context.Context, tx *store.Tx, id string) (bool, error) {
	c, err := tx.Conversations().FindConversation(ctx, console.Conversation)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return c.ID == id, err
}
