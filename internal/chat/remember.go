package chat

import (
	"context"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
)

func (me *memories) rememberCommand() *command.Command {
	return &command.Command{
		Name:    "remember",
		Usage:   "remember <text>",
		Summary: "save a memory about you",
		Example: "remember I like short answers",
		Reading: command.ReadingAside,
		Needs:   command.Memory,
		Run:     me.runRemember,
	}
}

func (me *memories) runRemember(ctx context.Context, r command.Request) (command.Reply, error) {
	if strings.TrimSpace(r.Call.Rest) == "" {
		return command.Reply{}, fault.New(fault.Invalid, "Add the text: `/remember I prefer short answers`.")
	}
	out, err := me.memory.Remember(ctx, r.Entry, memory.Fact{
		Scope: memory.Scope{Person: r.Actor()}, Text: r.Call.Rest, Origin: memory.ByPerson,
	})
	if err != nil {
		return command.Reply{}, err
	}
	switch {
	case out.Operation == memory.InsertNew:
		return reply("Saved as memory %d. `/forget %d` deletes it.", out.Memory.Number, out.Memory.Number)
	case memory.Hash(out.Memory.Text) == memory.Hash(out.Matched):
		return reply("Already saved as memory %d.", out.Memory.Number)
	case out.Contradicted:
		return reply("Updated memory %d, which said something different. `/forget %d` deletes it.", out.Memory.Number, out.Memory.Number)
	}
	return reply("Updated memory %d. `/memory` shows what it said before.", out.Memory.Number)
}
