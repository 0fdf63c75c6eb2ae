package codebase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/codebase/remote"
	"remote-agent/internal/fault"
	"remote-agent/internal/pattern"
)

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
// Errors: Invalid or Forbidden for the address, NotFound, Unauthorized,
// Unavailable, Exhausted above Config.MaxBytes, and Conflict if something else is
// in its place. Progress may be nil; it is called from another goroutine, never
// twice at once, and not after Clone returned.
func (w *Workspace) Clone(ctx context.Context, address string, progress func(Progress)) (Repo, error) {
	r, err := w.hosts.Parse(address)
	if err != nil {
		return Repo{}, err
	}
	lock, unlock, err := w.locks.lockFile(ctx, "clone "+r.Dir())
	if err != nil {
		return Repo{}, err
	}
	defer unlock()
	repo := Repo{Name: r.FullName(), URL: r.URL(), Dir: w.abs(r.Dir())}
	if _, err := w.root.Lstat(r.Dir()); err == nil {
		return w.existing(ctx, r, repo)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return Repo{}, fault.Wrap(err, fault.Internal, "looking for the clone")
	}
	w.clearTemporary(ctx)
	u, err := w.unfinishedClone(lock)
	if err != nil {
		return Repo{}, err
	}
	err = w.cloneInto(ctx, r, u, progress)
	defer func() { u.end(err) }()
	if err != nil {
		return Repo{}, fmt.Errorf("cloning %s: %w", r.URL(), err)
	}
	if err := w.root.MkdirAll(path.Dir(r.Dir()), 0o700); err != nil {
		return Repo{}, fault.Wrap(err, fault.Internal, "making the owner's folder")
	}
	if err := w.root.Rename(path.Join(u.rel, repoPart), r.Dir()); err != nil {
		return Repo{}, fault.Wrap(err, fault.Internal, "moving the clone to its place")
	}
	return repo, nil
}

func (w *Workspace) existing(ctx context.Context, r remote.Remote, repo Repo) (Repo, error) {
	p, err := w.place(ctx, repo)
	if err != nil {
		return Repo{}, fault.Newf(fault.Conflict, "Cannot clone: the folder %s already exists.", r.Dir())
	}
	if there, err := w.origin(ctx, p); err != nil || there != r {
		return Repo{}, fault.Newf(fault.Conflict, "The folder %s contains a clone of another repository.", r.Dir())
	}
	repo.Existing = true
	return repo, nil
}

// cloneInto clones in steps, so that the size of the files is known before any is
// written: a few kilobytes of objects can hold terabytes of zeros.
func (w *Workspace) cloneInto(ctx context.Context, r remote.Remote, u *unfinished, progress func(Progress)) error {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.CloneTimeout)
	defer cancel()
	endpoint, err := w.endpoint(ctx, r)
	if err != nil {
		return err
	}
	if err := u.get(ctx, r, endpoint, lineReader(progress)); err != nil {
		return err
	}
	dir := u.sub(repoPart)
	p := place{repo: Repo{Name: r.FullName(), Dir: dir}, gitDir: filepath.Join(dir, ".git"), holds: u.lock}
	head, err := w.resolve(ctx, p, "HEAD^{commit}")
	if err != nil || head == "" { // an empty repository has nothing to check out
		return err
	}
	if err := w.checkSize(ctx, p, head); err != nil {
		return err
	}
	return w.checkout(ctx, p, p.gitDir, dir, head)
}

// checkSize refuses a commit whose files are larger in sum than a repository may
// be.
func (w *Workspace) checkSize(ctx context.Context, p place, commit string) error {
	out, err := w.git.Run(ctx, gitcmd.Call{
		GitDir: p.gitDir, Config: p.config,
		Args: []string{"ls-tree", "-r", "--format=%(objectsize)", commit}, MaxOutput: 256 << 20,
	})
	if err != nil {
		return fmt.Errorf("measuring the files: %w", err)
	}
	var sum int64
	for line := range bytes.Lines(out.Data) {
		n, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
		if err == nil { // a submodule has "-"
			sum += n
		}
		if sum > w.cfg.MaxBytes || sum < 0 {
			return fault.Newf(fault.Exhausted, "The repository's files exceed the limit of %d MiB.", w.cfg.MaxBytes>>20)
		}
	}
	return nil
}

