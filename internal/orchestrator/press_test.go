package orchestrator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

// TestWhoMayPress is the table of who may press which button under a message that Ann
// has caused, in a room that everybody reads. What pairing asks is in people's tests.
func TestWhoMayPress(t *testing.T) {
	t.Parallel()
	const rita messages.UserID = "rita" // has read-only access
	for label, tt := range map[string]struct {
		under func(w *ot.World) ot.Post // has Ann cause the message
		did   func(w *ot.World) bool    // pressing it has had its effect
		who   string                    // of reader, requester, other, owner
	}{
		"Stop": {
			waits,
			func(w *ot.World) bool { return w.States("hello") == "stopped" },
			"requester other owner",
		},
		"Retry now": {
			waits,
			func(w *ot.World) bool { return len(w.Model.Requests()) == 2 },
			"requester other owner",
		},
		"Other model": {
			waits,
			func(w *ot.World) bool { return said(w, "retries with it") },
			"requester other owner",
		},
		"Retry": {
			func(w *ot.World) ot.Post {
				w.Model.On("hello", ot.Fail("", fault.New(fault.Invalid, "The request was refused.")), ot.Say("At last."))
				w.Chat.Say("hello", inTeam(ot.Ann)...)
				w.Pass(5 * time.Second)
				return w.Chat.Find("The request was refused.")
			},
			func(w *ot.World) bool { return said(w, "At last.") },
			"requester other owner",
		},
		"Approve and run": {plans, func(w *ot.World) bool { return said(w, "I packed.") }, "requester owner"},
		"Approve":         {plans, func(w *ot.World) bool { return strings.HasPrefix(planState(w), "approved") }, "requester owner"},
		"Edit":            {plans, func(w *ot.World) bool { return len(w.Chat.Dialogs()) == 1 || said(w, "and the new text after it") }, "requester owner"},
		"Reject":          {plans, func(w *ot.World) bool { return strings.HasPrefix(planState(w), "rejected") }, "requester owner"},
		"Run it":          {asks, func(w *ot.World) bool { return approvalState(w) == "allowed" }, "requester owner"},
		"Don't run":       {asks, func(w *ot.World) bool { return approvalState(w) == "denied" }, "requester other owner"},
	} {
		for role, who := range map[string]messages.UserID{"reader": rita, "requester": ot.Ann, "other": ot.Bob, "owner": ot.Olga} {
			t.Run(label+"/"+role, func(t *testing.T) {
				t.Parallel()
				ot.Run(t, func(w *ot.World) {
					w.Configure = func(c *orchestrator.Config, _ *store.Store) {
						c.Tiers = map[string]spend.Tier{"high": {Provider: string(ot.ModelName), Model: "script-2"}}
					}
					w.Start()
					grant(w, rita, sessions.Reader)
					w.Pass(time.Second)
					post := tt.under(w)
					w.Chat.Press(post, label, ot.From(who))
					w.Pass(5 * time.Second)
					may := strings.Contains(tt.who, role)
					if tt.did(w) != may {
						t.Errorf("it had its effect: %t", !may)
					}
					told := strings.Join(append(w.Chat.Texts(team), w.Chat.Notes()...), "\n")
					if refused := strings.Contains(told, "read-only access") || strings.Contains(told, "can decide on "); refused == may {
						t.Errorf("they read %q", told)
					}
				})
			})
		}
	}
}

func said(w *ot.World, part string) bool {
	return strings.Contains(fmt.Sprint(w.Chat.Texts(team), w.Chat.Notes()), part)
}

func approvalState(w *ot.World) string {
	w.T.Helper()
	return w.Value(`SELECT state FROM approvals`)
}

// waits has Ann's turn wait for its next try.
func waits(w *ot.World) ot.Post {
	w.Model.On("hello", ot.Fail("", busyFor(time.Hour)), ot.Say("At last."))
	w.Chat.Say("hello", inTeam(ot.Ann)...)
	w.Pass(2 * time.Second)
	return w.Chat.Find("⏳")
}

// plans has Ann ask for a plan.
func plans(w *ot.World) ot.Post {
	w.Model.On("Write a plan", ot.Say("1. Pack."))
	w.Model.On("Carry out this plan", ot.Say("I packed."))
	w.Chat.Say("/plan a trip", inTeam(ot.Ann)...)
	w.Pass(5 * time.Second)
	return w.Chat.Find("1. Pack.")
}

// asks has Ann's turn ask whether it may run a program.
func asks(w *ot.World) ot.Post {
	w.Model.On("run it", ot.Call(ot.ExecuteTool, "x"), ot.Say("Done."))
	w.Chat.Say("run it", inTeam(ot.Ann)...)
	w.Pass(5 * time.Second)
	return w.Chat.Find("a-1: run")
}

// TestReadersStopOnlyTheirOwn has somebody with read-only access say "stop", as a command
// and as a word, while others wait with them and alone.
func TestReadersStopOnlyTheirOwn(t *testing.T) {
	t.Parallel()
	const rita messages.UserID = "rita"
	for _, stop := range []string{"/stop", "stop"} {
		t.Run(stop, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Start()
				grant(w, rita, sessions.Reader)
				w.Pass(time.Second)
				w.Model.On("why", ot.Hold("Well", ot.Say("Because.")))
				w.Chat.Say("why", inTeam(rita)...)
				w.Pass(time.Second)
				w.Chat.Say("/plan a trip", inTeam(ot.Bob)...)
				w.Pass(time.Second)
				w.Chat.Say(stop, inTeam(rita)...)
				w.Pass(5 * time.Second)
				w.Chat.Find("You have read-only access: you cannot stop what other people asked for.")
				if got := w.States("why"); got != "running" {
					t.Fatalf("the turn is %s", got)
				}
				w.Chat.Say("/stop", inTeam(ot.Bob)...)
				w.Pass(5 * time.Second)
				w.Chat.Say("why", inTeam(rita)...)
				w.Pass(time.Second)
				w.Chat.Say(stop, inTeam(rita)...)
				w.Pass(5 * time.Second)
				if open := w.Open(); len(open) > 0 {
					t.Errorf("still open: %q", open)
				}
			})
		})
	}
}
