package chat

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/platform"
	"remote-agent/internal/wording"
)

func (h *Handler) diffCommand() command.Command {
	return command.Command{
		Name:    "diff",
		Usage:   "diff",
		Summary: "what has changed on this conversation's branch",
		Example: "diff",
		Rank:    8,
		Reading: command.ReadingAnywhere,
		Menu:    true,
		Needs:   command.Repositories,
		Run:     h.runDiff,
	}
}

// maxInlineDiff is how much of a patch is shown in the chat, in bytes.
const maxInlineDiff = 12_000

func (h *Handler) runDiff(ctx context.Context, r command.Request) (command.Reply, error) {
	_, tree, err := h.config.Work.Worktree(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	changes, err := h.space.Diff(ctx, tree)
	if err != nil {
		return command.Reply{}, fmt.Errorf("compare: %w", err)
	}
	if len(changes.Patch) == 0 {
		return command.Reply{Text: fmt.Sprintf("No changes on `%s`.", tree.Branch)}, nil
	}
	text := fmt.Sprintf("Changes on `%s`:\n\n%s\n\n", tree.Branch, wording.Fenced("", changes.Stat))
	body := string(changes.Patch)
	// A file is for everybody to see, so what one person asked aside stands in the text.
	if _, ok := h.adapters[r.Conv.Key.Platform].(platform.Filer); ok && !r.Entry.In.Aside() {
		return command.Reply{
			Text: strings.TrimSpace(text), Files: []command.File{{Name: "changes.patch", Data: changes.Patch}},
		}, nil
	}
	var reply command.Reply
	if len(body) > maxInlineDiff {
		cut := strings.LastIndexByte(body[:maxInlineDiff], '\n') + 1
		reply.Text = text + wording.Fenced("diff", body[:cut]) + fmt.Sprintf("\n\n%d more bytes of the patch are not shown; they are on the branch.", len(body)-cut)
		return reply, nil
	}
	reply.Text = text + wording.Fenced("diff", body)
	return reply, nil
}
