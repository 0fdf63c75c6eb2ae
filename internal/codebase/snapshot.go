package codebase

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/fault"
)

// maxUnsaved is how many paths a Saved names.
const maxUnsaved = 100

// Saved is a state of a worktree that was saved.
type Saved struct {
	Ref    string // refs/bot/…; give it to Restore
	Commit string // what it points at; its parent is the HEAD of that moment

	// Unsaved are paths that could not be saved: files above Config.MaxFile,
	// pipes and devices, repositories inside the worktree. Files that git is told
	// to ignore are not saved and not named.
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

// Checkpoint saves the state of a worktree: all files, tracked or not, but those
// that git ignores. It touches neither files nor index nor branch. The label is
// for people who look at the refs.
func (w *Workspace) Checkpoint(ctx context.Context, t Tree, label string) (Saved, error) {
	unlock, err := w.lockTree(ctx, t)
	if err != nil {
		return Saved{}, err
	}
	defer unlock()
	return w.save(ctx, t, "cp/"+time.Now().UTC().Format(checkpointTime)+"-"+strings.ToLower(rand.Text()[:6]), label)
}

// save makes a commit of the worktree and points a ref at it.
func (w *Workspace) save(ctx context.Context, t Tree, name, label string) (Saved, error) {
	if !w.intact(t) {
		return Saved{}, fault.New(fault.NotFound, "The worktree no longer exists.")
	}
	s, err := w.snapshotOf(ctx, t)
	if err != nil {
		return Saved{}, err
	}
	head, err := w.Head(ctx, t)
	if err != nil {
		return Saved{}, fmt.Errorf("reading HEAD: %w", err)
	}
	commit, err := w.runIn(ctx, t, gitcmd.Call{
		Args: []string{"commit-tree", s.tree, "-p", head}, Stdin: strings.NewReader(oneLine(label) + "\n"),
	})
	if err != nil {
		return Saved{}, fmt.Errorf("saving the state: %w", err)
	}
	if _, err := w.runIn(ctx, t, gitcmd.Call{Args: []string{"update-ref", t.ref(name), commit}}); err != nil {
		return Saved{}, fmt.Errorf("saving the state: %w", err)
	}
	return Saved{Ref: t.ref(name), Commit: commit, Unsaved: s.unsaved}, nil
}

func oneLine(label string) string {
	label = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(label, "?"))
	label = strings.Join(strings.Fields(label), " ")
	if label == "" {
		label = "checkpoint"
	}
	if r := []rune(label); len(r) > 100 {
		label = string(r[:100])
	}
	return label
}

// snap is the state of a directory as a tree object.
type snap struct {
	tree    string
	unsaved []string
}

// snapshotOf writes the files of a worktree as a tree. Files that come from the
// base branch (see protect.go) are in it as HEAD has them.
func (w *Workspace) snapshotOf(ctx context.Context, t Tree) (snap, error) {
	var leave func(string) bool
	if t.Protected {
		leave = Protected
	}
	return w.snapshot(ctx, t.place, t.gitDir(), t.Dir, leave)
}

// snapshot writes the files of dir as a tree, using a copy of the index in
// gitDir, so that only what changed is read. Paths that leave wants, which may be
// nil, stay as the index has them.
//
// It uses plumbing where "git add" looks simpler: that would run git inside of
// repositories in the directory, with their configuration, which whoever works
// there can write.
func (w *Workspace) snapshot(ctx context.Context, p place, gitDir, dir string, leave func(string) bool) (snap, error) {
	tmp, err := w.temporary()
	if err != nil {
		return snap{}, err
	}
	defer tmp.end()
	index := tmp.sub("index")
	if err := copyIndex(filepath.Join(gitDir, "index"), index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return snap{}, fault.Wrap(err, fault.Internal, "copying the index")
	}
	call := gitcmd.Call{GitDir: gitDir, WorkTree: dir, Index: index, Config: p.config, MaxOutput: 128 << 20}
	git := func(stdin io.Reader, args ...string) ([]byte, error) {
		c := call
		c.Args, c.Stdin = args, stdin
		out, err := w.git.Run(ctx, c)
		return out.Data, err
	}
	changed, err := git(nil, "ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard")
	if err != nil {
		return snap{}, fmt.Errorf("looking for changes: %w", err)
	}
	found, err := w.sort(dir, changed, leave)
	if err != nil {
		return snap{}, err
	}
	// Removals first: a file may have become a folder.
	if len(found.gone) > 0 {
		if _, err := git(bytes.NewReader(found.gone), "update-index", "-z", "--force-remove", "--stdin"); err != nil {
			return snap{}, fmt.Errorf("reading the removals: %w", err)
		}
	}
	if len(found.files) > 0 {
		if _, err := git(bytes.NewReader(found.files), "update-index", "-z", "--add", "--remove", "--replace", "--stdin"); err != nil {
			return snap{}, fmt.Errorf("reading the changes: %w", err)
		}
	}
	tree, err := git(nil, "write-tree")
	if err != nil {
		return snap{}, fmt.Errorf("writing the state: %w", err)
	}
	return snap{tree: strings.TrimSpace(string(tree)), unsaved: found.unsaved}, nil
}

// differences are the paths where a directory differs from an index. Lists for
// git end each path with NUL.
type differences struct {
	files, gone []byte
	unsaved     []string
}

