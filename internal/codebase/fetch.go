package codebase

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/fault"
)

// fetches lets everybody who wants a codebase fetched at the same time share one
// fetch. A caller gets one that began after it asked, so what was pushed before
// is in it; however many ask, two follow each other at most.
type fetches struct {
	*folder
	snapshots *snapshots

	mu     sync.Mutex // guards byRepo and what it leads to
	byRepo map[string]*fetchState

	running sync.WaitGroup // goroutines of fetches
	stopped context.Context
	stop    context.CancelFunc
}

type fetchState struct {
	running, next *flight
}

type flight struct {
	done chan struct{} // closed after err is set
	err  error
}

// fetchFresh fetches p and waits for it. The fetch goes on if only the caller
// gives up.
func (f *fetches) fetchFresh(ctx context.Context, p place) error {
	joined := f.joinFetch(p) //nolint:contextcheck // a fetch is shared: it may outlive the caller that began it
	select {
	case <-joined.done:
		return joined.err
	case <-ctx.Done():
		return fault.Wrap(context.Cause(ctx), fault.KindOf(ctx.Err()), "waiting for a fetch")
	}
}

func (f *fetches) joinFetch(p place) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.byRepo[p.rel]
	if s == nil {
		s = &fetchState{}
		f.byRepo[p.rel] = s
	}
	if s.next == nil {
		s.next = &flight{done: make(chan struct{})}
	}
	joined := s.next
	if s.running == nil {
		s.running, s.next = s.next, nil
		f.running.Go(func() { f.flights(p, s) }) // ends when nobody waits, or with the workspace
	}
	return joined
}

func (f *fetches) flights(p place, s *fetchState) {
	for {
		ctx, cancel := context.WithTimeout(f.stopped, f.cfg.FetchTimeout)
		s.running.err = f.refresh(ctx, p)
		cancel()
		f.mu.Lock()
		close(s.running.done)
		s.running, s.next = s.next, nil
		if s.running == nil {
			delete(f.byRepo, p.rel)
		}
		more := s.running != nil
		f.mu.Unlock()
		if !more {
			return
		}
	}
}

// refresh makes the default branch of p what it is at its origin. Of a local
// repository it is always.
func (f *fetches) refresh(ctx context.Context, p place) error {
	switch {
	case p.local:
		return nil
	case p.repo.Plain:
		return f.snapshots.snapshotFolder(ctx, p)
	}
	unlock, err := f.locks.lock(ctx, "fetch "+p.rel)
	if err != nil {
		return err
	}
	defer unlock()
	_, err = f.fetchDefault(ctx, p)
	return err
}

// fetchDefault asks the origin for its default branch, fetches it if it differs
// from what is here, and returns its name. The name is empty if the origin has no
// commits.
func (f *fetches) fetchDefault(ctx context.Context, p place) (string, error) {
	r, endpoint, err := f.reach(ctx, p)
	if err != nil {
		return "", err
	}
	out, err := f.run(ctx, &p, &gitcmd.Call{
		Args:   []string{"ls-remote", "--symref", "--", r.CloneURL(), "HEAD"},
		Remote: endpoint, Timeout: f.cfg.FetchTimeout,
	})
	if err != nil {
		return "", fmt.Errorf("asking for the default branch of %s: %w", r.URL(), err)
	}
	branch, tip := parseHead(out)
	if branch == "" {
		return "", nil
	}
	ref := "refs/remotes/origin/" + branch
	here, err := f.resolve(ctx, p, ref)
	if err != nil {
		return "", err
	}
	if here != tip {
		if err := f.fetch(ctx, p, "+refs/heads/"+branch+":"+ref); err != nil {
			return "", err
		}
	}
	return branch, f.setDefault(ctx, p, ref)
}

func (f *fetches) setDefault(ctx context.Context, p place, ref string) error {
	now, err := f.just(ctx, &p, "symbolic-ref", "--quiet", "refs/remotes/origin/HEAD")
	if err == nil && now == ref {
		return nil
	}
	_, err = f.just(ctx, &p, "symbolic-ref", "refs/remotes/origin/HEAD", ref)
	return fault.Note(err, "noting the default branch")
}

func (f *fetches) fetch(ctx context.Context, p place, refspecs ...string) error {
	r, endpoint, err := f.reach(ctx, p)
	if err != nil {
		return err
	}
	_, err = f.run(ctx, &p, &gitcmd.Call{
		Args: append([]string{
			"fetch", "--quiet", "--prune", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-maintenance",
			"--", r.CloneURL(),
		}, refspecs...),
		Remote: endpoint, Timeout: f.cfg.FetchTimeout,
		Size: &gitcmd.SizeLimit{Dir: path.Join(p.gitDir, "objects"), Max: 2 * f.cfg.MaxBytes},
	})
	if err != nil {
		return fmt.Errorf("fetching %s: %w", r.URL(), err)
	}
	return nil
}

// Synced is what Sync did.
type Synced struct {
	Branch  string // the default branch; empty if there are no commits
	Commit  string // its tip
	Changed bool   // the tip is another one than before

	// Note says, for a person, why the files at repo.Dir are not those of
	// Commit, or is empty.
	Note string
}

