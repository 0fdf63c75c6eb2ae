package codebase

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/codebase/gitcmd"
	"remote-agent/internal/fault"
)

// both returns a commit that has what is here and theirs, which the branch is at. Where that
// replaced what was pushed from here, it has only what was changed since: merging the rest
// would bring back what somebody took away.
func (m *maker) both(ctx context.Context, t Tree, want PushResult, theirs string) (string, error) {
	ours, text, parents := want.Commit, "Merge what was pushed to "+want.Branch, []string{want.Commit, theirs}
	known, replaced, err := m.replaced(ctx, t, ours, theirs)
	switch {
	case err != nil:
		return "", err
	case known == ours && replaced, m.contains(ctx, t.place, theirs, ours):
		return theirs, nil
	}
	into := theirs
	if replaced {
		// What both are compared with is the last parent that they have in common.
		if ours, err = m.commitTree(ctx, t, ours+"^{tree}", "ours", known); err != nil {
			return "", err
		}
		if into, err = m.commitTree(ctx, t, theirs+"^{tree}", "theirs", known); err != nil {
			return "", err
		}
		if text, err = m.just(ctx, &t.place, "log", "--reverse", "--format=%B", known+".."+want.Commit); err != nil {
			return "", err
		}
		parents = []string{theirs}
	}
	files, err := m.just(ctx, &t.place, "merge-tree", "--write-tree", "--name-only", "--no-messages", ours, into)
	if err != nil {
		in := "" // git before 2.38 merges nothing, and names nothing
		if _, names, _ := strings.Cut(strings.TrimSpace(files), "\n"); names != "" {
			in = ": " + strings.ReplaceAll(names, "\n", ", ")
		}
		return "", &fault.Error{Kind: fault.Invalid, Err: err, Public: fmt.Sprintf("Not pushed: what others pushed to the branch %s cannot be merged with the changes here%.300s. "+
			"Merge it by hand, or ask to have these files as they are in %.10s, send `/pr`, and ask for the change again.", want.Branch, in, theirs)}
	}
	return m.commitTree(ctx, t, files, text, parents...)
}

// commitTree returns a commit of the bot that has the given files, and the commits as parents.
func (m *maker) commitTree(ctx context.Context, t Tree, files, text string, parents ...string) (string, error) {
	by := &gitcmd.Author{Name: m.cfg.Name, Email: m.cfg.Email}
	args := []string{"commit-tree", files, "-m", text}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	commit, err := m.run(ctx, &t.place, &gitcmd.Call{Args: args, Author: by, Committer: by})
	if err != nil {
		return "", fmt.Errorf("merging what was pushed: %w", err)
	}
	return commit, nil
}

// replaced reports whether theirs, which the branch is at, does not contain the commit up to
// which head is known to have been there: somebody pushed by force. It returns that commit,
// empty if there is none.
func (m *maker) replaced(ctx context.Context, t Tree, head, theirs string) (known string, yes bool, err error) {
	if known, err = m.resolve(ctx, t.place, t.ref("pushed")+"^{commit}"); err != nil {
		return "", false, err
	}
	if t.Protected && (known == "" || m.contains(ctx, t.place, t.Base, known)) {
		known = t.Base // the branch was there before
	}
	if known == "" || !m.contains(ctx, t.place, head, known) {
		return "", false, nil
	}
	return known, !m.contains(ctx, t.place, theirs, known), nil
}

// keep keeps a commit of a worktree under a name: "pushed", up to which what is here is at the
// origin, too, or its "base", for one that is made again.
func (m *maker) keep(ctx context.Context, t Tree, name, commit string) error {
	if _, err := m.just(ctx, &t.place, "update-ref", t.ref(name), commit); err != nil {
		return fmt.Errorf("noting the commit %s: %w", name, err)
	}
	return nil
}
