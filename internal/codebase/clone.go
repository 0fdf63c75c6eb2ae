package codebase

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"remote-agent/internal/codebase/remote"
	"remote-agent/internal/fault"
	"remote-agent/internal/pattern"
)

// clones makes codebases of repositories elsewhere and of local folders, and removes
// them.
type clones struct {
	*folder
	worktrees *worktrees
}

// Progress is how far a clone is.
type Progress struct {
	Stage   string // what git says, such as "Receiving objects"
	Percent int    // of this stage; -1 if unknown
}

// Clone clones the repository at an address that a person typed and checks out
// its default branch. If it is there already it is returned as it is, with
// Existing set. Clones of one address wait for each other; others run at once.
// One that dies with the process, or is cut off, leaves the parts of it that were
// complete, and the next one for that address within a day goes on behind them. One
// that fails otherwise leaves nothing behind.
//
// Errors: Invalid or Forbidden for the address, NotFound, Unauthorized, RateLimited,
// Unavailable, Exhausted above Config.MaxBytes, and Conflict if something else is
// in its place. Progress may be nil; it is called from another goroutine, never
// twice at once, and not after Clone returned.
func (c *clones) Clone(ctx context.Context, address string, progress func(Progress)) (Repo, error) {
	r, err := c.hosts.Parse(address)
	if err != nil {
		return Repo{}, err
	}
	if err := c.Usable(); err != nil {
		return Repo{}, err
	}
	lock, unlock, err := c.locks.lockFile(ctx, "clone "+r.Dir())
	if err != nil {
		return Repo{}, err
	}
	defer unlock()
	repo := Repo{Name: r.FullName(), URL: r.URL(), Dir: c.abs(r.Dir())}
	if _, err := c.root.Lstat(r.Dir()); err == nil {
		return c.existing(ctx, r, repo)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return Repo{}, fault.Wrap(err, fault.Internal, "looking for the clone")
	}
	c.clearTemporary(ctx)
	u, err := c.unfinishedClone(lock)
	if err != nil {
		return Repo{}, err
	}
	err = c.cloneInto(ctx, r, u, progress)
	defer func() { u.end(err) }()
	if err != nil {
		return Repo{}, fmt.Errorf("cloning %s: %w", r.URL(), err)
	}
	if err := c.root.MkdirAll(path.Dir(r.Dir()), 0o700); err != nil {
		return Repo{}, fault.Wrap(err, fault.Internal, "making the owner's folder")
	}
	if err := c.root.Rename(path.Join(u.rel, repoPart), r.Dir()); err != nil {
		return Repo{}, fault.Wrap(err, fault.Internal, "moving the clone to its place")
	}
	return repo, nil
}

func (c *clones) existing(ctx context.Context, r remote.Remote, repo Repo) (Repo, error) {
	p, err := c.place(ctx, repo)
	if err != nil {
		return Repo{}, fault.Newf(fault.Conflict, "Cannot clone: the folder %s already exists.", r.Dir())
	}
	if there, err := c.origin(ctx, p); err != nil || there != r {
		return Repo{}, fault.Newf(fault.Conflict, "The folder %s contains a clone of another repository.", r.Dir())
	}
	repo.Existing = true
	return repo, nil
}

// cloneInto clones in steps, so that the size of the files is known before any is
// written: a few kilobytes of objects can hold terabytes of zeros.
func (c *clones) cloneInto(ctx context.Context, r remote.Remote, u *unfinished, progress func(Progress)) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.CloneTimeout)
	defer cancel()
	endpoint, err := c.endpoint(ctx, r)
	if err != nil {
		return err
	}
	if err := u.get(ctx, r, endpoint, lineReader(progress)); err != nil {
		return err
	}
	dir := u.sub(repoPart)
	p := place{repo: Repo{Name: r.FullName(), Dir: dir}, gitDir: filepath.Join(dir, ".git"), holds: u.lock}
	head, err := c.resolve(ctx, p, "HEAD^{commit}")
	if err != nil || head == "" { // an empty repository has nothing to check out
		return err
	}
	if err := c.checkSize(ctx, p, head); err != nil {
		return err
	}
	return c.checkout(ctx, p, p.gitDir, dir, head)
}

