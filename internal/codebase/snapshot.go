package codebase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/fault"
)

// snapshots writes the files of folders as tree objects.
type snapshots struct{ *folder }

// snap is the state of a directory as a tree object.
type snap struct {
	tree    string
	unsaved []string
}

// of writes the files of a worktree as a tree. Files that come from the base
// branch (see protect.go) are in it as HEAD has them.
func (s *snapshots) of(ctx context.Context, t Tree) (snap, error) {
	var leave func(string) bool
	if t.Protected {
		leave = Protected
	}
	return s.take(ctx, t.place, t.gitDir(), t.Dir, leave)
}

// take writes the files of dir as a tree, using a copy of the index in gitDir, so
// that only what changed is read. Paths that leave wants, which may be nil, stay
// as the index has them.
//
// It uses plumbing where "git add" looks simpler: that would run git inside of
// repositories in the directory, with their configuration, which whoever works
// there can write.
func (s *snapshots) take(ctx context.Context, p place, gitDir, dir string, leave func(string) bool) (snap, error) {
	tmp, err := s.temporary()
	if err != nil {
		return snap{}, err
	}
	defer tmp.end()
	index := tmp.sub("index")
	if err := copyIndex(filepath.Join(gitDir, "index"), index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return snap{}, fault.Wrap(err, fault.Internal, "copying the index")
	}
	var refused []string
	call := gitcmd.Call{GitDir: gitDir, WorkTree: dir, Index: index, Config: p.config, MaxOutput: 128 << 20, Progress: func(line string) {
		if name, is := strings.CutPrefix(line, "Ignoring path "); is && len(refused) < maxUnsaved && !slices.Contains(refused, name) { // one like .GIT/config
			refused = append(refused, name)
		}
	}}
	git := func(stdin io.Reader, args ...string) ([]byte, error) {
		c := call
		c.Args, c.Stdin = args, stdin
		out, err := s.git.Run(ctx, &c)
		return out.Data, err
	}
	changed, err := git(nil, "ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard")
	var staged []byte
	if _, none := os.Lstat(filepath.Join(dir, ".gitmodules")); none == nil && err == nil {
		staged, err = git(nil, "ls-files", "-z", "--stage")
	}
	if err != nil {
		return snap{}, fmt.Errorf("looking for changes: %w", err)
	}
	found, err := s.sort(dir, changed, staged, leave)
	if err != nil {
		return snap{}, err
	}
	// Removals first: a file may have become a folder.
	if len(found.gone) > 0 {
		if _, err := git(bytes.NewReader(found.gone), "update-index", "-z", "--force-remove", "--stdin"); err != nil {
			return snap{}, fmt.Errorf("reading the removals: %w", err)
		}
	}
	unread, err := add(git, found.files)
	if err != nil {
		return snap{}, fmt.Errorf("reading the changes: %w", err)
	}
	tree, err := git(nil, "write-tree")
	if err != nil {
		return snap{}, fmt.Errorf("writing the state: %w", err)
	}
	return snap{tree: strings.TrimSpace(string(tree)), unsaved: slices.Concat(found.unsaved, unread, refused)}, nil
}

// add reads files into an index and returns those that git cannot read, such as a text
// that is not in the encoding that .gitattributes names for it. One of them has git take
// none of a list, so it is looked for in halves.
func add(git func(io.Reader, ...string) ([]byte, error), files [][]byte) (unread []string, err error) {
	if len(files) == 0 {
		return nil, nil
	}
	list := append(bytes.Join(files, []byte{0}), 0)
	_, err = git(bytes.NewReader(list), "update-index", "-z", "--add", "--remove", "--replace", "--stdin")
	if gitcmd.ExitCode(err) != 128 {
		return nil, err
	}
	if len(files) == 1 {
		if said(err, "into database") { // the disk, not the file
			return nil, err
		}
		return []string{string(files[0])}, nil
	}
	for _, half := range [][][]byte{files[:len(files)/2], files[len(files)/2:]} {
		more, halfErr := add(git, half)
		if unread = append(unread, more...); halfErr != nil {
			return nil, halfErr
		}
		if len(unread) > maxUnsaved {
			return nil, err
		}
	}
	return unread, nil
}

