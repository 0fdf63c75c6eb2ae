package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

func (me *memories) unlinkCommand() *command.Command {
	return &command.Command{
		Name:    "unlink",
		Usage:   "unlink <account>",
		Summary: "unlink an account",
		Example: "unlink slack/U024BE7LH",
		Reading: command.ReadingAside,
		Where:   command.Aside,
		Needs:   command.Memory,
		Run:     me.runUnlink,
	}
}

func (me *memories) runUnlink(ctx context.Context, r command.Request) (command.Reply, error) {
	if !private(r.Entry.In) {
		return reply("Your accounts are private. Use a private chat with me.")
	}
	gone := strings.Trim(strings.Join(r.Call.Args, " "), "`")
	var accounts []memory.Account
	now, actor := me.now(), r.Actor()
	err := me.store.InTx(ctx, func(tx *store.Tx) (err error) {
		if accounts, err = tx.Persons().Accounts(ctx, actor); err != nil {
			return err
		}
		if !slices.ContainsFunc(accounts, func(a memory.Account) bool { return a.Name == gone }) {
			return nil
		}
		if err := tx.Persons().LeavePerson(ctx, gone); err != nil {
			return err
		}
		for _, a := range accounts {
			if a.Name == actor {
				continue
			}
			text := fmt.Sprintf("Unlinked `%s`. The memories stay with this account.", gone)
			if a.Name == gone {
				text = fmt.Sprintf("`%s` unlinked this account. The memories stayed there; this account starts with none.", actor)
			}
			if err := tell(ctx, tx, a, text); err != nil {
				return err
			}
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: actor, Action: "memory.unlink", Target: gone})
	})
	switch {
	case err != nil:
		return command.Reply{}, err
	case !slices.ContainsFunc(accounts, func(a memory.Account) bool { return a.Name == gone }):
		return command.Reply{}, fault.New(fault.NotFound, "Specify an account: `/unlink <account>`. "+linked(accounts, actor, now))
	case gone == actor:
		return reply("Unlinked this account. The memories stay with the others; this account starts with none.")
	}
	return reply("Unlinked `%s`. The memories stay here; that account starts with none.", gone)
}
