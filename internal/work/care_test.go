package work_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// TestSweepPutsAwayWhatRests, and not what another conversation works in: one that was handed
// over has the worktree of the one before.
func TestSweepPutsAwayWhatRests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	c := b.cloned("team/app", map[string]string{"main.go": "package main\n"})
	later := func() time.Time { return time.Now().Add(time.Hour) }
	rests, owner := b.conversation("rests", c.ID), b.conversation("owner", c.ID)
	heir := b.conversation("heir", c.ID, sessions.Settings{Worktree: owner.ID})
	dirs := make(map[string]string)
	for _, conv := range []sessions.Conversation{rests, owner} {
		p, err := b.prepare(conv, "hello", nil)
		if err != nil {
			t.Fatal(err)
		}
		dirs[conv.ID] = p.Dir
		b.write(p.Dir, map[string]string{"new.txt": "new"})
	}
	if swept, err := b.Sweep(ctx, time.Now().Add(-time.Hour)); err != nil || len(swept.Removed) > 0 {
		t.Errorf("swept %+v, %v, though nothing has rested for long", swept, err)
	}
	b.tx(func(tx *store.Tx) error { // a turn of the heir
		_, _, _, err := tx.Leases().ClaimLease(ctx, heir.ID, "me", time.Hour)
		return err
	})
	if swept, err := b.Sweep(ctx, later()); err != nil || !slices.Equal(swept.Removed, []string{rests.ID}) {
		t.Errorf("swept %+v, %v, want only what rests", swept, err)
	}
	if _, err := os.Stat(dirs[owner.ID]); err != nil {
		t.Errorf("the worktree that the heir works in: %v", err)
	}
	p, err := b.prepare(rests, "back", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "new.txt")); err != nil {
		t.Errorf("what was put away did not come back: %v", err)
	}
}

// TestReleaseAndFork: what is put away comes back with the next turn, and a fork begins with it
// without sharing it.
func TestReleaseAndFork(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	c := b.cloned("team/app", map[string]string{"main.go": "package main\n"})
	conv, fork := b.conversation("1", c.ID), b.conversation("2", c.ID)
	if _, _, ok, err := b.Changes(ctx, conv); ok || err != nil {
		t.Errorf("changes before there is a worktree: %t, %v", ok, err)
	}
	p, err := b.prepare(conv, "hello", nil)
	if err != nil {
		t.Fatal(err)
	}
	b.write(p.Dir, map[string]string{"new.txt": "new"})
	branch, changes, ok, err := b.Changes(ctx, conv)
	if err != nil || !ok || branch != p.Branch || changes.Files != 1 {
		t.Errorf("it has %q, %+v, %t, %v", branch, changes, ok, err)
	}
	if err := b.Release(ctx, conv); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.Dir); err == nil {
		t.Error("the worktree that was put away is still there")
	}
	if _, left, err := b.Fork(ctx, conv, fork); err != nil || len(left) > 0 {
		t.Fatalf("forking left %q, %v", left, err)
	}
	if _, left, err := b.Fork(ctx, conv, fork); err != nil || len(left) > 0 {
		t.Errorf("forking again left %q, %v", left, err)
	}
	root, err := b.OpenTree(ctx, c, fork)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := root.Stat("new.txt"); err != nil {
		t.Error(err)
	}
	if err := root.Close(); err != nil {
		t.Error(err)
	}
	of, err := b.prepare(fork, "hello", nil)
	if err != nil || of.Dir == p.Dir {
		t.Fatalf("the fork works in %s, %v", of.Dir, err)
	}
	for _, dir := range []string{p.Dir, of.Dir} {
		if _, err := os.Stat(filepath.Join(dir, "new.txt")); err != nil {
			t.Error(err)
		}
	}
	branch, trees, err := b.Describe(ctx, c)
	if err != nil || branch != "main" || len(trees) != 2 {
		t.Errorf("described as %q, %+v, %v", branch, trees, err)
	}
	for name, err := range map[string]error{
		"release": b.Release(ctx, b.conversation("3", "")),
		"fork":    func() error { _, _, err := b.Fork(ctx, b.conversation("3", ""), fork); return err }(),
	} {
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%s without a repository: %v", name, err)
		}
	}
}