// differences are the paths where a directory differs from an index.
type differences struct {
	files   [][]byte
	gone    []byte // each ends with NUL, as git takes them
	unsaved []string
}

// sort looks at each path of a list that git made. Submodules that have files, of which
// git says nothing, are among the entries that are staged.
func (s *snapshots) sort(dir string, list, staged []byte, leave func(string) bool) (differences, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return differences{}, fault.Wrap(err, fault.NotFound, "opening the worktree")
	}
	defer func() { _ = root.Close() }()
	d, links := differences{}, make(map[string]bool)
	for entry := range strings.SplitSeq(string(staged), "\x00") {
		if p, is := strings.CutPrefix(entry, "160000 "); is {
			if p = p[strings.IndexByte(p, '\t')+1:]; filled(root, p) {
				d.unsaved = append(d.unsaved, p)
			}
		}
	}
	for item := range bytes.SplitSeq(list, []byte{0}) {
		if len(item) == 0 || leave != nil && leave(string(item)) {
			continue
		}
		switch p := string(item); s.stateOf(root, p, links) {
		case savable:
			d.files = append(d.files, item)
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

// filled reports whether something is in a folder.
func filled(root *os.Root, p string) bool {
	folder, err := root.OpenRoot(p)
	if err != nil {
		return false
	}
	defer folder.Close() //nolint:errcheck // it was only looked at
	entries, err := fs.ReadDir(folder.FS(), ".")
	return err == nil && len(entries) > 0
}

type pathState int

const (
	savable pathState = iota
	gone
	unsavable
)

func (s *snapshots) stateOf(root *os.Root, p string, links map[string]bool) pathState {
	info, err := root.Lstat(p)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return unsavable
	case err != nil || behindLink(root, path.Dir(p), links): // where git does not look either
		return gone
	case info.Mode()&fs.ModeSymlink != 0:
		return savable
	case info.Mode().IsRegular():
		if info.Size() > s.cfg.MaxFile || info.Mode().Perm()&0o400 == 0 {
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

// behindLink reports whether a folder, or one that it is in, is a link. It notes what it
// finds in links.
func behindLink(root *os.Root, folder string, links map[string]bool) bool {
	if folder == "." {
		return false
	}
	is, known := links[folder]
	if !known {
		info, err := root.Lstat(folder)
		is = err == nil && info.Mode()&fs.ModeSymlink != 0 || behindLink(root, path.Dir(folder), links)
		links[folder] = is
	}
	return is
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

// snapshotFolder makes what a plain folder holds the tip of the branch that
// worktrees start from. Git's data is in the workspace; the folder is only read.
func (s *snapshots) snapshotFolder(ctx context.Context, p place) error {
	unlock, err := s.locks.lock(ctx, "fetch "+p.rel)
	if err != nil {
		return err
	}
	defer unlock()
	now, err := s.take(ctx, p, p.gitDir, p.repo.Dir, nil)
	if err != nil {
		return err
	}
	old, err := s.resolve(ctx, p, "refs/heads/main^{tree}")
	if err != nil || old == now.tree {
		return err
	}
	args := []string{"commit-tree", now.tree}
	if old != "" {
		args = append(args, "-p", "refs/heads/main")
	}
	commit, err := s.run(ctx, &p, &gitcmd.Call{Args: args, Stdin: strings.NewReader("The folder as it is\n")})
	if err == nil {
		_, err = s.just(ctx, &p, "update-ref", "refs/heads/main", commit)
	}
	if err != nil {
		return fmt.Errorf("looking at the folder: %w", err)
	}
	// The index saves reading everything again next time.
	if _, err := s.run(ctx, &p, &gitcmd.Call{WorkTree: p.repo.Dir, Args: []string{"read-tree", now.tree}}); err != nil {
		return fmt.Errorf("making the index: %w", err)
	}
	if _, err := s.run(ctx, &p, &gitcmd.Call{WorkTree: p.repo.Dir, Args: []string{"update-index", "-q", "--refresh"}}); err != nil && gitcmd.ExitCode(err) != 1 {
		return fmt.Errorf("making the index: %w", err)
	}
	return nil
}
