package orchestrator_test

import (
	"context"
	"fmt"
	"slices"
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

const overloadedText = "The model is overloaded (529)."

func busyFor(after time.Duration) error {
	return &fault.Error{Kind: fault.Unavailable, Public: overloadedText, RetryAfter: after}
}

func labels(p ot.Post) string {
	out := make([]string, len(p.Buttons))
	for i, b := range p.Buttons {
		out[i] = b.Label
	}
	return strings.Join(out, ", ")
}

// TestWaitIsShownAndCountsDown has a model overloaded twice: the wait is there within a
// second, with what can be done about it, and counts down.
func TestWaitIsShownAndCountsDown(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("hello", ot.Fail("", busyFor(12*time.Second)), ot.Fail("", busyFor(30*time.Second)), ot.Say("At last."))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Second)
		shown := w.Chat.Find("⏳ " + overloadedText + " Trying again in 12 s, 2 of 5.")
		if got := labels(shown); got != "Retry now, Stop" || !shown.Silent {
			t.Errorf("the buttons are %q, silent: %v", got, shown.Silent)
		}
		w.Pass(7 * time.Second)
		w.Chat.Find("Trying again in 7 s, 2 of 5.")
		w.Pass(5 * time.Second)
		w.Chat.Find("Trying again in 30 s, 3 of 5.")
		w.Pass(time.Minute)
		w.Chat.Want("✔ Answered after 42 s", "At last.")
		edits := 0
		for _, a := range w.Chat.Calls() {
			if a.Progress {
				edits++
			}
		}
		if edits > 10 {
			t.Errorf("the countdown took %d edits in 42 s", edits)
		}
		if len(w.Open()) > 0 {
			t.Errorf("still open: %q", w.Open())
		}
	})
}

// TestCountdownHoldsNobodyUp waits in one conversation, with the only slot that there is,
// while another one is answered.
func TestCountdownHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Slots = 1 }
		w.Model.On("hello", ot.Fail("", busyFor(90*time.Second)), ot.Say("At last."))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Second)
		w.Chat.Say("elsewhere", ot.In("team"))
		w.Pass(time.Second)
		w.Chat.WantIn("team", "elsewhere")
		w.Pass(2 * time.Minute)
		w.Chat.Find("At last.")
	})
}

// TestEndsOfACountdown are what people and processes do while a turn waits.
func TestEndsOfACountdown(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		act    func(w *ot.World)
		within time.Duration
		want   string
		asked  int
	}{
		"Button": {act: func(w *ot.World) { w.Chat.Press(w.Chat.Find("Trying again"), "Retry now") }, within: time.Second, want: "At last.", asked: 2},
		"Twice": {act: func(w *ot.World) {
			p := w.Chat.Find("Trying again")
			w.Chat.Press(p, "Retry now")
			w.Chat.Press(p, "Retry now")
		}, within: time.Second, want: "At last.", asked: 2},
		"Command": {act: func(w *ot.World) { w.Chat.Say("/retry") }, within: time.Second, want: "At last.", asked: 2},
		"Stop":    {act: func(w *ot.World) { w.Chat.Press(w.Chat.Find("Trying again"), "Stop") }, within: time.Second, want: "⏹ Stopped before it was done.", asked: 1},
		"StopBy":  {act: func(w *ot.World) { w.Chat.Say("/stop") }, within: time.Second, want: "⏹ Stopped before it was done.", asked: 1},
		"Restart": {act: func(w *ot.World) { w.Restart() }, within: 65 * time.Second, want: "At last.", asked: 2},
		"Kill":    {act: func(w *ot.World) { w.Process().Kill(); w.Start() }, within: 65 * time.Second, want: "At last.", asked: 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Model.On("hello", ot.Fail("", busyFor(time.Minute)), ot.Say("At last."))
				w.Start()
				w.Chat.Say("hello")
				w.Pass(2 * time.Second)
				begin := time.Now()
				tt.act(w)
				if took := time.Since(begin); took > 5*time.Second {
					t.Errorf("it took %v", took)
				}
				w.Pass(tt.within)
				w.Chat.Find(tt.want)
				w.Pass(2 * time.Minute)
				if n := len(w.Model.Requests()); n != tt.asked {
					t.Errorf("the model was asked %d times, want %d", n, tt.asked)
				}
				if len(w.Open()) > 0 {
					t.Errorf("still open: %q", w.Open())
				}
			})
		})
	}
}

