package chat

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"remote-agent/internal/codebase/commandfile"
	"remote-agent/internal/codebase/confine"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
	"remote-agent/internal/work"
)

func (re *repositories) commandsCommand() command.Command {
	return command.Command{
		Name:    "commands",
		Usage:   "commands [search]",
		Summary: "list this repository's commands",
		Example: "commands review",
		Reading: command.ReadingAnywhere,
		Menu:    true,
		Needs:   command.Repositories,
		Run:     re.runCommands,
	}
}

// maxListed is how many commands one list shows.
const maxListed = 50

// planNote says what a command has to do with plans, and that its front matter
// decides where its name says something else.
func planNote(name string, def sessions.CommandDef) string {
	is, byName := sessions.MetaOf(name, def.Produces, def.Consumes), sessions.MetaOf(name, "", "")
	does := func(m sessions.CommandMeta) string {
		switch {
		case m.Produces != "" && m.Consumes != "":
			return "executes a plan and writes the next one"
		case m.Produces != "":
			return "writes a plan"
		case m.Consumes != "":
			return "executes a plan"
		}
		return "does not use plans"
	}
	named := byName.Produces != "" || byName.Consumes != ""
	switch {
	case named && (is.Produces != byName.Produces || is.Consumes != byName.Consumes):
		return fmt.Sprintf(" (⚠ %s according to its front matter, although by its name it %s)", does(is), does(byName))
	case is.Produces != "" || is.Consumes != "":
		return " (" + does(is) + ")"
	}
	return ""
}

func (re *repositories) runCommands(ctx context.Context, r command.Request) (command.Reply, error) {
	c, err := re.work.Codebase(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	all, err := re.work.Commands(ctx, c.ID)
	if err != nil {
		return command.Reply{}, err
	}
	var b strings.Builder
	shown, search := 0, strings.ToLower(r.Call.Rest)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		def := all[name]
		if !strings.Contains(strings.ToLower(name+" "+def.Description+" "+def.Path), search) {
			continue
		}
		if shown++; shown <= maxListed {
			fmt.Fprintf(&b, "- `/%s` %s\n", name, strings.TrimSpace(def.Description+planNote(name, def)))
		}
	}
	switch {
	case shown == 0 && search != "":
		return command.Reply{Text: fmt.Sprintf("No command of **%s** matches %q.", c.Name, r.Call.Rest)}, nil
	case shown == 0:
		return command.Reply{Text: fmt.Sprintf("**%s** has no command files. Add Markdown files in `.claude/commands` or `.agents/commands`, or use `/load-commands <folder>`.", c.Name)}, nil
	case shown > maxListed:
		fmt.Fprintf(&b, "\n%d more: `/commands <search>`.", shown-maxListed)
	}
	return command.Reply{Text: b.String()}, nil
}

func (re *repositories) commandSetCommand() command.Command {
	return command.Command{
		Name:    "command_set",
		Usage:   "command_set <name> <path> [text]",
		Summary: "register or write a command file",
		Example: "command_set ship .claude/commands/ship.md",
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
	file := r.Call.Args[1]
	root, err := re.work.OpenFolder(ctx, c, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	defer root.Close() //nolint:errcheck // what was written is closed
	wrote := ""
	if _, body, ok := strings.Cut(r.Call.Rest, file); ok && strings.TrimSpace(body) != "" {
		if err := writeCommand(root, file, strings.TrimSpace(body)+"\n"); err != nil {
			return command.Reply{}, err
		}
		wrote = " The file was written on this conversation's branch; `/diff` shows it."
	}
	found, err := commandfile.Read(root, file)
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
	if err := root.WriteFile(rel, []byte(text), 0o644); err != nil {
		return fault.Wrap(err, fault.Invalid, "write a command file")
	}
	return nil
}

func (re *repositories) loadCommandsCommand() command.Command {
	return command.Command{
		Name:    "load_commands",
		Usage:   "load_commands <folder>",
		Summary: "register all command files in a folder",
		Example: "load_commands .claude/commands",
		Needs:   command.Repositories,
		Run:     re.runLoadCommands,
	}
}

// runLoadCommands registers all command files below a folder of the
// conversation's directory, besides those that are registered.
func (re *repositories) runLoadCommands(ctx context.Context, r command.Request) (command.Reply, error) {
	c, err := re.work.Codebase(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	if len(r.Call.Args) != 1 {
		return command.Reply{}, fault.New(fault.Invalid, "Specify a folder: `/load-commands .claude/commands`.")
	}
	root, err := re.work.OpenFolder(ctx, c, r.Conv)
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
