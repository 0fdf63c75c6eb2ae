package orchestrator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/platform"
)

// TestMarkOfAnOutcomeStays: where marks tell how a turn ended, the one that says that a
// message arrived is not taken away when its turn begins.
func TestMarkOfAnOutcomeStays(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Caps.OutcomeMarks = true
		w.Model.On("first", ot.Hold("", ot.Say("It is first.")))
		w.Start()
		w.Chat.Say("first")
		waits := w.Chat.Say("second")
		w.Pass(time.Second)
		w.Model.Release()
		w.Pass(5 * time.Second)
		if got := w.Chat.Marks(waits); !slices.Equal(got, []platform.Mark{platform.MarkSeen, platform.MarkDone}) {
			t.Errorf("the marks were %q", got)
		}
	})
}

// TestAPressedButtonHasNoMark: it would stand on the question, also on one that was denied.
func TestAPressedButtonHasNoMark(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Caps.OutcomeMarks = true
		w.Model.On("run", ot.Call(ot.ExecuteTool, "it"), ot.Say("Then not."))
		w.Start()
		w.Chat.Say("run it")
		w.Pass(5 * time.Second)
		pressed := w.Chat.Press(w.Chat.Find("✋ **a-1"), "Don't run")
		w.Pass(10 * time.Second)
		w.Chat.Find("Then not.")
		if got := w.Chat.Marks(pressed); len(got) > 0 {
			t.Errorf("the question has the marks %q", got)
		}
	})
}

// TestAnAnswerThatNobodySeesIsNoSuccess: the mark on a message does not say that it was
// answered where the platform refuses the answer for good.
func TestAnAnswerThatNobodySeesIsNoSuccess(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Caps.OutcomeMarks = true
		w.Chat.SlowToShow = platform.MarkDone // which is put there while the answer is refused
		w.Chat.React = func(ot.Asked) ot.Reaction {
			return ot.Reaction{Err: fault.New(fault.Forbidden, "The workspace does not allow the bot to post there.")}
		}
		w.Start()
		said := w.Chat.Say("hello")
		w.Pass(20 * time.Second)
		if got := w.Chat.Marks(said); len(got) == 0 || got[len(got)-1] != platform.MarkFailed {
			t.Errorf("the marks were %q", got)
		}
	})
}

// TestAMarkIsTakenAwayDuringAStop: a turn that may still finish changes the marks of what
// it answers, its own message and what was said meanwhile.
func TestAMarkIsTakenAwayDuringAStop(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		outcomes       bool
		first, besides []platform.Mark
	}{
		"Waits":    {false, nil, []platform.Mark{platform.MarkQueued, platform.MarkNone}},
		"Outcomes": {true, []platform.Mark{platform.MarkSeen, platform.MarkDone}, []platform.Mark{platform.MarkSeen, platform.MarkDone}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Chat.Caps.OutcomeMarks = tt.outcomes
				w.Model.On("do it", ot.Call(ot.WriteTool, "it"))
				w.Model.On("quickly", ot.Say("It is done."))
				goOn := make(chan struct{})
				w.Tools.Hold(goOn)
				p := w.Start()
				first := w.Chat.Say("do it")
				w.Pass(time.Second)
				besides := w.Chat.Say("quickly")
				w.Pass(time.Second)
				p.Shutdown()
				w.Pass(time.Second)
				close(goOn)
				p.Stop()
				w.Chat.Find("It is done.")
				if got := w.Chat.Marks(first); !slices.Equal(got, tt.first) {
					t.Errorf("the message of the turn had the marks %q, want %q", got, tt.first)
				}
				if got := w.Chat.Marks(besides); !slices.Equal(got, tt.besides) {
					t.Errorf("what was said meanwhile had the marks %q, want %q", got, tt.besides)
				}
			})
		})
	}
}

// TestTheMarkOfAnEditedMessageIsTakenAway: what is edited while it waits still has the mark
// that says so.
func TestTheMarkOfAnEditedMessageIsTakenAway(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("first", ot.Hold("", ot.Say("It is first.")))
		w.Model.On("third", ot.Say("It is third."))
		w.Start()
		w.Chat.Say("first")
		w.Pass(time.Second)
		waits := w.Chat.Say("second")
		w.Pass(time.Second)
		w.Chat.Edit(waits, "third")
		w.Pass(time.Second)
		w.Model.Release()
		w.Pass(5 * time.Second)
		w.Chat.Find("It is third.")
		if got := w.Chat.Marks(waits); !slices.Equal(got, []platform.Mark{platform.MarkQueued, platform.MarkNone}) {
			t.Errorf("the marks were %q", got)
		}
	})
}

