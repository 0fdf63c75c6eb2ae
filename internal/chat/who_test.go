package chat_test

import (
	"strings"
	"testing"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/profile"
)

// TestWhoDecidesOnAPlan is the requester and the owners, also on a version that an owner
// wrote.
func TestWhoDecidesOnAPlan(t *testing.T) {
	t.Parallel()
	const not = "Only the person who asked for plan p-1 or an owner can decide on it."
	for name, lines := range map[string][]line{
		"Requester": {{say: "/approve p-1", want: "✔ Approved plan p-1, version 1."}},
		"Owner":     {{who: ot.Olga, say: "/approve p-1", want: "✔ Approved plan p-1, version 1."}},
		"OwnerRejects": {
			{who: ot.Bob, say: "/reject p-1", want: not},
			{who: ot.Olga, say: "/reject p-1", want: "✖ Rejected plan p-1; nothing was run."},
		},
		"SomebodyElse": {{who: ot.Bob, say: "/approve p-1", want: not}, {who: ot.Bob, say: "/edit p-1 1. Swim.", want: not}},
		"OwnerEdits": {
			{who: ot.Olga, say: "/edit p-1 1. Swim.", want: "**Plan p-1, version 2.**"},
			{who: ot.Bob, say: "/approve p-1", want: not},
			{say: "/approve p-1", want: "✔ Approved plan p-1, version 2."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Start()
				talk(w, append([]line{{say: "/plan a bridge", want: "**Plan p-1, version 1.**"}}, lines...)...)
			})
		})
	}
}

// TestButtonsBelongToTheirConversation: pressed in another one they decide nothing.
func TestButtonsBelongToTheirConversation(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Start()
		talk(w, line{say: "/plan a bridge", want: "**Plan p-1, version 1.**"}, line{in: "team", say: "hello", want: "hello"})
		w.Chat.Press(w.Chat.Find("**Plan p-1, version 1.**"), "Approve", ot.In("team"))
		w.Pass(2 * time.Second)
		if got := w.Value(`SELECT state FROM plans`); got != "proposed" {
			t.Errorf("the plan is %s", got)
		}
		if notes := strings.Join(w.Chat.Notes(), "\n"); !strings.Contains(notes, "This button has expired; nothing was done.") {
			t.Errorf("who pressed was told %q", notes)
		}
	})
}

// TestExecuteButtonRunsItsPlan and no newer one that nobody has decided on.
func TestExecuteButtonRunsItsPlan(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("a trip", ot.Say("1. Pack."))
		w.Model.On("a war", ot.Hold("", ot.Say("1. Attack.")))
		w.Model.On("Carry out this plan", ot.Say("I did it."))
		w.Start()
		talk(w, line{say: "/plan a trip", want: "1. Pack."})
		w.Chat.Say("/plan a war")
		w.Pass(time.Second)
		w.Chat.Press(w.Chat.Find("1. Pack."), "Approve and run")
		w.Pass(time.Second)
		w.Model.Release()
		w.Pass(10 * time.Second)
		if asked := strings.Join(w.Model.Asked(), "\n"); strings.Contains(asked, "1. Attack.") {
			t.Errorf("the model was asked %q", asked)
		}
	})
}

// TestReadersPressNothing has somebody with read-only access press what their own turns and
// questions show.
func TestReadersPressNothing(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		everything(w)
		w.Model.On("Write a plan", ot.Say("1. Pack."))
		w.Model.On("slow", ot.Fail("", &fault.Error{Kind: fault.Unavailable, RetryAfter: time.Hour}), ot.Say("Never."))
		w.Start()
		talk(w,
			line{who: ot.Olga, say: "/people allow chat/stan read-only", want: "stan"},
			line{who: ot.Stranger, say: "/plan a trip", want: "1. Pack."})
		w.Chat.Press(w.Chat.Find("1. Pack."), "Approve", ot.From(ot.Stranger))
		w.Pass(2 * time.Second)
		if got := w.Value(`SELECT state FROM plans`); got != "proposed" {
			t.Errorf("the plan is %s", got)
		}
		talk(w, line{who: ot.Stranger, say: "slow", want: "⏳"})
		w.Chat.Press(w.Chat.Find("⏳"), "Retry now", ot.From(ot.Stranger))
		w.Pass(2 * time.Second)
		if n := len(w.Model.Requests()); n != 2 {
			t.Errorf("the model was asked %d times", n)
		}
		if notes := strings.Join(w.Chat.Notes(), "\n"); strings.Count(notes, "You have read-only access") != 2 {
			t.Errorf("who pressed was told %q", notes)
		}
	})
}

