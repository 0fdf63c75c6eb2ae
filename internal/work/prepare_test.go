package work_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// TestTurnWithoutARepository says how to get one.
func TestTurnWithoutARepository(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.prepare(b.conversation("1", ""), "hello", nil)
	if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "no repository yet. Use `/clone <url>`") {
		t.Errorf("it ends with %v", err)
	}
}

// TestTurnAboutARepository gets it and works on its branch, once: the second turn finds what
// the first one left.
func TestTurnAboutARepository(t *testing.T) {
	t.Parallel()
	b := setup(t)
	url := b.git.Repo("team/app", map[string]string{"AGENTS.md": "Use make.\n", ".agents/system.md": "Be terse.\n", "src/main.go": "package main\n"})
	about := &messages.Repository{URL: url, Branch: "bot/issue-7"}
	p, err := b.prepare(b.conversation("7", ""), "hello", about)
	if err != nil {
		t.Fatal(err)
	}
	if p.Branch == "" || p.Dir != p.Tree || p.Head != b.git.Ref("team/app", "refs/heads/main") || p.Checkpoint == "" || p.Prompt != nil || p.Notice != "" {
		t.Errorf("prepared %+v", p)
	}
	if p.Notes != "Use make." || p.Instructions != "Be terse." || !strings.HasSuffix(p.Codebase, "team/app") {
		t.Errorf("it is told %q and %q of %q", p.Instructions, p.Notes, p.Codebase)
	}
	b.write(p.Dir, map[string]string{"new.txt": "new"})
	conv := b.conversation("7", b.codebases()[p.Codebase].ID, sessions.Settings{})
	again, err := b.prepare(conv, "again", about)
	if err != nil || again.Dir != p.Dir || again.Checkpoint == p.Checkpoint {
		t.Errorf("the second turn has %+v, %v", again, err)
	}
	if _, tree, err := b.Worktree(t.Context(), conv); err != nil || tree.Known() != about.Branch {
		t.Errorf("its work goes to %q, %v; want %q", tree.Known(), err, about.Branch)
	}
	if _, err := os.Stat(filepath.Join(again.Dir, "new.txt")); err != nil {
		t.Error(err)
	}
	if n := b.audited("conversation.codebase"); n != 1 {
		t.Errorf("the audit log says %d times that the conversation got a repository, want once", n)
	}
}

// TestTurnInAFolder works there, with the notes that are nearest.
func TestTurnInAFolder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.cloned("team/app", map[string]string{"AGENTS.md": "root", "web/AGENTS.md": "web"})
	conv := b.conversation("1", c.ID)
	conv.Cwd = "web"
	p, err := b.prepare(conv, "hello", nil)
	if err != nil || p.Dir != filepath.Join(p.Tree, "web") || p.Notes != "web" || p.NotesFrom != "web/AGENTS.md" {
		t.Errorf("prepared %+v, %v", p, err)
	}
	conv.Cwd = "gone"
	if _, err := b.prepare(conv, "hello", nil); !fault.Is(err, fault.NotFound) || !strings.Contains(fault.Public(err), "The folder `gone` no longer exists") {
		t.Errorf("a folder that is gone: %v", err)
	}
}

// TestTurnAboutAnotherRepository than the one that the conversation was switched to works on that
// one, on a branch of its own.
func TestTurnAboutAnotherRepository(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.cloned("team/lib", map[string]string{"lib.go": "package lib\n"})
	url := b.git.Repo("team/app", map[string]string{"main.go": "package main\n"})
	conv := b.conversation("7", c.ID)
	p, err := b.prepare(conv, "hello", &messages.Repository{URL: url, Branch: "feature", Existing: true})
	if err != nil || p.Codebase != c.Name {
		t.Errorf("prepared %+v, %v", p, err)
	}
	if _, tree, err := b.Worktree(t.Context(), conv); err != nil || tree.Known() == "feature" {
		t.Errorf("its work goes to %q, %v", tree.Known(), err)
	}
}

