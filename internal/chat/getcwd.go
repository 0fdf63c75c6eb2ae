package chat

import (
	"cmp"
	"context"
	"fmt"

	"remote-agent/internal/command"
)

func (re *repositories) getCwdCommand() *command.Command {
	return &command.Command{
		Name:    "getcwd",
		Usage:   "getcwd",
		Summary: "show the working folder",
		Example: "getcwd",
		Reading: command.ReadingAnywhere,
		Needs:   command.Repositories,
		Run:     re.runGetCwd,
	}
}

func (re *repositories) runGetCwd(ctx context.Context, r command.Request) (command.Reply, error) {
	c, err := re.work.Codebase(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	return command.Reply{Text: fmt.Sprintf("**%s**, folder `%s`", c.Name, cmp.Or(r.Conv.Cwd, "."))}, nil
}