// TestReadersStopTheirOwnTurn by its button, whatever of others waits behind it.
func TestReadersStopTheirOwnTurn(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		everything(w)
		w.Model.On("slow", ot.Hold("I am ", ot.Say("I am slow.")))
		w.Start()
		talk(w, line{who: ot.Olga, say: "/people allow chat/stan read-only", want: "stan"})
		w.Chat.Say("slow", ot.From(ot.Stranger), ot.In("team"))
		w.Chat.Say("behind it", ot.In("team"))
		w.Pass(5 * time.Second)
		w.Chat.Press(w.Chat.Find("I am"), "Stop", ot.From(ot.Stranger))
		w.Pass(5 * time.Second)
		if got := w.States("slow") + " " + w.States("behind it"); got != "stopped done" {
			t.Errorf("the entries are %s", got)
		}
	})
}

// TestButtonsThatNobodyWasShown are of a place in the inbox that does not exist yet, or of a
// turn that did not fail.
func TestButtonsThatNobodyWasShown(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Start()
		talk(w, line{say: "hello", want: "re: hello"})
		id := w.Value(`SELECT id FROM remote_agent_conversations`)
		press := func(action, want string) {
			t.Helper()
			before := len(w.Chat.Notes())
			w.Chat.Do(ot.With(func(in *messages.Inbound) { in.Kind, in.Action = messages.KindAction, action }))
			w.Pass(2 * time.Second)
			if notes := strings.Join(w.Chat.Notes()[before:], "\n"); !strings.Contains(notes, want) {
				t.Errorf("who pressed %s was told %q, want %q", action, notes, want)
			}
		}
		press(command.StopButton(id, 99), "This button no longer works.")
		press(command.TurnButton(id, 99, command.Retry), "This button no longer works.")
		press(command.TurnButton(id, 1, command.Retry), "This is no longer the last turn, so nothing was done.")
		talk(w, line{say: "and then?", want: "re: and then?"})
		if n := len(w.Model.Requests()); n != 2 {
			t.Errorf("the model was asked %d times", n)
		}
	})
}

// TestRetryButtonWhileSomethingElseWaits does nothing, and says so.
func TestRetryButtonWhileSomethingElseWaits(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("break", ot.Fail("", fault.New(fault.Invalid, "It broke.")), ot.Say("Never."))
		w.Start()
		talk(w, line{say: "break", want: "It broke."})
		failed := w.Chat.Find("It broke.")
		w.Chat.Say("one of many", ot.With(func(in *messages.Inbound) { in.Album = "a" })) // it waits a moment for the others
		w.Chat.Press(failed, "Retry")
		w.Settle()
		if notes := strings.Join(w.Chat.Notes(), "\n"); !strings.Contains(notes, "Something else is running or queued here.") {
			t.Errorf("who pressed was told %q", notes)
		}
	})
}

// TestSchedulesOfOthers are shown to owners only, and to those where they run.
func TestSchedulesOfOthers(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Start()
		create(w, profile.Profile{Name: "watch", Interval: 3600, Objectives: profile.Texts{"Look."}, Mode: profile.Mode("edit"), MaxIterations: 5})
		talk(w,
			line{say: "/agent watch", want: "**watch** is in use here now"},
			line{say: "/schedule on", want: "⏰ **watch** runs its standing task here"},
			line{who: ot.Bob, in: "team", say: "/schedule list", want: "No standing task is on."},
			line{who: ot.Bob, say: "/schedule list", want: "- here, **watch**"},
			line{in: "team", say: "/schedule list", want: "- in chat"},
			line{who: ot.Olga, in: "team", say: "/schedule list", want: "- in chat"})
	})
}
