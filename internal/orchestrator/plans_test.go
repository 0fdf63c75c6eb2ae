package orchestrator_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// TestPlanBeginsAFreshSessionAlsoLater: what was said since the plan does not go along, nor
// what other commands did.
func TestPlanBeginsAFreshSessionAlsoLater(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		scriptedWorktrees(w)
		w.Model.On("Write a plan", ot.Say("1. Pack.\n2. Go."))
		w.Model.On("Carry out this plan", ot.Say("I packed and went."))
		w.Start()
		w.Chat.Say("/whoami")
		w.Pass(time.Second)
		adopt(w)
		for _, text := range []string{"/plan a trip", "thank you", "/ship it", "/execute p-1"} {
			w.Chat.Say(text)
			w.Pass(5 * time.Second)
		}
		w.Chat.Find("I packed and went.")
		requests := w.Model.Requests()
		if n := len(requests[len(requests)-1].Array); n != 1 {
			t.Errorf("it began with %d messages, want the plan only", n)
		}
	})
}

// TestPlanThatEndsEarlyCanBeRunAgain: a turn that carries a plan out is stopped, while it
// works and while it waits for its next try, or fails.
func TestPlanThatEndsEarlyCanBeRunAgain(t *testing.T) {
	t.Parallel()
	stop := func(w *ot.World) { w.Chat.Say("/stop", inTeam(ot.Ann)...) }
	for name, tt := range map[string]struct {
		first ot.Step
		end   func(w *ot.World)
	}{
		"Stopped":            {ot.Hold("I pack ", ot.Say("Never.")), stop},
		"StoppedWhileParked": {ot.Fail("", busyFor(time.Hour)), stop},
		"Failed":             {ot.Fail("", fault.New(fault.Invalid, "That is no plan.")), func(*ot.World) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				planned(w)
				w.Model.On("Carry out this plan", tt.first, ot.Say("I packed and went."))
				w.Chat.Say("/execute", inTeam(ot.Ann)...)
				w.Pass(2 * time.Second)
				tt.end(w)
				w.Pass(10 * time.Second)
				if got, _, _ := strings.Cut(planState(w), " "); got != "approved" {
					t.Fatalf("the plan is %s", got)
				}
				w.Chat.Say("/execute", inTeam(ot.Ann)...)
				w.Pass(10 * time.Second)
				w.Chat.Find("I packed and went.")
				if got, _, _ := strings.Cut(planState(w), " "); got != "done" {
					t.Errorf("the plan is %s", got)
				}
			})
		})
	}
}

// TestPlanOutlivesTheProcess that carries it out.
func TestPlanOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	for _, execute := range []string{"/execute", "/execute p-1"} {
		t.Run(execute, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				planned(w)
				w.Model.On("Carry out this plan", ot.Hold("I pack ", ot.Say("Never.")), ot.Say("I packed and went."))
				w.Chat.Say(execute, inTeam(ot.Ann)...)
				w.Pass(time.Second)
				w.Process().Kill()
				w.Start()
				w.Pass(10 * time.Second)
				w.Chat.Find("I packed and went.")
				if got := planState(w); got != "done chat/ann" {
					t.Errorf("the plan is %s", got)
				}
			})
		})
	}
}

// TestExecuteIsAboutAnOldPlanOnce: that the newest plan has expired, or is done, is no answer
// to everything that comes later.
func TestExecuteIsAboutAnOldPlanOnce(t *testing.T) {
	t.Parallel()
	const none = "There is no plan to run here."
	for name, tt := range map[string]struct {
		before func(w *ot.World)
		want   []string // what /execute is answered with, again and again
	}{
		"Expired":  {func(w *ot.World) { w.Away(25 * time.Hour) }, []string{"Plan p-1 has expired and was not run.", none, none}},
		"Rejected": {func(w *ot.World) { w.Chat.Say("/reject", inTeam(ot.Ann)...); w.Pass(5 * time.Second) }, []string{none}},
		"Done":     {func(*ot.World) {}, []string{"I packed and went.", none}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				planned(w)
				tt.before(w)
				for n, want := range tt.want {
					before := len(w.Chat.Texts(team))
					w.Chat.Say("/execute", inTeam(ot.Ann)...)
					w.Pass(5 * time.Second)
					if got := strings.Join(w.Chat.Texts(team)[before:], "\n"); !strings.Contains(got, want) {
						t.Errorf("the %d. /execute is answered with %q, want %q", n+1, got, want)
					}
				}
			})
		})
	}
}