// TestTurnAboutAForksPullRequest reads what the fork has, and nothing without the ref to fetch.
// A pull request whose branch is gone is read the same way.
func TestTurnAboutAForksPullRequest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.cloned("team/app", map[string]string{"main.go": "package main\n"})
	head := b.git.Commit("team/app", map[string]string{"fork.go": "package main\n"})
	b.git.Run("team/app", nil, "update-ref", "refs/pull/7/head", head)
	b.git.Run("team/app", nil, "update-ref", "refs/heads/main", head+"^")
	for name, about := range map[string]messages.Repository{
		"fork":   {ReadOnly: true, Fetch: "refs/pull/7/head", Base: "main"},
		"closed": {Existing: true, Branch: "gone", Fetch: "refs/pull/7/head"},
	} {
		about.URL = b.git.URL("team/app") + ".git" // as GitHub writes it
		p, err := b.prepare(b.conversation(name, c.ID), "hello", &about)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(p.Dir, "fork.go")); err != nil || p.Head != head {
			t.Errorf("%s: works on %s, %v; want %s", name, p.Head, err, head)
		}
	}
	_, err := b.prepare(b.conversation("9", c.ID), "hello", &messages.Repository{URL: b.git.URL("team/app"), ReadOnly: true, Base: "main"})
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Public(err), "Try again in a minute") {
		t.Errorf("without a ref: %v", err)
	}
	_, err = b.prepare(b.conversation("8", c.ID), "hello", &messages.Repository{URL: b.git.URL("team/app"), Existing: true, Branch: "gone"})
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("a branch that is gone: %v", err)
	}
}

// TestTurnOfACommandFile reads the file of the conversation's branch, now.
func TestTurnOfACommandFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	c := b.cloned("team/app", map[string]string{
		".claude/commands/Build.md":    "---\ndescription: build\nconsumes: plan\nmodel: fast\n---\nBuild $1 of $ARGUMENTS by $PLAN\n",
		".claude/commands/design.md":   "---\nproduces: plan\n---\nDesign.\n",
		".agents/commands/a/double.md": "A\n", ".agents/commands/b/double.md": "B\n",
	})
	b.tx(func(tx *store.Tx) error {
		all, err := tx.Registry().CodebaseCommands(ctx, c.ID)
		if err != nil {
			return err
		}
		all["absent"] = sessions.CommandDef{Path: ".claude/commands/absent.md"}
		return tx.Registry().UpdateCodebaseCommands(ctx, c.ID, all)
	})
	conv := b.conversation("1", c.ID)
	if p, err := b.prepare(conv, "/nothing of ours", nil); err != nil || p.Prompt != nil {
		t.Errorf("a command that no file has: %+v, %v", p.Prompt, err)
	}
	p, err := b.prepare(conv, "/build app fast", nil)
	if err != nil || p.Prompt == nil {
		t.Fatalf("/build: %+v, %v", p.Prompt, err)
	}
	call, _ := command.Parse("/build app fast")
	text, warnings := p.Prompt.Expand(call, "the plan")
	if strings.TrimSpace(text) != "Build app of app fast by the plan" || len(warnings) > 0 || p.Prompt.Model != "fast" {
		t.Errorf("expanded to %q, %q for the model %q", text, warnings, p.Prompt.Model)
	}
	if p.Prompt.Meta != sessions.MetaOf("Build", "", sessions.Plan) {
		t.Errorf("it is %+v", p.Prompt.Meta)
	}
	if p, err = b.prepare(conv, "/design", nil); err != nil || p.Prompt.Meta != sessions.MetaOf("design", sessions.Plan, "") {
		t.Errorf("/design is %+v, %v", p.Prompt, err)
	}
	b.write(p.Dir, map[string]string{".claude/commands/design.md": "Design anew.\n"})
	if p, err = b.prepare(conv, "/design", nil); err != nil {
		t.Fatal(err)
	}
	if text, _ := p.Prompt.Expand(command.Call{Name: "design"}, ""); strings.TrimSpace(text) != "Design anew." {
		t.Errorf("it has %q, not what the file says now", text)
	}
	for text, want := range map[string]string{
		"/double": "Two files are named `/double`",
		"/absent": "The branch of this conversation does not have `.claude/commands/absent.md`",
	} {
		if _, err := b.prepare(conv, text, nil); !strings.Contains(fault.Public(err), want) {
			t.Errorf("%s ends with %v, want %q", text, err, want)
		}
	}
}

