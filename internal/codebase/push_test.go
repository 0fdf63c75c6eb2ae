package codebase_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/codebase"
	"remote-agent/internal/codebase/gittest"
	"remote-agent/internal/fault"
)

func (b *bundle) treeAt(repo codebase.Repo, conversation string, start codebase.Start) codebase.Tree {
	b.t.Helper()
	tree, err := b.ws.WorktreeAt(b.t.Context(), repo, conversation, start)
	if err != nil {
		b.t.Fatal(err)
	}
	return tree
}

func (b *bundle) commit(tree codebase.Tree, message string) string {
	b.t.Helper()
	commit, changed, err := b.ws.Commit(b.t.Context(), tree, codebase.CommitOptions{Message: message})
	if err != nil || !changed {
		b.t.Fatalf("Commit: %v, changed %v", err, changed)
	}
	return commit
}

func (b *bundle) push(tree codebase.Tree) codebase.PushResult {
	b.t.Helper()
	r, err := b.ws.Push(b.t.Context(), tree, codebase.PushOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// refused checks the kind of an error and what a person reads of it.
func refused(tb testing.TB, err error, kind fault.Kind, text string) {
	tb.Helper()
	if !fault.Is(err, kind) || !strings.Contains(fault.Public(err), text) {
		tb.Errorf("error %v (%q), want %s with %q", err, fault.Public(err), kind, text)
	}
}

func TestIssueToBranch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n", ".gitignore": "*.log\n"})
	repo := b.clone("acme/web")
	tip := b.server.Commit("acme/web", map[string]string{"a": "2\n"})
	start := codebase.Start{Branch: "bot/issue-42"}
	tree := b.treeAt(repo, conversation, start)
	if !tree.Created || tree.Base != tip || tree.Remote != "bot/issue-42" || tree.Branch != "bot/"+codebase.Short(conversation) || tree.ReadOnly || tree.Protected {
		t.Errorf("tree %+v", tree)
	}
	if head, changed, err := b.ws.Commit(t.Context(), tree, codebase.CommitOptions{Message: "nothing"}); err != nil || changed || head != tip {
		t.Errorf("a commit of nothing: %s, %v, %v", head, changed, err)
	}
	write(t, filepath.Join(tree.Dir, "a"), "3\n")
	write(t, filepath.Join(tree.Dir, "sub/new"), "x\n")
	write(t, filepath.Join(tree.Dir, "b.log"), "ignored\n")
	commit, changed, err := b.ws.Commit(t.Context(), tree, codebase.CommitOptions{
		Message: "Fix it\r\n\r\nBecause.\x00\n", Name: "Ann", Email: "ann@example.com",
		CoAuthors: []string{"Bob B <bob@example.com>"}, Trailers: []string{"Issue: 42"},
	})
	if err != nil || !changed {
		t.Fatal(err)
	}
	show := gitIn(t, tree.Dir, "show", "-s", "--format=%an %ae/%cn %ce%n%B", commit)
	if show != "Ann ann@example.com/Remote Agent remote-agent@localhost\nFix it\n\nBecause.\n\nIssue: 42\nCo-authored-by: Bob B <bob@example.com>\n\n" {
		t.Errorf("commit %q", show)
	}
	if got := gitIn(t, tree.Dir, "status", "--porcelain"); got != "" {
		t.Errorf("status %q", got)
	}
	if got := gitIn(t, tree.Dir, "ls-tree", "-r", "--name-only", "HEAD"); got != ".gitignore\na\nsub/new\n" {
		t.Errorf("files %q", got)
	}
	r := b.push(tree)
	if diff := cmp.Diff(codebase.PushResult{Branch: "bot/issue-42", Commit: commit}, r); diff != "" {
		t.Error(diff)
	}
	if got := b.server.Ref("acme/web", "refs/heads/bot/issue-42"); got != commit {
		t.Errorf("pushed %s", got)
	}
	if r := b.push(tree); !r.UpToDate || r.Before != commit {
		t.Errorf("again: %+v", r)
	}
	write(t, filepath.Join(tree.Dir, "a"), "4\n")
	second := b.commit(tree, "More")
	if r := b.push(tree); r.Before != commit || r.Commit != second {
		t.Errorf("second: %+v", r)
	}
	again := b.treeAt(repo, conversation, start)
	if again.Created || again.Remote != "bot/issue-42" || again.Dir != tree.Dir {
		t.Errorf("again %+v", again)
	}
	if plain := b.tree(repo, conversation); plain.Remote != "bot/issue-42" {
		t.Errorf("Worktree forgot the branch: %+v", plain)
	}
	other := b.treeAt(repo, "another", start)
	if other.Dir == tree.Dir || other.Branch == tree.Branch || other.Base != second {
		t.Errorf("another conversation continues the branch elsewhere: %+v", other)
	}
}

func TestReleaseAndBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	tree := b.treeAt(repo, "c1", codebase.Start{Branch: "bot/issue-1"})
	write(t, filepath.Join(tree.Dir, "a"), "2\n")
	commit := b.commit(tree, "Work")
	write(t, filepath.Join(tree.Dir, "open"), "x\n")
	for range 2 {
		if gone, err := b.ws.Release(t.Context(), repo, "c1"); err != nil || !gone {
			t.Fatal(gone, err)
		}
	}
	missing(t, tree.Dir)
	back := b.tree(repo, "c1") // without a start it is known from before
	if !back.Reopened || back.Remote != "bot/issue-1" || read(t, back.Dir, "open") != "x\n" {
		t.Errorf("back %+v", back)
	}
	if r := b.push(back); r.Commit != commit {
		t.Errorf("push %+v", r)
	}
	// A workspace that was lost continues what was pushed.
	ws := open(t, codebase.Config{Root: filepath.Join(realTemp(t), "new"), AllowedHosts: []string{b.server.Host()}})
	clone, err := ws.Clone(t.Context(), b.server.URL("acme/web"), nil)
	if err != nil {
		t.Fatal(err)
	}
	lost, err := ws.WorktreeAt(t.Context(), clone, "c1", codebase.Start{Branch: "bot/issue-1"})
	if err != nil || lost.Base != commit || read(t, lost.Dir, "a") != "2\n" {
		t.Errorf("lost %+v, %v", lost, err)
	}
}

