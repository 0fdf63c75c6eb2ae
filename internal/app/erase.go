package app

import (
	"context"
	"fmt"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// What a deletion cannot reach, as the commands say it.
const (
	remains = "may remain: backups and exports made before, the messages on the platform itself, what a model provider or an external agent keeps, " +
		"and copies that the file system or the disk made\n"
	remainsPostgres = "PostgreSQL keeps bytes of deleted rows in its files until their place is used again (bot scrub rewrites the tables), " +
		"and in its write-ahead log, archives and replicas until those are recycled\n"
)

// finishErasing removes what a deletion has left in the files of the database, as
// far as that holds nobody up, and says what may remain. On SQLite nobody else
// works on the database meanwhile, so its file is rewritten.
func finishErasing(ctx context.Context, env Env, s *store.Store) error {
	lite := s.Dialect() == "sqlite"
	if err := s.Scrub(ctx, lite); err != nil {
		return fmt.Errorf("it is deleted, but its traces in the files of the database are not all removed; bot scrub does it: %w", err)
	}
	if lite {
		say(env.Stdout, "the file of the database was rewritten: nothing of it is left there\n")
	} else {
		say(env.Stdout, remainsPostgres)
	}
	say(env.Stdout, remains)
	return nil
}

// Scrub rewrites the database so that nothing of what was deleted before is left in
// its files. On SQLite the daemon must not run; on PostgreSQL each table is locked
// while it is rewritten.
func Scrub(ctx context.Context, cfg config.Config, env Env) error {
	return withStore(ctx, cfg, env, true, func(s *store.Store) error {
		if err := s.Scrub(ctx, true); err != nil {
			return err
		}
		say(env.Stdout, "rewrote the database: nothing of what was deleted is left in its tables and indexes\n")
		if s.Dialect() != "sqlite" {
			say(env.Stdout, "PostgreSQL's write-ahead log, archives and replicas keep it until they are recycled\n")
		}
		say(env.Stdout, remains)
		return nil
	})
}

// RemoveConversation deletes a conversation, named by its id or as platform/id, or
// says what that would delete.
func RemoveConversation(ctx context.Context, cfg config.Config, env Env, named string, really bool) error {
	if named == "" {
		return fault.New(fault.Invalid, "Name the conversation by its id or as platform/id, such as telegram/42; bot sessions list shows them.")
	}
	return withStore(ctx, cfg, env, really, func(s *store.Store) error {
		var r store.Removed
		do, remove := s.InRead, (*store.Tx).MeasureConversation
		if really {
			do, remove = s.InTx, (*store.Tx).RemoveConversation
		}
		err := do(ctx, func(tx *store.Tx) error {
			id, err := conversationID(ctx, tx, named)
			if err != nil {
				return err
			}
			if r, err = remove(tx, ctx, id); err != nil || !really {
				return err
			}
			return tx.Audit(ctx, sessions.AuditEntry{Actor: "cli", Action: "conversation.remove", Target: id})
		})
		switch {
		case err != nil:
			return err
		case !really:
			say(env.Stdout, "would remove the conversation with %s\nnothing was removed; --yes removes it\n", counted(r))
			return nil
		}
		say(env.Stdout, "removed the conversation with %s\n"+
			"kept: what is remembered of its people (bot person forget), sums of usage, the audit log, and its branch and saved files in the repository\n", counted(r))
		return finishErasing(ctx, env, s)
	})
}