// sort looks at each path of a list that git made.
func (w *Workspace) sort(dir string, list []byte, leave func(string) bool) (differences, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return differences{}, fault.Wrap(err, fault.NotFound, "opening the worktree")
	}
	defer func() { _ = root.Close() }()
	var d differences
	for item := range bytes.SplitSeq(list, []byte{0}) {
		if len(item) == 0 || leave != nil && leave(string(item)) {
			continue
		}
		switch p := string(item); w.stateOf(root, p) {
		case savable:
			d.files = append(append(d.files, item...), 0)
		case gone:
			d.gone = append(append(d.gone, item...), 0)
		case unsavable:
			if len(d.unsaved) < maxUnsaved && !slices.Contains(d.unsaved, p) {
				d.unsaved = append(d.unsaved, p)
			}
		}
	}
	return d, nil
}

type pathState int

const (
	savable pathState = iota
	gone
	unsavable
)

func (w *Workspace) stateOf(root *os.Root, p string) pathState {
	info, err := root.Lstat(p)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return unsavable
	case err != nil: // missing, or behind a link, where git does not look either
		return gone
	case info.Mode()&fs.ModeSymlink != 0:
		return savable
	case info.Mode().IsRegular():
		if info.Size() > w.cfg.MaxFile || info.Mode().Perm()&0o400 == 0 {
			return unsavable
		}
		return savable
	case !info.IsDir() || strings.HasSuffix(p, "/"): // git lists a repository as a folder
		return unsavable
	}
	// A folder in the place of a file or of a submodule. What is in a mere folder
	// is listed too.
	if _, err := root.Lstat(p + "/.git"); err == nil {
		return unsavable
	}
	return gone
}

// copyIndex copies an index with its date. Git compares dates by the second, so a
// file that was written in the second of the index, or later, may have changed
// although its entry says not; then git reads it. A copy that looks newer would
// hide that.
func copyIndex(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if err := copyFile(from, to); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

func copyFile(from, to string) error {
	in, err := os.Open(from) //nolint:gosec // a path of this package
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600) //nolint:gosec // a path of this package
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Diff returns what the worktree has changed since its Base: commits, changes and
// new files together, but not files that git ignores.
func (w *Workspace) Diff(ctx context.Context, t Tree) (Changes, error) {
	if !w.intact(t) {
		return Changes{}, fault.New(fault.NotFound, "The worktree no longer exists.")
	}
	s, err := w.snapshotOf(ctx, t)
	if err != nil {
		return Changes{}, err
	}
	diff := func(limit int64, args ...string) (gitcmd.Output, error) {
		args = append([]string{"diff-tree", "-r", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames"}, args...)
		return w.git.Run(ctx, gitcmd.Call{
			GitDir: t.place.gitDir, Config: t.place.config, MaxOutput: limit, Truncate: true,
			Args: append(args, t.Base, s.tree),
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
	patch, err := diff(w.cfg.MaxPatch, "-p", "--binary", "--full-index")
	if err != nil {
		return Changes{}, fmt.Errorf("writing the patch: %w", err)
	}
	if patch.Truncated {
		patch.Data = patch.Data[:bytes.LastIndexByte(patch.Data, '\n')+1]
	}
	return Changes{
		Stat: strings.TrimRight(string(stat.Data), "\n"), Patch: patch.Data, Truncated: patch.Truncated,
		Files: bytes.Count(names.Data, []byte{0}), Unsaved: s.unsaved,
	}, nil
}

// initPlain makes git's data for a plain folder if there is none yet.
func (w *Workspace) initPlain(ctx context.Context, p place) error {
	unlock, err := w.locks.lock(ctx, "init "+p.rel)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(filepath.Join(p.gitDir, "HEAD")); err == nil {
		return nil
	}
	_, err = w.git.Run(ctx, gitcmd.Call{Args: []string{"init", "--quiet", "--bare", "--initial-branch=main", "--", p.gitDir}})
	if err != nil {
		return fmt.Errorf("preparing the folder: %w", err)
	}
	return nil
}

// snapshotFolder makes what a plain folder holds the tip of the branch that
// worktrees start from. Git's data is in the workspace; the folder is only read.
func (w *Workspace) snapshotFolder(ctx context.Context, p place) error {
	unlock, err := w.locks.lock(ctx, "fetch "+p.rel)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := w.snapshot(ctx, p, p.gitDir, p.repo.Dir, nil)
	if err != nil {
		return err
	}
	old, err := w.resolve(ctx, p, "refs/heads/main^{tree}")
	if err != nil || old == s.tree {
		return err
	}
	args := []string{"commit-tree", s.tree}
	if old != "" {
		args = append(args, "-p", "refs/heads/main")
	}
	commit, err := w.run(ctx, p, gitcmd.Call{Args: args, Stdin: strings.NewReader("The folder as it is\n")})
	if err == nil {
		_, err = w.run(ctx, p, gitcmd.Call{Args: []string{"update-ref", "refs/heads/main", commit}})
	}
	if err != nil {
		return fmt.Errorf("looking at the folder: %w", err)
	}
	// The index saves reading everything again next time.
	if _, err := w.run(ctx, p, gitcmd.Call{WorkTree: p.repo.Dir, Args: []string{"read-tree", s.tree}}); err != nil {
		return fmt.Errorf("making the index: %w", err)
	}
	if _, err := w.run(ctx, p, gitcmd.Call{WorkTree: p.repo.Dir, Args: []string{"update-index", "-q", "--refresh"}}); err != nil && gitcmd.ExitCode(err) != 1 {
		return fmt.Errorf("making the index: %w", err)
	}
	return nil
}
