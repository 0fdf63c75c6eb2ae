package codebase_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/codebase"
	"remote-agent/internal/codebase/confine"
	"remote-agent/internal/codebase/gittest"
	"remote-agent/internal/fault"
	"remote-agent/internal/heavytest"
)

// recordingGit makes a program that stands in for git and notes its arguments,
// and returns its path and a function that reads the notes.
func recordingGit(tb testing.TB) (path string, calls func() []string) {
	tb.Helper()
	dir := realTemp(tb)
	log := filepath.Join(dir, "calls")
	path = filepath.Join(dir, "git")
	script := fmt.Sprintf("#!/bin/sh\nprintf '%%s ' \"$@\" >> '%s'\necho >> '%s'\nexec '%s' \"$@\"\n", log, log, gittest.Git(tb))
	// A process forked meanwhile would hold the file open for writing, and then it
	// cannot be run.
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(script), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		tb.Fatal(err)
	}
	return path, func() []string {
		data, err := os.ReadFile(log)
		if err != nil && !os.IsNotExist(err) {
			tb.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(data)), "\n")
	}
}

// TestRefusedAddressStartsNoProcess is S21: what is not an allowed https address
// never reaches git.
func TestRefusedAddressStartsNoProcess(t *testing.T) {
	t.Parallel()
	git, calls := recordingGit(t)
	b := setup(t, func(c *codebase.Config) { c.Git.Path = git })
	canary := filepath.Join(b.root, "canary")
	before := calls()
	for _, address := range []string{
		"ext::sh -c touch% " + canary, "ext::sh", "fd::17", "file:///etc", "/etc", "./x", "../x", "~/x",
		"ssh://-oProxyCommand=touch%20" + canary + "/x/y", "ssh://git@github.com/o/r", "git@github.com:o/r", "git://github.com/o/r",
		"--upload-pack=touch " + canary, "-u", "--config=core.fsmonitor=x",
		"http://169.254.169.254/latest/meta-data", "http://127.0.0.1/o/r", "https://127.0.0.1/o/r", "https://[::1]/o/r",
		"https://2130706433/o/r", "https://0x7f.1/o/r", "https://localhost/o/r", "https://user:pass@" + b.server.Host() + "/o/r",
		"https://" + b.server.Host() + "/o/r\n--upload-pack=x", "https://github.com.evil.example/o/r",
	} {
		_, err := b.ws.Clone(t.Context(), address, nil)
		if k := fault.KindOf(err); k != fault.Invalid && k != fault.Forbidden {
			t.Errorf("%q: %v", address, err)
		}
	}
	if diff := cmp.Diff(before, calls()); diff != "" {
		t.Errorf("git ran:\n%s", diff)
	}
	if left := b.leftovers(); len(left) > 0 || len(b.server.Requests()) > 0 {
		t.Errorf("left %v, requests %v", left, b.server.Requests())
	}
}

// TestNoCredentialInArguments looks at every argument of every git that runs.
func TestNoCredentialInArguments(t *testing.T) {
	t.Parallel()
	const token = "ghs_0123456789abcdefghijklmnopqrstuv"
	git, calls := recordingGit(t)
	b := setup(t, func(c *codebase.Config) {
		c.Git.Path, c.Token = git, func(string) string { return token }
	})
	b.server.RequireAuth("x-access-token", token)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	b.tree(repo, "c1")
	all := strings.Join(calls(), "\n")
	if !strings.Contains(all, "clone") || strings.Contains(all, token) || strings.Contains(all, "Authorization") || strings.Contains(all, "http.proxy") {
		t.Errorf("arguments:\n%s", all)
	}
}

