package codebase

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"remote-agent/internal/fault"
)

// tell adds to what a person should know.
func (t *Tree) tell(note string) { t.Note = strings.TrimSpace(t.Note + " " + note) }

// revive makes the branch again that is checked out in a worktree, if somebody deleted it:
// without a commit nothing can be done there. The files stay as they are.
func (m *maker) revive(ctx context.Context, t *Tree) error {
	head, err := os.ReadFile(filepath.Join(t.gitDir(), "HEAD"))
	if err != nil {
		return fault.Wrap(err, fault.Internal, "reading HEAD")
	}
	ref, named := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: ")
	if !named {
		return nil
	}
	info, err := os.Stat(filepath.Join(t.place.gitDir, filepath.FromSlash(ref))) //nolint:gosec // git's data, of which only the size is seen
	if err == nil && info.Size() > 0 {
		return nil
	}
	if _, err := m.Head(ctx, *t); err == nil { // packed with others
		return nil
	}
	commit, err := m.last(ctx, *t)
	if err == nil {
		_, err = m.justIn(ctx, t, "update-ref", "-m", "bot: the branch was deleted", "HEAD", commit)
	}
	if err != nil {
		return fmt.Errorf("making a deleted branch again: %w", err)
	}
	t.revived(strings.TrimPrefix(ref, "refs/heads/"), commit)
	return nil
}

// rebranch is revive for a worktree that is to be made again.
func (m *maker) rebranch(ctx context.Context, t *Tree) (commit string, err error) {
	if commit, err = m.last(ctx, *t); err == nil {
		_, err = m.just(ctx, &t.place, "update-ref", "refs/heads/"+t.Branch, commit)
	}
	if err != nil {
		return "", fmt.Errorf("making a deleted branch again: %w", err)
	}
	t.revived(t.Branch, commit)
	return commit, nil
}

func (t *Tree) revived(branch, commit string) {
	t.tell(fmt.Sprintf("The branch %s of this conversation was deleted. It is back at %.10s.", branch, commit))
}

// last returns the commit that a worktree was at, as far as is known without its branch:
// by its log, by the newest state that was saved of it, or where it began.
func (m *maker) last(ctx context.Context, t Tree) (string, error) {
	log, err := os.ReadFile(filepath.Join(t.gitDir(), "logs", "HEAD"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fault.Wrap(err, fault.Internal, "reading the log of a worktree")
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	if moved := strings.Fields(lines[len(lines)-1]); len(moved) > 1 { // from, to, by whom
		if commit, err := m.resolve(ctx, t.place, moved[1]+"^{commit}"); err != nil || commit != "" {
			return commit, err
		}
	}
	newest, err := m.just(ctx, &t.place, "for-each-ref", "--sort=-committerdate", "--count=1", "--format=%(parent)", t.ref("cp/"), t.ref("undo/"), t.ref("saved"))
	if err != nil || newest != "" {
		return newest, err
	}
	return t.Base, nil
}
