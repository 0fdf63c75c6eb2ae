package work_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"remote-agent/internal/codebase"
	"remote-agent/internal/codebase/commandfile"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/work"
)

// TestRegisterLoadsTheFilesAnew: what the repository's folders have now is what there is, and
// what people registered from elsewhere, or chose between two files of one name, stays.
func TestRegisterLoadsTheFilesAnew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	dir := b.folder(map[string]string{
		".claude/commands/ship.md": "Ship it.\n", ".claude/commands/old.md": "Old.\n",
		".agents/commands/a/test.md": "A.\n", ".agents/commands/b/test.md": "B.\n",
		"more/check.md": "Check.\n",
	})
	repo, err := b.space.Open(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	c, created, problems, err := b.Register(ctx, repo)
	if err != nil || !created || len(problems) != 1 || !strings.Contains(problems[0], "`/test` is in `.agents/commands/a/test.md` and `.agents/commands/b/test.md`, so none of them runs.") {
		t.Fatalf("registered: %t, %q, %v", created, problems, err)
	}
	paths := func() map[string]string {
		t.Helper()
		all, err := b.Commands(ctx, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]string)
		for name, def := range all {
			got[name] = def.Path
		}
		return got
	}
	want := map[string]string{"ship": ".claude/commands/ship.md", "old": ".claude/commands/old.md", "test": ""}
	if got := paths(); !maps.Equal(got, want) {
		t.Errorf("registered %v, want %v", got, want)
	}
	b.tx(func(tx *store.Tx) error {
		all, err := tx.Registry().CodebaseCommands(ctx, c.ID)
		if err != nil {
			return err
		}
		all["check"] = sessions.CommandDef{Path: "more/check.md"}
		all["test"] = sessions.CommandDef{Path: ".agents/commands/b/test.md"}
		return tx.Registry().UpdateCodebaseCommands(ctx, c.ID, all)
	})
	if err := os.Remove(filepath.Join(dir, ".claude", "commands", "old.md")); err != nil {
		t.Fatal(err)
	}
	b.write(dir, map[string]string{".claude/commands/new.md": "New.\n"})
	again, created, _, err := b.Register(ctx, repo)
	if err != nil || created || again.ID != c.ID {
		t.Errorf("a second time: %+v, created: %t, %v", again, created, err)
	}
	want = map[string]string{
		"ship": ".claude/commands/ship.md", "new": ".claude/commands/new.md",
		"check": "more/check.md", "test": ".agents/commands/b/test.md",
	}
	if got := paths(); !maps.Equal(got, want) {
		t.Errorf("after that %v, want %v", got, want)
	}
}

// TestRegisterTellsFoldersApart: neither a clone in the same folder nor another folder is the
// codebase of a folder.
func TestRegisterTellsFoldersApart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	dir := b.folder(map[string]string{"a.txt": "a"})
	b.codebase(sessions.Codebase{Name: "clone", RepositoryURL: "https://hub.example/team/app", DefaultCwd: dir})
	b.codebase(sessions.Codebase{Name: "other", DefaultCwd: b.folder(nil)})
	repo, err := b.space.Open(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	if c, created, _, err := b.Register(ctx, repo); err != nil || !created || c.Name != repo.Name || c.DefaultCwd != dir {
		t.Errorf("it is %+v, new: %t, %v", c, created, err)
	}
	_, _, _, err = b.Register(ctx, codebase.Repo{Name: "gone", Dir: filepath.Join(dir, "gone")})
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if got := slices.Sorted(maps.Keys(b.codebases())); len(got) != 3 {
		t.Errorf("registered are %q", got)
	}
}

// TestCodebasesOfElsewhereComeHome: once a repository is cloned, every codebase of it whose
// folder is missing is there, however its import spelled the address, and no other.
func TestCodebasesOfElsewhereComeHome(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	url := b.git.Repo("team/app", map[string]string{".claude/commands/ship.md": "Ship it.\n"})
	here := b.folder(nil)
	b.codebase(sessions.Codebase{Name: "first", RepositoryURL: url + ".git", DefaultCwd: "/srv/gone/app"})
	b.codebase(sessions.Codebase{Name: "second", RepositoryURL: url + "/", DefaultCwd: "/srv/gone/app2"})
	b.codebase(sessions.Codebase{Name: "here", RepositoryURL: url + ".git/", DefaultCwd: here})
	b.codebase(sessions.Codebase{Name: "another", RepositoryURL: url + "lication", DefaultCwd: "/srv/gone/another"})
	if err := b.Clone(ctx, url); err != nil {
		t.Fatal(err)
	}
	home := b.repo(url).Dir
	for name, want := range map[string]string{"first": home, "second": home, "here": here, "another": "/srv/gone/another"} {
		c := b.codebases()[name]
		if c.DefaultCwd != want {
			t.Errorf("%s is in %s, want %s", name, c.DefaultCwd, want)
		}
		commands, err := b.Commands(ctx, c.ID)
		if _, ok := commands["ship"]; err != nil || ok == (name == "another") {
			t.Errorf("%s has the commands %v, %v", name, commands, err)
		}
	}
	if all := b.codebases(); len(all) != 4 {
		t.Errorf("there are %d codebases, want no new one", len(all))
	}
}

// TestCommandFilesOfANewWorktree are registered with it, and none is forgotten: an earlier
// branch may have it. Those that a conversation writes itself are its own.
func TestCommandFilesOfANewWorktree(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	c := b.cloned("team/app", map[string]string{".claude/commands/ship.md": "Ship it.\n"})
	b.git.Commit("team/app", map[string]string{".claude/commands/late.md": "---\ndescription: came later\n---\nLate.\n"})
	for range 2 {
		p, err := b.prepare(b.conversation("1", c.ID), "hello", nil)
		if err != nil {
			t.Fatal(err)
		}
		b.write(p.Dir, map[string]string{".claude/commands/own.md": "Not in the repository yet.\n"})
	}
	all, err := b.Commands(ctx, c.ID)
	if err != nil || all["late"].Description != "came later" || all["ship"].Path == "" || len(all) != 2 {
		t.Errorf("registered are %v, %v", all, err)
	}
}

// TestMerge: a name of two files runs nothing, and a file that cannot be used takes no name from
// one that can.
func TestMerge(t *testing.T) {
	t.Parallel()
	registry := make(map[string]sessions.CommandDef)
	problems := work.Merge(registry, []commandfile.File{
		{Name: "Ship", Path: "a/Ship.md", Meta: commandfile.Meta{Description: "ships"}},
		{Name: "ship", Path: "b/ship.md", Problem: "b/ship.md is not a text file."},
		{Name: "broken", Path: "a/broken.md", Problem: "a/broken.md is too large."},
		{Name: "twice", Path: "b/twice.md", Conflict: true}, {Name: "twice", Path: "a/twice.md", Conflict: true},
		{Name: "ä b", Path: "a/ä b.md"},
	})
	want := map[string]sessions.CommandDef{
		"ship":   {Path: "a/Ship.md", Description: "ships"},
		"broken": {Path: "a/broken.md", Description: "⚠ a/broken.md is too large."},
		"twice":  {Description: "several files have this name"},
	}
	if !maps.Equal(registry, want) {
		t.Errorf("registered %v, want %v", registry, want)
	}
	if len(problems) != 2 || !strings.Contains(problems[0], "`a/ä b.md` cannot be a command") || !strings.Contains(problems[1], "`/twice` is in `b/twice.md` and `a/twice.md`") {
		t.Errorf("the problems are %q", problems)
	}
}
