package work

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"remote-agent/internal/codebase"
	"remote-agent/internal/codebase/commandfile"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

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
	return registry, append(problems, Merge(registry, files)...), nil
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

// registerNew registers the command files that a new worktree has: it begins with the
// repository as it is now, which may have more of them than when it was cloned. None is taken
// away, for a conversation may have one that it wrote itself.
func (s *Service) registerNew(ctx context.Context, c sessions.Codebase, t codebase.Tree) error {
	if !t.Created || t.Protected {
		return nil
	}
	found, _, err := loadDefaults(t.Dir)
	if err != nil || len(found) == 0 {
		return err
	}
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		old, err := tx.Registry().CodebaseCommands(ctx, c.ID)
		if err != nil {
			return err
		}
		all := refreshed(old, found)
		for name, def := range old {
			if _, ok := all[name]; !ok {
				all[name] = def
			}
		}
		if maps.Equal(all, old) {
			return nil
		}
		return tx.Registry().UpdateCodebaseCommands(ctx, c.ID, all)
	})
	return fault.Note(err, "register the command files")
}

// Merge adds files to a registry under their canonical names. Of two files of
// one name neither wins; both are named, and the name runs nothing until
// somebody chooses. A file that cannot be used has a name that no other file
// takes: whoever runs it reads what is wrong with it.
func Merge(registry map[string]sessions.CommandDef, files []commandfile.File) (problems []string) {
	clashes := make(map[string][]string)
	for _, f := range files {
		name, ok := command.Canonical(f.Name)
		switch {
		case !ok:
			problems = append(problems, fmt.Sprintf("`%s` cannot be a command: its name has other characters than letters, digits, - and _.", f.Path))
		case f.Conflict:
			clashes[name] = append(clashes[name], "`"+f.Path+"`")
			registry[name] = sessions.CommandDef{Description: "several files have this name"}
		case f.Problem != "":
			if _, taken := registry[name]; !taken {
				registry[name] = sessions.CommandDef{Path: f.Path, Description: "⚠ " + f.Problem}
			}
		default:
			registry[name] = Definition(f)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(clashes)) {
		problems = append(problems, fmt.Sprintf("`/%s` is in %s, so none of them runs. Rename one, or choose with `/command-set %s <path>`.",
			name, strings.Join(clashes[name], " and "), name))
	}
	return problems
}

// Definition is what the registry keeps of a file.
func Definition(f commandfile.File) sessions.CommandDef {
	return sessions.CommandDef{
		Path: f.Path, Description: f.Description, Produces: sessions.Artifact(f.Produces), Consumes: sessions.Artifact(f.Consumes),
	}
}

// Commands returns the command files of a codebase by their canonical names.
func (s *Service) Commands(ctx context.Context, codebaseID string) (all map[string]sessions.CommandDef, err error) {
	all, err = store.Within(ctx, s.store.InRead, func(tx *store.Tx) (map[string]sessions.CommandDef, error) {
		return tx.Registry().CodebaseCommands(ctx, codebaseID)
	})
	if err != nil {
		return nil, fmt.Errorf("read the commands: %w", err)
	}
	return all, nil
}

// OpenTree opens the worktree of a conversation, from whose top the paths of command files
// are, whatever folder it works in.
func (s *Service) OpenTree(ctx context.Context, c sessions.Codebase, conv sessions.Conversation) (*os.Root, error) {
	tree, err := s.tree(ctx, c, conv)
	if err != nil {
		return nil, err
	}
	return openTree(tree)
}
