package codebase_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"remote-agent/internal/codebase"
	"remote-agent/internal/codebase/gittest"
)

// cloneIn is set for a process that clones acme/web of cloneFrom into the workspace that
// it names.
const cloneIn, cloneFrom = "TEST_CLONE_IN", "TEST_CLONE_FROM"

func cloneAndDie(root string) int {
	ctx := context.Background()
	ws, err := codebase.New(ctx, codebase.Config{Root: root, AllowedHosts: []string{os.Getenv(cloneFrom)}})
	if err == nil {
		_, err = ws.Clone(ctx, "acme/web", nil)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// killedAt has another process clone acme/web, and kills it when it sends its nth
// request.
func (b *bundle) killedAt(nth int32) {
	b.t.Helper()
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.CommandContext(b.t.Context(), self) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), cloneIn+"="+b.root, cloneFrom+"="+b.server.Host())
	cmd.Stderr = os.Stderr
	var seen atomic.Int32
	started := make(chan struct{})
	b.server.Watch(func(gittest.Request) {
		if seen.Add(1) == nth {
			<-started
			_ = cmd.Process.Signal(syscall.SIGKILL)
		}
	})
	defer b.server.Watch(nil)
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	close(started)
	if err := cmd.Wait(); err == nil || seen.Load() < nth {
		b.t.Fatalf("the process was not killed: %v after %d requests", err, seen.Load())
	}
}

// history gives acme/web n commits, each with more in one file.
func (b *bundle) history(n int) {
	b.t.Helper()
	b.server.Repo("acme/web", map[string]string{"README.md": "web\n"})
	var in strings.Builder
	for i := range n {
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter T <t@example.org> %d +0000\ndata 1\nx\n", 1_700_000_000+i)
		if i == 0 {
			in.WriteString("from refs/heads/main^0\n")
		}
		text := noise(40)
		fmt.Fprintf(&in, "M 100644 inline f%d\ndata %d\n%s\n", i%7, len(text), text)
	}
	b.server.Run("acme/web", strings.NewReader(in.String()), "fast-import", "--quiet")
}

func (b *bundle) parts(name string) []string {
	b.t.Helper()
	found, err := filepath.Glob(filepath.Join(b.root, ".tmp", "clone-*", name))
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

// mark puts a file into the .git of a clone that is being made. What it returns says
// whether the clone has that file: the number of a directory tells nothing, for a file
// system may give it to the next one that is made.
func mark(t *testing.T, gitDir string) func(clone string) bool {
	t.Helper()
	const name = "marked-by-a-test"
	write(t, filepath.Join(gitDir, name), "")
	return func(clone string) bool {
		_, err := os.Stat(filepath.Join(clone, ".git", name))
		return err == nil
	}
}

func TestKilledCloneGoesOn(t *testing.T) {
	t.Parallel()
	const commits = 900
	b := setup(t)
	b.history(commits)

	b.killedAt(3) // the history is on its way
	if got := b.parts("begun"); len(got) != 1 {
		t.Fatalf("it is not noted that a clone has begun: %v", got)
	}
	if got := b.parts("repo"); len(got) != 0 {
		t.Fatalf("half a clone is taken for a part of it: %v", got)
	}
	b.killedAt(5) // the newest files are there, more history is on its way
	first := b.parts("repo/.git/shallow")
	if len(first) != 1 {
		t.Fatalf("the part that was complete is gone: %v", b.leftovers())
	}
	marked := mark(t, filepath.Dir(first[0]))
	// As a git leaves it that was killed.
	write(t, first[0]+".lock", "")
	write(t, filepath.Join(filepath.Dir(first[0]), "index.lock"), "")
	write(t, filepath.Join(filepath.Dir(first[0]), "..", "f1"), "half of")
	write(t, filepath.Join(filepath.Dir(first[0]), "objects", "pack", "tmp_pack_abc"), "half of")
	// And a branch whose name looks like that of such a file.
	gitIn(t, filepath.Dir(first[0]), "update-ref", "refs/remotes/origin/tmp_fix", "refs/remotes/origin/main")

	repo := b.clone("acme/web")
	if !marked(repo.Dir) {
		t.Error("it began anew")
	}
	missing(t, repo.Dir, ".git/shallow")
	missing(t, repo.Dir, ".git/objects/pack/tmp_pack_abc")
	git := func(args ...string) string {
		return strings.TrimSpace(b.server.Run("", nil, append([]string{"-C", repo.Dir}, args...)...))
	}
	if got := git("rev-list", "--count", "HEAD"); got != fmt.Sprint(commits+1) {
		t.Errorf("it has %s commits", got)
	}
	if got := git("for-each-ref", "--format=%(refname)", "refs/remotes/origin/tmp_fix"); got == "" {
		t.Error("the branch tmp_fix is gone")
	}
	if got := git("status", "--porcelain"); got != "" {
		t.Errorf("its files are not those of the branch:\n%s", got)
	}
	if got := git("symbolic-ref", "HEAD"); got != "refs/heads/main" {
		t.Errorf("HEAD is %s", got)
	}
	if got := git("config", "core.hooksPath"); got != "/dev/null" {
		t.Errorf("core.hooksPath is %q", got)
	}
	if left, err := os.ReadDir(filepath.Join(b.root, ".tmp")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestUnfinishedCloneIsKeptForADay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.history(900)
	b.killedAt(3)
	b.killedAt(5)
	dir := filepath.Dir(b.parts("repo")[0])
	again := func() { open(t, codebase.Config{Root: b.root, AllowedHosts: []string{b.server.Host()}}) }
	again()
	if len(b.parts("repo")) != 1 {
		t.Error("it is gone at the next start")
	}
	old := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(dir, old, old); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { again(); return len(b.parts("")) == 0 }) // the killed one's git may still hold the lock
}

// TestOldPartsAreNotContinued has the next clone of the same repository find parts that
// nobody has continued for more than a day, and one that somebody has.
func TestOldPartsAreNotContinued(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]bool{"Old": true, "New": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.history(900)
			b.killedAt(3)
			b.killedAt(5)
			part := b.parts("repo/.git")[0]
			marked := mark(t, part)
			if old {
				at := time.Now().Add(-25 * time.Hour)
				if err := os.Chtimes(filepath.Join(part, "..", ".."), at, at); err != nil {
					t.Fatal(err)
				}
			}
			if continued := marked(b.clone("acme/web").Dir); continued == old {
				t.Errorf("the parts were continued: %t", continued)
			}
		})
	}
}