// A worktree that was put away begins anew if all of it was pushed and its branch is gone from
// the origin since, as after a merge. Anything else of it comes back.
func TestWhatWasMergedBeginsAnew(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		push, gone, more bool
		open             string
		anew             bool
	}{
		"merged":                 {push: true, gone: true, anew: true},
		"branch is there":        {push: true},
		"never pushed":           {gone: true},
		"a commit more":          {push: true, gone: true, more: true},
		"a change that waits":    {push: true, gone: true, open: "open\n"},
		"pushed, back as it was": {push: true, gone: true, open: "2\n", anew: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.server.Repo("acme/web", map[string]string{"a": "1\n"})
			repo := b.clone("acme/web")
			start := codebase.Start{Branch: "bot/issue-1"}
			tree := b.treeAt(repo, "c1", start)
			write(t, filepath.Join(tree.Dir, "a"), "2\n")
			head := b.commit(tree, "Work")
			if tt.push {
				b.push(tree)
			}
			if tt.more {
				write(t, filepath.Join(tree.Dir, "a"), "3\n")
				head = b.commit(tree, "More")
			}
			if tt.open != "" {
				write(t, filepath.Join(tree.Dir, "a"), tt.open)
			}
			if gone, err := b.ws.Release(t.Context(), repo, "c1"); err != nil || !gone {
				t.Fatal(gone, err)
			}
			if tt.gone && tt.push {
				b.server.Run("acme/web", nil, "update-ref", "-d", "refs/heads/bot/issue-1")
			}
			merged := map[string]string{"a": "2\n", "other": "merged\n"}
			if !tt.gone { // else it goes on from there; see TestWhatWasMergedGoesOn
				delete(merged, "a")
			}
			tip := b.server.Commit("acme/web", merged)
			back := b.treeAt(repo, "c1", start)
			if want := map[bool]string{true: tip, false: head}[tt.anew]; gitIn(t, back.Dir, "rev-parse", "HEAD") != want+"\n" || back.Created != tt.anew || back.Reopened == tt.anew {
				t.Errorf("it is at %s (%+v), want %s", gitIn(t, back.Dir, "rev-parse", "HEAD"), back, want)
			}
			if got := gitIn(t, back.Dir, "diff", "HEAD", "--", "a"); (got != "") != (tt.open != "" && !tt.anew) {
				t.Errorf("changes: %q", got)
			}
			if tt.anew {
				if got := gitIn(t, back.Dir, "for-each-ref", "refs/bot/*/saved"); got != "" {
					t.Errorf("what was put away is kept: %s", got)
				}
				write(t, filepath.Join(back.Dir, "a"), "4\n")
				commit := b.commit(back, "Next")
				if r := b.push(back); r.Before != "" || gitIn(t, back.Dir, "rev-parse", "HEAD^") != tip+"\n" || b.server.Ref("acme/web", "refs/heads/bot/issue-1") != commit {
					t.Errorf("pushed %+v", r)
				}
			}
		})
	}
}

