package orchestrator_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/store"
)

// TestTurnThatEndsTheProcessIsGivenUp after fifteen beginnings; one that a stop of the
// process interrupts as often is not.
func TestTurnThatEndsTheProcessIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end   func(w *ot.World)
		shown string
		asked int
	}{
		"Killed":  {func(w *ot.World) { w.Process().Kill() }, "This failed 15 times and will not be tried again.", 15},
		"Stopped": {func(w *ot.World) { w.Process().Stop() }, "It is done.", 18},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Model.On("do it", append(slices.Repeat([]ot.Step{ot.Hold("", ot.Say("Never."))}, 17), ot.Say("It is done."))...)
				w.Start()
				w.Chat.Say("do it")
				w.Pass(time.Second)
				for range 17 {
					tt.end(w)
					w.Start()
					w.Pass(time.Second)
				}
				w.Pass(10 * time.Second)
				w.Chat.Find(tt.shown)
				if n := len(w.Model.Requests()); n != tt.asked {
					t.Errorf("the model was asked %d times, want %d", n, tt.asked)
				}
			})
		})
	}
}

// TestParkingIsNoTry: a turn that waited for the ends of limits has all its tries left.
func TestParkingIsNoTry(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("do it", append(slices.Repeat([]ot.Step{ot.Fail("", limited(5*time.Minute))}, 6), ot.Fail("", errUnavailable), ot.Say("It is done."))...)
		w.Start()
		w.Chat.Say("do it")
		w.Pass(time.Hour)
		w.Chat.Find("It is done.")
	})
}

// TestWaitOfTwoMinutesIsCounted down; what is longer is parked.
func TestWaitOfTwoMinutesIsCounted(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{2 * time.Minute: "Trying again in", 2*time.Minute + time.Second: "I'll continue at"} {
		t.Run(wait.String(), func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Model.On("hello", ot.Fail("", busyFor(wait)), ot.Say("At last."))
				w.Start()
				w.Chat.Say("hello")
				w.Pass(time.Second)
				w.Chat.Find(want)
			})
		})
	}
}

// TestRetryNowIsForItsTurn: the button of a turn that was stopped hurries no other one.
func TestRetryNowIsForItsTurn(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("first", ot.Fail("", busyFor(time.Hour)), ot.Say("Never."))
		w.Model.On("second", ot.Fail("", busyFor(time.Hour)), ot.Say("At last."))
		w.Start()
		w.Chat.Say("first")
		w.Pass(time.Second)
		old := w.Chat.Find("⏳")
		w.Chat.Press(old, "Stop")
		w.Pass(5 * time.Second)
		w.Chat.Say("second")
		w.Pass(5 * time.Second)
		w.Chat.Press(old, "Retry now")
		w.Pass(5 * time.Second)
		if n := len(w.Model.Requests()); n != 2 {
			t.Errorf("the model was asked %d times, want 2", n)
		}
	})
}

// TestEmptyAnswerIsNoAnswer: it is asked for again, as many times as the assistant is asked.
func TestEmptyAnswerIsNoAnswer(t *testing.T) {
	t.Parallel()
	for name, tries := range map[assistant.Name]int{ot.ModelName: 5, ot.AgentName: 2} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Default = name }
				w.Model.On("hello", ot.Say(""), ot.Say("Hello."))
				say := func(text string) ot.Errand { return func(*ot.Errands) (string, error) { return text, nil } }
				w.Agent.On("hello", say(""), say("Hello."))
				w.Start()
				w.Chat.Say("hello")
				w.Settle()
				w.Chat.Want(fmt.Sprintf("The model returned an empty answer. Trying again in 1 s, 2 of %d.", tries))
				w.Pass(10 * time.Second)
				w.Chat.Want("Hello.")
			})
		})
	}
}

// TestStopWhileAWaitBegins says stop after a turn was put aside and before its worker counts
// the seconds.
func TestStopWhileAWaitBegins(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("hello", ot.Later(100*time.Millisecond, ot.Fail("", busyFor(time.Minute))), ot.Say("Never."))
		p := w.Start()
		var commits atomic.Int64
		p.After(func() {
			if w.Value(`SELECT coalesce(max(next_ms), 0) > 0 FROM inbound_events WHERE seq = 1`) != "1" {
				return
			}
			if commits.Add(1) == 2 { // the turn was put aside, and the wait was taken up
				w.Chat.Say("/stop")
				time.Sleep(time.Millisecond) // all others have done what they can by then
			}
		})
		w.Chat.Say("hello")
		w.Pass(2 * time.Second) // before it would look by itself
		p.After(nil)
		if commits.Load() < 2 {
			t.Fatal("nothing waited")
		}
		if got := w.States("hello"); got != "stopped" {
			t.Errorf("the entry is %s", got)
		}
	})
}

// TestMessageThatCanNeverBeEdited is sent anew a few times, and then it is given up.
func TestMessageThatCanNeverBeEdited(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		sends := 0
		w.Chat.React = func(a ot.Asked) ot.Reaction {
			switch {
			case a.What == "send":
				sends++
			case a.What == "edit" && strings.Contains(a.Text, "re: hello"):
				return ot.Reaction{Err: fault.New(fault.NotFound, "message to edit not found")}
			}
			if sends > 20 {
				return ot.Reaction{Err: fault.New(fault.Gone, "")} // so that the test ends
			}
			return ot.Reaction{}
		}
		w.Start()
		w.Chat.Say("hello")
		w.Pass(10 * time.Second)
		if sends != 3 {
			t.Errorf("it was sent %d times, want 3", sends)
		}
		if got := w.Value(`SELECT state FROM deliveries`); got != "failed" {
			t.Errorf("the delivery is %s", got)
		}
	})
}

