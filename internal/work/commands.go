package work

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
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/sessions"
)

// maxListed is how many commands one list shows.
const maxListed = 50

// loadDefaults reads the command files in the folders where repositories keep
// them. The registry holds paths and descriptions, never the files' text.
func loadDefaults(dir string) (map[string]sessions.CommandDef, []string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, fault.Wrap(err, fault.NotFound, "open the repository")
	}
	defer root.Close() //nolint:errcheck // only read
	files, problems := commandfile.Load(root, commandfile.DefaultFolders()...)
	registry := make(map[string]sessions.CommandDef)
	return registry, append(problems, merge(registry, files)...), nil
}

// refreshed returns a registry with the default folders' entries replaced by
// found. What people registered from elsewhere, or chose between two files of
// one name, stays.
func refreshed(old, found map[string]sessions.CommandDef) map[string]sessions.CommandDef {
	all := maps.Clone(found)
	for name, def := range old {
		inDefault := slices.ContainsFunc(commandfile.DefaultFolders(), func(folder string) bool {
			return strings.HasPrefix(def.Path, folder+"/")
		})
		if now, ok := found[name]; def.Path != "" && (!inDefault || (ok && now.Path == "")) {
			all[name] = def
		}
	}
	return all
}

// merge adds files to a registry under their canonical names. Of two files of
// one name neither wins; both are named, and the name runs nothing until
// somebody chooses.
func merge(registry map[string]sessions.CommandDef, files []commandfile.File) (problems []string) {
	clashes := make(map[string][]string)
	for _, f := range files {
		name, ok := command.Canonical(f.Name)
		switch {
		case !ok:
			problems = append(problems, fmt.Sprintf("`%s` cannot be a command: its name has other characters than letters, digits, - and _.", f.Path))
		case f.Conflict:
			clashes[name] = append(clashes[name], "`"+f.Path+"`")
			registry[name] = sessions.CommandDef{Description: "several files have this name"}
		default:
			registry[name] = definition(f)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(clashes)) {
		problems = append(problems, fmt.Sprintf("`/%s` is in %s; none of them runs. Rename one, or choose: `/command-set %s <path>`.",
			name, strings.Join(clashes[name], " and "), name))
	}
	return problems
}

// definition is what the registry keeps of a file.
func definition(f commandfile.File) sessions.CommandDef {
	return sessions.CommandDef{
		Path: f.Path, Description: f.Description, Produces: sessions.Artifact(f.Produces), Consumes: sessions.Artifact(f.Consumes),
	}
}

// planNote says what a command has to do with plans, and that its front matter
// decides where its name says something else.
func planNote(name string, def sessions.CommandDef) string {
	is, byName := sessions.MetaOf(name, def.Produces, def.Consumes), sessions.MetaOf(name, "", "")
	does := func(m sessions.CommandMeta) string {
		switch {
		case m.Produces != "" && m.Consumes != "":
			return "carries a plan out and makes the next one"
		case m.Produces != "":
			return "makes a plan"
		case m.Consumes != "":
			return "carries a plan out"
		}
		return "has nothing to do with plans"
	}
	named := byName.Produces != "" || byName.Consumes != ""
	switch {
	case named && (is.Produces != byName.Produces || is.Consumes != byName.Consumes):
		return fmt.Sprintf(" (⚠ %s: its front matter says so, and goes before its name, by which it %s)", does(is), does(byName))
	case is.Produces != "" || is.Consumes != "":
		return " (" + does(is) + ")"
	}
	return ""
}

func (s *Shop) registry(ctx context.Context, codebaseID string) (all map[string]sessions.CommandDef, err error) {
	err = s.storage.InRead(ctx, func(tx orchestrator.Tx) error {
		var err error
		all, err = tx.CodebaseCommands(ctx, codebaseID)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the commands: %w", err)
	}
	return all, nil
}

func (s *Shop) countCommands(ctx context.Context, codebaseID string) (int, error) {
	all, err := s.registry(ctx, codebaseID)
	return len(all), err
}

func (s *Shop) runCommands(ctx context.Context, r command.Request) (command.Reply, error) {
	c, err := s.codebaseOf(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	all, err := s.registry(ctx, c.ID)
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
		return command.Reply{Text: fmt.Sprintf("**%s** has no command files. They are Markdown files in `.claude/commands` or `.agents/commands`; `/load-commands <folder>` takes another folder.", c.Name)}, nil
	case shown > maxListed:
		fmt.Fprintf(&b, "\n%d more: `/commands <search>`.", shown-maxListed)
	}
	return command.Reply{Text: b.String()}, nil
}

// runLoadCommands registers all command files below a folder of the
// conversation's directory, besides those that are registered.
func (s *Shop) runLoadCommands(ctx context.Context, r command.Request) (command.Reply, error) {
	c, err := s.codebaseOf(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	if len(r.Call.Args) != 1 {
		return command.Reply{}, fault.New(fault.Invalid, "Give a folder: `/load-commands .claude/commands`.")
	}
	root, err := s.openTree(ctx, c, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	defer root.Close() //nolint:errcheck // only read
	files, problems := commandfile.LoadFolder(root, r.Call.Args[0])
	added := make(map[string]sessions.CommandDef)
	problems = append(problems, merge(added, files)...)
	if len(added) == 0 {
		return command.Reply{Text: withProblems(fmt.Sprintf("There are no command files in `%s`.", r.Call.Args[0]), problems)}, nil
	}
	replaced := 0
	err = s.storage.InTx(ctx, func(tx orchestrator.Tx) error {
		all, err := tx.CodebaseCommands(ctx, c.ID)
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
		return tx.UpdateCodebaseCommands(ctx, c.ID, all)
	})
	if err != nil {
		return command.Reply{}, fmt.Errorf("register commands: %w", err)
	}
	text := fmt.Sprintf("%s registered from `%s`", plural(len(added), "command"), r.Call.Args[0])
	if replaced > 0 {
		text += fmt.Sprintf(", %d of them in place of another file", replaced)
	}
	return command.Reply{Text: withProblems(text+".", problems)}, nil
}

// openTree opens the directory that a conversation works in.
func (s *Shop) openTree(ctx context.Context, c sessions.Codebase, conv sessions.Conversation) (*os.Root, error) {
	tree, err := s.tree(ctx, c, conv)
	if err != nil {
		return nil, err
	}
	cwd, err := folderOf(c, conv, tree)
	if err != nil {
		return nil, err
	}
	return openCwd(tree, cwd)
}

// runCommandSet registers one command file; with a text it writes the file
// first, in the conversation's own worktree.
func (s *Shop) runCommandSet(ctx context.Context, r command.Request) (command.Reply, error) {
	c, err := s.codebaseOf(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	if len(r.Call.Args) < 2 {
		return command.Reply{}, fault.New(fault.Invalid, "Give a name and a file: `/command-set review .claude/commands/review.md`, and the text after it to write the file.")
	}
	name, ok := command.Canonical(strings.TrimPrefix(r.Call.Args[0], "/"))
	if !ok {
		return command.Reply{}, fault.Newf(fault.Invalid, "%q cannot be a command's name: use letters, digits, - and _.", r.Call.Args[0])
	}
	file := r.Call.Args[1]
	root, err := s.openTree(ctx, c, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	defer root.Close() //nolint:errcheck // what was written is closed
	wrote := ""
	if _, body, ok := strings.Cut(r.Call.Rest, file); ok && strings.TrimSpace(body) != "" {
		if err := writeCommand(root, file, strings.TrimSpace(body)+"\n"); err != nil {
			return command.Reply{}, err
		}
		wrote = " The file was written in this conversation's branch; `/diff` shows it."
	}
	found, err := commandfile.Read(root, file)
	if err != nil {
		return command.Reply{}, err
	}
	err = s.storage.InTx(ctx, func(tx orchestrator.Tx) error {
		return tx.RegisterCommand(ctx, c.ID, name, definition(found.File))
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