// What somebody else pushed to the branch is merged with what is to be pushed, in the
// worktree as well.
func TestPushMergesWhatOthersPushed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n", "CLAUDE.md": "of the base\n"})
	b.server.CommitTo("acme/web", "topic", []gittest.Entry{{Path: "CLAUDE.md", Data: "of the branch\n"}})
	repo := b.clone("acme/web")
	tree := b.treeAt(repo, "c1", codebase.Start{Branch: "topic", Existing: true})
	write(t, filepath.Join(tree.Dir, "a"), "2\n")
	ours := b.commit(tree, "Work")
	theirs := b.server.CommitTo("acme/web", "topic", []gittest.Entry{{Path: "b", Data: "theirs\n"}, {Path: "CLAUDE.md", Data: "of the branch, too\n"}})
	r := b.push(tree)
	if got := b.server.Ref("acme/web", "refs/heads/topic"); got != r.Commit || r.Before != theirs || r.UpToDate {
		t.Errorf("pushed %+v, the branch is at %s", r, got)
	}
	if got := gitIn(t, tree.Dir, "show", "-s", "--format=%P %an %s", r.Commit); got != ours+" "+theirs+" Remote Agent Merge what was pushed to topic\n" {
		t.Errorf("the merge is %q", got)
	}
	if got := gitIn(t, tree.Dir, "show", r.Commit+":CLAUDE.md"); got != "of the branch, too\n" {
		t.Errorf("the instructions on the branch are %q", got)
	}
	files := func(want map[string]string) {
		t.Helper()
		for name, text := range want {
			if got := read(t, tree.Dir, name); got != text {
				t.Errorf("%s is %q here", name, got)
			}
		}
		if got := gitIn(t, tree.Dir, "status", "--porcelain"); got != "" {
			t.Errorf("changes here: %s", got)
		}
	}
	files(map[string]string{"a": "2\n", "b": "theirs\n", "CLAUDE.md": "of the base\n"})
	// Without anything of our own it is theirs.
	theirs = b.server.CommitTo("acme/web", "topic", []gittest.Entry{{Path: "b", Data: "more\n"}})
	if r := b.push(tree); !r.UpToDate || r.Commit != theirs || b.server.Ref("acme/web", "refs/heads/topic") != theirs {
		t.Errorf("nothing to push: %+v", r)
	}
	files(map[string]string{"a": "2\n", "b": "more\n", "CLAUDE.md": "of the base\n"})
	// What is not committed is not lost.
	b.server.CommitTo("acme/web", "topic", []gittest.Entry{{Path: "a", Data: "5\n"}})
	write(t, filepath.Join(tree.Dir, "a"), "open\n")
	_, err := b.ws.Push(t.Context(), tree, codebase.PushOptions{})
	refused(t, err, fault.Invalid, "not all changes here are committed")
	if got := read(t, tree.Dir, "a"); got != "open\n" {
		t.Errorf("a is %q", got)
	}
}

