package codebase_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/codebase"
)

// A branch that somebody deleted under a worktree is back at its last commit, once that is
// told, and nothing in the files is lost.
func TestADeletedBranchComesBack(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		damage func(t *testing.T, repo codebase.Repo, tree codebase.Tree)
		behind bool // at the commit before the last checkpoint, not at the last one
		open   string
	}{
		"deleted": {func(*testing.T, codebase.Repo, codebase.Tree) {}, false, "open\n"},
		"packed, then deleted": {func(t *testing.T, repo codebase.Repo, _ codebase.Tree) {
			t.Helper()
			gitIn(t, repo.Dir, "pack-refs", "--all")
		}, false, "open\n"},
		"without a log": {func(t *testing.T, repo codebase.Repo, tree codebase.Tree) {
			t.Helper()
			remove(t, filepath.Join(repo.Dir, ".git", "worktrees", filepath.Base(tree.Dir), "logs"))
		}, true, "open\n"},
		"with the files": {func(t *testing.T, _ codebase.Repo, tree codebase.Tree) {
			t.Helper()
			remove(t, tree.Dir)
		}, false, ""},
		"with all about them": {func(t *testing.T, repo codebase.Repo, tree codebase.Tree) {
			t.Helper()
			remove(t, tree.Dir)
			gitIn(t, repo.Dir, "worktree", "prune")
		}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.server.Repo("acme/web", map[string]string{"a": "1\n"})
			repo := b.clone("acme/web")
			tree := b.tree(repo, "c1")
			write(t, filepath.Join(tree.Dir, "a"), "mine\n")
			first := b.commit(tree, "first")
			if _, err := b.ws.Checkpoint(t.Context(), tree, "x"); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(tree.Dir, "b"), "too\n")
			want := b.commit(tree, "second")
			if tt.behind {
				want = first
			}
			write(t, filepath.Join(tree.Dir, "open"), "open\n")
			tt.damage(t, repo, tree)
			gitIn(t, repo.Dir, "update-ref", "-d", "refs/heads/"+tree.Branch)
			b.server.Commit("acme/web", map[string]string{"a": "2\n"})
			back := b.tree(repo, "c1")
			if head, err := b.ws.Head(t.Context(), back); err != nil || head != want || back.Base != tree.Base {
				t.Errorf("it is at %s, %v, and began at %s; want %s and %s", head, err, back.Base, want, tree.Base)
			}
			if !strings.Contains(back.Note, "was deleted. It is back at "+want[:10]) {
				t.Errorf("it is not told: %q", back.Note)
			}
			if got := read(t, back.Dir, "a"); got != "mine\n" {
				t.Errorf("a = %q", got)
			}
			if text, _ := os.ReadFile(filepath.Join(back.Dir, "open")); string(text) != tt.open {
				t.Errorf("open = %q", text)
			}
			if again := b.tree(repo, "c1"); again.Note != "" {
				t.Errorf("it is told again: %q", again.Note)
			}
		})
	}
}
