package chat_test

import (
	"strings"
	"testing"
	"time"

	"remote-agent/internal/chat"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/work"
)

// TestPlanAndUndo has turns taken back that made a plan or carried one out.
func TestPlanAndUndo(t *testing.T) {
	t.Parallel()
	planned := line{say: "/plan a trip", want: "**Plan p-1, version 1.**"}
	for name, c := range map[string]struct {
		lines []line
		runs  int // how often the plan was carried out
	}{
		"what was planned": {lines: []line{
			planned,
			{say: "/undo", want: "Plan p-1 is rejected."},
			{say: "/execute", want: "There is no plan to run here."},
			{say: "/execute p-1", want: "Plan p-1 (version 1) is already rejected."},
			{say: "/approve p-1", want: "Plan p-1 (version 1) is already rejected."},
		}},
		"what was approved": {lines: []line{
			planned,
			{say: "/approve p-1", want: "Approved"},
			{say: "/undo", want: "Plan p-1 is rejected."},
			{say: "/execute", want: "There is no plan to run here."},
		}},
		"what was planned, again": {lines: []line{
			planned,
			{say: "/retry", want: "**Plan p-2, version 1.**"},
			{say: "/execute p-1", want: "Plan p-1 (version 1) is already rejected."},
			{say: "/execute", want: "I did it."},
		}, runs: 1},
		"what was carried out": {lines: []line{
			planned,
			{say: "/approve p-1 with a tent", want: "Approved"},
			{say: "/execute", want: "I did it."},
			{say: "/undo", want: "Plan p-1 is approved again: `/execute p-1`."},
			{say: "/execute p-1", want: "I did it."},
			{say: "/execute p-1", want: "Plan p-1 (version 2) is already done."},
		}, runs: 2},
		"what was carried out, again": {lines: []line{
			planned,
			{say: "/execute", want: "I did it."},
			{say: "/retry in a hurry", want: "I did it."},
		}, runs: 2},
		"one turn after the other": {lines: []line{
			planned,
			{say: "/execute p-1", want: "I did it."},
			{say: "hello", want: "hello"},
			{say: "/undo", want: "the files are as they were before it."},
			{say: "/undo", want: "Plan p-1 is approved again"},
			{say: "/undo", want: "Plan p-1 is rejected."},
		}, runs: 1},
		"what took the place of another": {lines: []line{
			planned,
			{say: "/plan a walk", want: "**Plan p-2, version 1.**"},
			{say: "/undo", want: "Plan p-2 is rejected. Plan p-1 waits again: `/execute p-1`."},
			{say: "/execute", want: "I did it."},
			{say: "/execute p-1", want: "Plan p-1 (version 2) is already done."},
			{say: "/undo", want: "Plan p-1 is approved again: `/execute p-1`."},
		}, runs: 1},
		"what took the place of what was approved": {lines: []line{
			planned,
			{say: "/approve", want: "Approved"},
			{say: "/plan a walk", want: "**Plan p-2, version 1.**"},
			{say: "/undo", want: "Plan p-2 is rejected. Plan p-1 is approved again: `/execute p-1`."},
			{say: "/approve p-1", want: "Plan p-1 (version 2) is already approved."},
		}},
		"what took the place of what was undone": {lines: []line{
			planned,
			{say: "/plan a walk", want: "**Plan p-2, version 1.**"},
			{say: "/plan a swim", want: "**Plan p-3, version 1.**"},
			{say: "/reject", want: "Rejected plan p-3"},
			{say: "/undo", want: "messages; the files are as they were before it. Plan p-2 waits again"},
			{say: "/undo", want: "Plan p-2 is rejected. Plan p-1 waits again"},
			{say: "/plan a climb", want: "**Plan p-4, version 1.**"},
			{say: "/undo", want: "Plan p-4 is rejected. Plan p-1 waits again"},
			{say: "/undo", want: "Plan p-1 is rejected."},
			{say: "/execute", want: "There is no plan to run here."},
		}},
		"what followed what was carried out": {lines: []line{
			planned,
			{say: "/plan a walk", want: "**Plan p-2, version 1.**"},
			{say: "/execute", want: "I did it."},
			{say: "/plan a swim", want: "**Plan p-3, version 1.**"},
			{say: "/undo", want: "the files are as they were before it. Plan p-3 is rejected."},
			{say: "/execute p-1", want: "Plan p-1 (version 1) is already superseded."},
			{say: "/execute p-2", want: "Plan p-2 (version 1) is already done."},
		}, runs: 1},
		"what was carried out before another plan": {lines: []line{
			planned,
			{say: "/execute", want: "I did it."},
			{say: "/plan a swim", want: "**Plan p-2, version 1.**"},
			{say: "/undo", want: "Plan p-2 is rejected."},
			{say: "/undo", want: "Plan p-1 is approved again: `/execute p-1`."},
			{say: "/execute", want: "I did it."},
			{say: "/undo", want: "Plan p-1 is approved again"},
			{say: "/undo", want: "Plan p-1 is rejected."},
		}, runs: 2},
		"what another name means": {lines: []line{
			planned,
			{say: "/execute a-7", want: `"a-7" is not a plan like p-3.`},
			{say: "/edit a-7 1. Stay.", want: `"a-7" is not a plan like p-3.`},
			{say: "/execute a-team", want: "I did it."},
		}, runs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Commands = func(c *chat.Config, p *ot.Process) {
					c.Work = work.New(work.Config{Store: p.Store, Log: storetest.Log(t)})
				}
				w.Model.On("Write a plan", ot.Say("1. Pack."))
				w.Model.On("Carry out this plan", ot.Say("I did it."))
				w.Start()
				talk(w, c.lines...)
				if got := strings.Count(strings.Join(w.Model.Asked(), "\n"), "1. Pack."); got != c.runs {
					t.Errorf("the plan was carried out %d times, want %d: %q", got, c.runs, w.Model.Asked())
				}
			})
		})
	}
}

// TestUndonePlanShowsIt at once, where it stands: its buttons are gone.
func TestUndonePlanShowsIt(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Commands = func(c *chat.Config, p *ot.Process) {
			c.Work = work.New(work.Config{Store: p.Store, Log: storetest.Log(t)})
		}
		w.Model.On("Write a plan", ot.Say("1. Pack."))
		w.Start()
		talk(w, line{say: "/plan a trip", want: "**Plan p-1, version 1.**"})
		w.Chat.Say("/undo")
		w.Pass(300 * time.Millisecond)
		shown := w.Chat.Find("**Plan p-1, version 1.**")
		if !strings.Contains(shown.Text, "✖ Rejected by ") || len(shown.Buttons) > 0 {
			t.Errorf("the plan is shown as %q with the buttons %v", shown.Text, shown.Buttons)
		}
	})
}
