package codebase

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"remote-agent/internal/codebase/commandfile"
	"remote-agent/internal/codebase/confine"
	"remote-agent/internal/fault"
)

// OpenTree opens a worktree for access that cannot leave it; see package confine.
// The caller closes it.
func (w *Workspace) OpenTree(_ context.Context, t Tree) (*os.Root, error) { return openRoot(t.Dir) }

// OpenRepo is OpenTree for the files at repo.Dir, which are shared: only read
// there.
func (w *Workspace) OpenRepo(_ context.Context, repo Repo) (*os.Root, error) {
	return openRoot(repo.Dir)
}

func openRoot(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &fault.Error{Kind: fault.NotFound, Public: "The repository's folder no longer exists.", Err: err}
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "opening a codebase")
	}
	return root, nil
}

// Cwd checks the path of a folder in a worktree, as a person typed it, and
// returns it relative to the worktree, "." for the top. Store that, and open it
// through OpenTree at each turn: the folder may be another one by then. Errors
// are Invalid or NotFound with the reason.
func (w *Workspace) Cwd(ctx context.Context, t Tree, p string) (rel string, err error) {
	root, err := w.OpenTree(ctx, t)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	return confine.Dir(root, p)
}

// Commands lists the command files of the shared checkout; without folders those
// of commandfile.DefaultFolders. See commandfile.Load.
func (w *Workspace) Commands(ctx context.Context, repo Repo, folders ...string) (files []commandfile.File, problems []string, err error) {
	root, err := w.OpenRepo(ctx, repo)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = root.Close() }()
	if len(folders) == 0 {
		folders = commandfile.DefaultFolders()
	}
	files, problems = commandfile.Load(root, folders...)
	return files, problems, nil
}
