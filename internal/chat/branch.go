package chat

import (
	"context"
	"fmt"

	"remote-agent/internal/command"
)

func (h *Handler) branchCommand() command.Command {
	return command.Command{
		Name:    "branch",
		Usage:   "branch",
		Summary: "show this conversation's branch",
		Example: "branch",
		Reading: command.ReadingAnywhere,
		Needs:   command.Repositories,
		Run:     h.runBranch,
	}
}

func (h *Handler) runBranch(ctx context.Context, r command.Request) (command.Reply, error) {
	c, tree, err := h.config.Work.Worktree(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	head, err := h.space.Head(ctx, tree)
	if err != nil {
		return command.Reply{}, fmt.Errorf("read the branch: %w", err)
	}
	return command.Reply{Text: fmt.Sprintf("**%s**, branch `%s` at `%.10s`, started from `%.10s`.", c.Name, tree.Branch, head, tree.Base)}, nil
}