// TestPlanThatIsNot: who names a plan to carry out means that one; to other commands it is a
// word like any other.
func TestPlanThatIsNot(t *testing.T) {
	t.Parallel()
	for say, want := range map[string]string{"/execute p-9": "✖ There is no plan p-9", "/ship p-9": "re: Ship p-9"} {
		t.Run(say, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				scriptedWorktrees(w)
				w.Model.On("Write a plan", ot.Say("1. Pack.\n2. Go."))
				w.Model.On("Carry out this plan", ot.Say("I packed and went."))
				w.Start()
				w.Chat.Say("/plan a trip")
				w.Pass(5 * time.Second)
				adopt(w)
				w.Chat.Say(say)
				w.Pass(5 * time.Second)
				w.Chat.Find(want)
				if got, _, _ := strings.Cut(planState(w), " "); got != "proposed" {
					t.Errorf("the plan is %s", got)
				}
			})
		})
	}
}

// TestPlanOfAnotherProgram is in its session's messages, and none is on record: it is carried
// out behind a planning command only.
func TestPlanOfAnotherProgram(t *testing.T) {
	t.Parallel()
	for name, planned := range map[string]bool{"Planned": true, "Talked": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Model.On("arry out", ot.Say("I packed and went."))
				w.Start()
				w.Chat.Say("hello")
				w.Pass(5 * time.Second)
				if planned {
					inTx(w, func(ctx context.Context, tx *store.Tx) error {
						left := sessions.Remember(sessions.CommandMeta{Name: "plan-feature", Produces: sessions.Plan, Declared: true})
						return tx.Sessions().UpdateSession(ctx, w.Value(`SELECT id FROM remote_agent_sessions`), sessions.SessionUpdate{Metadata: left})
					})
				}
				w.Chat.Say("/execute")
				w.Pass(5 * time.Second)
				want := "✖ There is no plan to run here."
				if planned {
					want = "I packed and went."
				}
				w.Chat.Find(want)
			})
		})
	}
}

// TestPlanOfWhatWasTalkedAbout: what was said in the session is the goal.
func TestPlanOfWhatWasTalkedAbout(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("Write a plan", ot.Say("1. Pack."))
		w.Start()
		w.Chat.Say("let us go to Rome")
		w.Pass(5 * time.Second)
		w.Chat.Say("/plan")
		w.Pass(5 * time.Second)
		w.Chat.Find("1. Pack.")
		w.Chat.Find("Plan p-1")
	})
}

