package codebase_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"remote-agent/internal/codebase"
	"remote-agent/internal/codebase/gittest"
	"remote-agent/internal/fault"
)

func TestMain(m *testing.M) {
	if root := os.Getenv(cloneIn); root != "" {
		os.Exit(cloneAndDie(root))
	}
	goleak.VerifyTestMain(m)
}

type bundle struct {
	t      testing.TB
	server *gittest.Server
	ws     *codebase.Workspace
	root   string
}

func setup(tb testing.TB, change ...func(*codebase.Config)) *bundle {
	tb.Helper()
	b := &bundle{t: tb, server: gittest.NewServer(tb), root: filepath.Join(realTemp(tb), "ws")}
	cfg := codebase.Config{Root: b.root, AllowedHosts: []string{b.server.Host()}}
	for _, f := range change {
		f(&cfg)
	}
	b.ws = open(tb, cfg)
	return b
}

func open(tb testing.TB, cfg codebase.Config) *codebase.Workspace {
	tb.Helper()
	ws, err := codebase.New(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := ws.Close(); err != nil {
			tb.Error(err)
		}
	})
	return ws
}

func realTemp(tb testing.TB) string {
	tb.Helper()
	dir, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}

func (b *bundle) clone(name string) codebase.Repo {
	b.t.Helper()
	repo, err := b.ws.Clone(b.t.Context(), b.server.URL(name), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return repo
}

func (b *bundle) tree(repo codebase.Repo, conversation string) codebase.Tree {
	b.t.Helper()
	tree, err := b.ws.Worktree(b.t.Context(), repo, conversation)
	if err != nil {
		b.t.Fatal(err)
	}
	return tree
}

func write(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
}

func read(tb testing.TB, elements ...string) string {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

func missing(tb testing.TB, elements ...string) {
	tb.Helper()
	if _, err := os.Lstat(filepath.Join(elements...)); !os.IsNotExist(err) {
		tb.Errorf("%s is there (%v)", filepath.Join(elements...), err)
	}
}

// leftovers lists what is below the workspace besides the directories it always
// has and its locks.
func (b *bundle) leftovers() []string {
	b.t.Helper()
	var out []string
	err := filepath.WalkDir(b.root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(b.root, path)
		if rel == ".locks" {
			return filepath.SkipDir
		}
		if rel != "." && rel != ".tmp" && rel != ".plain" && rel != ".worktrees" {
			out = append(out, rel)
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func TestCloneChecksOutAndDetects(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"README.md": "hello\n", ".claude/commands/x.md": "do it\n"})
	b.server.Repo("acme/app", map[string]string{".codex/config.toml": "x\n", ".claude/a": "x\n"})
	repo, err := b.ws.Clone(t.Context(), "acme/web", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, repo.Dir, "README.md"); got != "hello\n" {
		t.Errorf("README.md = %q", got)
	}
	if want := filepath.Join(b.root, strings.ReplaceAll(b.server.Host(), ":", "+"), "acme", "web"); repo.Dir != want {
		t.Errorf("Dir = %s, want %s", repo.Dir, want)
	}
	if repo.URL != b.server.URL("acme/web") || repo.Existing {
		t.Errorf("repo = %+v", repo)
	}
	if got := b.ws.Detect(repo); got != "claude" {
		t.Errorf("Detect = %q", got)
	}
	if got := b.ws.Detect(b.clone("acme/app")); got != "codex" {
		t.Errorf("Detect = %q", got)
	}
	again, err := b.ws.Clone(t.Context(), b.server.URL("acme/web")+".git/", nil)
	if err != nil || !again.Existing || again.Dir != repo.Dir {
		t.Errorf("second clone: %+v, %v", again, err)
	}
	opened, err := b.ws.Open(t.Context(), repo.Dir)
	if err != nil || opened != repo {
		t.Errorf("Open = %+v, %v", opened, err)
	}
	if branch, err := b.ws.DefaultBranch(t.Context(), repo); err != nil || branch != "main" {
		t.Errorf("DefaultBranch = %q, %v", branch, err)
	}
	if err := b.ws.Remove(t.Context(), repo); err != nil {
		t.Fatal(err)
	}
	missing(t, repo.Dir)
}

func TestFailedCloneLeavesNothing(t *testing.T) {
	t.Parallel()
	canceled := func(ctx context.Context, b *bundle) error {
		release := b.server.Hold()
		defer release()
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() {
			_, err := b.ws.Clone(ctx, "acme/web", nil)
			done <- err
		}()
		waitFor(b.t, func() bool { return len(b.server.Requests()) > 0 })
		cancel()
		return <-done
	}
	clone := func(address string) func(context.Context, *bundle) error {
		return func(ctx context.Context, b *bundle) error {
			_, err := b.ws.Clone(ctx, address, nil)
			return err
		}
	}
	cases := map[string]struct {
		do     func(context.Context, *bundle) error
		change func(*bundle)
		config func(*codebase.Config)
		want   fault.Kind
	}{
		"missing":      {do: clone("acme/none"), want: fault.NotFound},
		"private":      {do: clone("acme/web"), change: func(b *bundle) { b.server.RequireAuth("u", "p") }, want: fault.NotFound},
		"wrong token":  {do: clone("acme/web"), change: func(b *bundle) { b.server.RequireAuth("u", "p") }, config: func(c *codebase.Config) { c.Token = func(string) string { return "wrong-token" } }, want: fault.Unauthorized},
		"out of reach": {do: clone("acme/web"), change: func(b *bundle) { b.server.Close() }, want: fault.Unavailable},
		"redirect":     {do: clone("acme/web"), change: func(b *bundle) { b.server.Redirect("acme/web", b.server.URL("acme/other")) }, want: fault.Invalid},
		"too large":    {do: clone("acme/web"), config: func(c *codebase.Config) { c.MaxBytes = 2000 }, want: fault.Exhausted},
		"zip bomb":     {do: clone("acme/bomb"), config: func(c *codebase.Config) { c.MaxBytes = 10 << 20 }, want: fault.Exhausted},
		"canceled":     {do: canceled, want: fault.Canceled},
		"not allowed":  {do: clone("https://github.com/acme/web"), want: fault.Forbidden},
		"no address":   {do: clone("acme"), want: fault.Invalid},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(cfg *codebase.Config) {
				if c.config != nil {
					c.config(cfg)
				}
			})
			b.server.Repo("acme/web", map[string]string{"a": noise(20000)})
			b.server.Repo("acme/bomb", map[string]string{"zero": strings.Repeat("\x00", 11<<20)})
			if c.change != nil {
				c.change(b)
			}
			err := c.do(t.Context(), b)
			if !fault.Is(err, c.want) {
				t.Errorf("kind %s (%v), want %s", fault.KindOf(err), err, c.want)
			}
			if name == "redirect" && !strings.Contains(fault.Public(err), "renamed") {
				t.Errorf("it does not say why: %s", fault.Public(err))
			}
			if left := b.leftovers(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if err != nil && strings.Contains(err.Error(), "wrong-token") {
				t.Errorf("the error holds the token: %v", err)
			}
		})
	}
}

func TestProgressIsReported(t *testing.T) {
	t.Parallel()
	b := setup(t)
	files := map[string]string{}
	for i := range 200 {
		files["f"+string(rune('a'+i%26))+strings.Repeat("x", i/26)] = noise(50 + i)
	}
	b.server.Repo("acme/web", files)
	stages := map[string]int{}
	if _, err := b.ws.Clone(t.Context(), "acme/web", func(p codebase.Progress) { stages[p.Stage] = p.Percent }); err != nil {
		t.Fatal(err)
	}
	if stages["Receiving objects"] != 100 {
		t.Errorf("stages: %v", stages)
	}
}

func TestTokenGoesToItsHostOnlyAndIsNotKept(t *testing.T) {
	t.Parallel()
	const token = "ghs_0123456789abcdefghijklmnopqrstuv"
	b := setup(t, func(c *codebase.Config) { c.Token = func(string) string { return token } })
	other := gittest.NewServer(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	b.server.RequireAuth("x-access-token", token)
	repo := b.clone("acme/web")
	b.tree(repo, "c1")
	if _, err := b.ws.Sync(t.Context(), repo); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(b.root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(read(t, path), token) {
			t.Errorf("the token is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.server.Redirect("acme/web", other.Repo("evil/web", map[string]string{"a": "1\n"}))
	if _, err := b.ws.Sync(t.Context(), repo); err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("Sync over a redirect: %v", err)
	}
	if got := other.Requests(); len(got) > 0 {
		t.Errorf("the other server was asked: %+v", got)
	}
}

func TestSyncMovesForwardOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n", "b": "1\n"})
	repo := b.clone("acme/web")
	tip := b.server.Commit("acme/web", map[string]string{"a": "2\n"})
	b.server.CommitTo("acme/web", "topic", []gittest.Entry{{Path: "t", Data: "t"}})
	got, err := b.ws.Sync(t.Context(), repo)
	if err != nil || got != (codebase.Synced{Branch: "main", Commit: tip, Changed: true}) {
		t.Errorf("Sync = %+v, %v", got, err)
	}
	if text := read(t, repo.Dir, "a"); text != "2\n" {
		t.Errorf("a = %q", text)
	}
	write(t, filepath.Join(repo.Dir, "b"), "mine\n")
	b.server.Commit("acme/web", map[string]string{"b": "theirs\n"})
	got, err = b.ws.Sync(t.Context(), repo)
	if err != nil || got.Note == "" || !got.Changed {
		t.Errorf("Sync over changes = %+v, %v", got, err)
	}
	if text := read(t, repo.Dir, "b"); text != "mine\n" {
		t.Errorf("b = %q: a change was overwritten", text)
	}
}

func TestDefaultBranchIsRenamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	tip := b.server.CommitTo("acme/web", "trunk", []gittest.Entry{{Path: "a", Data: "2\n"}})
	b.server.Run("acme/web", nil, "symbolic-ref", "HEAD", "refs/heads/trunk")
	b.server.Run("acme/web", nil, "branch", "-D", "main")
	if tree := b.tree(repo, "c1"); tree.Base != tip || tree.Note != "" {
		t.Errorf("tree = %+v, want base %s", tree, tip)
	}
	got, err := b.ws.Sync(t.Context(), repo)
	if err != nil || got.Branch != "trunk" || got.Note == "" {
		t.Errorf("Sync = %+v, %v", got, err)
	}
}

func TestEmptyRepository(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", nil)
	repo := b.clone("acme/web")
	if _, err := b.ws.Worktree(t.Context(), repo, "c1"); !fault.Is(err, fault.NotFound) || !strings.Contains(fault.Public(err), "Make a first one there") {
		t.Errorf("Worktree: %v", err)
	}
	b.server.Commit("acme/web", map[string]string{"a": "1\n"})
	b.tree(repo, "c0")
	if got, err := b.ws.Sync(t.Context(), repo); err != nil || got.Note != "" {
		t.Errorf("Sync = %+v, %v", got, err)
	}
	if text := read(t, repo.Dir, "a"); text != "1\n" {
		t.Errorf("a = %q", text)
	}
	b.tree(repo, "c1")
}

// TestClonesOfOneAddressWait has two workspaces on one directory, as the daemon
// and the command line are.
func TestClonesOfOneAddressWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := open(t, codebase.Config{Root: b.root, AllowedHosts: []string{b.server.Host()}})
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	results := make(chan codebase.Repo, 8)
	for i := range cap(results) {
		ws := b.ws
		if i%2 == 0 {
			ws = other
		}
		go func() {
			repo, err := ws.Clone(t.Context(), "acme/web", nil)
			if err != nil {
				t.Error(err)
			}
			results <- repo
		}()
	}
	made := 0
	for range cap(results) {
		if repo := <-results; !repo.Existing {
			made++
		}
	}
	if made != 1 {
		t.Errorf("cloned %d times", made)
	}
}

func TestWhatACrashLeftIsCleared(t *testing.T) {
	t.Parallel()
	b := setup(t)
	write(t, filepath.Join(b.root, ".tmp/dead/repo/.git/objects/pack/tmp_pack"), "x")
	write(t, filepath.Join(b.root, ".tmp/dead.lock"), "")
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	release := b.server.Hold()
	defer release()
	done := make(chan error, 1)
	go func() {
		_, err := b.ws.Clone(t.Context(), "acme/web", nil)
		done <- err
	}()
	waitFor(t, func() bool { return len(b.server.Requests()) > 0 })
	// A clone that is under way is left alone by another process that starts.
	open(t, codebase.Config{Root: b.root, AllowedHosts: []string{b.server.Host()}})
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(filepath.Join(b.root, ".tmp")); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
