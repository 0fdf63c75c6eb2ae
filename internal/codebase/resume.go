package codebase

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/codebase/remote"
	"remote-agent/internal/fault"
)

const (
	// unfinishedPrefix begins the names of clones that are being made, in tmpDir. What
	// follows is the name of their lock.
	unfinishedPrefix = "clone-"

	// unfinishedFor is how long the finished parts of a clone are kept that nobody
	// goes on with.
	unfinishedFor = 24 * time.Hour

	// repoPart is the clone itself, once its first part is complete; begunPart is there
	// from the beginning of the first attempt.
	repoPart, begunPart, freshPart = "repo", "begun", "fresh"

	// secondPart is how many commits behind the newest the second part has of a clone
	// that is made in parts. The third has the rest.
	secondPart = "500"
)

// unfinished is a clone that is being made. If the process dies, the next attempt
// finds the parts that were complete and goes on behind them. Its lock is held by
// who makes it, and by every git that runs for it, also when its bot is dead.
type unfinished struct {
	*folder
	rel  string
	lock *os.File
}

// unfinishedClone returns the clone that is being made under a lock, which the caller
// holds: a new one, or what an attempt of the last day has left of it.
func (c *clones) unfinishedClone(lock *os.File) (*unfinished, error) {
	u := &unfinished{folder: c.folder, rel: path.Join(tmpDir, unfinishedPrefix+filepath.Base(lock.Name())), lock: lock}
	now := time.Now()
	if info, err := c.root.Lstat(u.rel); err == nil && now.Sub(info.ModTime()) >= unfinishedFor {
		if err := c.root.RemoveAll(u.rel); err != nil {
			return nil, fault.Wrap(err, fault.Internal, "removing an old part of a clone")
		}
	}
	if err := c.root.Mkdir(u.rel, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fault.Wrap(err, fault.Internal, "making a temporary directory")
	}
	return u, fault.Wrap(c.root.Chtimes(u.rel, now, now), fault.Internal, "noting when a clone was continued")
}

// sub returns a path inside the directory, absolute.
func (u *unfinished) sub(name string) string { return u.abs(path.Join(u.rel, name)) }

func (u *unfinished) has(name string) bool {
	_, err := u.root.Lstat(path.Join(u.rel, name))
	return err == nil
}

// end removes what is left of a clone, unless it is worth to go on with: then it
// failed for a reason that passes, and a part of it is complete.
func (u *unfinished) end(err error) {
	if err != nil && u.has(repoPart) && (fault.Passing(err) || fault.Is(err, fault.Canceled) || fault.Is(err, fault.RateLimited)) {
		return
	}
	_ = u.root.RemoveAll(u.rel)
}

// get gets all commits. Usually that is one call of git. After an attempt that did
// not live to its end it is made in parts, the newest files first and then their
// history, so that each attempt goes further than the one before it.
func (u *unfinished) get(ctx context.Context, r remote.Remote, endpoint *gitcmd.Endpoint, report func(string)) error {
	if !u.has(repoPart) {
		again := u.has(begunPart)
		if err := u.root.WriteFile(path.Join(u.rel, begunPart), nil, 0o600); err != nil {
			return fault.Wrap(err, fault.Internal, "beginning a clone")
		}
		var err error
		if again {
			err = u.clone(ctx, r, endpoint, report, "--depth=1", "--no-single-branch")
		}
		if !again || err != nil && ctx.Err() == nil { // not every server gives parts
			err = u.clone(ctx, r, endpoint, report)
		}
		if err != nil {
			return err
		}
	} else if err := u.tidy(); err != nil {
		return err
	}
	for _, more := range []string{"--deepen=" + secondPart, "--unshallow"} {
		if !u.has(path.Join(repoPart, ".git", "shallow")) {
			return nil
		}
		_, err := u.git.Run(ctx, u.call(endpoint, report, &gitcmd.Call{
			Args: []string{
				"fetch", "--progress", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-maintenance", more,
				"--", r.CloneURL(), "+refs/heads/*:refs/remotes/origin/*",
			},
			GitDir: u.sub(path.Join(repoPart, ".git")),
		}))
		if err != nil {
			return err
		}
	}
	return nil
}

// clone clones without files into a directory of its own, which becomes the first
// part when it is complete.
func (u *unfinished) clone(ctx context.Context, r remote.Remote, endpoint *gitcmd.Endpoint, report func(string), depth ...string) error {
	fresh := path.Join(u.rel, freshPart)
	if err := u.root.RemoveAll(fresh); err != nil {
		return fault.Wrap(err, fault.Internal, "removing the beginning of a clone")
	}
	args := append([]string{
		"clone", "--no-checkout", "--no-recurse-submodules", "--template=", "--origin=origin", "--progress",
		"--config=core.symlinks=false", "--config=core.hooksPath=/dev/null", "--config=submodule.recurse=false",
	}, depth...)
	args = append(args, "--", r.CloneURL(), u.sub(freshPart))
	if _, err := u.git.Run(ctx, u.call(endpoint, report, &gitcmd.Call{Args: args, Dir: u.sub("")})); err != nil {
		return err
	}
	return fault.Wrap(u.root.Rename(fresh, path.Join(u.rel, repoPart)), fault.Internal, "keeping a part of a clone")
}

// call completes a call of git that uses the network.
func (u *unfinished) call(endpoint *gitcmd.Endpoint, report func(string), c *gitcmd.Call) *gitcmd.Call {
	c.Remote, c.Progress, c.Timeout, c.Holds = endpoint, report, u.cfg.CloneTimeout, u.lock
	c.Size = &gitcmd.SizeLimit{Dir: u.sub(""), Max: u.cfg.MaxBytes}
	return c
}

// tidy takes away what a git left that was killed: its locks, and files that were
// being written. Nobody else is at work there: the lock says so.
func (u *unfinished) tidy() error {
	repo := path.Join(u.rel, repoPart)
	entries, err := fs.ReadDir(u.root.FS(), repo)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "listing a part of a clone")
	}
	stale := []string{path.Join(repo, ".git", "index")}
	for _, e := range entries {
		if e.Name() != ".git" {
			stale = append(stale, path.Join(repo, e.Name()))
		}
	}
	objects := path.Join(repo, ".git", "objects") + "/" // elsewhere, "tmp_" may begin the name of a branch
	err = fs.WalkDir(u.root.FS(), path.Join(repo, ".git"), func(name string, _ fs.DirEntry, err error) error {
		base := path.Base(name)
		if err == nil && (strings.HasSuffix(base, ".lock") || strings.HasPrefix(base, "tmp_") && strings.HasPrefix(name, objects)) {
			stale = append(stale, name)
		}
		return err
	})
	for _, name := range stale {
		err = errors.Join(err, u.root.RemoveAll(name))
	}
	return fault.Wrap(err, fault.Internal, "tidying a part of a clone")
}

// clearUnfinished removes a clone that nobody has gone on with for long.
func (f *folder) clearUnfinished(name string, modified time.Time) {
	if time.Since(modified) < unfinishedFor {
		return
	}
	lock, err := tryLockFile(filepath.Join(f.locks.dir, strings.TrimPrefix(name, unfinishedPrefix)))
	if err != nil {
		return // somebody is at work on it
	}
	defer lock.Close() //nolint:errcheck // it only gives the lock back
	_ = f.root.RemoveAll(path.Join(tmpDir, name))
}