// limited is a limit whose end the provider names.
func limited(after time.Duration) error {
	return &fault.Error{Kind: fault.RateLimited, Public: "The model's rate limit is reached.", RetryAfter: after}
}

// TestTurnIsParkedUntilALimitEnds waits for hours, through what can happen meanwhile.
func TestTurnIsParkedUntilALimitEnds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		act   func(w *ot.World)
		stays bool   // a process is there until the end
		soon  bool   // it goes on at once
		want  string // in the end
		asked int
	}{
		"Nothing": {act: func(*ot.World) {}, stays: true, want: "At last.", asked: 2},
		"Restart": {act: func(w *ot.World) { w.Restart() }, want: "At last.", asked: 2},
		"Kill":    {act: func(w *ot.World) { w.Process().Kill(); w.Start() }, want: "At last.", asked: 2},
		"TryNow":  {act: func(w *ot.World) { w.Chat.Press(w.Chat.Find("I'll continue"), "Retry now") }, soon: true, want: "At last.", asked: 2},
		"Command": {act: func(w *ot.World) { w.Restart(); w.Chat.Say("/retry") }, soon: true, want: "At last.", asked: 2},
		"Stop":    {act: func(w *ot.World) { w.Restart(); w.Chat.Say("/stop") }, soon: true, want: "⏹ Stopped before it was done.", asked: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Slots = 1 }
				w.Model.On("hello", ot.Fail("", limited(3*time.Hour)), ot.Say("At last."))
				w.Start()
				ends := time.Now().Add(3 * time.Hour)
				w.Chat.Say("hello")
				w.Pass(time.Second)
				shown := w.Chat.Find("⏳ The provider's limit is reached. I'll continue at ")
				if at := ends.UTC().Format("15:04 UTC"); !strings.Contains(shown.Text, at+". `/stop` to cancel.") || labels(shown) != "Retry now, Stop" {
					t.Errorf("it says %q over %q, want %s", shown.Text, labels(shown), at)
				}
				if owner := w.Value(`SELECT count(*) FROM remote_agent_conversations WHERE lease_owner IS NOT NULL`); owner != "0" {
					t.Error("the lease is held")
				}
				pass := func(d time.Duration) { w.Away(d) }
				if tt.stays {
					pass = w.Pass
				}
				calls := len(w.Chat.Calls())
				pass(time.Hour)
				if n := len(w.Chat.Calls()); n != calls {
					t.Errorf("%d calls in an hour", n-calls)
				}
				w.Chat.Say("elsewhere", ot.In("team"))
				w.Pass(time.Second)
				w.Chat.WantIn("team", "elsewhere")
				tt.act(w)
				w.Pass(10 * time.Second)
				if n := len(w.Model.Requests()) - 1; tt.soon != (n == tt.asked) {
					t.Errorf("the model was asked %d times by now", n)
				}
				pass(2 * time.Hour)
				w.Pass(time.Minute)
				w.Chat.Find(tt.want)
				if n := len(w.Model.Requests()) - 1; n != tt.asked {
					t.Errorf("the model was asked %d times, want %d", n, tt.asked)
				}
				if len(w.Open()) > 0 {
					t.Errorf("still open: %q", w.Open())
				}
			})
		})
	}
}