// TestPushOnTopOfWhatReplacedOurs: after a force push, what was taken away stays away, and what was
// changed here since goes on top of what is there now.
func TestPushOnTopOfWhatReplacedOurs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		existing, pushes bool // whose branch it is, and whether we had pushed to it
		theirs, ours     map[string]string
		want             map[string]string
		refused          string
	}{
		"Ours":       {pushes: true, theirs: map[string]string{"a": "2\n", "secret": ""}, ours: map[string]string{"b": "ours\n"}, want: map[string]string{"a": "2\n", "b": "ours\n"}},
		"Nothing":    {pushes: true, theirs: map[string]string{"a": "2\n", "secret": ""}, want: map[string]string{"a": "2\n"}},
		"Theirs":     {existing: true, theirs: map[string]string{"a": "2\n", "secret": ""}, ours: map[string]string{"b": "ours\n"}, want: map[string]string{"a": "2\n", "b": "ours\n"}},
		"TheirsToo":  {existing: true, pushes: true, theirs: map[string]string{"a": "2\n", "secret": ""}, ours: map[string]string{"b": "ours\n"}, want: map[string]string{"a": "2\n", "b": "ours\n"}},
		"Taken over": {pushes: true, theirs: map[string]string{"a": "3\n", "secret": ""}, ours: map[string]string{"a": "3\n"}, want: map[string]string{"a": "3\n"}},
		"Conflict":   {pushes: true, theirs: map[string]string{"a": "5\n", "secret": ""}, ours: map[string]string{"a": "4\n"}, refused: "changes here: a. "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.server.Repo("acme/web", map[string]string{"a": "1\n"})
			repo := b.clone("acme/web")
			start := codebase.Start{Branch: "topic", Existing: tt.existing}
			if tt.existing {
				start.Head = b.server.CommitTo("acme/web", "topic", []gittest.Entry{{Path: "a", Data: "2\n"}, {Path: "secret", Data: "s3cret\n"}})
			}
			tree := b.treeAt(repo, "c1", start)
			if tt.pushes {
				write(t, filepath.Join(tree.Dir, "a"), "2\n")
				write(t, filepath.Join(tree.Dir, "secret"), "s3cret\n")
				write(t, filepath.Join(tree.Dir, "more"), "x\n")
				b.commit(tree, "Work")
				b.push(tree)
			}
			leaked := b.server.Ref("acme/web", "refs/heads/topic")
			b.server.Run("acme/web", nil, "update-ref", "refs/heads/topic", strings.TrimSpace(b.server.Run("acme/web", nil, "rev-parse", "refs/heads/main")))
			var entries []gittest.Entry
			for path, data := range tt.theirs {
				if data != "" {
					entries = append(entries, gittest.Entry{Path: path, Data: data})
				}
			}
			theirs := b.server.CommitTo("acme/web", "topic", entries)
			for path, data := range tt.ours {
				write(t, filepath.Join(tree.Dir, path), data)
			}
			if len(tt.ours) > 0 {
				b.commit(tree, "Our change")
			}
			r, err := b.ws.Push(t.Context(), tree, codebase.PushOptions{})
			if tt.refused != "" {
				refused(t, err, fault.Invalid, tt.refused)
				if got := b.server.Ref("acme/web", "refs/heads/topic"); got != theirs {
					t.Errorf("the branch is at %s", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			at := b.server.Ref("acme/web", "refs/heads/topic")
			if at != r.Commit || gitIn(t, tree.Dir, "rev-parse", "HEAD") != at+"\n" {
				t.Errorf("pushed %+v, the branch is at %s", r, at)
			}
			if log := gitIn(t, tree.Dir, "rev-list", at); strings.Contains(log, leaked) || !strings.Contains(log, theirs) {
				t.Errorf("the branch has the commits\n%s, and took away %s", log, leaked)
			}
			if r.UpToDate != (at == theirs) || at != theirs && gitIn(t, tree.Dir, "show", "-s", "--format=%s", at) != "Our change\n" {
				t.Errorf("pushed %+v: %s", r, gitIn(t, tree.Dir, "show", "-s", at))
			}
			for path, want := range tt.want {
				if got := read(t, tree.Dir, path); got != want {
					t.Errorf("%s is %q", path, got)
				}
			}
			missing(t, tree.Dir, "secret")
			if got := gitIn(t, tree.Dir, "status", "--porcelain"); got != "" {
				t.Errorf("changes here: %s", got)
			}
			// The next one is an ordinary one.
			write(t, filepath.Join(tree.Dir, "next"), "1\n")
			next := b.commit(tree, "Next")
			if r := b.push(tree); r.Commit != next || r.Before != at {
				t.Errorf("next: %+v", r)
			}
		})
	}
}

func TestPushIsRefused(t *testing.T) {
	t.Parallel()
	var token string
	b := setup(t, func(c *codebase.Config) {
		c.RepoToken = func(context.Context, string) (string, error) { return token, nil }
	})
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	b.server.CommitTo("acme/web", "develop", []gittest.Entry{{Path: "a", Data: "d\n"}})
	repo := b.clone("acme/web")
	tree := b.treeAt(repo, "c1", codebase.Start{Branch: "bot/issue-1", Base: "develop"})
	if got := read(t, tree.Dir, "a"); got != "d\n" {
		t.Errorf("not from its base: %q", got)
	}
	write(t, filepath.Join(tree.Dir, "a"), "2\n")
	commit := b.commit(tree, "Work")
	push := func(branch string) error {
		_, err := b.ws.Push(t.Context(), tree, codebase.PushOptions{Branch: branch})
		return err
	}
	refused(t, push("main"), fault.Forbidden, "default branch")
	refused(t, push("develop"), fault.Forbidden, "merge into")
	refused(t, push("a b"), fault.Invalid, "branch")
	refused(t, push("--mirror"), fault.Invalid, "dash")

	b.server.RejectPushes("acme/web", "no deliveries today")
	refused(t, push(""), fault.Forbidden, "hook declined): no deliveries today")
	b.server.RejectPushes("acme/web", "error: GH013: Repository rule violations found for refs/heads/bot/issue-1.\n\n- Push cannot contain secrets\n  —————\n   path: a:1\n"+strings.Repeat("and more\n", 200))
	refused(t, push(""), fault.Forbidden, "hook declined): error: GH013: Repository rule violations found for refs/heads/bot/issue-1. - Push cannot contain secrets path: a:1 and more")
	if n := len(fault.Public(push(""))); n > 700 {
		t.Errorf("%d bytes are said about a refusal", n)
	}
	b.server.RejectPushes("acme/web", "")

	b.server.Authorize(func(_, password, repo string, push bool) bool {
		return !push || password == "writer" && repo == "acme/web"
	})
	refused(t, push(""), fault.Unauthorized, "No token")
	token = "reader"
	refused(t, push(""), fault.Forbidden, "write permission for contents")
	token = "writer"
	b.server.LimitPushes(true)
	refused(t, push(""), fault.RateLimited, "limits how often")
	b.server.LimitPushes(false)
	if err := push(""); err != nil {
		t.Error(err)
	}
	theirs := b.server.CommitTo("acme/web", "bot/issue-1", []gittest.Entry{{Path: "a", Data: "theirs\n"}})
	write(t, filepath.Join(tree.Dir, "a"), "3\n")
	more := b.commit(tree, "More")
	err := push("")
	refused(t, err, fault.Invalid, "cannot be merged with the changes here")
	if got := gitIn(t, tree.Dir, "rev-parse", "HEAD"); got != more+"\n" || gitIn(t, tree.Dir, "status", "--porcelain") != "" {
		t.Errorf("the worktree is at %s", got)
	}
	if got := b.server.Ref("acme/web", "refs/heads/bot/issue-1"); got != theirs || fault.Uncertain(err) {
		t.Errorf("overwritten: %s, %v", got, err)
	}
	for _, r := range b.server.Requests() {
		if strings.Contains(r.Path+r.Query, "writer") {
			t.Errorf("the token is in %v", r)
		}
	}
	b.server.Repo("evil/web", nil)
	b.server.Redirect("acme/web", b.server.URL("evil/web"))
	refused(t, push(""), fault.Invalid, "redirects")
	if b.server.Ref("evil/web", "refs/heads/bot/issue-1") != "" || commit == "" {
		t.Error("pushed to where it was redirected")
	}
}

func TestPushWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	repo := b.clone("acme/web")
	tree := b.treeAt(repo, "c1", codebase.Start{Branch: "bot/issue-1"})
	write(t, filepath.Join(tree.Dir, "a"), "2\n")
	first := b.commit(tree, "One")
	b.server.DropPushes(gittest.AfterPush)
	if r := b.push(tree); r.Commit != first || b.server.Ref("acme/web", "refs/heads/bot/issue-1") != first {
		t.Errorf("taken, but %+v", r)
	}
	write(t, filepath.Join(tree.Dir, "a"), "3\n")
	second := b.commit(tree, "Two")
	b.server.DropPushes(gittest.BeforePush)
	_, err := b.ws.Push(t.Context(), tree, codebase.PushOptions{})
	if !fault.Is(err, fault.Unavailable) || fault.Uncertain(err) {
		t.Errorf("not taken: %v", err)
	}
	// The origin goes away together with the answer.
	asked := false
	b.server.DropPushes(gittest.AfterPush)
	b.server.Authorize(func(_, _, _ string, push bool) bool {
		defer func() { asked = asked || push }()
		return !asked || push
	})
	_, err = b.ws.Push(t.Context(), tree, codebase.PushOptions{})
	if !fault.Uncertain(err) || !fault.Is(err, fault.Unavailable) {
		t.Errorf("unknown: %v", err)
	}
	b.server.Authorize(nil)
	if r := b.push(tree); !r.UpToDate || r.Commit != second {
		t.Errorf("afterwards %+v", r)
	}
	b.server.Close()
	if _, err := b.ws.Push(t.Context(), tree, codebase.PushOptions{}); !fault.Is(err, fault.Unavailable) || fault.Uncertain(err) {
		t.Errorf("without a server: %v", err)
	}
}

func TestCommitIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *codebase.Config) { c.MaxFile = 1000; c.Name, c.Email = "Robo", "robo@example.com" })
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	tree := b.tree(b.clone("acme/web"), "c1")
	write(t, filepath.Join(tree.Dir, "a"), "2\n")
	for name, o := range map[string]codebase.CommitOptions{
		"no message":        {Message: " \n\t"},
		"long message":      {Message: strings.Repeat("x", 70000)},
		"trailer with line": {Message: "x", Trailers: []string{"A: b\nSigned-off-by: Boss <b@example.com>"}},
		"trailer":           {Message: "x", Trailers: []string{"no trailer"}},
		"person with line":  {Message: "x", CoAuthors: []string{"A <a@example.com>\nB"}},
		"person":            {Message: "x", CoAuthors: []string{"a@example.com"}},
		"author":            {Message: "x", Name: "A <b>", Email: "a@example.com"},
		"address":           {Message: "x", Name: "A", Email: "a b"},
	} {
		if _, _, err := b.ws.Commit(t.Context(), tree, o); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	write(t, filepath.Join(tree.Dir, "huge"), noise(2000))
	_, _, err := b.ws.Commit(t.Context(), tree, codebase.CommitOptions{Message: "x"})
	refused(t, err, fault.Invalid, "huge")
	remove(t, tree.Dir, "huge")
	b.commit(tree, "-n --allow-empty\n# no comment")
	if got := gitIn(t, tree.Dir, "show", "-s", "--format=%cn %ae %B"); got != "Robo robo@example.com -n --allow-empty\n# no comment\n\n" {
		t.Errorf("commit %q", got)
	}
	gitIn(t, tree.Dir, "checkout", "-qb", "side", "HEAD^")
	write(t, filepath.Join(tree.Dir, "a"), "other\n")
	b.commit(tree, "On another branch")
	cmd := exec.Command(gittest.Git(t), "-c", "user.name=A", "-c", "user.email=a@example.com", "merge", "-q", tree.Branch)
	cmd.Dir = tree.Dir
	if err := cmd.Run(); err == nil {
		t.Fatal("the merge has no conflict")
	}
	_, _, err = b.ws.Commit(t.Context(), tree, codebase.CommitOptions{Message: "x"})
	refused(t, err, fault.Conflict, "conflicts")
	gitIn(t, tree.Dir, "add", "a")
	_, _, err = b.ws.Commit(t.Context(), tree, codebase.CommitOptions{Message: "x"})
	refused(t, err, fault.Conflict, "merge is in progress")
	gitIn(t, tree.Dir, "commit", "-qm", "merged")
	if _, changed, err := b.ws.Commit(t.Context(), tree, codebase.CommitOptions{Message: "x"}); err != nil || changed {
		t.Error(changed, err)
	}
}