var progressLine = pattern.Lazy(`^(?:remote: )?([A-Z][a-z]+(?: [a-z]+)?):\s+(?:(\d{1,3})%)?`)

func lineReader(progress func(Progress)) func(string) {
	if progress == nil {
		return nil
	}
	return func(line string) {
		if m := progressLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			percent, err := strconv.Atoi(m[2])
			if err != nil {
				percent = -1
			}
			progress(Progress{Stage: m[1], Percent: percent})
		}
	}
}

// Open returns the codebase at the directory that was stored for it. The error is
// NotFound if it is gone.
func (c *clones) Open(ctx context.Context, dir string) (Repo, error) {
	repo := Repo{Name: filepath.Base(dir), Dir: dir}
	p, err := c.place(ctx, repo)
	if err != nil {
		return Repo{}, err
	}
	if p.local || p.repo.Plain {
		return p.repo, nil
	}
	r, err := c.origin(ctx, p)
	if err != nil {
		return Repo{}, err
	}
	return Repo{Name: r.FullName(), URL: r.URL(), Dir: dir}, nil
}

// AddLocal makes a codebase of a local folder, which may be a git repository or
// not. Its files are only read: conversations work on copies. In a repository
// their branches are made, in a plain folder nothing is. The path has to come
// from an operator: nobody else may choose what the assistant can read.
func (c *clones) AddLocal(ctx context.Context, dir string) (Repo, error) {
	if !filepath.IsAbs(dir) {
		return Repo{}, fault.New(fault.Invalid, "Give the folder as an absolute path.")
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	repo := Repo{Name: filepath.Base(dir), Dir: filepath.Clean(dir)}
	if _, ok := cloneRel(c.cfg.Root, repo.Dir); ok {
		return c.Open(ctx, repo.Dir)
	}
	p, err := c.place(ctx, repo)
	if err != nil {
		return Repo{}, err
	}
	return p.repo, nil
}

// Remove deletes a codebase's clone and all its worktrees, saved or not. Of a
// local folder only the worktrees and what git needed for them go; the folder
// and, if it is a repository, the branches in it stay. Nothing outside Root is
// deleted. The caller makes sure that no conversation uses it.
func (c *clones) Remove(ctx context.Context, repo Repo) error {
	rel, clone := cloneRel(c.cfg.Root, repo.Dir)
	if !clone {
		rel = path.Join(".local", localKey(repo.Dir))
	}
	for _, lock := range []string{"clone " + rel, "repo " + rel} {
		unlock, err := c.locks.lock(ctx, lock)
		if err != nil {
			return err
		}
		defer unlock()
	}
	if !clone {
		if err := c.forgetLocal(ctx, repo, rel); err != nil {
			return err
		}
		return c.discard(path.Join(worktreesDir, rel))
	}
	if err := c.discard(rel); err != nil {
		return err
	}
	if err := c.discard(path.Join(worktreesDir, rel)); err != nil {
		return err
	}
	for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
		if c.root.Remove(dir) != nil { // other repositories are in it
			break
		}
	}
	return nil
}

// forgetLocal removes git's notes about the worktrees of a local folder.
func (c *clones) forgetLocal(ctx context.Context, repo Repo, rel string) error {
	p, err := c.place(ctx, repo)
	if err != nil || p.repo.Plain { // the folder itself may be gone
		return c.discard(path.Join(plainDir, path.Base(rel)))
	}
	metas, err := c.worktrees.metas(rel)
	if err != nil {
		return err
	}
	for _, m := range metas {
		if err := removeAdmin(p, m.short); err != nil {
			return err
		}
	}
	return nil
}
