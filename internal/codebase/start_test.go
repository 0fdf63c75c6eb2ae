package codebase_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/codebase"
	"remote-agent/internal/codebase/gittest"
	"remote-agent/internal/fault"
)

// pullRequest makes a repository with a pull request that changes what tells
// assistants what to do: branch and refs/pull/7/head.
func pullRequest(b *bundle) (repo codebase.Repo, head string) {
	b.t.Helper()
	b.server.Repo("acme/web", map[string]string{
		"a": "1\n", "CLAUDE.md": "base\n", ".claude/settings.json": "{}\n", "sub/AGENTS.md": "base\n", "only-base": "1\n", ".mcp.json": "{}\n",
	})
	repo = b.clone("acme/web")
	b.server.Run("acme/web", nil, "branch", "fix", "main")
	head = b.server.CommitTo("acme/web", "fix", []gittest.Entry{
		{Path: "a", Data: "2\n"},
		{Path: "CLAUDE.md", Data: "evil\n"},
		{Path: ".claude/settings.json", Data: `{"hooks":"evil"}`},
		{Path: ".claude/commands/x.md", Data: "evil\n"},
		{Path: "sub/AGENTS.md", Data: "evil\n"},
		{Path: ".husky/pre-commit", Data: "evil\n", Mode: gittest.Executable},
		{Path: ".Cursor/rules", Data: "evil\n"},
		{Path: ".github/copilot-instructions.md", Data: "evil\n"},
		{Path: ".github/workflows/x.yml", Data: "on: push\n"},
	})
	b.server.Run("acme/web", nil, "update-ref", "refs/pull/7/head", head)
	b.server.Commit("acme/web", map[string]string{"CLAUDE.md": "newer base\n"})
	return repo, head
}

// evil returns the files of a worktree that a pull request wrote for assistants.
func evil(tb testing.TB, tree codebase.Tree) []string {
	tb.Helper()
	var out []string
	for name, text := range state(tb, tree.Dir) {
		if strings.Contains(text, "evil") {
			out = append(out, name)
		}
	}
	return out
}

func TestPullRequestDoesNotConfigureTheAssistant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	repo, head := pullRequest(b)
	start := codebase.Start{Branch: "fix", Existing: true, Head: head}
	tree := b.treeAt(repo, "c1", start)
	if !tree.Protected || tree.ReadOnly || tree.Base != head || tree.Remote != "fix" {
		t.Errorf("tree %+v", tree)
	}
	want := map[string]string{
		"a": "2\n", "CLAUDE.md": "newer base\n", ".claude/settings.json": "{}\n", "sub/AGENTS.md": "base\n", "only-base": "1\n", ".mcp.json": "{}\n",
		".github/workflows/x.yml": "on: push\n",
	}
	check := func(what string) {
		t.Helper()
		got := map[string]string{}
		for name, text := range state(t, tree.Dir) {
			got[filepath.ToSlash(name)] = strings.TrimPrefix(text, "----------")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	check("made")
	if d, err := b.ws.Diff(t.Context(), tree); err != nil || d.Files != 0 || d.Stat != "" {
		t.Errorf("Diff = %+v, %v", d, err)
	}
	if got := gitIn(t, tree.Dir, "status", "--porcelain"); got != "" {
		t.Errorf("status %q", got)
	}
	write(t, filepath.Join(tree.Dir, "a"), "3\n")
	write(t, filepath.Join(tree.Dir, "CLAUDE.md"), "edited\n")
	write(t, filepath.Join(tree.Dir, ".claude/settings.local.json"), "edited\n")
	want["a"] = "3\n"
	commit := b.commit(tree, "Work")
	if got := gitIn(t, tree.Dir, "diff", "--name-only", head, commit); got != "a\n" {
		t.Errorf("committed %q", got)
	}
	tree = b.treeAt(repo, "c1", start)
	check("the next turn")
	write(t, filepath.Join(tree.Dir, "b"), "x\n")
	gitIn(t, tree.Dir, "add", "-A")
	gitIn(t, tree.Dir, "commit", "-qam", "by the assistant itself")
	if got := gitIn(t, tree.Dir, "diff", "--name-only", head, "HEAD"); got != "a\nb\n" {
		t.Errorf("the assistant committed %q", got)
	}
	if r := b.push(tree); r.Branch != "fix" || r.Before != head {
		t.Errorf("push %+v", r)
	}
	if gone, err := b.ws.Release(t.Context(), repo, "c1"); !gone || err != nil {
		t.Fatal(gone, err)
	}
	tree = b.tree(repo, "c1")
	want["b"] = "x\n"
	check("brought back")
	saved, err := b.ws.Checkpoint(t.Context(), tree, "x")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(tree.Dir, "a"), "4\n")
	b.commit(tree, "Later")
	if _, err := b.ws.Restore(t.Context(), tree, saved.Ref); err != nil {
		t.Fatal(err)
	}
	check("restored")
	if got := gitIn(t, tree.Dir, "status", "--porcelain"); got != "" {
		t.Errorf("status after a restore %q", got)
	}
}

func TestForkIsReadOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	repo, head := pullRequest(b)
	tree := b.treeAt(repo, "c1", codebase.Start{Fetch: "refs/pull/7/head", Base: "main"})
	if !tree.ReadOnly || !tree.Protected || tree.Base != head || tree.Remote != "" {
		t.Errorf("tree %+v", tree)
	}
	if got := evil(t, tree); len(got) != 0 {
		t.Errorf("evil: %v", got)
	}
	write(t, filepath.Join(tree.Dir, "a"), "3\n")
	b.commit(tree, "Locally")
	_, err := b.ws.Push(t.Context(), tree, codebase.PushOptions{Branch: "somewhere"})
	refused(t, err, fault.Forbidden, "fork")
	if b.server.Ref("acme/web", "refs/heads/somewhere") != "" {
		t.Error("pushed")
	}
}

func TestWorktreeFollowsThePullRequest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	repo, head := pullRequest(b)
	start := codebase.Start{Branch: "fix", Existing: true, Head: head}
	clean, busy := b.treeAt(repo, "clean", start), b.treeAt(repo, "busy", start)
	write(t, filepath.Join(busy.Dir, "a"), "mine\n")
	start.Head = b.server.CommitTo("acme/web", "fix", []gittest.Entry{
		{Path: "more", Data: "x\n"}, {Path: "CLAUDE.md", Data: "evil again\n"}, {Path: "GEMINI.md", Data: "evil\n"},
	})
	moved := b.treeAt(repo, "clean", start)
	if moved.Base != start.Head || moved.Note != "" || read(t, clean.Dir, "more") != "x\n" || len(evil(t, moved)) != 0 {
		t.Errorf("moved %+v, evil %v", moved, evil(t, moved))
	}
	if got := gitIn(t, clean.Dir, "status", "--porcelain"); got != "" {
		t.Errorf("status %q", got)
	}
	stays := b.treeAt(repo, "busy", start)
	if stays.Base != head || !strings.Contains(stays.Note, "left unchanged") || read(t, busy.Dir, "a") != "mine\n" {
		t.Errorf("busy %+v", stays)
	}
	missing(t, busy.Dir, "more")
	// What we pushed ourselves is no news.
	write(t, filepath.Join(clean.Dir, "more"), "ours\n")
	start.Head = b.commit(moved, "Ours")
	b.push(moved)
	if again := b.treeAt(repo, "clean", start); again.Base != start.Head || again.Note != "" || read(t, clean.Dir, "more") != "ours\n" {
		t.Errorf("after our push %+v", again)
	}
	// Somebody replaced the commit that the event was about.
	b.server.Run("acme/web", nil, "update-ref", "refs/heads/fix", head)
	_, err := b.ws.WorktreeAt(t.Context(), repo, "new", start)
	refused(t, err, fault.Conflict, "no longer contains")
	start.Head = head
	if back := b.treeAt(repo, "clean", start); back.Base != head {
		t.Errorf("after a forced push %+v", back)
	}
	missing(t, clean.Dir, "more")
}

func TestForkTurnsOutToBeABranch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	repo, head := pullRequest(b)
	unknown := codebase.Start{Branch: "bot/pull-7", Fetch: "refs/pull/7/head"}
	tree := b.treeAt(repo, "c1", unknown)
	if !tree.ReadOnly || tree.Remote != "" || tree.Base != head {
		t.Errorf("unknown: %+v", tree)
	}
	write(t, filepath.Join(tree.Dir, "a"), "mine\n")
	known := codebase.Start{Branch: "fix", Existing: true, Head: head, Base: "main"}
	tree = b.treeAt(repo, "c1", known)
	if tree.ReadOnly || tree.Remote != "fix" || tree.BaseBranch != "main" || tree.Note != "" || read(t, tree.Dir, "a") != "mine\n" {
		t.Errorf("known: %+v", tree)
	}
	b.commit(tree, "Mine")
	if again := b.treeAt(repo, "c1", unknown); again.ReadOnly || again.Remote != "fix" {
		t.Errorf("unknown again: %+v", again)
	}
	b.push(tree)
}

func TestStartIsChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	repo, head := pullRequest(b)
	requests := len(b.server.Requests())
	for name, start := range map[string]codebase.Start{
		"option":          {Branch: "--upload-pack=x"},
		"base":            {Branch: "x", Base: "a..b"},
		"nameless":        {Existing: true},
		"both":            {Branch: "x", Existing: true, Fetch: "refs/pull/7/head"},
		"any ref":         {Fetch: "refs/heads/main"},
		"refspec":         {Fetch: "refs/pull/7/head:refs/heads/main"},
		"revision":        {Branch: "fix", Existing: true, Head: "HEAD~1"},
		"head of nothing": {Branch: "x", Head: head},
	} {
		if _, err := b.ws.WorktreeAt(t.Context(), repo, "c", start); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := len(b.server.Requests()); got != requests {
		t.Errorf("%d requests", got-requests)
	}
	for name, start := range map[string]codebase.Start{
		"branch": {Branch: "gone", Existing: true},
		"base":   {Branch: "x", Base: "gone"},
		"pull":   {Fetch: "refs/pull/8/head"},
	} {
		if _, err := b.ws.WorktreeAt(t.Context(), repo, "c", start); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.server.Close()
	if late := b.treeAt(repo, "late", codebase.Start{Branch: "bot/issue-9"}); !strings.Contains(late.Note, "Could not fetch") || late.Remote != "bot/issue-9" {
		t.Errorf("without a server: %+v", late)
	}
	if _, err := b.ws.WorktreeAt(t.Context(), repo, "c", codebase.Start{Branch: "fix", Existing: true}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a pull request without a server: %v", err)
	}
}

func TestProtected(t *testing.T) {
	t.Parallel()
	for p, want := range map[string]bool{
		"CLAUDE.md": true, "claude.MD": true, "a/b/CLAUDE.md": true, ".claude/x": true, "x/.claude/commands/y.md": true, ".mcp.json": true,
		".codex/config.toml": true, ".cursor/rules/a.mdc": true, ".gitmodules": true, ".husky/pre-commit": true, ".agents/commands/x.md": true,
		"AGENTS.md": true, "GEMINI.md": true, ".github/copilot-instructions.md": true, ".github/instructions/a.md": true, ".claude/": true,
		".github/prompts/a.md": true, ".GitHub/Agents/a.md": true, ".github/hooks/a.json": true, ".github/mcp.json": true, ".github/skills/a/SKILL.md": true,
		"QWEN.md": true, ".qwen/settings.json": true, ".kiro/settings/mcp.json": true, ".goosehints": true, ".junie/mcp/mcp.json": true,
		".factory/mcp.json": true, ".vibe/config.toml": true, "kilo.json": true, "crush.json": true, ".zed/settings.json": true,
		"README.md": false, ".github/workflows/ci.yml": false, "claude/x": false, "docs/CLAUDE.md.txt": false, ".gitignore": false, "a.claude": false,
	} {
		if got := codebase.Protected(p); got != want {
			t.Errorf("Protected(%q) = %v", p, got)
		}
	}
}

func FuzzValidBranch(f *testing.F) {
	for _, name := range []string{
		"main", "bot/issue-42", "feature/ümlaut", "a.b", "a-b_c", "@", "a@b", "-x", "--mirror", "a..b", "a@{1}", "x.lock", "x.lock/y", "X.LOCK", ".a", "a/.b",
		"a.", "/a", "a/", "a//b", "a b", "a\tb", "a\nb", "a\x00b", "a~1", "a^", "a:b", "a?", "a*", "a[b", `a\b`, "HEAD", "refs/heads/x", "", "\xff", "a\u200bb",
		strings.Repeat("x", 201),
	} {
		f.Add(name)
	}
	git := gittest.Git(f)
	f.Fuzz(func(t *testing.T, name string) {
		err := codebase.ValidBranch(name)
		if err != nil {
			if !fault.Is(err, fault.Invalid) || fault.Public(err) == "" {
				t.Errorf("%q: %v", name, err)
			}
			return
		}
		if strings.HasPrefix(name, "-") || strings.ContainsAny(name, "\x00\n ") {
			t.Errorf("%q is taken", name)
		}
		if err := exec.CommandContext(t.Context(), git, "check-ref-format", "refs/heads/"+name).Run(); err != nil {
			t.Errorf("git does not take %q: %v", name, err)
		}
	})
}

// A branch that was pushed is followed: the next request has what others pushed to it since,
// unless something here would be lost by that.
func TestAPushedBranchIsFollowed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	start := codebase.Start{Branch: "bot/issue-1"}
	tree := b.treeAt(repo, "c1", start)
	write(t, filepath.Join(tree.Dir, "a"), "2\n")
	b.commit(tree, "Work")
	b.push(tree)
	theirs := func(data string) string {
		return b.server.CommitTo("acme/web", "bot/issue-1", []gittest.Entry{{Path: "b", Data: data}})
	}
	next := func(head, files, note string) {
		t.Helper()
		now := b.treeAt(repo, "c1", start)
		if got := gitIn(t, now.Dir, "rev-parse", "HEAD"); got != head+"\n" || read(t, now.Dir, "b") != files || now.Base != tree.Base || !strings.Contains(now.Note, note) || note == "" && now.Note != "" {
			t.Errorf("it is at %s (%+v) with %q, want %s", got, now, read(t, now.Dir, "b"), head)
		}
	}
	first := theirs("theirs\n")
	next(first, "theirs\n", "")
	write(t, filepath.Join(tree.Dir, "a"), "open\n")
	second := theirs("more\n")
	next(first, "theirs\n", "have changes that are not committed")
	write(t, filepath.Join(tree.Dir, "a"), "2\n")
	next(second, "more\n", "")
	write(t, filepath.Join(tree.Dir, "a"), "3\n")
	ours := b.commit(tree, "More work")
	next(ours, "more\n", "") // what is here is ahead
	theirs("other\n")
	next(ours, "more\n", "has commits that are not pushed")
	b.push(b.treeAt(repo, "c1", start))
	if got := read(t, tree.Dir, "b"); got != "other\n" {
		t.Errorf("after the push it has %q", got)
	}
	// What was pushed is replaced, twice.
	for _, data := range []string{"replaced\n", "again\n"} {
		b.server.Run("acme/web", nil, "update-ref", "refs/heads/bot/issue-1", second)
		next(theirs(data), data, "was replaced by a force push")
	}
	b.server.Run("acme/web", nil, "update-ref", "-d", "refs/heads/bot/issue-1")
	next(strings.TrimSpace(gitIn(t, tree.Dir, "rev-parse", "HEAD")), "again\n", "")
}

