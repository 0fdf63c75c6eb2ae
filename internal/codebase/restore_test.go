package codebase_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/codebase"
)

// TestWhatNoCheckpointHasIsNamed: what could not be saved is not as it was after Restore, whatever
// became of it, and is not taken for something new.
func TestWhatNoCheckpointHasIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(dir string)
		left   string // of the large file
	}{
		"removed":  {change: func(dir string) { remove(t, dir, "large\n1") }},
		"small":    {change: func(dir string) { write(t, filepath.Join(dir, "large\n1"), "small\n") }, left: "small\n"},
		"replaced": {change: func(dir string) { write(t, filepath.Join(dir, "large\n1"), "another one\n") }, left: "another one\n"},
	} {
		b := setup(t, func(c *codebase.Config) { c.MaxFile = 10 })
		b.server.Repo("acme/web", map[string]string{"a": "1\n"})
		tree := b.tree(b.clone("acme/web"), "c1")
		write(t, filepath.Join(tree.Dir, "large\n1"), "large enough\n")
		for name, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "objects/info/x": "", "refs/x": ""} {
			write(t, filepath.Join(tree.Dir, "nested/.git", name), text)
		}
		write(t, filepath.Join(tree.Dir, "new"), "1\n")
		saved, err := b.ws.Checkpoint(t.Context(), tree, "x")
		if err != nil {
			t.Fatal(err)
		}
		c.change(tree.Dir)
		write(t, filepath.Join(tree.Dir, "new"), "2\n")
		if err := os.RemoveAll(filepath.Join(tree.Dir, "nested")); err != nil {
			t.Fatal(err)
		}
		r, err := b.ws.Restore(t.Context(), tree, saved.Ref)
		const file = "----------"
		want := map[string]string{"a": file + "1\n", "new": file + "1\n"}
		if c.left != "" {
			want["large\n1"] = file + c.left
		}
		if diff := cmp.Diff(want, state(t, tree.Dir)); err != nil || diff != "" {
			t.Errorf("%s: Restore: %v (-want +got):\n%s", name, err, diff)
		}
		if text := strings.Join(r.NotUndone, ";"); strings.Count(text, "large\n1 (too large") != 1 || strings.Count(text, "nested (")+strings.Count(text, "nested/ (") != 1 {
			t.Errorf("%s: NotUndone = %q", name, r.NotUndone)
		}
	}
}

// TestIgnoredFilesThatWereDeletedAreNamed: no checkpoint has them, so that Restore cannot bring
// them back, and says so.
func TestIgnoredFilesThatWereDeletedAreNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n", ".gitignore": ".env\nmodules\n\"kept\n"})
	tree := b.tree(b.clone("acme/web"), "c1")
	for _, name := range []string{".env", "modules/x/y", `"kept`} {
		write(t, filepath.Join(tree.Dir, name), "1\n")
	}
	saved, err := b.ws.Checkpoint(t.Context(), tree, "x")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(tree.Dir, "a"), "2\n")
	remove(t, tree.Dir, ".env")
	remove(t, tree.Dir, "modules")
	r, err := b.ws.Restore(t.Context(), tree, saved.Ref)
	const deleted = " (ignored by git, so it was not saved; it has been deleted since)"
	if want := []string{".env" + deleted, "modules/" + deleted, `"kept (ignored by git)`}; err != nil || cmp.Diff(want, r.NotUndone) != "" {
		t.Errorf("%v\n%s", err, cmp.Diff(want, r.NotUndone))
	}
	back, err := b.ws.Restore(t.Context(), tree, r.Before.Ref) // where they were not there either
	if want := []string{`"kept (ignored by git)`}; err != nil || cmp.Diff(want, back.NotUndone) != "" {
		t.Errorf("back again: %v\n%s", err, cmp.Diff(want, back.NotUndone))
	}
}
