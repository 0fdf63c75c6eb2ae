package codebase_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/codebase"
	"remote-agent/internal/fault"
)

// A fork begins with the commits and the files of the moment, and shares nothing
// afterwards.
func TestForkBeginsAsTheWorktreeIs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n", "b": "1\n", "gone": "x\n", ".gitignore": "*.log\n"})
	repo := b.clone("acme/web")
	from := b.tree(repo, "parent")
	write(t, filepath.Join(from.Dir, "a"), "committed\n")
	commit, _, err := b.ws.Commit(t.Context(), from, codebase.CommitOptions{Message: "one"})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(from.Dir, "b"), "changed\n")
	write(t, filepath.Join(from.Dir, "new"), "new\n")
	write(t, filepath.Join(from.Dir, "noise.log"), "ignored\n")
	remove(t, from.Dir, "gone")

	for range 2 {
		if left, err := b.ws.Fork(t.Context(), from, "child"); err != nil || len(left) > 0 {
			t.Fatalf("Fork: %v, %v", left, err)
		}
		write(t, filepath.Join(from.Dir, "b"), "later\n") // the second time the fork is there
	}
	tree := b.tree(repo, "child")
	if tree.Dir == from.Dir || tree.Branch == from.Branch || tree.Base != from.Base || tree.Note != "" {
		t.Errorf("the fork is %+v, beside %+v", tree, from)
	}
	for name, want := range map[string]string{"a": "committed\n", "b": "changed\n", "new": "new\n"} {
		if got := read(t, tree.Dir, name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	missing(t, tree.Dir, "gone")
	missing(t, tree.Dir, "noise.log")
	if head, err := b.ws.Head(t.Context(), tree); err != nil || head != commit {
		t.Errorf("the fork is at %s, %v; want %s", head, err, commit)
	}
	d, err := b.ws.Diff(t.Context(), tree)
	if err != nil || d.Files != 4 || !strings.Contains(string(d.Patch), "+committed") || strings.Contains(string(d.Patch), "later") {
		t.Errorf("Diff = %+v, %v", d, err)
	}

	write(t, filepath.Join(tree.Dir, "a"), "child\n")
	if _, _, err := b.ws.Commit(t.Context(), tree, codebase.CommitOptions{Message: "two"}); err != nil {
		t.Fatal(err)
	}
	if got := []string{read(t, from.Dir, "a"), read(t, from.Dir, "b")}; !cmp.Equal(got, []string{"committed\n", "later\n"}) {
		t.Errorf("beside the fork: %q", got)
	}
	if head, err := b.ws.Head(t.Context(), from); err != nil || head != commit {
		t.Errorf("the worktree that was forked is at %s, %v", head, err)
	}
	_, err = b.ws.Fork(t.Context(), from, "parent")
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("a fork of its own: %v", err)
	}
}

// A fork pushes nowhere of its own accord: the branch of the worktree that it was made of
// stays that one's.
func TestAForkDoesNotPushToTheSameBranch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	from := b.treeAt(repo, "parent", codebase.Start{Branch: "bot/issue-1"})
	if _, err := b.ws.Fork(t.Context(), from, "child"); err != nil {
		t.Fatal(err)
	}
	if tree := b.tree(repo, "child"); tree.Remote != "" {
		t.Errorf("the fork pushes to %s", tree.Remote)
	}
	if tree := b.tree(repo, "parent"); tree.Remote != "bot/issue-1" {
		t.Errorf("the worktree that was forked pushes to %q", tree.Remote)
	}
}