// checkout writes the files of a commit into an empty directory and makes the
// index for it. Unlike "git checkout" it overwrites nothing that is there.
func (w *Workspace) checkout(ctx context.Context, p place, gitDir, dir, commit string) error {
	_, err := w.run(ctx, p, gitcmd.Call{
		Args:   []string{"read-tree", "-m", "-u", "--no-recurse-submodules", commit},
		GitDir: gitDir, WorkTree: dir, Config: parallel(), Timeout: w.cfg.CloneTimeout,
	})
	if err != nil {
		return fmt.Errorf("writing the files: %w", err)
	}
	return nil
}

// parallel makes git write files with several processes, which hides the latency
// of the disk.
func parallel() []gitcmd.Pair {
	return []gitcmd.Pair{{Key: "checkout.workers", Value: "4"}, {Key: "checkout.thresholdForParallelism", Value: "500"}}
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
func (w *Workspace) Open(ctx context.Context, dir string) (Repo, error) {
	repo := Repo{Name: filepath.Base(dir), Dir: dir}
	p, err := w.place(ctx, repo)
	if err != nil {
		return Repo{}, err
	}
	if p.local || p.repo.Plain {
		return p.repo, nil
	}
	r, err := w.origin(ctx, p)
	if err != nil {
		return Repo{}, err
	}
	return Repo{Name: r.FullName(), URL: r.URL(), Dir: dir}, nil
}

// AddLocal makes a codebase of a local folder, which may be a git repository or
// not. Its files are only read: conversations work on copies. In a repository
// their branches are made, in a plain folder nothing is. The path has to come
// from an operator: nobody else may choose what the assistant can read.
func (w *Workspace) AddLocal(ctx context.Context, dir string) (Repo, error) {
	if !filepath.IsAbs(dir) {
		return Repo{}, fault.New(fault.Invalid, "Give the folder as an absolute path.")
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	repo := Repo{Name: filepath.Base(dir), Dir: filepath.Clean(dir)}
	if _, ok := w.cloneRel(repo.Dir); ok {
		return w.Open(ctx, repo.Dir)
	}
	p, err := w.place(ctx, repo)
	if err != nil {
		return Repo{}, err
	}
	return p.repo, nil
}

// Remove deletes a codebase's clone and all its worktrees, saved or not. Of a
// local folder only the worktrees and what git needed for them go; the folder
// and, if it is a repository, the branches in it stay. Nothing outside Root is
// deleted. The caller makes sure that no conversation uses it.
func (w *Workspace) Remove(ctx context.Context, repo Repo) error {
	rel, clone := w.cloneRel(repo.Dir)
	if !clone {
		rel = path.Join(".local", localKey(repo.Dir))
	}
	for _, lock := range []string{"clone " + rel, "repo " + rel} {
		unlock, err := w.locks.lock(ctx, lock)
		if err != nil {
			return err
		}
		defer unlock()
	}
	if !clone {
		if err := w.forgetLocal(ctx, repo, rel); err != nil {
			return err
		}
		return w.discard(path.Join(worktreesDir, rel))
	}
	if err := w.discard(rel); err != nil {
		return err
	}
	if err := w.discard(path.Join(worktreesDir, rel)); err != nil {
		return err
	}
	for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
		if w.root.Remove(dir) != nil { // other repositories are in it
			break
		}
	}
	return nil
}

// forgetLocal removes git's notes about the worktrees of a local folder.
func (w *Workspace) forgetLocal(ctx context.Context, repo Repo, rel string) error {
	p, err := w.place(ctx, repo)
	if err != nil || p.repo.Plain { // the folder itself may be gone
		return w.discard(path.Join(plainDir, path.Base(rel)))
	}
	metas, err := w.metas(rel)
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