// TestLimitThatEndsTooLate is one that a turn does not wait for, or not any more.
func TestLimitThatEndsTooLate(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("once", ot.Fail("", limited(25*time.Hour)))
		w.Model.On("again", slices.Repeat([]ot.Step{ot.Fail("", limited(10*time.Hour))}, 9)...)
		w.Start()
		w.Chat.Say("once")
		w.Pass(time.Second)
		w.Chat.Find("The model's rate limit is reached. It does not end within a day of your message.")
		w.Chat.Say("again", ot.In("team"))
		w.Pass(10 * time.Second)
		for range 3 { // the third time nothing waits any more
			w.Away(10 * time.Hour)
			w.Pass(10 * time.Second)
		}
		if n := len(w.Model.Requests()); n != 4 {
			t.Errorf("the model was asked %d times, want 4", n)
		}
		if texts := w.Chat.Texts("team"); !strings.Contains(strings.Join(texts, "\n"), "does not end within a day of your message.") || len(w.Open()) > 0 {
			t.Errorf("it stands %q; open: %q", texts, w.Open())
		}
	})
}

// TestParkedWhereNothingIsShown tells of it once where there is no placeholder.
func TestParkedWhereNothingIsShown(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Caps.IdempotentSend, w.Chat.Caps.Streaming, w.Chat.Caps.Buttons = true, false, false
		w.Model.On("hello", ot.Fail("", limited(time.Hour)), ot.Fail("", limited(time.Hour)), ot.Say("At last."))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(10 * time.Second)
		w.Chat.Want("I'll continue at ")
		for range 2 {
			w.Away(time.Hour)
			w.Pass(10 * time.Second)
		}
		w.Chat.Want("I'll continue at ", "At last.")
	})
}

// TestWithoutButtonsCommandsAreNamed is for platforms that have none.
func TestWithoutButtonsCommandsAreNamed(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Caps.Buttons = false
		w.Model.On("hello", ot.Fail("", busyFor(time.Minute)), ot.Say("At last."))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Second)
		if p := w.Chat.Find("`/retry` tries now, `/stop` cancels."); len(p.Buttons) > 0 {
			t.Errorf("it has the buttons %s", labels(p))
		}
	})
}

// TestWhatFailedIsAskedOnce has a model fail for good: asked again, in whatever way, it
// reads the request once.
func TestWhatFailedIsAskedOnce(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(w *ot.World){
		"SentAgain": func(w *ot.World) { w.Chat.Say("hello") },
		"Button":    func(w *ot.World) { w.Chat.Press(w.Chat.Find("Use `/retry` to try again."), "Retry") },
		"Twice": func(w *ot.World) {
			p := w.Chat.Find("Use `/retry` to try again.")
			w.Chat.Press(p, "Retry")
			w.Chat.Press(p, "Retry")
		},
		"Command": func(w *ot.World) { w.Chat.Say("/retry") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Model.On("hello", append(slices.Repeat([]ot.Step{ot.Fail("", errUnavailable)}, 5), ot.Say("At last."))...)
				w.Start()
				w.Chat.Say("and before?")
				w.Pass(10 * time.Second)
				w.Chat.Say("hello")
				w.Pass(time.Minute)
				w.Chat.Find("Tried 5 times.")
				again(w)
				w.Pass(10 * time.Second)
				w.Chat.Find("At last.")
				all := w.Model.Requests()
				if len(all) != 7 {
					t.Fatalf("the model was asked %d times, want 7", len(all))
				}
				var got []string
				for _, m := range all[6].Array {
					got = append(got, fmt.Sprintf("%s: %s", m.Role, m.PlainText()))
				}
				if want := []string{"user: and before?", "assistant: re: and before?", "user: hello"}; !slices.Equal(got, want) {
					t.Errorf("the model was told %q, want %q", got, want)
				}
				if len(w.Open()) > 0 {
					t.Errorf("still open: %q", w.Open())
				}
			})
		})
	}
}

