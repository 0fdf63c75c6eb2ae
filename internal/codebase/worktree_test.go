package codebase_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/codebase"
	"remote-agent/internal/codebase/gittest"
	"remote-agent/internal/fault"
	"remote-agent/internal/heavytest"
)

const conversation = "0190a5b2-7c3d-7e4f-8a1b-0123456789ab"

func TestWorktreeStartsFromFreshDefaultBranch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	tip := b.server.Commit("acme/web", map[string]string{"a": "2\n"})
	tree := b.tree(repo, conversation)
	if !tree.Created || tree.Base != tip || tree.Branch != "bot/0123456789ab" || tree.Note != "" {
		t.Errorf("tree = %+v", tree)
	}
	if got := read(t, tree.Dir, "a"); got != "2\n" {
		t.Errorf("a = %q", got)
	}
	if got := read(t, repo.Dir, "a"); got != "1\n" {
		t.Errorf("the shared checkout changed: %q", got)
	}
	requests := len(b.server.Requests())
	again := b.tree(repo, conversation)
	if again.Created || again.Base != tip || again.Dir != tree.Dir || len(b.server.Requests()) != requests {
		t.Errorf("again = %+v", again)
	}
	if branch, err := b.ws.Branch(t.Context(), tree); err != nil || branch != tree.Branch {
		t.Errorf("Branch = %q, %v", branch, err)
	}
	if head, err := b.ws.Head(t.Context(), tree); err != nil || head != tip {
		t.Errorf("Head = %q, %v", head, err)
	}
	b.server.Close()
	late := b.tree(repo, "another")
	if late.Base != tip || !strings.Contains(late.Note, "Could not fetch") || strings.Contains(late.Note, b.root) {
		t.Errorf("without a server: %+v", late)
	}
}

func TestTwoConversationsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	one, two := b.tree(repo, "c1"), b.tree(repo, "c2")
	write(t, filepath.Join(one.Dir, "a"), "one\n")
	write(t, filepath.Join(two.Dir, "new"), "two\n")
	if got := read(t, two.Dir, "a"); got != "1\n" {
		t.Errorf("a in the second = %q", got)
	}
	missing(t, one.Dir, "new")
	missing(t, repo.Dir, "new")
	d, err := b.ws.Diff(t.Context(), two)
	if err != nil || d.Files != 1 || !strings.Contains(d.Stat, "new") || strings.Contains(string(d.Patch), "one") {
		t.Errorf("Diff = %+v, %v", d, err)
	}
}

func TestDiffPatchApplies(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n2\n3\n", "gone": "x\n", "dir": "a file\n", ".gitignore": "*.log\n"})
	repo := b.clone("acme/web")
	tree, clean := b.tree(repo, "c1"), b.tree(repo, "c2")
	write(t, filepath.Join(tree.Dir, "a"), "1\nchanged\n3\n")
	write(t, filepath.Join(tree.Dir, "bin"), "\x00\x01\x02")
	write(t, filepath.Join(tree.Dir, "sub/späce name"), "new\n")
	write(t, filepath.Join(tree.Dir, "x.log"), "ignored\n")
	remove(t, tree.Dir, "gone")
	remove(t, tree.Dir, "dir")
	write(t, filepath.Join(tree.Dir, "dir/inside"), "now a folder\n")
	d, err := b.ws.Diff(t.Context(), tree)
	if err != nil || d.Truncated || d.Files != 6 || len(d.Unsaved) > 0 {
		t.Fatalf("Diff = %+v, %v", d, err)
	}
	cmd := exec.Command(gittest.Git(t), "apply", "-")
	cmd.Dir, cmd.Stdin = clean.Dir, strings.NewReader(string(d.Patch))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s", err, out)
	}
	for _, f := range []string{"a", "bin", "sub/späce name", "dir/inside"} {
		if got, want := read(t, clean.Dir, f), read(t, tree.Dir, f); got != want {
			t.Errorf("%s = %q, want %q", f, got, want)
		}
	}
	missing(t, clean.Dir, "gone")
	status := gitIn(t, tree.Dir, "status", "--porcelain")
	if !strings.Contains(status, "?? bin") {
		t.Errorf("the index was touched:\n%s", status)
	}
}