// Sync fetches all branches, drops those that are gone, and moves the files at
// repo.Dir forward to the default branch, so that what is listed from there is
// current. If somebody changed those files or commits, they are left as they
// are, and Note says so. Worktrees are not touched.
//
// Of a local repository there is nothing to fetch; a plain folder is looked at
// anew.
func (f *fetches) Sync(ctx context.Context, repo Repo) (Synced, error) {
	p, err := f.place(ctx, repo)
	if err != nil {
		return Synced{}, err
	}
	if p.local || p.repo.Plain {
		if err := f.fetchFresh(ctx, p); err != nil {
			return Synced{}, err
		}
		branch, tip, err := f.base(ctx, p)
		return Synced{Branch: branch, Commit: tip}, err
	}
	unlock, err := f.locks.lock(ctx, "fetch "+p.rel)
	if err != nil {
		return Synced{}, err
	}
	defer unlock()
	_, before, err := f.base(ctx, p)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return Synced{}, err
	}
	branch, err := f.fetchDefault(ctx, p)
	if err != nil || branch == "" {
		return Synced{}, err
	}
	if err := f.fetch(ctx, p, "+refs/heads/*:refs/remotes/origin/*"); err != nil {
		return Synced{}, err
	}
	_, tip, err := f.base(ctx, p)
	if err != nil {
		return Synced{}, err
	}
	s := Synced{Branch: branch, Commit: tip, Changed: tip != before}
	s.Note, err = f.forward(ctx, p, branch, tip)
	return s, err
}

// forward moves the checkout of a clone to tip if that is a step forward on the
// default branch and overwrites nothing. Otherwise it says why not.
func (f *fetches) forward(ctx context.Context, p place, branch, tip string) (note string, err error) {
	shared := gitcmd.Call{WorkTree: p.repo.Dir, Timeout: f.cfg.CloneTimeout, Config: parallel()}
	with := func(args ...string) *gitcmd.Call { c := shared; c.Args = args; return &c }
	head, err := f.just(ctx, &p, "symbolic-ref", "--quiet", "HEAD")
	if err != nil || head != "refs/heads/"+branch {
		return "The folder of the repository is not on the branch " + branch + ", so its files were left unchanged.", nil //nolint:nilerr // a detached head
	}
	here, err := f.resolve(ctx, p, "HEAD^{commit}")
	if err != nil || here == tip {
		return "", err
	}
	if err := f.checkSize(ctx, p, tip); err != nil {
		return fault.Public(err), nil
	}
	if here == "" { // it was empty when it was cloned
		if err := f.checkout(ctx, p, p.gitDir, p.repo.Dir, tip); err != nil {
			return "", err
		}
		_, err = f.just(ctx, &p, "update-ref", "HEAD", tip, "")
		return "", err
	}
	if _, err := f.just(ctx, &p, "merge-base", "--is-ancestor", here, tip); err != nil {
		if gitcmd.ExitCode(err) == 1 {
			return "The folder of the repository has commits that " + branch + " does not have, so its files were left unchanged.", nil
		}
		return "", err
	}
	if _, err := f.run(ctx, &p, with("update-index", "-q", "--refresh")); err != nil && gitcmd.ExitCode(err) != 1 {
		return "", err
	}
	if _, err := f.run(ctx, &p, with("read-tree", "-m", "-u", "--no-recurse-submodules", here, tip)); err != nil {
		return "The folder of the repository has changes, so its files were left unchanged.", nil //nolint:nilerr // that is what it fails for
	}
	_, err = f.just(ctx, &p, "update-ref", "HEAD", tip, here)
	return "", err
}

// DefaultBranch returns the name of the branch that worktrees start from: the
// default branch of the origin as of the last fetch, or what is checked out in a
// local repository. It is never guessed: without one the error is NotFound.
func (f *fetches) DefaultBranch(ctx context.Context, repo Repo) (string, error) {
	p, err := f.place(ctx, repo)
	if err != nil {
		return "", err
	}
	branch, _, err := f.base(ctx, p)
	return branch, err
}

// base returns the default branch and its commit.
func (f *fetches) base(ctx context.Context, p place) (branch, commit string, err error) {
	head, prefix := "refs/remotes/origin/HEAD", "refs/remotes/origin/"
	if p.local || p.repo.Plain {
		head, prefix = "HEAD", "refs/heads/"
	}
	ref, err := f.just(ctx, &p, "symbolic-ref", "--quiet", head)
	if err != nil && gitcmd.ExitCode(err) != 1 && gitcmd.ExitCode(err) != 128 {
		return "", "", fmt.Errorf("looking for the default branch: %w", err)
	}
	branch, ok := strings.CutPrefix(ref, prefix)
	if err != nil || !ok {
		public := p.repo.Name + " has no commits on its default branch yet. Make a first one there, such as a README, and try again."
		if p.local {
			public = p.repo.Name + " has no branch checked out to start from: an owner needs to run `git switch BRANCH` in its folder."
		}
		return "", "", &fault.Error{Kind: fault.NotFound, Public: public, Err: err}
	}
	commit, err = f.resolve(ctx, p, ref+"^{commit}")
	if err == nil && commit == "" {
		err = fault.Newf(fault.NotFound, "%s has no commits on its default branch %s yet. Make a first one there, such as a README, and try again.", p.repo.Name, branch)
	}
	return branch, commit, err
}

// age says how old a commit is, for a note to a person.
func (f *fetches) age(ctx context.Context, p place, commit string) string {
	out, err := f.just(ctx, &p, "show", "-s", "--format=%cI", commit)
	if err != nil {
		return ""
	}
	t, err := time.Parse(time.RFC3339, out)
	if err != nil {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}