// hostile makes a repository that holds everything of S22. Whatever runs
// something touches the canary.
func hostile(tb testing.TB, s *gittest.Server, canary string) {
	tb.Helper()
	run := "touch " + canary
	s.Repo("evil/web", map[string]string{"a": "1\n"})
	sub := s.Run("evil/web", nil, "rev-parse", "main")
	s.CommitTo("evil/web", "main", []gittest.Entry{
		{Path: "passwd", Mode: gittest.Symlink, Data: "/etc/passwd"},
		{Path: "root", Mode: gittest.Symlink, Data: "/"},
		{Path: "up", Mode: gittest.Symlink, Data: "../../.."},
		{Path: ".claude", Mode: gittest.Symlink, Data: "/etc"},
		{Path: "hooks/post-checkout", Mode: gittest.Executable, Data: "#!/bin/sh\n" + run + "\n"},
		{Path: ".githooks/post-checkout", Mode: gittest.Executable, Data: "#!/bin/sh\n" + run + "\n"},
		{Path: ".gitconfig", Data: "[core]\n\tfsmonitor = " + run + "\n\thooksPath = .githooks\n"},
		{Path: ".gitattributes", Data: "* filter=evil diff=evil merge=evil\n*.txt filter=lfs\n"},
		{Path: ".gitmodules", Data: "[submodule \"s\"]\n\tpath = s\n\turl = ext::sh -c " + run + "\n\tupdate = !" + run + "\n\tfetchRecurseSubmodules = true\n"},
		{Path: "s", Mode: gittest.Submodule, Data: strings.TrimSpace(sub)},
		{Path: "x.txt", Data: "text\n"},
	})
}

func TestHostileRepositoryRunsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	canary := filepath.Join(realTemp(t), "canary")
	hostile(t, b.server, canary)
	repo := b.clone("evil/web")
	tree := b.tree(repo, "c1")
	for _, dir := range []string{repo.Dir, tree.Dir} {
		for _, link := range []string{"passwd", "root", "up", ".claude"} {
			if info, err := os.Lstat(filepath.Join(dir, link)); err != nil || !info.Mode().IsRegular() {
				t.Errorf("%s is not a plain file: %v, %v", link, info, err)
			}
		}
	}
	if got := b.ws.Detect(repo); got != "" {
		t.Errorf("Detect followed a link: %q", got)
	}
	// The assistant, obedient to the repository, makes it worse.
	gitFile := filepath.Join(tree.Dir, ".git")
	evil := "[core]\n\tfsmonitor = touch " + canary + "\n\trepositoryformatversion = 0\n[filter \"evil\"]\n\tclean = touch " + canary + "\n\tsmudge = touch " + canary + "\n"
	for _, nested := range []string{"s", "nested"} {
		gitIn(t, tree.Dir, "init", "-q", nested)
		gitIn(t, filepath.Join(tree.Dir, nested), "commit", "-q", "--allow-empty", "-m", "x")
		write(t, filepath.Join(tree.Dir, nested, "f"), "x\n")
		write(t, filepath.Join(tree.Dir, nested, ".git/config"), evil)
	}
	remove(t, gitFile)
	gitIn(t, tree.Dir, "init", "-q", "--separate-git-dir="+filepath.Join(tree.Dir, "fake"), ".")
	write(t, filepath.Join(tree.Dir, "fake/config"), evil)
	write(t, filepath.Join(tree.Dir, "fake/hooks/reference-transaction"), "#!/bin/sh\ntouch "+canary+"\n")
	if err := syscall.Mkfifo(filepath.Join(tree.Dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	remove(t, tree.Dir, "a")
	if err := syscall.Mkfifo(filepath.Join(tree.Dir, "a"), 0o644); err != nil {
		t.Fatal(err)
	}
	saved, err := b.ws.Checkpoint(t.Context(), tree, "x")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(tree.Dir, "x.txt"), "changed\n")
	if _, err := b.ws.Diff(t.Context(), tree); err != nil {
		t.Error(err)
	}
	if _, err := b.ws.Restore(t.Context(), tree, saved.Ref); err != nil {
		t.Error(err)
	}
	if got := read(t, tree.Dir, "x.txt"); got != "text\n" {
		t.Errorf("x.txt = %q", got)
	}
	if _, err := b.ws.Sync(t.Context(), repo); err != nil {
		t.Error(err)
	}
	if s, err := b.ws.Sweep(t.Context(), func(string) bool { return false }); err != nil || len(s.Kept) != 1 {
		t.Errorf("Sweep = %+v, %v", s, err)
	}
	missing(t, canary)
}