// TestQuickEditIsNoticed edits a file in the second in which it was checked out,
// without changing its size, and looks later.
func TestQuickEditIsNoticed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	for i := range 20 {
		tree := b.tree(repo, fmt.Sprint("c", i))
		file := filepath.Join(tree.Dir, "a")
		before, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("2\n"), 0o600); err != nil { // in place, unlike write
			t.Fatal(err)
		}
		after, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if after.ModTime().Unix() != before.ModTime().Unix() {
			continue // too slow; again
		}
		waitFor(t, func() bool { return time.Now().Unix() > after.ModTime().Unix() })
		if d, err := b.ws.Diff(t.Context(), tree); err != nil || d.Files != 1 {
			t.Errorf("Diff = %+v, %v", d, err)
		}
		return
	}
	t.Skip("this machine is too slow to edit a file in the second of its checkout")
}

func TestDiffIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *codebase.Config) { c.MaxPatch = 5000; c.MaxFile = 50000 })
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	tree := b.tree(b.clone("acme/web"), "c1")
	write(t, filepath.Join(tree.Dir, "big"), strings.Repeat("0123456789\n", 4000))
	write(t, filepath.Join(tree.Dir, "huge"), strings.Repeat("0123456789\n", 10000))
	d, err := b.ws.Diff(t.Context(), tree)
	if err != nil || !d.Truncated || len(d.Patch) > 5000 || d.Patch[len(d.Patch)-1] != '\n' {
		t.Errorf("Diff: %v, truncated %v, %d bytes", err, d.Truncated, len(d.Patch))
	}
	if diff := cmp.Diff([]string{"huge"}, d.Unsaved); diff != "" {
		t.Error(diff)
	}
}

// TestFilesInASubmoduleAreNamed: git looks at nothing in the folder of a submodule,
// so what an assistant writes there is in no diff, checkpoint or commit.
func TestFilesInASubmoduleAreNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	b.server.CommitTo("acme/web", "main", []gittest.Entry{
		{Path: ".gitmodules", Data: "[submodule \"s\"]\n\tpath = lib/s\n\turl = https://example.com/s\n"},
		{Path: "lib/s", Mode: gittest.Submodule, Data: strings.TrimSpace(b.server.Run("acme/web", nil, "rev-parse", "main"))},
		{Path: "lib/empty", Mode: gittest.Submodule, Data: strings.TrimSpace(b.server.Run("acme/web", nil, "rev-parse", "main"))},
	})
	repo := b.clone("acme/web")
	tree := b.tree(repo, "c1")
	if d, err := b.ws.Diff(t.Context(), tree); err != nil || len(d.Patch) > 0 || len(d.Unsaved) > 0 {
		t.Fatalf("before: %+v, %v", d, err)
	}
	write(t, filepath.Join(tree.Dir, "lib/s/written.txt"), "work\n")
	d, err := b.ws.Diff(t.Context(), tree)
	if diff := cmp.Diff([]string{"lib/s"}, d.Unsaved); err != nil || diff != "" {
		t.Errorf("Diff: %v\n%s", err, diff)
	}
	if _, _, err := b.ws.Commit(t.Context(), tree, codebase.CommitOptions{Message: "x"}); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "lib/s") {
		t.Errorf("Commit: %v", err)
	}
	swept, err := b.ws.Sweep(t.Context(), func(string) bool { return false })
	if err != nil || len(swept.Removed) > 0 || read(t, tree.Dir, "lib/s/written.txt") != "work\n" {
		t.Errorf("Sweep took the files away: %+v, %v", swept, err)
	}
	// Who follows the advice commits the rest, and the submodule stays one.
	write(t, filepath.Join(tree.Dir, "a"), "2\n")
	if _, _, err := b.ws.Commit(t.Context(), tree, codebase.CommitOptions{Message: "x"}); !strings.Contains(fault.Public(err), "of a submodule, empty the folder") {
		t.Errorf("Commit: %v", err)
	}
	remove(t, tree.Dir, "lib/s/written.txt")
	b.commit(tree, "x")
	if changed := gitIn(t, tree.Dir, "diff", "--name-only", tree.Base, "HEAD"); changed != "a\n" {
		t.Errorf("the commit changes %q", changed)
	}
}