// TestOldRetryButton is one of a turn that others came after.
func TestOldRetryButton(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("hello", ot.Fail("", fault.New(fault.Internal, "It broke.")), ot.Say("Never."))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Second)
		failed := w.Chat.Find("It broke.")
		w.Chat.Say("something else")
		w.Pass(time.Second)
		w.Chat.Press(failed, "Retry")
		w.Pass(time.Second)
		if n := len(w.Model.Requests()); n != 2 {
			t.Errorf("the model was asked %d times, want 2", n)
		}
		if notes := w.Chat.Notes(); len(notes) != 1 || !strings.Contains(notes[0], "no longer the last turn") {
			t.Errorf("who pressed was told %q", notes)
		}
	})
}

// TestOtherModel chooses another model for a turn that waits.
func TestOtherModel(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) {
			c.Tiers = map[string]spend.Tier{"fast": {Provider: string(ot.ModelName), Model: "script-fast"}}
		}
		w.Model.On("hello", ot.Fail("", busyFor(time.Minute)), ot.Say("At last."))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Second)
		shown := w.Chat.Find("Trying again in")
		if got := labels(shown); got != "Retry now, Other model, Stop" {
			t.Errorf("the buttons are %q", got)
		}
		w.Chat.Press(shown, "Other model")
		w.Pass(time.Second)
		w.Chat.Find("Then `/retry` retries with it immediately.")
		w.Chat.Say("/model fast")
		w.Chat.Say("/retry")
		w.Pass(2 * time.Second)
		w.Chat.Find("At last.")
		if all := w.Model.Requests(); len(all) != 2 || all[1].Model != "script-fast" {
			t.Errorf("the model was asked %d times, the last time %q", len(all), all[len(all)-1].Model)
		}
	})
}

// TestWhereThereIsAnotherModel: one of this assistant, that is not asked already.
func TestWhereThereIsAnotherModel(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tier spend.Tier
		want bool
	}{
		"OfAnybody":      {spend.Tier{Model: "script-fast"}, true},
		"TheSame":        {spend.Tier{Provider: string(ot.ModelName), Model: "script-1"}, false},
		"OfSomebodyElse": {spend.Tier{Provider: string(ot.AgentName), Model: "large"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Tiers = map[string]spend.Tier{"fast": tt.tier} }
				w.Model.On("hello", ot.Fail("", busyFor(time.Minute)))
				w.Start()
				w.Chat.Say("hello")
				w.Pass(time.Second)
				if got := labels(w.Chat.Find("Trying again in")); strings.Contains(got, "Other model") != tt.want {
					t.Errorf("the buttons are %q", got)
				}
			})
		})
	}
}

// TestQueuePlaceIsSaid tells how many messages come before one, where there are no marks.
func TestQueuePlaceIsSaid(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Plain = true
		w.Model.On("first", ot.Hold("", ot.Say("It is first.")))
		w.Start()
		w.Chat.Say("first")
		w.Pass(time.Second)
		w.Chat.Say("second")
		w.Pass(time.Second)
		w.Chat.Say("third", ot.From(ot.Bob))
		w.Pass(time.Second)
		w.Chat.Want("Queued: 1 message has to be answered before it.", "Queued: 2 messages have to be answered before it.")
		w.Model.Release()
		w.Pass(10 * time.Second)
		w.Chat.Find("re: third")
	})
}

// TestWaitingIsSaidWhereMarksAreRefused: a group of Telegram may allow no reactions, or not
// the one that says that a message waits.
func TestWaitingIsSaidWhereMarksAreRefused(t *testing.T) {
	t.Parallel()
	const said = "Queued: 1 message has to be answered before it."
	for name, tt := range map[string]struct {
		refused error
		said    []string
	}{
		"ForGood": {fault.New(fault.Invalid, "REACTION_INVALID"), []string{said}},
		"Denied":  {fault.New(fault.Forbidden, "not enough rights"), []string{said}},
		"ForNow":  {fault.New(fault.RateLimited, "too many"), nil},
		"Deleted": {fault.New(fault.NotFound, "message to react not found"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Chat.NoMarks = tt.refused
				w.Model.On("first", ot.Hold("", ot.Say("It is first.")))
				w.Start()
				w.Chat.Say("first")
				w.Pass(time.Second)
				waits := w.Chat.Say("second", func(in *messages.Inbound) { in.Private = false })
				w.Pass(5 * time.Second)
				w.Chat.Want(tt.said...)
				w.Model.Release()
				w.Pass(10 * time.Second)
				w.Chat.Find("It is first.")
				w.Chat.Find("re: Ann: second")
				if len(tt.said) > 0 && w.Chat.Find(said).ReplyTo != waits.Message {
					t.Errorf("it is not told what waits: %+v", w.Chat.Find(said))
				}
			})
		})
	}
}

