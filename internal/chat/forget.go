package chat

import (
	"context"
	"strconv"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

func (me *memories) forgetCommand() *command.Command {
	return &command.Command{
		Name:    "forget",
		Usage:   "forget <n|all>",
		Summary: "delete memories about you",
		Example: "forget 3",
		Reading: command.ReadingAside,
		Needs:   command.Memory,
		Run:     me.runForget,
	}
}

func (me *memories) runForget(ctx context.Context, r command.Request) (command.Reply, error) {
	what := strings.ToLower(strings.Join(r.Call.Args, " "))
	if what == "all" || what == "all yes" {
		return me.forgetAll(ctx, r, what == "all yes")
	}
	number, err := strconv.ParseInt(strings.TrimPrefix(what, "#"), 10, 64)
	if err != nil || number <= 0 {
		return command.Reply{}, fault.New(fault.Invalid, "Specify a memory by number: `/forget 3`. `/memory` lists them; `/forget all` deletes all.")
	}
	if err := me.memory.Forget(ctx, r.Actor(), number); err != nil {
		return command.Reply{}, err
	}
	return reply("Deleted memory %d.", number)
}

// forgetAll asks first, unless there is nothing to ask about: what is still to be
// learned is dropped then as well.
func (me *memories) forgetAll(ctx context.Context, r command.Request, sure bool) (command.Reply, error) {
	n, err := store.Within(ctx, me.store.InTx, func(tx *store.Tx) (n int64, err error) {
		if n, err = tx.Memories().Count(ctx, r.Actor(), me.now()); err != nil || n > 0 && !sure {
			return n, err
		}
		if _, err := tx.Memories().ForgetMemories(ctx, r.Actor()); err != nil {
			return 0, err
		}
		return n, tx.Audit(ctx, sessions.AuditEntry{Actor: r.Actor(), Action: "memory.forget_all", Target: strconv.FormatInt(n, 10)})
	})
	switch {
	case err != nil:
		return command.Reply{}, err
	case n == 0:
		return reply("No memories about you.")
	case sure:
		return reply("Deleted all %s.", wording.Count(int(n), "memory", "memories"))
	}
	return reply("This permanently deletes all memories about you (%d). To confirm: `/forget all yes`.", n)
}
