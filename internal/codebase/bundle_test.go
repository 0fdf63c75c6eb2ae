package codebase_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/codebase"
	"remote-agent/internal/codebase/gittest"
)

func TestBundlesHoldWhatWasNotPushed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	b.server.Repo("acme/quiet", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	b.clone("acme/quiet")
	folder := t.TempDir()
	if bundles, problems, err := b.ws.Bundles(t.Context(), folder); err != nil || len(bundles)+len(problems) != 0 {
		t.Errorf("without work: %+v, %v, %v", bundles, problems, err)
	}
	tree := b.tree(repo, conversation)
	for name, text := range map[string]string{"new": "committed\n"} {
		if err := os.WriteFile(filepath.Join(tree.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commit, changed, err := b.ws.Commit(t.Context(), tree, codebase.CommitOptions{Message: "work"})
	if err != nil || !changed {
		t.Fatalf("commit: %v, %v", changed, err)
	}
	if err := os.WriteFile(filepath.Join(tree.Dir, "new"), []byte("only saved\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	saved, err := b.ws.Checkpoint(t.Context(), tree, "before a turn")
	if err != nil {
		t.Fatal(err)
	}
	bundles, problems, err := b.ws.Bundles(t.Context(), folder)
	if err != nil || len(problems) > 0 || len(bundles) != 1 || bundles[0].Commits != 2 || !strings.HasSuffix(bundles[0].Repo, "/acme/web") {
		t.Fatalf("bundles = %+v, %v, %v", bundles, problems, err)
	}

	// A clone that was made again takes everything back.
	again := filepath.Join(t.TempDir(), "again")
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), gittest.Git(t), args...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("clone", "-q", b.server.Dir("acme/web"), again)
	git("-C", again, "fetch", "-q", filepath.Join(folder, bundles[0].File), "refs/*:refs/*")
	if got := git("-C", again, "rev-parse", "refs/heads/"+tree.Branch); got != commit {
		t.Errorf("the branch is at %s, want %s", got, commit)
	}
	if got := git("-C", again, "show", saved.Ref+":new"); got != "only saved" {
		t.Errorf("the saved state has %q", got)
	}
}

func TestBundlesOfSimilarNamesAreSeveralFiles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, name := range []string{"a__b/c", "a/b__c", "d_/e", "d/_e"} {
		b.server.Repo(name, map[string]string{"a": "1\n"})
		tree := b.tree(b.clone(name), conversation)
		if err := os.WriteFile(filepath.Join(tree.Dir, "new"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.ws.Commit(t.Context(), tree, codebase.CommitOptions{Message: "work"}); err != nil {
			t.Fatal(err)
		}
	}
	folder := t.TempDir()
	bundles, problems, err := b.ws.Bundles(t.Context(), folder)
	files, _ := os.ReadDir(folder)
	if err != nil || len(problems) > 0 || len(bundles) != 4 || len(files) != 4 {
		t.Errorf("%d files of %+v, %v, %v", len(files), bundles, problems, err)
	}
}

func TestBundlesOfPlainFoldersAreComplete(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := filepath.Join(realTemp(t), "notes")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	repo, err := b.ws.AddLocal(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	tree := b.tree(repo, conversation)
	if _, err := b.ws.Checkpoint(t.Context(), tree, "before a turn"); err != nil {
		t.Fatal(err)
	}
	bundles, problems, err := b.ws.Bundles(t.Context(), t.TempDir())
	if err != nil || len(problems) > 0 || len(bundles) != 1 || !strings.HasPrefix(bundles[0].File, "plain__notes-") {
		t.Errorf("bundles = %+v, %v, %v", bundles, problems, err)
	}
}

func TestRepositoriesThatGitCannotReadAreNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	if err := os.WriteFile(filepath.Join(repo.Dir, ".git", "HEAD"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	bundles, problems, err := b.ws.Bundles(t.Context(), t.TempDir())
	if err != nil || len(bundles) != 0 || len(problems) != 1 || !strings.Contains(problems[0], "acme/web: git cannot read") {
		t.Errorf("bundles = %+v, %q, %v", bundles, problems, err)
	}
}