// TestFinding1GitFileIsPutBack changes the file .git of a worktree, which nothing
// here reads, and expects the next turn to find it as it was.
func TestFinding1GitFileIsPutBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	tree := b.tree(repo, "c1")
	file := filepath.Join(tree.Dir, ".git")
	want, outside := read(t, file), realTemp(t)
	write(t, filepath.Join(outside, "keep"), "kept\n")
	for name, change := range map[string]func() error{
		"removed":   func() error { return nil },
		"other":     func() error { return os.WriteFile(file, []byte("gitdir: "+outside+"/x/y\n"), 0o644) },
		"link":      func() error { return os.Symlink(outside, file) },
		"file link": func() error { return os.Symlink(filepath.Join(outside, "keep"), file) },
		"folder":    func() error { return os.MkdirAll(filepath.Join(file, "objects", "info"), 0o755) },
	} {
		remove(t, file)
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if got := b.tree(repo, "c1"); got.GitData() != filepath.Join(repo.Dir, ".git") || got.Dir != tree.Dir {
			t.Errorf("%s: %s, %s", name, got.Dir, got.GitData())
		}
		if got := read(t, file); got != want {
			t.Errorf("%s: .git = %q", name, got)
		}
		if got := read(t, outside, "keep"); got != "kept\n" {
			t.Errorf("%s: a file outside = %q", name, got)
		}
	}
}

// TestGitDataOfLocalFolders: a folder whose .git names another place gets none.
func TestGitDataOfLocalFolders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plain, whole, elsewhere := filepath.Join(realTemp(t), "plain"), filepath.Join(realTemp(t), "whole"), filepath.Join(realTemp(t), "elsewhere")
	write(t, filepath.Join(plain, "a"), "1\n")
	write(t, filepath.Join(whole, "a"), "1\n")
	write(t, filepath.Join(elsewhere, "a"), "1\n")
	gitIn(t, whole, "init", "-q")
	gitIn(t, elsewhere, "init", "-q", "--separate-git-dir="+filepath.Join(realTemp(t), "git"))
	for dir, want := range map[string]func(codebase.Tree) bool{
		plain:     func(t codebase.Tree) bool { return strings.HasPrefix(t.GitData(), filepath.Join(b.root, ".plain")+"/") },
		whole:     func(t codebase.Tree) bool { return t.GitData() == filepath.Join(whole, ".git") },
		elsewhere: func(t codebase.Tree) bool { return t.GitData() == "" },
	} {
		if dir != plain {
			gitIn(t, dir, "add", ".")
			gitIn(t, dir, "commit", "-q", "-m", "x")
		}
		repo, err := b.ws.AddLocal(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if tree := b.tree(repo, "c1"); !want(tree) {
			t.Errorf("%s: git's data in %q", dir, tree.GitData())
		}
	}
}