// TestAMarkThatComesLateIsTakenAway: one process shows that a message waits while another
// one, which has the conversation, begins and ends its turn.
func TestAMarkThatComesLateIsTakenAway(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		outcomes bool
		slow     platform.Mark
		want     []platform.Mark
	}{
		"Waits":    {false, platform.MarkQueued, []platform.Mark{platform.MarkNone, platform.MarkQueued, platform.MarkNone}},
		"Outcomes": {true, platform.MarkSeen, []platform.Mark{platform.MarkDone, platform.MarkSeen, platform.MarkDone}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Chat.Caps.OutcomeMarks = tt.outcomes
				w.Model.On("first", ot.Hold("", ot.Say("It is first.")))
				w.Start()
				w.Chat.Say("first")
				w.Pass(2 * time.Second)
				w.Chat.DeliverTo(w.Replica())
				w.Chat.SlowToShow = tt.slow
				second := w.Chat.Say("second")
				w.Pass(700 * time.Millisecond)
				w.Model.Release()
				w.Pass(20 * time.Second)
				w.Chat.Find("It is first.")
				w.Chat.Find("re: second")
				if got := w.Chat.Marks(second); !slices.Equal(got, tt.want) {
					t.Errorf("the marks were %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// TestTheLastMarkComesBehindADeath: a process dies with an answer that is stored and not sent. Who
// sends it marks what it answers.
func TestTheLastMarkComesBehindADeath(t *testing.T) {
	for name, tt := range map[string]struct {
		answer ot.Step
		want   platform.Mark
	}{
		"Answered": {ot.Say(strings.Repeat("It is done.\n\n", 1000)), platform.MarkDone},
		"Failed":   {ot.Fail("", fault.New(fault.Invalid, "That is too much.")), platform.MarkFailed},
	} {
		t.Run(name, func(t *testing.T) {
			ot.Run(t, func(w *ot.World) {
				w.Chat.Caps.OutcomeMarks = true
				w.Model.On("do it", tt.answer)
				w.Start()
				w.KillAt(failpoint.AnswerStored, 1)
				said := w.Chat.Say("do it")
				w.Pass(time.Minute)
				w.Start()
				w.Pass(time.Minute)
				if got := w.Chat.Marks(said); !slices.Equal(got, []platform.Mark{platform.MarkSeen, tt.want}) {
					t.Errorf("the marks are %q", got)
				}
			})
		})
	}
}

// TestTheLastMarkOfWhatIsOfferedStays: one process shows that a message arrived, and another one,
// to which the conversation falls, answers it sooner than that takes.
func TestTheLastMarkOfWhatIsOfferedStays(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Caps.OutcomeMarks = true
		sharing(w)
		w.Chat.SlowToShow = platform.MarkSeen
		for n := range 20 {
			said := w.Chat.Say("hello", ot.In(fmt.Sprint("room ", n)))
			w.Pass(5 * time.Second)
			if marks := w.Chat.Marks(said); len(marks) == 0 || marks[len(marks)-1] != platform.MarkDone {
				t.Errorf("the marks are %q", marks)
			}
		}
		if w.Offered() == 0 {
			t.Error("nothing was offered")
		}
	})
}

// TestWhatWaitsForAMomentHasNoMark: it would come and go before anybody has seen it. That
// also holds if one process stores the message and another one begins its turn.
func TestWhatWaitsForAMomentHasNoMark(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		elsewhere bool
		waits     time.Duration
		want      []platform.Mark
	}{
		"Here":         {false, 500 * time.Millisecond, nil},
		"HereLong":     {false, 700 * time.Millisecond, []platform.Mark{platform.MarkQueued, platform.MarkNone}},
		"Replica":      {true, 250 * time.Millisecond, nil},
		"ReplicaLong":  {true, 700 * time.Millisecond, []platform.Mark{platform.MarkQueued, platform.MarkNone}},
		"ReplicaLater": {true, 400 * time.Millisecond, []platform.Mark{platform.MarkNone}}, // it might be there, if clocks differ
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Model.On("first", ot.Hold("", ot.Say("It is first.")))
				w.Start()
				w.Chat.Say("first")
				w.Pass(2 * time.Second)
				if tt.elsewhere {
					w.Chat.DeliverTo(w.Replica())
				}
				second := w.Chat.Say("second")
				w.Pass(tt.waits)
				w.Model.Release()
				w.Pass(20 * time.Second)
				w.Chat.Find("re: second")
				if got := w.Chat.Marks(second); !slices.Equal(got, tt.want) {
					t.Errorf("the marks were %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// TestNoticeOfATurnComesWithItsAnswer and waits for no sweep.
func TestNoticeOfATurnComesWithItsAnswer(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		agents(w)
		w.Agent.On("hello", func(r *ot.Errands) (string, error) {
			r.Tell(assistant.Notice{Text: "A plugin is missing."})
			return "Hello.", nil
		})
		w.Start()
		w.Chat.Say("hello")
		w.Settle()
		w.Chat.Find("Hello.")
		w.Chat.Find("⚠ A plugin is missing.")
	})
}

// TestMarksOfWhatAnEarlierRunTookIn: what was said while a turn ran is marked as answered with
// it, or as stopped, also if the turn was put aside for a decision or its process died.
func TestMarksOfWhatAnEarlierRunTookIn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		second ot.Step
		then   func(w *ot.World)
		end    platform.Mark
	}{
		"Answered": {ot.Say("It is done."), func(w *ot.World) { w.Model.Release() }, platform.MarkDone},
		"Killed":   {ot.Say("It is done."), func(w *ot.World) { w.Process().Kill(); w.Start() }, platform.MarkDone},
		"Stopped":  {ot.Hold("", ot.Say("Never.")), func(w *ot.World) { w.Process().Kill(); w.Start(); w.Pass(10 * time.Second); w.Chat.Say("/stop") }, platform.MarkFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Chat.Caps.OutcomeMarks = true
				w.Model.On("do it", ot.Call(ot.WriteTool, "it"))
				w.Model.On("quickly", ot.Hold("", ot.Say("It is done.")), tt.second)
				goOn := make(chan struct{})
				w.Tools.Hold(goOn)
				w.Start()
				w.Chat.Say("do it")
				w.Pass(time.Second)
				besides := w.Chat.Say("and quickly")
				w.Pass(time.Second)
				close(goOn)
				w.Settle()
				tt.then(w)
				w.Pass(20 * time.Second)
				if got := w.Chat.Marks(besides); len(got) == 0 || got[len(got)-1] != tt.end {
					t.Errorf("the marks were %q, want %q at last", got, tt.end)
				}
			})
		})
	}
}
