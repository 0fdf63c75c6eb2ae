package chat

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/codebase"
	"remote-agent/internal/command"
	"remote-agent/internal/redact"
	"remote-agent/internal/wording"
)

func (br *branches) diffCommand() *command.Command {
	return &command.Command{
		Name:    "diff",
		Usage:   "diff",
		Summary: "show the changes on this conversation's branch",
		Example: "diff",
		Rank:    8,
		Reading: command.ReadingAnywhere,
		Menu:    true,
		Files:   true,
		Needs:   command.Repositories,
		Takes:   command.NoWord,
		Past:    true,
		Run:     br.runDiff,
	}
}

// maxInlineDiff is how much of a patch is shown in the chat, in bytes.
const maxInlineDiff = 12_000

func (br *branches) runDiff(ctx context.Context, r command.Request) (command.Reply, error) {
	_, tree, err := br.work.Worktree(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	changes, err := br.space.Diff(ctx, tree)
	if err != nil {
		return command.Reply{}, fmt.Errorf("compare: %w", err)
	}
	// A file is for everybody to see, so what one person asked aside stands in the text.
	reply := diffReply(tree.Known(), changes, br.redact, br.postsFiles(r.Conv.Key.Platform) && !r.Entry.In.Aside())
	reply.Text = noted(tree) + reply.Text
	return reply, nil
}

// noted is what people should know of a worktree before they read of it.
func noted(t codebase.Tree) string {
	if t.Note == "" {
		return ""
	}
	return "⚠ " + t.Note + "\n\n"
}

// diffReply shows changes: the files in the text, and the patch as a file or behind them.
// What assistants write into files can hold credentials, which no chat shows.
func diffReply(branch string, changes codebase.Changes, clean *redact.Redactor, asFile bool) command.Reply {
	patch, masked := clean.String(string(changes.Patch)), ""
	if patch != string(changes.Patch) {
		changes.Patch, masked = []byte(patch), "⚠ Credentials in the patch are masked; the branch has the files as they are.\n\n"
	}
	changes.Stat = clean.String(changes.Stat)
	missing := ""
	if len(changes.Unsaved) > 0 {
		missing = "\n\n⚠ Not compared (too large, not a file, refused by git, or a nested repository or submodule):\n\n" +
			wording.Fenced("", wording.Head(clean.String(strings.Join(changes.Unsaved, "\n")), 500))
	}
	if len(changes.Patch) == 0 {
		return command.Reply{Text: fmt.Sprintf("No changes on `%s`.", branch) + missing}
	}
	text := fmt.Sprintf("Changes on `%s`:\n\n%s%s\n\n%s", branch, wording.Fenced("", changes.Stat), missing, masked)
	body, cut := changes.Readable(), ""
	if asFile {
		body = string(changes.Patch) // with the bytes of binary files, so that it can be applied
	}
	if changes.Truncated {
		cut = fmt.Sprintf("⚠ The patch is too large: only its first %s are here, so it cannot be applied. The list of files is complete, and so is the branch.",
			wording.Count(strings.Count(body, "\n"), "line", "lines"))
	}
	if asFile {
		return command.Reply{Text: strings.TrimSpace(text + cut), Files: []command.File{{Name: "changes.patch", Data: changes.Patch}}}
	}
	if len(body) > maxInlineDiff {
		end := strings.LastIndexByte(body[:maxInlineDiff], '\n') + 1
		least := ""
		if changes.Truncated {
			least = "at least "
		}
		return command.Reply{Text: text + wording.Fenced("diff", body[:end]) +
			fmt.Sprintf("\n\n%s%d more bytes of the patch are not shown; they are on the branch.", least, len(body)-end)}
	}
	return command.Reply{Text: strings.TrimSpace(text + wording.Fenced("diff", body) + "\n\n" + cut)}
}