// A branch whose work was merged, as other commits or as they are, goes on from its base branch, also
// if it is still there: the next pull request has only what is new, and no conflicts.
func TestWhatWasMergedGoesOn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		branch, base map[string]string // what the branch adds, and what its base has in the end
		open         bool
		goes         bool
	}{
		"squashed":           {branch: map[string]string{"a": "2\n"}, base: map[string]string{"a": "2\n", "other": "x\n"}, goes: true},
		"a part of it":       {branch: map[string]string{"a": "2\n", "b": "1\n"}, base: map[string]string{"a": "2\n"}},
		"changed since":      {branch: map[string]string{"a": "2\n"}, base: map[string]string{"a": "3\n"}},
		"not merged":         {branch: map[string]string{"a": "2\n"}, base: map[string]string{"other": "x\n"}},
		"something not done": {branch: map[string]string{"a": "2\n"}, base: map[string]string{"a": "2\n"}, open: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.server.Repo("acme/web", map[string]string{"a": "1\n"})
			repo := b.clone("acme/web")
			start := codebase.Start{Branch: "bot/issue-1"}
			tree := b.treeAt(repo, "c1", start)
			for file, text := range tt.branch {
				write(t, filepath.Join(tree.Dir, file), text)
			}
			head := b.commit(tree, "Work")
			b.push(tree)
			tip := b.server.Commit("acme/web", tt.base)
			if tt.open {
				write(t, filepath.Join(tree.Dir, "new"), "1\n")
			}
			now := b.treeAt(repo, "c1", start)
			if !tt.goes {
				if got := gitIn(t, now.Dir, "rev-parse", "HEAD"); got != head+"\n" || now.Base != tree.Base || now.Note != "" {
					t.Errorf("it is at %s (%+v), want %s", got, now, head)
				}
				return
			}
			if got := gitIn(t, now.Dir, "show", "-s", "--format=%H %P"); got != now.Base+" "+head+" "+tip+"\n" || gitIn(t, now.Dir, "diff", tip) != "" {
				t.Errorf("it is at %s (%+v), want what is at %s", got, now, tip)
			}
			if again := b.treeAt(repo, "c1", start); again.Base != now.Base {
				t.Errorf("it went on twice: %+v, %+v", now, again)
			}
			write(t, filepath.Join(now.Dir, "a"), "4\n")
			commit := b.commit(now, "Next")
			if r := b.push(now); r.Before != head || b.server.Ref("acme/web", "refs/heads/bot/issue-1") != commit {
				t.Errorf("pushed %+v", r)
			}
			b.server.Run("acme/web", nil, "merge-tree", "--write-tree", "main", commit)
		})
	}
}

// What was merged with its commits needs no other one to go on.
func TestWhatWasMergedAsItIsGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	start := codebase.Start{Branch: "bot/issue-1"}
	tree := b.treeAt(repo, "c1", start)
	write(t, filepath.Join(tree.Dir, "a"), "2\n")
	b.commit(tree, "Work")
	b.push(tree)
	b.server.Run("acme/web", nil, "update-ref", "refs/heads/main", "refs/heads/bot/issue-1")
	tip := b.server.Commit("acme/web", map[string]string{"other": "x\n"})
	if now := b.treeAt(repo, "c1", start); gitIn(t, now.Dir, "rev-parse", "HEAD") != tip+"\n" || now.Base != tip {
		t.Errorf("it is at %+v, want %s", now, tip)
	}
}
