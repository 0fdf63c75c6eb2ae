package codebase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/fault"
)

// Restored is what Restore did.
type Restored struct {
	Changed []string // files written
	Removed []string // files that did not exist at the checkpoint
	Before  Saved    // the state before; Restore to it takes everything back

	// NotUndone says, for a person, what stays as it is.
	NotUndone []string
}

// change is a line of a raw diff between two trees.
type change struct {
	path    string
	mode    string // of the wanted state
	deleted bool
}

// Restore brings the files of a worktree, and its branch if commits were made,
// back to a checkpoint. Files made since are removed. The state before is saved
// first, so that nothing is lost. Files that git ignores are left alone and named
// in NotUndone, as are pushes, which cannot be seen from here.
//
// The error is NotFound if ref is no checkpoint of this worktree.
func (w *Workspace) Restore(ctx context.Context, t Tree, ref string) (Restored, error) {
	target := ""
	if strings.HasPrefix(ref, t.ref("cp/")) || strings.HasPrefix(ref, t.ref("undo/")) {
		var err error
		if target, err = w.resolve(ctx, t.place, ref+"^{commit}"); err != nil {
			return Restored{}, err
		}
	}
	if target == "" {
		return Restored{}, fault.New(fault.NotFound, "There is no such checkpoint of this conversation.")
	}
	unlock, err := w.lockTree(ctx, t)
	if err != nil {
		return Restored{}, err
	}
	defer unlock()
	before, err := w.save(ctx, t, "undo/"+time.Now().UTC().Format("20060102T150405.000000"), "before going back to "+ref)
	if err != nil {
		return Restored{}, err
	}
	changes, err := w.changes(ctx, t, before.Commit, target)
	if err != nil {
		return Restored{}, err
	}
	r := Restored{Before: before}
	for _, u := range before.Unsaved {
		r.NotUndone = append(r.NotUndone, u+" (too large, not a file, or a nested repository)")
	}
	if err := w.apply(ctx, t, target, changes, &r); err != nil {
		return r, err
	}
	if err := w.moveBack(ctx, t, target, &r); err != nil {
		return r, err
	}
	ignored, err := w.ignored(ctx, t)
	r.NotUndone = append(r.NotUndone, ignored...)
	return r, err
}

func (w *Workspace) changes(ctx context.Context, t Tree, from, to string) ([]change, error) {
	out, err := w.git.Run(ctx, gitcmd.Call{
		GitDir: t.place.gitDir, Config: t.place.config,
		Args: []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--ignore-submodules=all", from, to},
	})
	if err != nil {
		return nil, fmt.Errorf("comparing with the checkpoint: %w", err)
	}
	var changes []change
	fields := bytes.Split(out.Data, []byte{0})
	for i := 0; i+1 < len(fields); i += 2 {
		parts := strings.Fields(string(fields[i])) // :oldmode newmode old new status
		if len(parts) != 5 {
			return nil, fault.Newf(fault.Internal, "cannot read a line of git diff-tree")
		}
		changes = append(changes, change{path: string(fields[i+1]), mode: parts[1], deleted: parts[4] == "D"})
	}
	return changes, nil
}

// apply removes and writes files. Removing goes through an os.Root; for writing,
// git replaces links on the way by directories and does not follow them.
func (w *Workspace) apply(ctx context.Context, t Tree, target string, changes []change, r *Restored) error {
	root, err := os.OpenRoot(t.Dir)
	if err != nil {
		return fault.Wrap(err, fault.NotFound, "opening the worktree")
	}
	defer func() { _ = root.Close() }()
	for _, c := range changes {
		if !c.deleted {
			continue
		}
		if err := root.Remove(c.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.NotUndone = append(r.NotUndone, c.path+" (cannot be removed)")
			continue
		}
		r.Removed = append(r.Removed, c.path)
		for dir := path.Dir(c.path); dir != "." && root.Remove(dir) == nil; dir = path.Dir(dir) {
		}
	}
	var paths bytes.Buffer
	for _, c := range changes {
		if c.deleted {
			continue
		}
		if info, err := root.Lstat(c.path); err == nil && info.IsDir() {
			// It holds files that git does not know, which nobody asked to delete.
			r.NotUndone = append(r.NotUndone, c.path+" (a folder with other files is in its place)")
			continue
		}
		r.Changed = append(r.Changed, c.path)
		paths.WriteString(c.path + "\x00")
	}
	if paths.Len() == 0 {
		return nil
	}
	return w.write(ctx, t, target, &paths)
}

// write checks out paths of a commit through a temporary index.
func (w *Workspace) write(ctx context.Context, t Tree, commit string, paths *bytes.Buffer) error {
	tmp, err := w.temporary()
	if err != nil {
		return err
	}
	defer tmp.end()
	index := tmp.sub("index")
	if _, err := w.runIn(ctx, t, gitcmd.Call{Index: index, Args: []string{"read-tree", commit}}); err != nil {
		return fmt.Errorf("reading the checkpoint: %w", err)
	}
	_, err = w.runIn(ctx, t, gitcmd.Call{Index: index, Stdin: paths, Args: []string{"checkout-index", "--force", "-z", "--stdin"}})
	if err != nil {
		return fmt.Errorf("writing the files of the checkpoint: %w", err)
	}
	return nil
}

// moveBack moves the conversation's own branch to where it was at the checkpoint
// and makes the index agree. Any other branch that is checked out stays.
func (w *Workspace) moveBack(ctx context.Context, t Tree, target string, r *Restored) error {
	was, err := w.resolve(ctx, t.place, target+"^1")
	if err != nil {
		return err
	}
	now, err := w.Head(ctx, t)
	if err != nil {
		return err
	}
	branch, err := w.Branch(ctx, t)
	if err != nil {
		return err
	}
	switch {
	case was == now:
	case branch != t.Branch:
		r.NotUndone = append(r.NotUndone, fmt.Sprintf("the branch %q is checked out instead of %s; it was left unchanged", branch, t.Branch))
	default:
		if _, err := w.runIn(ctx, t, gitcmd.Call{Args: []string{"update-ref", "refs/heads/" + t.Branch, was, now}}); err != nil {
			return fmt.Errorf("moving the branch back: %w", err)
		}
		if _, err := w.runIn(ctx, t, gitcmd.Call{Args: []string{"read-tree", was}}); err != nil {
			return fmt.Errorf("making the index: %w", err)
		}
		r.NotUndone = append(r.NotUndone, "commits already pushed stay on the remote")
	}
	_, err = w.runIn(ctx, t, gitcmd.Call{Args: []string{"update-index", "-q", "--refresh"}})
	if err != nil && gitcmd.ExitCode(err) != 1 { // 1: there are changes
		return fmt.Errorf("making the index: %w", err)
	}
	return w.protect(ctx, t)
}

// ignored lists what git ignores in a worktree, folders as a whole.
func (w *Workspace) ignored(ctx context.Context, t Tree) ([]string, error) {
	out, err := w.git.Run(ctx, gitcmd.Call{
		GitDir: t.gitDir(), WorkTree: t.Dir, Config: t.place.config, MaxOutput: 1 << 20, Truncate: true,
		Args: []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", "--no-empty-directory"},
	})
	if err != nil {
		return nil, fmt.Errorf("listing ignored files: %w", err)
	}
	names := slices.DeleteFunc(strings.Split(string(out.Data), "\x00"), func(s string) bool { return s == "" })
	more := len(names) - maxUnsaved
	if more > 0 {
		names = names[:maxUnsaved]
	}
	for i := range names {
		names[i] += " (ignored by git)"
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("and %d more that git ignores", more))
	}
	return names, nil
}