func remove(tb testing.TB, elements ...string) {
	tb.Helper()
	if err := os.RemoveAll(filepath.Join(elements...)); err != nil {
		tb.Fatal(err)
	}
}

// gitIn runs git as a person would, in a worktree.
func gitIn(tb testing.TB, dir string, args ...string) string {
	tb.Helper()
	cmd := exec.Command(gittest.Git(tb), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// state returns the files of a directory with their content.
func state(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == ".git" {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		out[rel] = d.Type().String()
		if d.Type().IsRegular() {
			out[rel] += read(tb, path)
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func TestRestoreBringsBackEverythingButIgnored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n", "b": "1\n", "d/x": "1\n", "f": "file\n", ".gitignore": "*.log\nout/\n"})
	tree := b.tree(b.clone("acme/web"), "c1")
	head, _ := b.ws.Head(t.Context(), tree)
	write(t, filepath.Join(tree.Dir, "a"), "edited before\n")
	write(t, filepath.Join(tree.Dir, "untracked"), "before\n")
	want := state(t, tree.Dir)
	saved, err := b.ws.Checkpoint(t.Context(), tree, "turn 1\nwith\x00 junk")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, state(t, tree.Dir)); diff != "" {
		t.Errorf("Checkpoint changed files:\n%s", diff)
	}
	write(t, filepath.Join(tree.Dir, "a"), "after\n")
	remove(t, tree.Dir, "b")
	remove(t, tree.Dir, "untracked")
	remove(t, tree.Dir, "d")
	remove(t, tree.Dir, "f")
	outside := t.TempDir()
	write(t, filepath.Join(outside, "x"), "outside\n")
	if err := os.Symlink(outside, filepath.Join(tree.Dir, "d")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(tree.Dir, "f/now/deep"), "folder\n")
	write(t, filepath.Join(tree.Dir, "new/deep/file"), "new\n")
	gitIn(t, tree.Dir, "add", "-A")
	gitIn(t, tree.Dir, "commit", "-q", "-m", "by the assistant")
	write(t, filepath.Join(tree.Dir, "later"), "uncommitted\n")
	write(t, filepath.Join(tree.Dir, "build.log"), "log\n")
	write(t, filepath.Join(tree.Dir, "out/z"), "z\n")
	after := state(t, tree.Dir)

	r, err := b.ws.Restore(t.Context(), tree, saved.Ref)
	if err != nil {
		t.Fatal(err)
	}
	got := state(t, tree.Dir)
	for _, ignored := range []string{"build.log", "out/z"} {
		if got[ignored] == "" {
			t.Errorf("%s was removed", ignored)
		}
		delete(got, ignored)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Restore (-want +got):\n%s", diff)
	}
	if got := read(t, outside, "x"); got != "outside\n" {
		t.Errorf("a file outside changed: %q", got)
	}
	text := strings.Join(r.NotUndone, "\n")
	if !strings.Contains(text, "build.log") || !strings.Contains(text, "out/") {
		t.Errorf("NotUndone = %q", r.NotUndone)
	}
	if now, _ := b.ws.Head(t.Context(), tree); now != head {
		t.Errorf("HEAD = %s, want %s", now, head)
	}
	if status := gitIn(t, tree.Dir, "status", "--porcelain"); status != " M a\n?? untracked\n" {
		t.Errorf("status after Restore:\n%s", status)
	}

	if _, err := b.ws.Restore(t.Context(), tree, r.Before.Ref); err != nil {
		t.Fatal(err)
	}
	delete(after, "d") // a link comes back as a file with its target
	redone := state(t, tree.Dir)
	delete(redone, "d")
	if diff := cmp.Diff(after, redone); diff != "" {
		t.Errorf("taking it back (-want +got):\n%s", diff)
	}
}

func TestRestoreRefusesForeignRefs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	one, two := b.tree(repo, "c1"), b.tree(repo, "c2")
	saved, err := b.ws.Checkpoint(t.Context(), one, "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{saved.Ref, "HEAD", "", "--help", "refs/heads/main", saved.Commit} {
		if _, err := b.ws.Restore(t.Context(), two, ref); !fault.Is(err, fault.NotFound) {
			t.Errorf("Restore(%q): %v", ref, err)
		}
	}
}

func TestSweepSavesAndWorktreeReopens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n", "b": "1\n"})
	repo := b.clone("acme/web")
	idle, busy, odd := b.tree(repo, "idle"), b.tree(repo, "busy"), b.tree(repo, "odd")
	write(t, filepath.Join(idle.Dir, "a"), "mine\n")
	gitIn(t, idle.Dir, "commit", "-aqm", "work")
	write(t, filepath.Join(idle.Dir, "b"), "open\n")
	write(t, filepath.Join(idle.Dir, "new/file"), "untracked\n")
	want, status := state(t, idle.Dir), gitIn(t, idle.Dir, "status", "--porcelain")
	head, _ := b.ws.Head(t.Context(), idle)
	if err := syscall.Mkfifo(filepath.Join(odd.Dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	gitIn(t, odd.Dir, "init", "-q", "nested")
	write(t, filepath.Join(odd.Dir, "nested/precious"), "x\n")

	s, err := b.ws.Sweep(t.Context(), func(c string) bool { return c == "busy" })
	if err != nil || s.Freed < 20 {
		t.Errorf("Sweep = %+v, %v", s, err)
	}
	if diff := cmp.Diff([]string{"idle"}, s.Removed); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"odd"}, s.Kept); diff != "" {
		t.Error(diff)
	}
	missing(t, idle.Dir)
	if got := read(t, odd.Dir, "nested/precious") + read(t, busy.Dir, "a"); got != "x\n1\n" {
		t.Errorf("what should stay = %q", got)
	}
	back := b.tree(repo, "idle")
	if !back.Reopened || back.Created || back.Base != idle.Base {
		t.Errorf("reopened: %+v", back)
	}
	if diff := cmp.Diff(want, state(t, back.Dir)); diff != "" {
		t.Errorf("reopened (-want +got):\n%s", diff)
	}
	if got := gitIn(t, back.Dir, "status", "--porcelain"); got != status {
		t.Errorf("status = %q, want %q", got, status)
	}
	if now, _ := b.ws.Head(t.Context(), back); now != head {
		t.Errorf("HEAD = %s, want %s", now, head)
	}
}

func TestHalfMadeWorktreeIsMadeAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n", "b": "1\n"})
	repo := b.clone("acme/web")
	tree := b.tree(repo, "c1")
	remove(t, tree.Dir+".json")
	remove(t, tree.Dir, "a")
	again := b.tree(repo, "c1")
	if got := read(t, again.Dir, "a"); got != "1\n" || again.Base != tree.Base {
		t.Errorf("a = %q, tree %+v", got, again)
	}
}

