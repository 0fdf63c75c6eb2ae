package chat

import (
	"context"
	"fmt"

	"remote-agent/internal/command"
)

func (br *branches) branchCommand() *command.Command {
	return &command.Command{
		Name:    "branch",
		Usage:   "branch",
		Summary: "show this conversation's branch",
		Example: "branch",
		Reading: command.ReadingAnywhere,
		Files:   true,
		Needs:   command.Repositories,
		Takes:   command.NoWord,
		Past:    true,
		Run:     br.runBranch,
	}
}

func (br *branches) runBranch(ctx context.Context, r command.Request) (command.Reply, error) {
	c, tree, err := br.work.Worktree(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	head, err := br.space.Head(ctx, tree)
	if err != nil {
		return command.Reply{}, fmt.Errorf("read the branch: %w", err)
	}
	return command.Reply{Text: noted(tree) + fmt.Sprintf("**%s**, branch `%s` at `%.10s`, started from `%.10s`.", c.Name, tree.Known(), head, tree.Base)}, nil
}
