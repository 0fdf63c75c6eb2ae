package codebase

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/fault"
	"remote-agent/internal/order"
)

// care looks after what is stored: it puts worktrees away, packs repositories, and
// bundles what nobody else has.
type care struct {
	*worktrees
	states *states
}

// keepCheckpoints is how many checkpoints of a worktree outlast a sweep.
const keepCheckpoints = 50

// checkpointTime is how the name of a checkpoint's ref begins.
const checkpointTime = "20060102T150405.000"

// Swept is what Sweep did.
type Swept struct {
	Freed   int64    // bytes
	Removed []string // conversations whose worktree is gone; its state is saved
	Kept    []string // conversations whose worktree could not be saved in whole and stays
}

// Sweep removes the worktrees of the conversations that keep does not want, after
// saving the state of each to a ref; Worktree brings it back. A worktree that
// holds what a checkpoint cannot save stays. Files that git ignores are lost. The
// caller makes sure that no turn is running in a conversation that it does not
// keep. One that fails does not stop the others; their errors are joined.
func (c *care) Sweep(ctx context.Context, keep func(conversation string) bool) (Swept, error) {
	c.clearTemporary(ctx)
	var s Swept
	var errs []error
	rels, err := c.withTrees()
	if err != nil {
		return s, err
	}
	for _, rel := range rels {
		metas, err := c.metas(rel)
		errs = append(errs, err)
		for _, m := range metas {
			if ctx.Err() != nil {
				return s, errors.Join(append(errs, ctx.Err())...)
			}
			if keep(m.Conversation) {
				continue
			}
			freed, removed, err := c.sweepOne(ctx, m)
			errs = append(errs, err)
			switch {
			case removed:
				s.Freed += freed
				s.Removed = append(s.Removed, m.Conversation)
			case err == nil:
				s.Kept = append(s.Kept, m.Conversation)
			}
		}
	}
	return s, errors.Join(errs...)
}

// Release removes the worktree of one conversation as Sweep does, such as that of
// an issue that was closed, and reports whether it is gone; one that holds what
// cannot be saved stays. WorktreeAt brings it back. Releasing what is not there
// does nothing. The caller makes sure that no turn is running in the
// conversation.
func (c *care) Release(ctx context.Context, repo Repo, conversation string) (bool, error) {
	p, err := c.place(ctx, repo)
	if err != nil {
		return false, err
	}
	m, found, err := c.readMeta(p.rel, Short(conversation))
	if err != nil || !found || m.Conversation != conversation {
		return err == nil, err
	}
	_, removed, err := c.sweepOne(ctx, m)
	return removed, err
}

// withTrees returns the places of the codebases that have worktrees.
func (c *care) withTrees() ([]string, error) {
	var out []string
	var walk func(rel string, depth int) error
	walk = func(rel string, depth int) error {
		if depth == 0 {
			out = append(out, rel)
			return nil
		}
		entries, err := fs.ReadDir(c.root.FS(), path.Join(worktreesDir, rel))
		if err != nil {
			return fault.Wrap(err, fault.Internal, "listing worktrees")
		}
		for _, e := range entries {
			deeper := depth - 1
			if rel == "" && e.Name() != ".local" && strings.ContainsAny(e.Name(), ".+") {
				deeper++ // a host
			}
			if e.IsDir() {
				if err := walk(path.Join(rel, e.Name()), deeper); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return out, walk("", 2)
}

func (c *care) sweepOne(ctx context.Context, m meta) (freed int64, removed bool, err error) {
	p, err := c.place(ctx, Repo{Name: path.Base(m.Dir), Dir: m.Dir})
	if err != nil {
		return 0, false, err
	}
	if p.rel != m.rel {
		return 0, false, fault.Newf(fault.Internal, "the notes of worktree %s are not its own", m.short)
	}
	t := c.treeOf(p, m.Conversation, m.short)
	t.Base = m.Base
	t.set(m.origins)
	unlock, err := c.lockTree(ctx, t)
	if err != nil {
		return 0, false, err
	}
	defer unlock()
	var saved Saved
	if c.beside(t) == "" { // else who has it saves it
		saved, err = c.states.save(ctx, t, "saved", "the worktree when it was removed")
	}
	if err != nil {
		return 0, false, err
	}
	if len(saved.Unsaved) > 0 {
		c.log.InfoContext(ctx, "a worktree stays because not all of it can be saved",
			"codebase", p.repo.Name, "conversation_id", m.Conversation, "unsaved", len(saved.Unsaved))
		return 0, false, nil
	}
	freed = gitcmd.DirSize(t.Dir, 0)
	if err := c.removeTree(ctx, t); err != nil {
		return 0, false, err
	}
	c.log.InfoContext(ctx, "removed a worktree", "codebase", p.repo.Name, "conversation_id", m.Conversation, "freed_bytes", freed)
	return freed, true, c.pruneCheckpoints(ctx, t, time.Now())
}

// removeTree removes a worktree whose state is saved. The notes go first: what is
// left without them counts as half made.
func (c *care) removeTree(ctx context.Context, t Tree) error {
	unlock, err := c.locks.lock(ctx, "repo "+t.place.rel)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.root.Remove(t.rel() + ".json"); err != nil {
		return fault.Wrap(err, fault.Internal, "removing a worktree's notes")
	}
	beside := c.beside(t)
	if err := c.discard(t.rel()); err != nil || beside != "" {
		return err
	}
	return removeAdmin(t.place, t.short)
}

// pruneCheckpoints drops the checkpoints of a worktree that were made before a time,
// but for its newest ones.
func (c *care) pruneCheckpoints(ctx context.Context, t Tree, before time.Time) error {
	out, err := c.just(ctx, &t.place, "for-each-ref", "--format=%(refname)", t.ref("cp/"), t.ref("undo/"))
	if err != nil || out == "" {
		return err
	}
	refs := strings.Split(out, "\n")
	// The last element begins with the time, in UTC.
	order.By(refs, func(a, b string) int { return strings.Compare(path.Base(a), path.Base(b)) })
	if len(refs) <= keepCheckpoints {
		return nil
	}
	var script strings.Builder
	end := before.UTC().Format(checkpointTime)
	for _, ref := range refs[:len(refs)-keepCheckpoints] {
		if path.Base(ref) < end {
			script.WriteString("delete " + ref + "\n")
		}
	}
	_, err = c.run(ctx, &t.place, &gitcmd.Call{Args: []string{"update-ref", "--stdin"}, Stdin: strings.NewReader(script.String())})
	return err
}