func TestTokenOfARepository(t *testing.T) {
	t.Parallel()
	asked := ""
	broken := errors.New("no key")
	var fail error
	b := setup(t, func(c *codebase.Config) {
		c.Token = func(string) string { return "general" }
		c.RepoToken = func(_ context.Context, url string) (string, error) {
			asked = url
			if strings.HasSuffix(url, "/web") {
				return "special", fail
			}
			return "", nil
		}
	})
	b.server.Repo("acme/web", map[string]string{"a": "1\n"})
	b.server.Repo("acme/app", map[string]string{"a": "1\n"})
	b.server.Authorize(func(user, password, repo string, _ bool) bool {
		return user == "x-access-token" && password == map[string]string{"acme/web": "special", "acme/app": "general"}[repo]
	})
	repo := b.clone("acme/web")
	if asked != repo.URL {
		t.Errorf("asked for %q", asked)
	}
	b.clone("acme/app")
	fail = fault.Wrap(broken, fault.Unauthorized, "signing")
	if _, err := b.ws.Sync(t.Context(), repo); !errors.Is(err, broken) || !fault.Is(err, fault.Unauthorized) {
		t.Errorf("Sync = %v", err)
	}
}

func TestNothingToPushTo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := filepath.Join(realTemp(t), "folder")
	write(t, filepath.Join(dir, "a"), "1\n")
	repo, err := b.ws.AddLocal(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.ws.WorktreeAt(t.Context(), repo, "c1", codebase.Start{Branch: "x", Existing: true})
	refused(t, err, fault.Unsupported, "no origin")
	tree := b.treeAt(repo, "c1", codebase.Start{Branch: "bot/issue-1"})
	_, err = b.ws.Push(t.Context(), tree, codebase.PushOptions{})
	refused(t, err, fault.Unsupported, "nowhere")
}