func TestReadsStayInTheTree(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n", "sub/dir/x": "1\n"})
	tree := b.tree(b.clone("acme/web"), "c1")
	write(t, tree.Dir+"-evil/secret", "secret\n")
	for link, target := range map[string]string{"out": "/etc", "near": tree.Dir + "-evil", "rel": "../" + filepath.Base(tree.Dir) + "-evil", "in": "sub"} {
		if err := os.Symlink(target, filepath.Join(tree.Dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(tree.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for path, want := range map[string]string{"sub": "sub", "sub/": "sub", "./sub/dir": "sub/dir", "": ".", ".": ".", "in/dir": "in/dir"} {
		if got, err := confine.Dir(root, path); err != nil || got != want {
			t.Errorf("Dir(%q) = %q, %v", path, got, err)
		}
	}
	for _, path := range []string{"out", "near", "rel", "out/ssl", "..", "sub/../..", "/etc", "~", "~root", "a", "none", "sub\x00", ".git", "sub/.GIT", "../" + filepath.Base(tree.Dir) + "-evil", tree.Dir + "-evil", tree.Dir} {
		got, err := confine.Dir(root, path)
		if k := fault.KindOf(err); (k != fault.Invalid && k != fault.NotFound) || got != "" {
			t.Errorf("Dir(%q) = %q, %v", path, got, err)
		}
		if strings.Contains(fault.Public(err), b.root) && !strings.Contains(path, b.root) {
			t.Errorf("Dir(%q) tells a path: %s", path, fault.Public(err))
		}
	}
	if _, err := confine.ReadFile(root, "near/secret", 100); err == nil {
		t.Error("read a file outside")
	}
}

func TestManyFiles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/big", nil)
	b.server.CommitTo("acme/big", "main", manyFiles(heavytest.Size(5000, 100_000)))
	b.clone("acme/big")
}

func manyFiles(n int) []gittest.Entry {
	entries := make([]gittest.Entry, n)
	for i := range entries {
		entries[i] = gittest.Entry{Path: fmt.Sprintf("d%d/e%d/f%d.txt", i%100, i/100%50, i), Data: fmt.Sprintf("file %d\n", i)}
	}
	return entries
}

// BenchmarkWorktree measures a worktree of 50,000 files, from the first need to
// ready, with a fetch. It has to stay below three seconds.
func BenchmarkWorktree(bm *testing.B) {
	b := setup(bm)
	b.server.Repo("acme/big", nil)
	b.server.CommitTo("acme/big", "main", manyFiles(50_000))
	repo := b.clone("acme/big")
	i := 0
	for bm.Loop() {
		i++
		b.tree(repo, fmt.Sprint("c", i))
	}
}

// BenchmarkCheckpoint measures saving a worktree of 50,000 files with a change.
func BenchmarkCheckpoint(bm *testing.B) {
	b := setup(bm)
	b.server.Repo("acme/big", nil)
	b.server.CommitTo("acme/big", "main", manyFiles(50_000))
	tree := b.tree(b.clone("acme/big"), "c")
	i := 0
	for bm.Loop() {
		i++
		write(bm, filepath.Join(tree.Dir, "d1/e0/f1.txt"), fmt.Sprint(i))
		if _, err := b.ws.Checkpoint(bm.Context(), tree, "x"); err != nil {
			bm.Fatal(err)
		}
	}
}

func TestLocalRepository(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := filepath.Join(realTemp(t), "my project")
	canary := filepath.Join(realTemp(t), "canary")
	write(t, filepath.Join(dir, "a"), "1\n")
	write(t, filepath.Join(dir, ".gitattributes"), "a filter=run\ndos text\n")
	gitIn(t, dir, "init", "-q", "-b", "work")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-q", "-m", "x")
	for _, key := range []string{"filter.run.smudge", "filter.run.clean", "filter.run.process", "core.fsmonitor", "diff.external", "core.sshCommand"} {
		gitIn(t, dir, "config", key, "touch "+canary)
	}
	gitIn(t, dir, "config", "filter.run.required", "true")
	gitIn(t, dir, "config", "core.safecrlf", "true")
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"} {
		write(t, filepath.Join(dir, ".git/hooks", hook), "#!/bin/sh\ntouch "+canary+"\n")
		if err := os.Chmod(filepath.Join(dir, ".git/hooks", hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "b"), "not committed\n")
	repo, err := b.ws.AddLocal(t.Context(), dir+"/")
	if err != nil || repo.Plain || repo.Name != "my project" || repo.Dir != dir {
		t.Fatalf("AddLocal = %+v, %v", repo, err)
	}
	if branch, err := b.ws.DefaultBranch(t.Context(), repo); err != nil || branch != "work" {
		t.Errorf("DefaultBranch = %q, %v", branch, err)
	}
	tree := b.tree(repo, "c1")
	if got := read(t, tree.Dir, "a"); got != "1\n" {
		t.Errorf("a = %q", got)
	}
	missing(t, tree.Dir, "b")
	write(t, filepath.Join(tree.Dir, "a"), "2\n")
	write(t, filepath.Join(tree.Dir, "dos"), "1\r\n")
	if d, err := b.ws.Diff(t.Context(), tree); err != nil || d.Files != 2 || len(d.Unsaved) > 0 {
		t.Errorf("Diff = %+v, %v", d, err)
	}
	if s, err := b.ws.Sweep(t.Context(), func(string) bool { return false }); err != nil || len(s.Removed) != 1 {
		t.Errorf("Sweep = %+v, %v", s, err)
	}
	if got := read(t, b.tree(repo, "c1").Dir, "a"); got != "2\n" {
		t.Errorf("a = %q", got)
	}
	if _, err := b.ws.Sync(t.Context(), repo); err != nil {
		t.Error(err)
	}
	if err := b.ws.Remove(t.Context(), repo); err != nil {
		t.Error(err)
	}
	if got := read(t, dir, "a") + read(t, dir, "b"); got != "1\nnot committed\n" {
		t.Errorf("the folder changed: %q", got)
	}
	missing(t, tree.Dir)
	missing(t, canary)
}

// TestLocalRepositoriesThatCannotBeUsed expects texts from which an operator can go on.
func TestLocalRepositoriesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	from := filepath.Join(realTemp(t), "from")
	write(t, filepath.Join(from, "a"), "1\n")
	gitIn(t, from, "init", "-q", "-b", "main")
	gitIn(t, from, "config", "uploadpack.allowFilter", "true")
	gitIn(t, from, "add", ".")
	gitIn(t, from, "commit", "-q", "-m", "x")
	dir := realTemp(t)
	gitIn(t, dir, "clone", "-q", "--no-checkout", "--filter=blob:none", "file://"+from, "partial")
	gitIn(t, dir, "clone", "-q", "file://"+from, "named")
	gitIn(t, filepath.Join(dir, "named"), "branch", "bot")
	for name, want := range map[string]string{
		"partial": "partial lacks files of this commit: it is a partial clone.",
		"named":   "named has a branch named bot, so there can be none named bot/",
	} {
		repo, err := b.ws.AddLocal(t.Context(), filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.ws.Worktree(t.Context(), repo, "c1"); !strings.Contains(fault.Public(err), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	gitIn(t, dir, "clone", "-q", "--bare", "file://"+from, "bare.git")
	gitIn(t, dir, "clone", "-q", "file://"+from, "broken")
	write(t, filepath.Join(dir, "broken/.git/config"), "[core\n")
	for name, want := range map[string]string{"bare.git": "is a bare repository", "broken": "Git cannot read the repository"} {
		if _, err := b.ws.AddLocal(t.Context(), filepath.Join(dir, name)); !strings.Contains(fault.Public(err), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPlainFolder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := filepath.Join(realTemp(t), "notes")
	write(t, filepath.Join(dir, "sub/a"), "1\n")
	repo, err := b.ws.AddLocal(t.Context(), dir)
	if err != nil || !repo.Plain {
		t.Fatalf("AddLocal = %+v, %v", repo, err)
	}
	tree := b.tree(repo, "c1")
	if got := read(t, tree.Dir, "sub/a"); got != "1\n" {
		t.Errorf("a = %q", got)
	}
	write(t, filepath.Join(tree.Dir, "sub/a"), "2\n")
	write(t, filepath.Join(dir, "later"), "x\n")
	if d, err := b.ws.Diff(t.Context(), tree); err != nil || d.Files != 1 {
		t.Errorf("Diff = %+v, %v", d, err)
	}
	read(t, b.tree(repo, "c2").Dir, "later")
	remove(t, dir, "later")
	missing(t, b.tree(repo, "c3").Dir, "later")
	if diff := cmp.Diff(map[string]string{"sub/a": "----------1\n"}, state(t, dir)); diff != "" {
		t.Errorf("the folder changed:\n%s", diff)
	}
	if opened, err := b.ws.Open(t.Context(), dir); err != nil || opened != repo {
		t.Errorf("Open = %+v, %v", opened, err)
	}
	if err := b.ws.Remove(t.Context(), repo); err != nil {
		t.Error(err)
	}
	missing(t, tree.Dir)
	read(t, dir, "sub/a")
	for _, bad := range []string{"relative", dir + "/sub/a", dir + "/none", b.root, b.root + "/x", filepath.Dir(b.root), "/"} {
		if _, err := b.ws.AddLocal(t.Context(), bad); err == nil {
			t.Errorf("AddLocal(%q) worked", bad)
		}
	}
	missing(t, dir, ".git")
	if out, err := exec.Command("ls", "-A", dir).Output(); err != nil || string(out) != "sub\n" {
		t.Errorf("ls: %q, %v", out, err)
	}
}

// TestAFolderWithoutABranchSaysWhatToDo: of a detached HEAD, and of a repository without a
// commit, people read what begins a conversation there.
func TestAFolderWithoutABranchSaysWhatToDo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for state, want := range map[string]string{"detached": "git switch BRANCH", "empty": "Make a first one there"} {
		dir := filepath.Join(realTemp(t), state)
		gitIn(t, filepath.Dir(dir), "init", "-q", "-b", "main", dir)
		if state == "detached" {
			gitIn(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
			gitIn(t, dir, "checkout", "-q", "--detach")
		}
		repo, err := b.ws.AddLocal(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.ws.DefaultBranch(t.Context(), repo); !fault.Is(err, fault.NotFound) || !strings.Contains(fault.Public(err), want) {
			t.Errorf("%s: %v", state, err)
		}
	}
}