// TestStopOfAWaitNeedsNoSlot has the only slot be somebody else's when a wait is over, and
// then a person stop what waited.
func TestStopOfAWaitNeedsNoSlot(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Slots = 1 }
		w.Model.On("hello", ot.Fail("", busyFor(20*time.Second)), ot.Say("At last."))
		w.Model.On("long", ot.Later(10*time.Minute, ot.Say("Done.")))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Second)
		w.Chat.Say("long", ot.In("team"))
		w.Pass(30 * time.Second)
		if n := len(w.Model.Requests()); n != 2 {
			t.Fatalf("the model was asked %d times, want 2: one slot is one turn", n)
		}
		w.Chat.Say("/stop")
		w.Pass(3 * time.Second)
		w.Chat.Find("⏹ Stopped before it was done.")
		w.Pass(11 * time.Minute)
		w.Chat.WantIn("team", "✔ Worked for", "Done.")
		if len(w.Open()) > 0 {
			t.Errorf("still open: %q", w.Open())
		}
	})
}

// TestWaitThatEndsWithoutASlotGoesOn: what was counted down to runs when others are done.
func TestWaitThatEndsWithoutASlotGoesOn(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Slots = 1 }
		w.Model.On("hello", ot.Fail("", busyFor(20*time.Second)), ot.Say("At last."))
		w.Model.On("long", ot.Later(5*time.Minute, ot.Say("Done.")))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Second)
		w.Chat.Say("long", ot.In("team"))
		w.Pass(5*time.Minute + 5*time.Second)
		w.Chat.WantIn("team", "✔ Worked for", "Done.")
		w.Chat.Find("At last.")
		if len(w.Open()) > 0 {
			t.Errorf("still open: %q", w.Open())
		}
	})
}

// TestWaitEndsThoughTheClockWasSetBack: the end of a wait is on record by the clock, and
// counted down to by one that nobody sets.
func TestWaitEndsThoughTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("hello", ot.Fail("", busyFor(20*time.Second)), ot.Say("At last."))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Second)
		later := time.Now().Add(time.Minute)
		err := w.Process().Store.InTx(w.T.Context(), func(tx *store.Tx) error {
			id := w.Value(`SELECT id FROM inbound_events WHERE lane = 'turn'`)
			return tx.Inbox().UpdateEntry(w.T.Context(), id, sessions.EntryUpdate{NextAt: &later})
		})
		if err != nil {
			t.Fatal(err)
		}
		w.Pass(70 * time.Second)
		w.Chat.Find("At last.")
		if len(w.Open()) > 0 {
			t.Errorf("still open: %q", w.Open())
		}
	})
}

// TestWaitAsksAgainWhoMay: a platform's word from before a wait is too old behind it.
func TestWaitAsksAgainWhoMay(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		removed := time.Now().Add(30 * time.Second)
		w.Chat.Admits = func(context.Context, messages.Inbound) (bool, error) { return time.Now().Before(removed), nil }
		w.Model.On("hello", ot.Fail("", busyFor(100*time.Second)), ot.Say("At last."))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(5 * time.Minute)
		if n := len(w.Model.Requests()); n != 1 {
			t.Errorf("the model was asked %d times, want 1: by then its sender may not use it any more", n)
		}
		if len(w.Open()) > 0 {
			t.Errorf("still open: %q", w.Open())
		}
	})
}
