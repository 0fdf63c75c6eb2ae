package chat

import (
	"context"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/people"
)

func (ac *access) ownerCommand() *command.Command {
	return &command.Command{
		Name:    "owner",
		Usage:   "owner [add|rm <id>]",
		Summary: "list or change the owners",
		Example: "owner add telegram/42",
		Owners:  true,
		Run:     ac.runOwner,
	}
}

func (ac *access) runOwner(ctx context.Context, r command.Request) (command.Reply, error) {
	args := r.Call.Args
	if len(args) == 0 || len(args) == 1 && strings.EqualFold(args[0], "list") {
		text, err := ac.peopleText(ctx, r, people.Owners)
		return command.Reply{Text: text}, err
	}
	return ac.changePeople(ctx, r, "owner", args, map[string]change{
		"add": ac.people.AddOwner, "rm": ac.people.RemoveOwner, "remove": ac.people.RemoveOwner,
	})
}
