package chat

import (
	"context"
	"fmt"

	"remote-agent/internal/command"
)

func whoamiCommand() *command.Command {
	return &command.Command{
		Name:    "whoami",
		Usage:   "whoami",
		Summary: "show your account and role",
		Example: "whoami",
		Rank:    16,
		Reading: command.ReadingAnywhere,
		Menu:    true,
		Run:     runWhoami,
	}
}

func runWhoami(_ context.Context, r command.Request) (command.Reply, error) {
	return command.Reply{Text: fmt.Sprintf("You are `%s` on %s, role **%s**.", r.Entry.In.Sender.ID, r.Entry.In.Home(), r.Role)}, nil
}