// The state that a sweep saved is older than what was committed since: it does not come
// back in its place.
func TestAnOldSavedStateDoesNotTakeCommitsBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	tree := b.tree(repo, "c1")
	write(t, filepath.Join(tree.Dir, "a"), "open\n")
	if s, err := b.ws.Sweep(t.Context(), func(string) bool { return false }); err != nil || len(s.Removed) != 1 {
		t.Fatalf("Sweep = %+v, %v", s, err)
	}
	tree = b.tree(repo, "c1")
	write(t, filepath.Join(tree.Dir, "a"), "committed\n")
	gitIn(t, tree.Dir, "commit", "-aqm", "work")
	if err := os.RemoveAll(tree.Dir); err != nil {
		t.Fatal(err)
	}
	tree = b.tree(repo, "c1")
	if got, status := read(t, tree.Dir, "a"), gitIn(t, tree.Dir, "status", "--porcelain"); got != "committed\n" || status != "" {
		t.Errorf("a = %q, status %q; want what was committed, and no change", got, status)
	}
}

// Notes that a power failure left empty are made again from the refs. The worktree is
// whole: notes are the last thing that is written, and the first that goes.
func TestDamagedNotesCostNoWork(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	tree := b.tree(repo, "c1")
	write(t, filepath.Join(tree.Dir, "a"), "mine\n")
	write(t, tree.Dir+".json", "")
	again := b.tree(repo, "c1")
	if got := read(t, again.Dir, "a"); got != "mine\n" || again.Base != tree.Base || again.Created {
		t.Errorf("a = %q, tree %+v", got, again)
	}
	if _, ok, err := b.ws.Existing(t.Context(), repo, "c1"); !ok || err != nil {
		t.Errorf("the notes are not there again: %v, %v", ok, err)
	}
}

