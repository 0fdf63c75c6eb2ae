package codebase

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/fault"
)

// Fork gives another conversation a worktree of its own that begins as that of t is
// now: with its commits, and with its files, tracked or not, but those that git
// ignores. The two share nothing from then on. It writes refs only; Worktree makes the
// files on first need. It returns the paths that could not be taken along, as in
// Saved.
//
// A conversation that has a branch already keeps it, and nothing changes: Fork can be
// repeated. What t pushes to stays its own. It is a fault.NotFound if the files of t
// are gone.
func (s *states) Fork(ctx context.Context, t Tree, conversation string) (unsaved []string, err error) {
	if conversation == "" || conversation == t.Conversation {
		return nil, fault.New(fault.Invalid, "A fork of a worktree belongs to another conversation.")
	}
	to := s.treeOf(t.place, conversation, Short(conversation))
	unlock, err := s.lockTree(ctx, t)
	if err != nil {
		return nil, err
	}
	defer unlock()
	branch, err := s.resolve(ctx, t.place, "refs/heads/"+to.Branch+"^{commit}")
	if err != nil || branch != "" {
		return nil, err
	}
	saved, err := s.save(ctx, t, "fork", "the state that a fork begins with")
	if err != nil {
		return nil, err
	}
	head, err := s.Head(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("reading HEAD: %w", err)
	}
	to.from = t.from
	to.from.Remote, to.from.Head = "", ""
	if err := s.remember(ctx, to); err != nil {
		return nil, err
	}
	script := "update " + to.ref("base") + " " + t.Base + "\n" +
		"update " + to.ref("saved") + " " + saved.Commit + "\n" +
		"create refs/heads/" + to.Branch + " " + head + "\n"
	if _, err := s.run(ctx, &t.place, &gitcmd.Call{Args: []string{"update-ref", "--stdin"}, Stdin: strings.NewReader(script)}); err != nil {
		return nil, fmt.Errorf("making the branch %s: %w", to.Branch, err)
	}
	return saved.Unsaved, nil
}
