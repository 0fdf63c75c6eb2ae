package chat

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"

	"remote-agent/internal/codebase/commandfile"
	"remote-agent/internal/codebase/confine"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/store"
	"remote-agent/internal/work"
)

func (re *repositories) commandSetCommand() *command.Command {
	return &command.Command{
		Name:    "command_set",
		Usage:   "command_set <name> <path> [text]",
		Summary: "register or write a command file",
		Example: "command_set ship .claude/commands/ship.md",
		Files:   true,
		Needs:   command.Repositories,
		Run:     re.runCommandSet,
	}
}

// runCommandSet registers one command file; with a text it writes the file
// first, in the conversation's own worktree.
func (re *repositories) runCommandSet(ctx context.Context, r command.Request) (command.Reply, error) {
	c, err := re.work.Codebase(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	if len(r.Call.Args) < 2 {
		return command.Reply{}, fault.New(fault.Invalid, "Specify a name and a file: `/command-set review .claude/commands/review.md`. Add text to write the file.")
	}
	name, ok := command.Canonical(strings.TrimPrefix(r.Call.Args[0], "/"))
	if !ok {
		return command.Reply{}, fault.Newf(fault.Invalid, "%q is not a valid command name: use letters, digits, - and _.", r.Call.Args[0])
	}
	if re.code(name) {
		return command.Reply{}, fault.Newf(fault.Invalid, "`/%s` is a command of the bot, and no file replaces it. Choose another name.", name)
	}
	file := r.Call.Args[1]
	root, err := re.work.OpenTree(ctx, c, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	defer root.Close() //nolint:errcheck // what was written is closed
	wrote := ""
	if body := r.Call.WithoutFirst().WithoutFirst().Rest; body != "" {
		if err := writeCommand(root, file, body+"\n"); err != nil {
			return command.Reply{}, err
		}
		wrote = " The file was written on this conversation's branch; `/diff` shows it."
	}
	found, err := commandfile.Read(root, file)
	if fault.Is(err, fault.NotFound) {
		err = fault.Newf(fault.NotFound, "The branch of this conversation does not have `%s`. To write it, add its text behind the path, which begins at the top folder. "+
			"If the file is newer than the branch, use the command in a new chat, topic, thread or issue.", file)
	}
	if err != nil {
		return command.Reply{}, err
	}
	err = re.store.InTx(ctx, func(tx *store.Tx) error {
		return tx.Registry().RegisterCommand(ctx, c.ID, name, work.Definition(found.File))
	})
	if err != nil {
		return command.Reply{}, fmt.Errorf("register a command: %w", err)
	}
	return command.Reply{Text: fmt.Sprintf("`/%s` runs `%s`.%s", name, found.Path, wrote)}, nil
}

// writeCommand writes a command file inside root.
func writeCommand(root *os.Root, name, text string) error {
	rel, err := confine.Clean(name)
	if err != nil {
		return err
	}
	if path.Ext(rel) != ".md" || len(text) > commandfile.MaxSize {
		return fault.Newf(fault.Invalid, "A command file is a Markdown file (.md) of at most %d KiB.", commandfile.MaxSize>>10)
	}
	if dir := path.Dir(rel); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return fault.Wrap(err, fault.Invalid, "make the folder of a command file")
		}
	}
	return fault.Wrap(root.WriteFile(rel, []byte(text), 0o644), fault.Invalid, "write a command file")
}