// A worktree that vanished and is made again has no notes until it is whole.
func TestAVanishedWorktreeIsNotTakenForWholeWhileItIsMade(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	tree := b.tree(repo, "c1")
	write(t, filepath.Join(tree.Dir, "a"), "mine\n")
	gitIn(t, tree.Dir, "commit", "-aqm", "work")
	blob := strings.TrimSpace(gitIn(t, tree.Dir, "rev-parse", "HEAD:a"))
	object := filepath.Join(repo.Dir, ".git", "objects", blob[:2], blob[2:])
	if err := errors.Join(os.RemoveAll(tree.Dir), os.Rename(object, object+".away")); err != nil {
		t.Fatal(err)
	}
	if tree, err := b.ws.Worktree(t.Context(), repo, "c1"); err == nil {
		t.Fatalf("made %+v without one of its files", tree)
	}
	if err := os.Rename(object+".away", object); err != nil {
		t.Fatal(err)
	}
	if got := read(t, b.tree(repo, "c1").Dir, "a"); got != "mine\n" {
		t.Errorf("a = %q", got)
	}
}

func TestManyConversationsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	n := heavytest.Size(20, 200)
	before := len(b.server.Requests())
	start := time.Now()
	var group sync.WaitGroup
	for i := range n {
		for range 2 { // each twice: the second has to wait for the first
			group.Go(func() {
				tree, err := b.ws.Worktree(t.Context(), repo, fmt.Sprint("c", i))
				if err == nil {
					_, err = b.ws.Checkpoint(t.Context(), tree, "x")
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
	t.Logf("%d worktrees in %v", n, time.Since(start))
	entries, err := os.ReadDir(filepath.Dir(b.tree(repo, "c0").Dir))
	if err != nil || len(entries) != 2*n {
		t.Errorf("%d entries (%v), want %d", len(entries), err, 2*n)
	}
	if got := len(b.server.Requests()) - before; got > n {
		t.Errorf("%d requests: fetches are not shared", got)
	}
}

func TestOtherConversationsGoOnWhileAFetchHangs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	tree := b.tree(repo, "c1")
	release := b.server.Hold()
	defer release()
	before := len(b.server.Requests())
	done := make(chan error, 1)
	go func() {
		_, err := b.ws.Worktree(t.Context(), repo, "c2")
		done <- err
	}()
	waitFor(t, func() bool { return len(b.server.Requests()) > before })
	b.tree(repo, "c1")
	if _, err := b.ws.Checkpoint(t.Context(), tree, "x"); err != nil {
		t.Error(err)
	}
	if _, err := b.ws.Diff(t.Context(), tree); err != nil {
		t.Error(err)
	}
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRemoveTakesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	b.server.Repo("acme/app", map[string]string{"a": "1\n"})
	web, app := b.clone("acme/web"), b.clone("acme/app")
	one, two := b.tree(web, "c"), b.tree(app, "c")
	for _, dir := range []string{b.root, filepath.Dir(web.Dir), filepath.Dir(filepath.Dir(web.Dir)), "/", filepath.Join(b.root, ".tmp"), web.Dir + "/../app", filepath.Join(web.Dir, "a")} {
		if err := b.ws.Remove(t.Context(), codebase.Repo{Dir: dir}); err == nil && dir != "/" {
			t.Logf("Remove(%s) did nothing", dir)
		}
	}
	read(t, one.Dir, "a")
	read(t, two.Dir, "a")
	if err := b.ws.Remove(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	missing(t, web.Dir)
	missing(t, one.Dir)
	read(t, app.Dir, "a")
	read(t, two.Dir, "a")
}

func TestTreesAreThoseOfOneRepository(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	b.server.Repo("acme/api", map[string]string{"a": "1\n"})
	web, api := b.clone("acme/web"), b.clone("acme/api")
	if list, err := b.ws.Trees(t.Context(), web); err != nil || len(list) != 0 {
		t.Errorf("before the first: %+v, %v", list, err)
	}
	first := b.tree(web, conversation)
	b.tree(api, "another")
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(first.Dir+".json", past, past); err != nil {
		t.Fatal(err)
	}
	second := b.tree(web, "0190a5b2-7c3d-7e4f-8a1b-fffffffffff0")
	list, err := b.ws.Trees(t.Context(), web)
	if err != nil || len(list) != 2 || list[0].Conversation != second.Conversation || list[1].Conversation != conversation || list[1].Branch != first.Branch || list[1].Made.Unix() != past.Unix() {
		t.Errorf("the worktrees: %+v, %v", list, err)
	}
	if _, err := b.ws.Sweep(t.Context(), func(c string) bool { return c != conversation }); err != nil {
		t.Fatal(err)
	}
	if list, err := b.ws.Trees(t.Context(), web); err != nil || len(list) != 1 {
		t.Errorf("after one was put away: %+v, %v", list, err)
	}
}

func TestExistingMakesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	if _, ok, err := b.ws.Existing(t.Context(), repo, "c1"); ok || err != nil {
		t.Errorf("before there is one: %v, %v", ok, err)
	}
	made := b.tree(repo, "c1")
	write(t, filepath.Join(made.Dir, "new"), "two\n")
	tree, ok, err := b.ws.Existing(t.Context(), repo, "c1")
	if err != nil || !ok || tree.Dir != made.Dir || tree.Base != made.Base || tree.Branch != made.Branch {
		t.Fatalf("Existing = %+v, %v, %v; made %+v", tree, ok, err, made)
	}
	if d, err := b.ws.Diff(t.Context(), tree); err != nil || d.Files != 1 {
		t.Errorf("Diff = %+v, %v", d, err)
	}
	if err := os.RemoveAll(made.Dir); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := b.ws.Existing(t.Context(), repo, "c1"); ok || err != nil {
		t.Errorf("after it was deleted: %v, %v", ok, err)
	}
	missing(t, made.Dir, "a")
	if tree := b.tree(repo, "c1"); !strings.Contains(tree.Note, "what changed since is lost") {
		t.Errorf("the loss of a file is not told: %q", tree.Note)
	}
	if tree := b.tree(repo, "c1"); tree.Note != "" {
		t.Errorf("it is told again: %q", tree.Note)
	}
}

// Two conversations may have the same short id. Releasing one leaves the other's worktree.
func TestReleaseTakesNoOtherConversationsWorktree(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	const mine, other = "01900000-0000-7000-8000-0123456789ab", "01911111-1111-7111-8111-0123456789ab"
	tree := b.tree(repo, mine)
	write(t, filepath.Join(tree.Dir, "a"), "mine\n")
	if gone, err := b.ws.Release(t.Context(), repo, other); err != nil || !gone {
		t.Errorf("releasing what is not there: %v, %v", gone, err)
	}
	if got := read(t, tree.Dir, "a"); got != "mine\n" {
		t.Errorf("a = %q", got)
	}
}

// A file as large as a checkpoint saves is saved; a larger one keeps its worktree from
// being put away.
func TestTheLargestFileThatIsSaved(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *codebase.Config) { c.MaxFile = 10 })
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	tree := b.tree(repo, "c1")
	for size, unsaved := range map[int]int{10: 0, 11: 1} {
		write(t, filepath.Join(tree.Dir, "new"), strings.Repeat("x", size))
		if saved, err := b.ws.Checkpoint(t.Context(), tree, "x"); err != nil || len(saved.Unsaved) != unsaved {
			t.Errorf("%d bytes: unsaved %q, %v", size, saved.Unsaved, err)
		}
	}
}

// TestIgnoredAtTheCheckpointStays: what a .gitignore left out at a checkpoint is in none,
// so it may have been there, whatever a turn did to the .gitignore.
func TestIgnoredAtTheCheckpointStays(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(dir string){
		"other rules": func(dir string) { write(t, filepath.Join(dir, ".gitignore"), "*.tmp\n") },
		"no rules":    func(dir string) { remove(t, dir, ".gitignore") },
		"rules in a folder": func(dir string) {
			write(t, filepath.Join(dir, ".gitignore"), "*.tmp\n")
			write(t, filepath.Join(dir, "modules/x/.gitignore"), "made\n")
			write(t, filepath.Join(dir, "new/.gitignore"), "b\n")
		},
	} {
		b := setup(t)
		b.server.Repo("acme/web", map[string]string{"a": "1\n", ".gitignore": ".env\nmodules/\n"})
		tree := b.tree(b.clone("acme/web"), "c1")
		write(t, filepath.Join(tree.Dir, ".env"), "precious\n")
		write(t, filepath.Join(tree.Dir, "modules/x/y"), "installed\n")
		saved, err := b.ws.Checkpoint(t.Context(), tree, "x")
		if err != nil {
			t.Fatal(err)
		}
		want := state(t, tree.Dir)
		change(tree.Dir)
		write(t, filepath.Join(tree.Dir, "new/b"), "new\n")
		r, err := b.ws.Restore(t.Context(), tree, saved.Ref)
		got := state(t, tree.Dir)
		if name == "rules in a folder" {
			want["modules/x/.gitignore"], want["new/b"] = got["modules/x/.gitignore"], got["new/b"] // which are named
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: Restore: %v (-want +got):\n%s", name, err, diff)
		}
		if text := strings.Join(r.NotUndone, "\n"); !strings.Contains(text, ".env (ignored by git)\nmodules/ (ignored by git)") || got["new/b"] != "" && !strings.Contains(text, "new/b (ignored by git)") {
			t.Errorf("%s: NotUndone = %q", name, r.NotUndone)
		}
	}
}

// TestWhatGitRefusesKeepsNothingElseOut: a single file that git does not take was enough for
// that no state could be saved, compared or gone back to any more.
func TestWhatGitRefusesKeepsNothingElseOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(dir string)
		unsaved []string
	}{
		"a link in the place of a moved folder": {change: func(dir string) {
			if err := errors.Join(os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "moved")), os.Symlink("moved", filepath.Join(dir, "d"))); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "moved/x"), "edited\n")
		}},
		"a text in another encoding than .gitattributes says": {change: func(dir string) {
			write(t, filepath.Join(dir, ".gitattributes"), "*.ps1 working-tree-encoding=UTF-16\n")
			write(t, filepath.Join(dir, "one.ps1"), "no UTF-16\n")
			write(t, filepath.Join(dir, "two.ps1"), "no UTF-16\n")
			write(t, filepath.Join(dir, "three.ps1"), "\xff\xfea\x00\n\x00")
		}, unsaved: []string{"one.ps1", "two.ps1"}},
		"names like that of .git": {change: func(dir string) {
			write(t, filepath.Join(dir, ".GIT/config"), "x\n")
			write(t, filepath.Join(dir, "git~1"), "x\n")
		}, unsaved: []string{".GIT/config", "git~1"}},
	} {
		b := setup(t)
		b.server.Repo("acme/web", map[string]string{"a": "1\n", "d/x": "1\n", "d/y": "1\n"})
		tree := b.tree(b.clone("acme/web"), "c1")
		before, err := b.ws.Checkpoint(t.Context(), tree, "x")
		if err != nil {
			t.Fatal(err)
		}
		want := state(t, tree.Dir)
		c.change(tree.Dir)
		write(t, filepath.Join(tree.Dir, "a"), "2\n")
		d, err := b.ws.Diff(t.Context(), tree)
		if diff := cmp.Diff(c.unsaved, d.Unsaved); err != nil || diff != "" || !strings.Contains(string(d.Patch), "\n+2\n") {
			t.Errorf("%s: Diff: %v, %s\n%s", name, err, d.Patch, diff)
		}
		if s, err := b.ws.Sweep(t.Context(), func(string) bool { return len(c.unsaved) == 0 }); err != nil || len(s.Removed) > 0 {
			t.Errorf("%s: Sweep = %+v, %v", name, s, err)
		}
		r, err := b.ws.Restore(t.Context(), tree, before.Ref)
		got := state(t, tree.Dir)
		for _, name := range c.unsaved {
			if got[name] == "" || !strings.Contains(strings.Join(r.NotUndone, "\n"), name+" (") {
				t.Errorf("%s is lost or not named: %q", name, r.NotUndone)
			}
			delete(got, name)
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: Restore: %v (-want +got):\n%s", name, err, diff)
		}
	}
}