// TestRateLimitIsNoFailedTry: the pause after a failure begins anew, however often the
// platform asked to wait before.
func TestRateLimitIsNoFailedTry(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		var tries atomic.Int64
		w.Chat.React = func(a ot.Asked) ot.Reaction {
			if a.Text != "re: hello" || a.Progress {
				return ot.Reaction{}
			}
			switch n := tries.Add(1); {
			case n <= 6:
				return ot.Reaction{Err: &fault.Error{Kind: fault.RateLimited, RetryAfter: 10 * time.Second}}
			case n == 7:
				return ot.Reaction{Err: errUnavailable}
			}
			return ot.Reaction{}
		}
		w.Start()
		begin := time.Now()
		w.Chat.Say("hello")
		w.Pass(3 * time.Minute)
		w.Chat.Want("re: hello")
		got := pauses(during(w, begin, func(a ot.Asked) bool { return a.Text == "re: hello" && !a.Progress }))
		wantPauses(t, got, append(slices.Repeat([]time.Duration{10 * time.Second}, 6), time.Second)...)
	})
}

// TestUncertainSendIsLookedUpAlsoWithoutRights: the platform refuses the bot while it is not
// known whether the message arrived. It is looked up when that is over.
func TestUncertainSendIsLookedUpAlsoWithoutRights(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Caps.IdempotentSend, w.Chat.Caps.Streaming = true, false
		sends := 0
		w.Chat.React = func(a ot.Asked) ot.Reaction {
			if a.What != "send" {
				return ot.Reaction{}
			}
			switch sends++; sends {
			case 1:
				return ot.Reaction{Err: &fault.Error{Kind: fault.Unavailable, Uncertain: true}, Done: true}
			case 2:
				return ot.Reaction{Err: fault.New(fault.Unauthorized, "")}
			}
			return ot.Reaction{}
		}
		w.Start()
		w.Chat.Say("hello")
		w.Pass(3 * time.Minute)
		w.Chat.Want("re: hello")
	})
}

// TestLimitOfAllConversations: who has as much waiting in many places as may wait in ten
// is told so in the next one.
func TestLimitOfAllConversations(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.MaxWaiting, c.Slots = 1, 1 }
		w.Model.On("busy", ot.Hold("", ot.Say("Done.")))
		w.Start()
		w.Chat.Say("busy")
		var last messages.Inbound
		for n := range 11 {
			last = w.Chat.Say("hello", ot.In(fmt.Sprint("r", n)))
		}
		w.Pass(time.Second)
		w.Chat.WantIn("r9")
		if p := w.Chat.Find("You have 10 messages"); p.ReplyTo != last.Message || p.OnlyFor != "" {
			t.Errorf("the notice replies to %q, for %q", p.ReplyTo, p.OnlyFor)
		}
		w.Chat.WantIn("r10", "You have 10 messages queued in all your conversations, which is the limit")
	})
}

// TestWhisperedMessagesAreRefusedAlone: what the sender alone has seen is answered to the
// sender alone, also by the notices that it waits for a resume, or is too much.
func TestWhisperedMessagesAreRefusedAlone(t *testing.T) {
	t.Parallel()
	whispered := ot.With(func(in *messages.Inbound) { in.Whispered = true })
	for name, refuse := range map[string]func(w *ot.World) string{
		"Halted": func(w *ot.World) string {
			halt(w)
			return "The bot is halted"
		},
		"TooMuch": func(w *ot.World) string {
			w.Model.On("busy", ot.Hold("", ot.Say("Done.")))
			w.Chat.Say("busy", ot.In(team))
			w.Chat.Say("waits", ot.In(team))
			return "which is the limit"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.MaxWaiting = 1 }
				w.Start()
				notice := refuse(w)
				w.Pass(time.Second)
				w.Chat.Say("hello", ot.In(team), whispered)
				w.Pass(5 * time.Second)
				if p := w.Chat.Find(notice); p.OnlyFor != ot.Ann {
					t.Errorf("%q is shown to %q", p.Text, p.OnlyFor)
				}
			})
		})
	}
}

// TestWhatFailedAfterItsToolsStays: the next turn knows what was done before the failure.
func TestWhatFailedAfterItsToolsStays(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("do it", ot.Call(ot.WriteTool, "it"), ot.Fail("", fault.New(fault.Invalid, "That is too much.")))
		w.Start()
		w.Chat.Say("do it")
		w.Pass(5 * time.Second)
		w.Chat.Find("That is too much.")
		w.Chat.Say("what have you done?")
		w.Pass(5 * time.Second)
		requests := w.Model.Requests()
		if got := fmt.Sprint(requests[len(requests)-1].Array); !strings.Contains(got, "do it") || !strings.Contains(got, "done: it") {
			t.Errorf("the model was told %s", got)
		}
	})
}
