package chat

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"remote-agent/internal/codebase/confine"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
)

func (re *repositories) setCwdCommand() *command.Command {
	return &command.Command{
		Name:    "setcwd",
		Usage:   "setcwd <folder>",
		Summary: "set the working folder",
		Example: "setcwd cmd/server",
		Reading: command.ReadingAside,
		Lane:    command.Ahead,
		Files:   true,
		Needs:   command.Repositories,
		Run:     re.runSetCwd,
	}
}

func (re *repositories) runSetCwd(ctx context.Context, r command.Request) (command.Reply, error) {
	if len(r.Call.Args) != 1 {
		return command.Reply{}, fault.New(fault.Invalid, "Specify a folder of the repository: `/setcwd src/server`, or `/setcwd .` for its root.")
	}
	c, tree, err := re.work.Worktree(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	rel, err := folderIn(tree.Dir, r.Call.Args[0])
	if err != nil {
		return command.Reply{}, err
	}
	ended, err := re.useCodebase(ctx, r, c.ID, rel)
	if err != nil {
		return command.Reply{}, err
	}
	return command.Reply{Text: fmt.Sprintf("Working in `%s` of **%s**.%s", cmp.Or(rel, "."), c.Name, ended)}, nil
}

// folderIn checks a folder that a person named and returns it relative to the
// tree; the root is empty.
func folderIn(dir, name string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fault.Wrap(err, fault.NotFound, "open the worktree")
	}
	defer root.Close() //nolint:errcheck // only read
	rel, err := confine.Dir(root, name)
	if rel == "." {
		rel = ""
	}
	return rel, err
}
