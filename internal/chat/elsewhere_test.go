package chat_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/chat"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/work"
)

// moveTo has the conversations of a world work on a codebase, which is made.
func moveTo(w *ot.World, name string) {
	w.T.Helper()
	ctx := w.T.Context()
	err := w.Process().Store.InTx(ctx, func(tx *store.Tx) error {
		c, err := tx.Registry().Create(ctx, sessions.Codebase{Name: name, DefaultCwd: w.T.TempDir()})
		if err != nil {
			return err
		}
		for _, id := range w.Rows(`SELECT id FROM remote_agent_conversations`) {
			if err := tx.Conversations().UpdateConversation(ctx, id, sessions.ConversationUpdate{CodebaseID: &c.ID}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.T.Fatal(err)
	}
}

// TestPlanRunsInItsRepository and in no other: what somebody approved was about that one.
func TestPlanRunsInItsRepository(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Commands = func(c *chat.Config, p *ot.Process) {
			c.Work = work.New(work.Config{Store: p.Store, Log: storetest.Log(t)})
		}
		w.Model.On("Write a plan", ot.Say("1. Pack."))
		w.Model.On("Carry out this plan", ot.Say("I did it."))
		w.Start()
		talk(w, line{say: "/plan a trip", want: "**Plan p-1, version 1.**"})
		moveTo(w, "shop")
		talk(w,
			line{say: "/execute", want: "I did it."}, // it was made without a repository
			line{say: "/new", want: "Session ended"},
			line{say: "/plan a walk", want: "**Plan p-2, version 1.**"})
		moveTo(w, "lib")
		for _, say := range []string{"/execute", "/execute p-2"} {
			talk(w, line{say: say, want: "Plan p-2 was made for another repository than the one here, so it was not run."})
		}
		if got := strings.Count(strings.Join(w.Model.Asked(), "\n"), "Carry out this plan"); got != 1 {
			t.Errorf("plans were carried out %d times, want once: %q", got, w.Model.Asked())
		}
	})
}

// TestUndoAfterASwitch takes the last turn back where it was.
func TestUndoAfterASwitch(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	b.do("/clone " + b.git.Repo("team/app", map[string]string{"main.go": "package main\n"}))
	b.turn("break it", map[string]string{"main.go": "broken"})
	b.do("/clone " + b.git.Repo("team/lib", map[string]string{"lib.go": "package lib\n"}))
	if got := b.do("/undo"); !strings.Contains(got, "↩ Undid the last turn: 2 messages; the files are as they were before it.") {
		t.Errorf("/undo after a switch says %q", got)
	}
	b.do("/repo app")
	if got := b.do("/diff"); !strings.Contains(got, "No changes") {
		t.Errorf("what was undone is still there: %q", got)
	}
}

// TestUndoWithoutTheFiles: where the state of the files is lost, as on another machine, what was
// said can be taken back all the same.
func TestUndoWithoutTheFiles(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	b.do("/clone " + b.git.Repo("team/app", map[string]string{"main.go": "package main\n"}))
	b.turn("break it", map[string]string{"main.go": "broken"})
	now, err := b.prepare("hello")
	if err == nil {
		err = os.RemoveAll(filepath.Join(now.GitData, "refs", "bot"))
	}
	if err != nil {
		t.Fatal(err)
	}
	got := b.do("/undo")
	if !strings.Contains(got, "↩ Undid the last turn: 2 messages.") || !strings.Contains(got, "the files (") {
		t.Errorf("/undo without the files says %q", got)
	}
}

// TestDiffWithoutTheFiles: on another machine than the one that a conversation worked on before,
// its changes are not undone, and only not there.
func TestDiffWithoutTheFiles(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	b.do("/clone " + b.git.Repo("team/app", map[string]string{"main.go": "package main\n"}))
	if got := b.do("/diff"); strings.Contains(got, "not on this machine") {
		t.Errorf("/diff before the first turn says %q", got)
	}
	b.turn("break it", map[string]string{"main.go": "broken"})
	if got := b.do("/diff"); !strings.Contains(got, "broken") || strings.Contains(got, "not on this machine") {
		t.Errorf("/diff says %q", got)
	}
	for command, want := range map[string]string{"/diff": "No changes on", "/branch": "started from", "/fork thread": "a copy of the files"} {
		now, err := b.prepare("hello")
		for _, gone := range []string{now.Tree, filepath.Join(now.GitData, "refs", "bot"), filepath.Join(now.GitData, "refs", "heads", "bot")} {
			if err == nil {
				err = os.RemoveAll(gone)
			}
		}
		if err == nil {
			err = os.Remove(now.Tree + ".json")
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := b.do(command); !strings.Contains(got, "What this conversation changed before is not on this machine") || !strings.Contains(got, want) {
			t.Errorf("%s without the files says %q", command, got)
		}
	}
}

// TestCommandFilesThatCameLater are known as soon as a worktree has them. What another
// conversation has registered of its own branch stays.
func TestCommandFilesThatCameLater(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	b.do("/clone " + b.git.Repo("team/app", map[string]string{"main.go": "package main\n"}))
	b.do("/command-set ship .claude/commands/ship.md Ship it.")
	b.git.Commit("team/app", map[string]string{".claude/commands/fresh.md": "---\ndescription: new here\n---\nBe fresh.\n"})
	b.conv = "2"
	b.do("/repo app")
	b.turn("hello", nil)
	if got := b.do("/commands"); !strings.Contains(got, "`/fresh` new here") || !strings.Contains(got, "`/ship`") {
		t.Errorf("/commands answers %q", got)
	}
}
