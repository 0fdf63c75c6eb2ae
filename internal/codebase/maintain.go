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
	"time"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/fault"
)

const (
	// From looseObjects objects outside of packs, or manyPacks packs, on packing pays.
	looseObjects = 500
	manyPacks    = 20

	// maintainAgain is the least time between two times: what is unreachable stays
	// loose for two weeks with older versions of git.
	maintainAgain = 24 * time.Hour

	maintainTimeout = 30 * time.Minute

	// oldCheckpoint is the age from which on a checkpoint counts as one too many if
	// there are keepCheckpoints newer ones.
	oldCheckpoint = 30 * 24 * time.Hour
)

// maintained is a file in git's folder: when it was last done.
const maintained = "bot-maintained"

// Maintain has git pack what it has stored for a codebase, and drops checkpoints that
// are old and not among the newest of their worktree, and what nothing has referred to
// for two weeks. It reports whether that was worth it, and how many bytes it freed. Turns
// may work meanwhile, though the machine is better at rest. A repository that an
// operator added is left to its owner.
func (c *care) Maintain(ctx context.Context, repo Repo) (done bool, freed int64, err error) {
	p, err := c.place(ctx, repo)
	if err != nil || p.local {
		return false, 0, err
	}
	unlock, err := c.locks.lock(ctx, "maintain "+p.rel)
	if err != nil {
		return false, 0, err
	}
	defer unlock()
	if due, err := c.maintenanceDue(ctx, p); err != nil || !due {
		return false, 0, err
	}
	metas, err := c.metas(p.rel)
	if err != nil {
		return false, 0, err
	}
	for _, m := range metas {
		if err := c.pruneCheckpoints(ctx, c.treeOf(p, m.Conversation, m.short), time.Now().Add(-oldCheckpoint)); err != nil {
			return false, 0, err
		}
	}
	objects := filepath.Join(p.gitDir, "objects")
	before := gitcmd.DirSize(objects, 0)
	_, err = c.run(ctx, &p, &gitcmd.Call{
		Args: []string{"gc", "--quiet"}, Timeout: maintainTimeout,
		Config: []gitcmd.Pair{
			{Key: "gc.pruneExpire", Value: "2.weeks.ago"}, // another git may be about to refer to what is younger
			{Key: "gc.worktreePruneExpire", Value: "never"},
			{Key: "gc.cruftPacks", Value: "true"},
			{Key: "pack.threads", Value: "1"}, // somebody may be waiting for an answer
			{Key: "pack.windowMemory", Value: "128m"},
		},
	})
	if err != nil {
		return false, 0, fmt.Errorf("packing the repository %s: %w", p.repo.Name, err)
	}
	return true, max(0, before-gitcmd.DirSize(objects, 0)), c.noteMaintained(p)
}

// maintenanceDue reports whether packing pays.
func (c *care) maintenanceDue(ctx context.Context, p place) (bool, error) {
	name, err := c.relative(p)
	if err != nil {
		return false, err
	}
	info, err := c.root.Lstat(name)
	switch {
	case err == nil && time.Since(info.ModTime()) < maintainAgain:
		return false, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, fault.Wrap(err, fault.Internal, "looking when a repository was packed")
	}
	out, err := c.just(ctx, &p, "count-objects", "-v")
	if err != nil {
		return false, fmt.Errorf("counting the objects of %s: %w", p.repo.Name, err)
	}
	count := make(map[string]int)
	for line := range strings.Lines(out) {
		name, n, _ := strings.Cut(line, ":")
		count[name], _ = strconv.Atoi(strings.TrimSpace(n)) // 0 if git says it otherwise one day
	}
	return count["count"] >= looseObjects || count["packs"] >= manyPacks, nil
}

func (c *care) noteMaintained(p place) error {
	name, err := c.relative(p)
	if err != nil {
		return err
	}
	if err := c.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(err, fault.Internal, "noting that a repository was packed")
	}
	return fault.Wrap(c.root.WriteFile(name, nil, 0o600), fault.Internal, "noting that a repository was packed")
}

// relative returns where the note is, below Root.
func (c *care) relative(p place) (string, error) {
	rel, err := filepath.Rel(c.cfg.Root, p.gitDir)
	return path.Join(filepath.ToSlash(rel), maintained), fault.Wrap(err, fault.Internal, "looking for git's folder")
}
