package codebase_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/codebase"
)

// neighbors are the workspaces of two processes on one machine that work on one repository,
// which is a clone of the first.
func neighbors(t *testing.T, change ...func(*codebase.Config)) (first, second *bundle, repo codebase.Repo) {
	t.Helper()
	first = setup(t, change...)
	first.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo = first.clone("acme/web")
	second = setup(t, change...)
	return first, second, repo
}

// TestFilesGoWithTheConversation between processes on one machine: git has one place for both,
// and each has the files as the other left them.
func TestFilesGoWithTheConversation(t *testing.T) {
	t.Parallel()
	first, second, repo := neighbors(t)
	tree := first.tree(repo, "c1")
	write(t, filepath.Join(tree.Dir, "new"), "of the first\n")
	theirs := second.tree(repo, "c1")
	const file = "----------"
	if diff := cmp.Diff(map[string]string{"a": file + "1\n", "new": file + "of the first\n"}, state(t, theirs.Dir)); diff != "" || theirs.Created || theirs.Note != "" {
		t.Fatalf("the second has other files (created %t, %q):\n%s", theirs.Created, theirs.Note, diff)
	}
	if _, ok, err := first.ws.Existing(t.Context(), repo, "c1"); ok || err != nil {
		t.Errorf("the first has a worktree still: %t, %v", ok, err)
	}
	write(t, filepath.Join(theirs.Dir, "a"), "of the second\n")
	if _, _, err := second.ws.Commit(t.Context(), theirs, codebase.CommitOptions{Message: "Second"}); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(theirs.Dir, "new"), "of the second\n")
	again := first.tree(repo, "c1")
	if diff := cmp.Diff(map[string]string{"a": file + "of the second\n", "new": file + "of the second\n"}, state(t, again.Dir)); diff != "" {
		t.Errorf("the first has other files:\n%s", diff)
	}
	if changes, err := first.ws.Diff(t.Context(), again); err != nil || changes.Files != 2 {
		t.Errorf("the first sees %d changed files: %v", changes.Files, err)
	}
}

// TestSweepLeavesTheWorktreeOfANeighbor: what went to another process is saved by that one, and
// what is left here is of earlier.
func TestSweepLeavesTheWorktreeOfANeighbor(t *testing.T) {
	t.Parallel()
	first, second, repo := neighbors(t)
	tree := first.tree(repo, "c1")
	theirs := second.tree(repo, "c1")
	write(t, filepath.Join(theirs.Dir, "new"), "of the second\n")
	for range 2 {
		if s, err := first.ws.Sweep(t.Context(), func(string) bool { return false }); err != nil || len(s.Kept) > 0 {
			t.Errorf("Sweep: %+v, %v", s, err)
		}
	}
	missing(t, tree.Dir)
	if s, err := second.ws.Sweep(t.Context(), func(string) bool { return false }); err != nil || len(s.Removed) != 1 {
		t.Errorf("Sweep of the second: %+v, %v", s, err)
	}
	if got := read(t, first.tree(repo, "c1").Dir, "new"); got != "of the second\n" {
		t.Errorf("after both were swept, the file is %q", got)
	}
}

// TestWhatANeighborCannotGiveIsNamed: it cannot be saved, and stays there.
func TestWhatANeighborCannotGiveIsNamed(t *testing.T) {
	t.Parallel()
	first, second, repo := neighbors(t, func(c *codebase.Config) { c.MaxFile = 10 })
	tree := first.tree(repo, "c1")
	write(t, filepath.Join(tree.Dir, "large"), "large enough\n")
	theirs := second.tree(repo, "c1")
	missing(t, theirs.Dir, "large")
	if !strings.Contains(theirs.Note, tree.Dir) || !strings.Contains(theirs.Note, "large") {
		t.Errorf("the second says %q", theirs.Note)
	}
	if got := read(t, tree.Dir, "large"); got != "large enough\n" {
		t.Errorf("the first has %q", got)
	}
}

// TestStrangersWorktreeIsNoNeighbor: a folder that git's notes name, and that says itself that it
// is of another repository, as where a data directory was copied, is not read.
func TestStrangersWorktreeIsNoNeighbor(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(file string) error{
		"of another repository": func(file string) error {
			other := filepath.Join(filepath.Dir(filepath.Dir(file)), "other")
			if err := os.Mkdir(other, 0o700); err != nil {
				return err
			}
			return os.WriteFile(file, []byte("gitdir: "+other+"\n"), 0o600)
		},
		"long": func(file string) error {
			own, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			return os.WriteFile(file, append(own, strings.Repeat(" ", 9000)...), 0o600)
		},
		"gone": os.Remove,
	} {
		first, second, repo := neighbors(t)
		tree := first.tree(repo, "c1")
		write(t, filepath.Join(tree.Dir, "new"), "1\n")
		if err := change(filepath.Join(tree.Dir, ".git")); err != nil {
			t.Fatal(err)
		}
		theirs := second.tree(repo, "c1")
		missing(t, theirs.Dir, "new")
		if theirs.Dir == tree.Dir {
			t.Errorf("%s: the second works in the folder of the first", name)
		}
	}
}