// TestPlanWithoutAGoal says what is missing and asks no model, unless what came with the command
// says what to plan.
func TestPlanWithoutAGoal(t *testing.T) {
	t.Parallel()
	const usage = "✖ Write the goal after the command: `/plan add a --json flag`."
	for name, tt := range map[string]struct {
		text string
		with func(in *messages.Inbound)
		want string
	}{
		"Nothing": {"/plan \n", func(*messages.Inbound) {}, usage},
		"Invoked": {"/command-invoke plan-feature", func(*messages.Inbound) {}, usage},
		"Goal":    {"/plan a trip", func(*messages.Inbound) {}, "1. Pack."},
		"Quote": {"/plan", func(in *messages.Inbound) {
			in.Quotes = []messages.Quote{{Relation: "reply to", Author: "Bob", Text: "a trip"}}
		}, "1. Pack."},
		"Attachment": {"/plan", func(in *messages.Inbound) {
			in.Attachments = []messages.Attachment{{Name: "trip.png", Note: "not kept"}}
		}, "1. Pack."},
		"Reference": {"/plan", func(in *messages.Inbound) { in.Reference = "Issue 7: a trip" }, "1. Pack."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Model.On("Write a plan", ot.Say("1. Pack."))
				w.Start()
				w.Chat.Say(tt.text, ot.From(ot.Olga), ot.With(tt.with))
				w.Pass(5 * time.Second)
				w.Chat.Find(tt.want)
				if tt.want != usage {
					return
				}
				if runs := w.Value(`SELECT count(*) FROM agent_messages`); runs != "0" {
					t.Errorf("the model got %s messages", runs)
				}
				w.Chat.Say("/plan a trip", ot.From(ot.Olga))
				w.Pass(5 * time.Second)
				w.Chat.Say("/retry", ot.From(ot.Olga))
				w.Pass(5 * time.Second)
				w.Chat.Find("Plan p-2")
			})
		})
	}
}

// TestPlanningOnlyReads: a turn that writes a plan changes nothing and asks nobody.
func TestPlanningOnlyReads(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("Write a plan", ot.Call(ot.WriteTool, "x"), ot.Call(ot.ExecuteTool, "x"), ot.Say("1. Pack."))
		w.Start()
		w.Chat.Say("/plan a trip", ot.From(ot.Olga))
		w.Pass(5 * time.Second)
		w.Chat.Find("1. Pack.")
		if did := w.Tools.Did(); len(did) != 0 || w.Value(`SELECT count(*) FROM approvals`) != "0" {
			t.Errorf("the tools did %q", did)
		}
	})
}

// TestButtonsOfALongPlan are under its last part.
func TestButtonsOfALongPlan(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Caps.MaxText, w.Chat.Caps.MaxMessages = 200, 0
		w.Model.On("Write a plan", ot.Say(strings.Repeat("1. Pack all that fits into the bag.\n\n", 12)))
		w.Start()
		w.Chat.Say("/plan a trip")
		w.Pass(5 * time.Second)
		posts := w.Chat.Posts(ot.Room)
		if len(posts) < 3 {
			t.Fatalf("the plan has %d parts", len(posts))
		}
		for n, p := range posts {
			if has := len(p.Buttons) > 0; has != (n == len(posts)-1) {
				t.Errorf("part %d of %d has buttons: %v", n+1, len(posts), has)
			}
		}
	})
}

// TestRetryIsInTheNameOfWhoRetries: what one person asked for is repeated by another, with
// that one's rights.
func TestRetryIsInTheNameOfWhoRetries(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("hello", ot.Fail("", fault.New(fault.Invalid, "No.")), ot.Say("At last."))
		w.Start()
		w.Chat.Say("hello", inTeam(ot.Olga)...)
		w.Pass(5 * time.Second)
		w.Chat.Say("/retry", inTeam(ot.Bob)...)
		w.Pass(5 * time.Second)
		w.Chat.Find("At last.")
		if got := w.Model.Asked(); !slices.Equal(got, []string{"OLGA: hello", "BOB: hello"}) {
			t.Errorf("the model was asked %q", got)
		}
	})
}