// TestRepositoryThatIsNotHere is cloned where the platform says what a conversation is about. Else
// somebody is asked, or told why it cannot be.
func TestRepositoryThatIsNotHere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	url := b.git.Repo("team/app", map[string]string{"main.go": "package main\n"})
	c := b.codebase(sessions.Codebase{Name: "shop", RepositoryURL: url, DefaultCwd: "/srv/gone/shop"})
	conv := b.conversation("1", c.ID)
	for name, about := range map[string]*messages.Repository{"a chat": nil, "another one": {URL: b.git.URL("team/lib"), Branch: "x"}} {
		_, err := b.prepare(conv, "hello", about)
		need, ok := errors.AsType[*orchestrator.NeedsClone](err)
		if !ok || need.URL != url || !strings.Contains(need.Why, "**shop** is not on this machine: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := b.Worktree(t.Context(), conv); !fault.Is(err, fault.NotFound) || !strings.Contains(fault.Public(err), "Use `/clone "+url+"` to get it.") {
		t.Errorf("a command about it: %v", err)
	}
	if branch, _, ok, err := b.Changes(t.Context(), conv); branch != "" || ok || err != nil {
		t.Errorf("it has changes: %q, %t, %v", branch, ok, err)
	}
	for name, tt := range map[string]struct{ url, why string }{
		"unknown": {why: "its repository is not known"},
		"foreign": {url: "https://elsewhere.example/team/app", why: "elsewhere.example"},
	} {
		c := b.codebase(sessions.Codebase{Name: name, RepositoryURL: tt.url, DefaultCwd: "/srv/gone/" + name})
		_, err := b.prepare(b.conversation(name, c.ID), "hello", nil)
		text := fault.Public(err)
		if !fault.Is(err, fault.NotFound) || !strings.Contains(text, tt.why) || !strings.Contains(text, "An operator can restore the folder") {
			t.Errorf("%s: %v", name, err)
		}
	}
	p, err := b.prepare(conv, "hello", &messages.Repository{URL: url + ".git", Branch: "bot/issue-1"})
	if err != nil || p.Codebase != "shop" {
		t.Errorf("an issue of it: %+v, %v", p, err)
	}
	if _, tree, err := b.Worktree(t.Context(), conv); err != nil || tree.Known() != "bot/issue-1" {
		t.Errorf("its work goes to %q, %v", tree.Known(), err)
	}
}

// TestLostWork: a conversation that worked on the repository before, and has another worktree
// now, is told that its files begin again.
func TestLostWork(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	c := b.cloned("team/app", map[string]string{"main.go": "package main\n"})
	conv := b.conversation("1", c.ID)
	b.tx(func(tx *store.Tx) error {
		_, err := tx.Sessions().CreateSession(ctx, sessions.NewSession{ConversationID: conv.ID, CodebaseID: c.ID, Assistant: "demo", UserPrompt: "hello"})
		return err
	})
	const lost = "What this conversation changed before is not on this machine"
	for turn, want := range []bool{true, false} { // the second turn has the worktree of the first
		p, err := b.prepare(conv, "hello", nil)
		if err != nil || strings.HasPrefix(p.Notice, lost) != want {
			t.Errorf("turn %d is told %q, %v", turn+1, p.Notice, err)
		}
	}
	other := b.cloned("team/lib", map[string]string{"lib.go": "package lib\n"})
	for name, conv := range map[string]sessions.Conversation{"is new": b.conversation("2", c.ID), "was switched": b.conversation("1", other.ID)} {
		if p, err := b.prepare(conv, "hello", nil); err != nil || p.Notice != "" {
			t.Errorf("a conversation that %s is told %q, %v", name, p.Notice, err)
		}
	}
}
