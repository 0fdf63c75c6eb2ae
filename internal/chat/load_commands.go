package chat

import (
	"context"
	"fmt"

	"remote-agent/internal/codebase/commandfile"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
	"remote-agent/internal/work"
)

func (re *repositories) loadCommandsCommand() *command.Command {
	return &command.Command{
		Name:    "load_commands",
		Usage:   "load_commands <folder>",
		Summary: "register all command files in a folder",
		Example: "load_commands .claude/commands",
		Files:   true,
		Needs:   command.Repositories,
		Run:     re.runLoadCommands,
	}
}

// runLoadCommands registers all command files below a folder of the
// conversation's worktree, besides those that are registered.
func (re *repositories) runLoadCommands(ctx context.Context, r command.Request) (command.Reply, error) {
	c, err := re.work.Codebase(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	if len(r.Call.Args) != 1 {
		return command.Reply{}, fault.New(fault.Invalid, "Specify a folder: `/load-commands .claude/commands`.")
	}
	root, err := re.work.OpenTree(ctx, c, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	defer root.Close() //nolint:errcheck // only read
	files, problems := commandfile.LoadFolder(root, r.Call.Args[0])
	added := make(map[string]sessions.CommandDef)
	problems = append(problems, work.Merge(added, files)...)
	if len(added) == 0 {
		return command.Reply{Text: withProblems(fmt.Sprintf("There are no command files in `%s`.", r.Call.Args[0]), problems)}, nil
	}
	replaced := 0
	err = re.store.InTx(ctx, func(tx *store.Tx) error {
		all, err := tx.Registry().CodebaseCommands(ctx, c.ID)
		if err != nil {
			return err
		}
		replaced = 0
		if all == nil {
			all = make(map[string]sessions.CommandDef)
		}
		for name, def := range added {
			if old, ok := all[name]; ok && old.Path != def.Path {
				replaced++
			}
			all[name] = def
		}
		return tx.Registry().UpdateCodebaseCommands(ctx, c.ID, all)
	})
	if err != nil {
		return command.Reply{}, fmt.Errorf("register commands: %w", err)
	}
	text := fmt.Sprintf("%s registered from `%s`", wording.Count(len(added), "command", "commands"), r.Call.Args[0])
	if replaced > 0 {
		text += fmt.Sprintf(", %d of them replacing another file", replaced)
	}
	return command.Reply{Text: withProblems(text+".", problems)}, nil
}