// TestDecisionIsJudgedAnew has somebody lose their rights after their command began and
// before it decides.
func TestDecisionIsJudgedAnew(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lose func(w *ot.World, who messages.UserID)
		who  messages.UserID
		say  string
	}{
		"OwnerRemoved":         {remove, ot.Olga, "/approve a-1"},
		"OtherRemoved":         {remove, ot.Bob, "/deny a-1"},
		"OtherMayOnlyRead":     {func(w *ot.World, who messages.UserID) { grant(w, who, "reader") }, "uma", "/deny a-1"},
		"RequesterMayOnlyRead": {func(w *ot.World, who messages.UserID) { grant(w, who, "reader") }, "uma", "/approve a-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Model.On("do it", ot.Call(ot.ExecuteTool, "make it so"), ot.Say("It is done."))
				p := w.Start()
				grant(w, "uma", "user")
				w.Pass(time.Second)
				by := ot.Ann
				if name == "RequesterMayOnlyRead" {
					by = "uma"
				}
				w.Chat.Say("do it", inTeam(by)...)
				w.Pass(5 * time.Second)
				var commits atomic.Int64
				p.After(func() {
					if w.States(tt.say) == "waiting" {
						if commits.Add(1) == 2 { // it was accepted, and has begun
							tt.lose(w, tt.who)
						}
					}
				})
				w.Chat.Say(tt.say, inTeam(tt.who)...)
				w.Settle()
				p.After(nil)
				if commits.Load() < 2 {
					t.Fatal("the command did not begin")
				}
				if got := approvalState(w); got != "waiting" {
					t.Errorf("the question is %s", got)
				}
			})
		})
	}
}

// TestPlanThatIsSettledHasNoButtons where it stands, whatever settled it, and at once: a turn
// that carries it out is not waited for.
func TestPlanThatIsSettledHasNoButtons(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		settle func(w *ot.World)
		want   string
	}{
		"Replaced": {func(w *ot.World) { w.Chat.Say("/plan a walk", inTeam(ot.Ann)...) }, "**Replaced by plan p-2**"},
		"CarriedOut": {func(w *ot.World) {
			w.Model.On("Carry out this plan", ot.Hold("I pack ", ot.Say("I packed and went.")))
			w.Chat.Say("/execute", inTeam(ot.Ann)...)
		}, "**▶ Run requested by ANN**"},
		"Expired": {func(w *ot.World) { w.Away(25 * time.Hour); w.Chat.Say("/execute", inTeam(ot.Ann)...) }, "**Expired; nothing was run**"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				shown := planned(w)
				w.Model.On("walk", ot.Say("1. Walk."))
				tt.settle(w)
				w.Pass(3 * time.Second)
				for _, p := range w.Chat.Posts(team) {
					if p.ID == shown.ID && (len(p.Buttons) > 0 || !strings.HasSuffix(p.Text, tt.want)) {
						t.Errorf("the plan is shown as %q with the buttons %v, want %q", p.Text, p.Buttons, tt.want)
					}
				}
			})
		})
	}
}

// TestSettledPlanFitsItsMessage also where that was full: what the plan says stays.
func TestSettledPlanFitsItsMessage(t *testing.T) {
	t.Parallel()
	for name, settle := range map[string]func(w *ot.World, shown ot.Post){
		"Pressed":  func(w *ot.World, shown ot.Post) { w.Chat.Press(shown, "Approve", ot.From(ot.Ann)) },
		"Named":    func(w *ot.World, _ ot.Post) { w.Chat.Say("/execute p-1", inTeam(ot.Ann)...) },
		"Replaced": func(w *ot.World, _ ot.Post) { w.Chat.Say("/plan a walk", inTeam(ot.Ann)...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Model.On("walk", ot.Say("1. Walk."))
				shown := planned(w)
				w.Process().Stop()
				w.Chat.Caps.MaxText = len([]rune(shown.Text))
				w.Start()
				settle(w, shown)
				w.Pass(5 * time.Second)
				for _, p := range w.Chat.Posts(team) {
					if p.ID != shown.ID {
						continue
					}
					if len([]rune(p.Text)) > w.Chat.Caps.MaxText || !strings.Contains(p.Text, "1. Pack.") || !strings.Contains(p.Text, "📋 **Plan p-1, version 1.**\n\n**") {
						t.Errorf("the plan is shown as %q", p.Text)
					}
				}
			})
		})
	}
}
