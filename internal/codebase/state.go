package codebase

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/fault"
)

// states saves the states of worktrees and brings them back.
type states struct {
	*worktrees
	snapshots *snapshots
	guard     *guard
}

// Saved is a state of a worktree that was saved.
type Saved struct {
	Ref    string // refs/bot/…; give it to Restore
	Commit string // what it points at; its parent is the HEAD of that moment

	// Unsaved are paths that could not be saved: files above Config.MaxFile,
	// pipes and devices, repositories inside the worktree, submodules with files,
	// and what git refuses for its name or encoding.
	// Files that git is told to ignore are not saved and not named.
	Unsaved []string
}

// Changes is what a worktree has changed since it started.
type Changes struct {
	Stat      string // as "git diff --stat" prints it; empty if nothing changed
	Patch     []byte // for "git apply"
	Truncated bool   // Patch was cut at Config.MaxPatch, at the end of a line
	Files     int
	Unsaved   []string // as in Saved: not part of Patch
}

// Readable is Patch for people: of a binary file it says only that it is one.
func (c Changes) Readable() string {
	const next = "\ndiff --git " // no line of a file begins so: it has a sign before it
	files := strings.Split(string(c.Patch), next)
	for i, f := range files {
		if head, _, binary := strings.Cut(f, "\nGIT binary patch\n"); binary {
			files[i] = head + "\nBinary file; its content is not shown."
		}
	}
	return strings.Join(files, next)
}

// maxUnsaved is how many paths a Saved names.
const maxUnsaved = 100

// Checkpoint saves the state of a worktree: all files, tracked or not, but those
// that git ignores. It touches neither files nor index nor branch. The label is
// for people who look at the refs.
func (s *states) Checkpoint(ctx context.Context, t Tree, label string) (Saved, error) {
	unlock, err := s.lockTree(ctx, t)
	if err != nil {
		return Saved{}, err
	}
	defer unlock()
	return s.save(ctx, t, "cp/"+time.Now().UTC().Format(checkpointTime)+"-"+strings.ToLower(rand.Text()[:6]), label)
}

// save makes a commit of the worktree and points a ref at it.
func (s *states) save(ctx context.Context, t Tree, name, label string) (Saved, error) {
	if !s.intact(t) {
		return Saved{}, fault.New(fault.NotFound, "The worktree no longer exists.")
	}
	now, err := s.snapshots.of(ctx, t)
	if err != nil {
		return Saved{}, err
	}
	head, err := s.Head(ctx, t)
	if err != nil {
		return Saved{}, fmt.Errorf("reading HEAD: %w", err)
	}
	ignored, err := s.ignored(ctx, t)
	if err != nil {
		return Saved{}, err
	}
	about := oneLine(label) + "\n\n" + quoted("", now.unsaved) + quoted(markIgnored, ignored[:min(len(ignored), maxUnsaved)])
	commit, err := s.runIn(ctx, &t, &gitcmd.Call{Args: []string{"commit-tree", now.tree, "-p", head}, Stdin: strings.NewReader(about)})
	if err != nil {
		return Saved{}, fmt.Errorf("saving the state: %w", err)
	}
	if _, err := s.justIn(ctx, &t, "update-ref", t.ref(name), commit); err != nil {
		return Saved{}, fmt.Errorf("saving the state: %w", err)
	}
	return Saved{Ref: t.ref(name), Commit: commit, Unsaved: now.unsaved}, nil
}

// markIgnored is before a path in a checkpoint's message that git ignored; others could not
// be saved.
const markIgnored = "ignored "

// quoted is a list of paths as a checkpoint's message has them, each behind a mark.
func quoted(mark string, paths []string) string {
	var b strings.Builder
	for _, p := range paths {
		b.WriteString(mark + strconv.QuoteToASCII(p) + "\n")
	}
	return b.String()
}

// missedBy returns, in order, what a checkpoint of a worktree lacks: what could not be saved,
// and of what git ignored the first.
func (s *states) missedBy(ctx context.Context, t Tree, commit string) (unsaved, ignored []string, err error) {
	out, err := s.run(ctx, &t.place, &gitcmd.Call{Args: []string{"show", "-s", "--format=%b", commit}})
	if err != nil {
		return nil, nil, fmt.Errorf("reading the checkpoint: %w", err)
	}
	for line := range strings.Lines(out) {
		line, marked := strings.CutPrefix(strings.TrimSpace(line), markIgnored)
		switch p, err := strconv.Unquote(line); {
		case err != nil:
		case marked:
			ignored = append(ignored, p)
		default:
			unsaved = append(unsaved, p)
		}
	}
	slices.Sort(unsaved)
	return unsaved, ignored, nil
}

func oneLine(label string) string {
	label = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(label, "?"))
	label = cmp.Or(strings.Join(strings.Fields(label), " "), "checkpoint")
	if r := []rune(label); len(r) > 100 {
		label = string(r[:100])
	}
	return label
}

