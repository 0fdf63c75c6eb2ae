package codebase_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/codebase"
)

// objects returns how many objects git keeps loosely in a repository.
func objects(tb testing.TB, gitDir string) (loose string) {
	tb.Helper()
	for line := range strings.Lines(gitIn(tb, gitDir, "count-objects", "-v")) {
		if n, ok := strings.CutPrefix(line, "count: "); ok {
			return strings.TrimSpace(n)
		}
	}
	tb.Fatal("git does not count")
	return ""
}

func TestMaintainPacksWhatPays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	gitDir := filepath.Join(repo.Dir, ".git")
	maintain := func(want bool) {
		t.Helper()
		done, _, err := b.ws.Maintain(t.Context(), repo)
		if err != nil || done != want {
			t.Errorf("Maintain = %v, %v; want %v", done, err, want)
		}
	}
	maintain(false) // a fresh clone is packed
	tree := b.tree(repo, "c")
	for i := range 600 {
		write(t, filepath.Join(tree.Dir, fmt.Sprintf("new/%d", i)), fmt.Sprint("content ", i, "\n"))
	}
	saved, err := b.ws.Checkpoint(t.Context(), tree, "before")
	if err != nil {
		t.Fatal(err)
	}
	// Sixty older checkpoints, of which the oldest are too many, and one from just now.
	at := time.Now().UTC().Add(-90 * 24 * time.Hour)
	name := func(i int) string {
		return saved.Ref[:strings.LastIndexByte(saved.Ref, '/')+1] + at.Add(time.Duration(i)*time.Hour).Format("20060102T150405.000") + "-abcdef"
	}
	for i := range 60 {
		gitIn(t, gitDir, "update-ref", name(i), saved.Commit)
	}
	maintain(true)
	if n := objects(t, gitDir); n != "0" {
		t.Errorf("%s objects are loose", n)
	}
	refs := gitIn(t, gitDir, "for-each-ref", "--format=%(refname)", strings.TrimSuffix(saved.Ref[:strings.LastIndexByte(saved.Ref, '/')+1], "/"))
	if n := len(strings.Fields(refs)); n != 50 || strings.Contains(refs, name(10)) || !strings.Contains(refs, name(11)) {
		t.Errorf("%d checkpoints are left:\n%s", n, refs)
	}
	remove(t, tree.Dir, "new")
	if _, err := b.ws.Restore(t.Context(), tree, saved.Ref); err != nil {
		t.Fatal(err)
	}
	if got := read(t, tree.Dir, "new/599"); got != "content 599\n" {
		t.Errorf("restored: %q", got)
	}
	for i := range 600 {
		write(t, filepath.Join(tree.Dir, fmt.Sprintf("new/%d", i)), fmt.Sprint("other ", i, "\n"))
	}
	if _, err := b.ws.Checkpoint(t.Context(), tree, "again"); err != nil {
		t.Fatal(err)
	}
	maintain(false) // it was, just now
	yesterday := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(filepath.Join(gitDir, "bot-maintained"), yesterday, yesterday); err != nil {
		t.Fatal(err)
	}
	maintain(true)
	maintain(false)
}

func TestMaintainLeavesForeignRepositoriesAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := filepath.Join(realTemp(t), "mine")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "init", "-q")
	for i := range 600 {
		write(t, filepath.Join(dir, fmt.Sprint(i)), fmt.Sprint(i))
	}
	gitIn(t, dir, "add", ".")
	repo, err := b.ws.AddLocal(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if done, _, err := b.ws.Maintain(t.Context(), repo); done || err != nil {
		t.Errorf("Maintain = %v, %v", done, err)
	}
	if n := objects(t, dir); n != "600" {
		t.Errorf("%s objects are loose, want 600", n)
	}
	if _, _, err := b.ws.Maintain(t.Context(), codebase.Repo{Dir: filepath.Join(b.root, "github.com/acme/gone")}); err == nil {
		t.Error("what is not there is maintained")
	}
}