// TestMaintainLooksAfterAllThatRest: not what a turn works in, nor what is not here. One that is
// broken is told of and does not stop the others.
func TestMaintainLooksAfterAllThatRest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	b.codebase(sessions.Codebase{Name: "a-gone", DefaultCwd: "/srv/gone"})
	many := make(map[string]string)
	for i := range 600 { // from 500 loose objects on packing pays
		many[fmt.Sprintf("many/%d.txt", i)] = fmt.Sprint("file ", i)
	}
	loose := func(c sessions.Codebase) int {
		t.Helper()
		objects, err := filepath.Glob(filepath.Join(c.DefaultCwd, ".git", "objects", "[0-9a-f][0-9a-f]", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(objects)
	}
	all := make(map[string]sessions.Codebase)
	for _, name := range []string{"broken", "busy", "rests"} {
		c := b.cloned("team/"+name, map[string]string{"a.txt": "a"})
		conv := b.conversation(name, c.ID)
		p, err := b.prepare(conv, "hello", nil)
		if err != nil {
			t.Fatal(err)
		}
		if name == "broken" {
			all[name] = c
			continue
		}
		b.write(p.Dir, many)
		if _, err := b.prepare(conv, "again", nil); err != nil { // its checkpoint has all of them
			t.Fatal(err)
		}
		if all[name] = c; name == "busy" {
			b.tx(func(tx *store.Tx) error {
				_, _, _, err := tx.Leases().ClaimLease(ctx, conv.ID, "me", time.Hour)
				return err
			})
		}
	}
	if err := os.Remove(filepath.Join(all["broken"].DefaultCwd, ".git", "HEAD")); err != nil {
		t.Fatal(err)
	}
	done, freed, err := b.Maintain(ctx)
	if err == nil || !strings.Contains(err.Error(), "broken") || done != 1 {
		t.Errorf("maintained %d, %d bytes, %v; want one and what is wrong with another", done, freed, err)
	}
	if busy, rests := loose(all["busy"]), loose(all["rests"]); busy < 600 || rests > 10 {
		t.Errorf("%d objects of the busy one and %d of the other are loose", busy, rests)
	}
}

// TestSyncNamesWhatFailed and fetches the others. A name chooses one.
func TestSyncNamesWhatFailed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	b.codebase(sessions.Codebase{Name: "a-gone", DefaultCwd: "/srv/gone"})
	c := b.cloned("team/app", map[string]string{"main.go": "package main\n"})
	b.git.Commit("team/app", map[string]string{".claude/commands/late.md": "Late.\n", ".claude/commands/ä?.md": "No.\n"})
	var out strings.Builder
	err := b.SyncNamed(ctx, &out, "")
	if !fault.Is(err, fault.Unavailable) || fault.Public(err) != "Not fetched: a-gone." {
		t.Errorf("it ends with %v", err)
	}
	for _, want := range []string{"a-gone failed: ", c.Name + " was updated (main at ", "cannot be a command"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it says %q, without %q", out.String(), want)
		}
	}
	if all, err := b.Commands(ctx, c.ID); err != nil || all["late"].Path == "" {
		t.Errorf("its commands are %v, %v", all, err)
	}
	out.Reset()
	if err := b.SyncNamed(ctx, &out, "app"); err != nil || !strings.HasPrefix(out.String(), c.Name+" is up to date (main at ") {
		t.Errorf("a second time it says %q, %v", out.String(), err)
	}
	if err := b.SyncNamed(ctx, &out, "nowhere"); !fault.Is(err, fault.NotFound) || !strings.Contains(fault.Public(err), "`bot repo list`") {
		t.Errorf("an unknown name: %v", err)
	}
}

// TestRemove forgets a repository that no conversation uses, and deletes its clone unless
// another codebase works there.
func TestRemove(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	used, alone := b.cloned("team/used", map[string]string{"a": "a"}), b.cloned("team/alone", map[string]string{"a": "a"})
	local := b.folder(map[string]string{"keep.txt": "keep"})
	b.codebase(sessions.Codebase{Name: "local", DefaultCwd: local})
	b.codebase(sessions.Codebase{Name: "twin", DefaultCwd: used.DefaultCwd})
	b.codebase(sessions.Codebase{Name: "gone", DefaultCwd: "/srv/gone"})
	b.conversation("1", used.ID)
	for name, want := range map[string]string{"": "Specify a repository", "nowhere": "There is no repository", "used": "is used by 1 conversation;"} {
		var out strings.Builder
		if err := b.RemoveNamed(ctx, &out, name); !strings.Contains(fault.Public(err), want) || out.Len() > 0 {
			t.Errorf("removing %q says %q, %v; want %s", name, out.String(), err, want)
		}
	}
	for _, name := range []string{"alone", "local", "gone", "twin"} {
		var out strings.Builder
		if err := b.RemoveNamed(ctx, &out, name); err != nil || !strings.HasPrefix(out.String(), "removed ") {
			t.Errorf("removing %q says %q, %v", name, out.String(), err)
		}
	}
	for path, want := range map[string]bool{alone.DefaultCwd: false, filepath.Join(local, "keep.txt"): true, used.DefaultCwd: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %t, want %t", path, err == nil, want)
		}
	}
	if all := b.codebases(); len(all) != 1 || b.audited("codebase.remove") != 4 {
		t.Errorf("%v are left, and the audit log has %d", all, b.audited("codebase.remove"))
	}
}
