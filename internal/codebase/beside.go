package codebase

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// beside returns the folder of a conversation's worktree while it is in the workspace of
// another process on this machine that works on the same repository, where git has one place
// for both: who made it last has it. Empty if it is here, or nowhere. It says what git's notes
// and the file .git there say of each other, so that no other folder is taken for one.
func (w *worktrees) beside(t Tree) string {
	link, err := os.ReadFile(filepath.Join(t.gitDir(), "gitdir"))
	if err != nil {
		return ""
	}
	file := strings.TrimSpace(string(link))
	dir := filepath.Dir(file)
	if same(dir, t.Dir) {
		return ""
	}
	info, err := os.Lstat(file) //nolint:gosec // git's notes name it
	if err != nil || !info.Mode().IsRegular() || info.Size() > 4096 {
		return ""
	}
	back, _ := os.ReadFile(file) //nolint:gosec // see above
	if to, found := strings.CutPrefix(strings.TrimSpace(string(back)), "gitdir: "); !found || !same(to, t.gitDir()) {
		return ""
	}
	return dir
}

// same reports whether two names are of one folder.
func same(a, b string) bool {
	one, err := os.Stat(a) //nolint:gosec // only seen
	other, failed := os.Stat(b)
	return err == nil && failed == nil && os.SameFile(one, other)
}

// bring saves the worktree of t that is in another workspace, so that it can be made here as it
// is there, and tells what could not be saved. The caller sees to it that nothing works in it.
func (m *maker) bring(ctx context.Context, t *Tree, from string) error {
	if err := m.recall(ctx, t); err != nil {
		return err
	}
	here := t.Dir
	t.Dir = from
	saved, err := (&states{m.worktrees, m.snapshots, m.guard}).save(ctx, *t, "saved", "the worktree when another process went on with it")
	t.Dir = here
	if len(saved.Unsaved) > 0 {
		t.tell("Another replica worked in " + from + ". Not brought from there: " + strings.Join(saved.Unsaved[:min(len(saved.Unsaved), 5)], ", ") + ".")
	}
	return err
}