// Diff returns what the worktree has changed since its Base: commits, changes and
// new files together, but not files that git ignores.
func (s *states) Diff(ctx context.Context, t Tree) (Changes, error) {
	if !s.intact(t) {
		return Changes{}, fault.New(fault.NotFound, "The worktree no longer exists.")
	}
	now, err := s.snapshots.of(ctx, t)
	if err != nil {
		return Changes{}, err
	}
	diff := func(limit int64, args ...string) (gitcmd.Output, error) {
		args = append([]string{"diff-tree", "-r", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames"}, args...)
		return s.git.Run(ctx, &gitcmd.Call{
			GitDir: t.place.gitDir, Config: t.place.config, MaxOutput: limit, Truncate: true,
			Args: append(args, t.Base, now.tree),
		})
	}
	stat, err := diff(64<<10, "--stat=72", "--stat-count=200")
	if err != nil {
		return Changes{}, fmt.Errorf("summing up the changes: %w", err)
	}
	names, err := diff(gitcmd.DefaultOutput, "-z", "--name-only")
	if err != nil {
		return Changes{}, fmt.Errorf("listing the changes: %w", err)
	}
	patch, err := diff(s.cfg.MaxPatch, "-p", "--binary", "--full-index")
	if err != nil {
		return Changes{}, fmt.Errorf("writing the patch: %w", err)
	}
	if patch.Truncated {
		patch.Data = patch.Data[:bytes.LastIndexByte(patch.Data, '\n')+1]
	}
	return Changes{
		Stat: strings.TrimRight(string(stat.Data), "\n"), Patch: patch.Data, Truncated: patch.Truncated,
		Files: bytes.Count(names.Data, []byte{0}), Unsaved: now.unsaved,
	}, nil
}

// Restored is what Restore did.
type Restored struct {
	Before Saved // the state before; Restore to it takes everything back

	// NotUndone says, for a person, what stays as it is.
	NotUndone []string
}

// change is a line of a raw diff between two trees.
type change struct {
	path    string
	deleted bool
}

// Restore brings the files of a worktree, and its branch if commits were made,
// back to a checkpoint. Files made since are removed. The state before is saved
// first, so that nothing is lost. Files that git ignores, and what could not be saved
// then or now, are left alone and named in NotUndone, as are files that git ignored and that
// were deleted since, and pushes, which cannot be seen from here.
//
// The error is NotFound if ref is no checkpoint of this worktree.
func (s *states) Restore(ctx context.Context, t Tree, ref string) (Restored, error) {
	target := ""
	if strings.HasPrefix(ref, t.ref("cp/")) || strings.HasPrefix(ref, t.ref("undo/")) {
		var err error
		if target, err = s.resolve(ctx, t.place, ref+"^{commit}"); err != nil {
			return Restored{}, err
		}
	}
	if target == "" {
		return Restored{}, fault.New(fault.NotFound, "There is no such checkpoint of this conversation.")
	}
	unlock, err := s.lockTree(ctx, t)
	if err != nil {
		return Restored{}, err
	}
	defer unlock()
	before, err := s.save(ctx, t, "undo/"+time.Now().UTC().Format("20060102T150405.000000"), "before going back to "+ref)
	if err != nil {
		return Restored{}, err
	}
	changes, err := s.changes(ctx, t, before.Commit, target)
	if err != nil {
		return Restored{}, err
	}
	left, ignoredThen, err := s.missedBy(ctx, t, target)
	if err != nil {
		return Restored{}, err
	}
	changes = slices.DeleteFunc(changes, func(c change) bool { return within(c.path, left) })
	left = append(left, before.Unsaved...)
	slices.Sort(left)
	r := Restored{Before: before}
	for _, u := range slices.Compact(left) {
		r.NotUndone = append(r.NotUndone, u+" (too large, not a file, refused by git, or a nested repository or submodule)")
	}
	ignored, err := s.apply(ctx, t, target, changes, &r)
	if err != nil {
		return r, err
	}
	if err := s.moveBack(ctx, t, target, &r); err != nil {
		return r, err
	}
	r.NotUndone = append(r.NotUndone, lost(t.Dir, ignoredThen)...)
	for _, name := range ignored[:min(len(ignored), maxUnsaved)] {
		r.NotUndone = append(r.NotUndone, name+" (ignored by git)")
	}
	if more := len(ignored) - maxUnsaved; more > 0 {
		r.NotUndone = append(r.NotUndone, fmt.Sprintf("and %d more that git ignores", more))
	}
	return r, nil
}

// lost says which of the paths in a folder are not there any more.
func lost(dir string, paths []string) (said []string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close() //nolint:errcheck // it was only looked at
	for _, p := range paths {
		if _, err := root.Lstat(p); errors.Is(err, fs.ErrNotExist) {
			said = append(said, p+" (ignored by git, so it was not saved; it has been deleted since)")
		}
	}
	return said
}

func (s *states) changes(ctx context.Context, t Tree, from, to string) ([]change, error) {
	out, err := s.git.Run(ctx, &gitcmd.Call{
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
		changes = append(changes, change{path: string(fields[i+1]), deleted: parts[4] == "D"})
	}
	return changes, nil
}

// apply removes and writes files, and returns what git ignored before or ignores then. The
// files .gitignore come first: what they leave out is in no checkpoint, so it may have been
// there, and stays.
func (s *states) apply(ctx context.Context, t Tree, target string, changes []change, r *Restored) (ignored []string, err error) {
	root, err := os.OpenRoot(t.Dir)
	if err != nil {
		return nil, fault.Wrap(err, fault.NotFound, "opening the worktree")
	}
	defer func() { _ = root.Close() }()
	var parts [3][]change // rules that are written, rules that are removed, all else
	for _, c := range changes {
		part := 2
		if path.Base(c.path) == ".gitignore" {
			if part = 0; c.deleted {
				part = 1
			}
		}
		parts[part] = append(parts[part], c)
	}
	for i, part := range parts {
		if len(part) == 0 && i < 2 {
			continue
		}
		now, err := s.ignored(ctx, t)
		if err != nil {
			return nil, err
		}
		ignored = append(ignored, now...)
		if err := s.replace(ctx, t, root, target, part, now, r); err != nil {
			return nil, err
		}
	}
	slices.Sort(ignored)
	folder := "/" // the last that was kept
	return slices.DeleteFunc(slices.Compact(ignored), func(name string) bool {
		if strings.HasPrefix(name, folder) {
			return true
		}
		if strings.HasSuffix(name, "/") {
			folder = name
		}
		return false
	}), nil
}

// within reports whether a path is among names, or in a folder that is.
func within(p string, names []string) bool {
	for i, r := range p + "/" {
		if r != '/' {
			continue
		}
		if _, is := slices.BinarySearch(names, p[:min(i+1, len(p))]); is {
			return true
		}
	}
	return false
}

// replace removes files that are not ignored now, and writes files. Removing goes through an os.Root; for writing,
// git replaces links on the way by directories and does not follow them.
func (s *states) replace(ctx context.Context, t Tree, root *os.Root, target string, changes []change, ignored []string, r *Restored) error {
	for _, c := range changes {
		if !c.deleted || within(c.path, ignored) {
			continue
		}
		if info, err := root.Lstat(c.path); err == nil && info.IsDir() {
			continue // a folder again already, for its .gitignore
		}
		if err := root.Remove(c.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.NotUndone = append(r.NotUndone, c.path+" (cannot be removed)")
			continue
		}
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
		paths.WriteString(c.path + "\x00")
	}
	if paths.Len() == 0 {
		return nil
	}
	return s.write(ctx, t, target, &paths)
}

// moveBack moves the conversation's own branch to where it was at the checkpoint
// and makes the index agree. Any other branch that is checked out stays.
func (s *states) moveBack(ctx context.Context, t Tree, target string, r *Restored) error {
	was, err := s.resolve(ctx, t.place, target+"^1")
	if err != nil {
		return err
	}
	now, err := s.Head(ctx, t)
	if err != nil {
		return err
	}
	branch, err := s.Branch(ctx, t)
	if err != nil {
		return err
	}
	switch {
	case was == now:
	case branch != t.Branch:
		r.NotUndone = append(r.NotUndone, fmt.Sprintf("the branch %q is checked out instead of %s; it was left unchanged", branch, t.Branch))
	default:
		if _, err := s.justIn(ctx, &t, "update-ref", "refs/heads/"+t.Branch, was, now); err != nil {
			return fmt.Errorf("moving the branch back: %w", err)
		}
		if _, err := s.justIn(ctx, &t, "read-tree", was); err != nil {
			return fmt.Errorf("making the index: %w", err)
		}
		r.NotUndone = append(r.NotUndone, "commits already pushed stay on the remote")
	}
	_, err = s.justIn(ctx, &t, "update-index", "-q", "--refresh")
	if err != nil && gitcmd.ExitCode(err) != 1 { // 1: there are changes
		return fmt.Errorf("making the index: %w", err)
	}
	return s.guard.protect(ctx, t)
}

// ignored lists what git ignores in a worktree in order, folders as a whole, and also what is in them.
func (s *states) ignored(ctx context.Context, t Tree) ([]string, error) {
	out, err := s.git.Run(ctx, &gitcmd.Call{
		GitDir: t.gitDir(), WorkTree: t.Dir, Config: t.place.config, MaxOutput: 128 << 20,
		Args: []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"},
	})
	if err != nil {
		return nil, fmt.Errorf("listing ignored files: %w", err)
	}
	names := slices.DeleteFunc(strings.Split(string(out.Data), "\x00"), func(s string) bool { return s == "" })
	slices.Sort(names)
	return names, nil
}
