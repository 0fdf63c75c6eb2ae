package orchestrator_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/chat"
	"remote-agent/internal/doctor"
	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

func slots(w *ot.World, n int) {
	w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Slots = n }
}

// TestConversationsTakeTurns has a conversation with much to do beside one with a single
// message: where there is one slot, that one is next.
func TestConversationsTakeTurns(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		slots(w, 1)
		w.Model.On("first", ot.Hold("", ot.Say("It is first.")))
		w.Start()
		w.Chat.Say("first")
		w.Chat.Say("second")
		w.Chat.Say("third")
		w.Settle()
		w.Chat.Say("elsewhere", ot.In("team"))
		w.Pass(300 * time.Millisecond) // its wake-up waits for the slot
		w.Model.Release()
		w.Pass(time.Second) // who made room is rung for, and waits for no sweep
		if got, want := w.Model.Asked(), []string{"first", "ANN: elsewhere", "second", "third"}; !slices.Equal(got, want) && !slices.Equal(got, []string{"first", "Ann: elsewhere", "second", "third"}) {
			t.Errorf("the order was %q, want %q", got, want)
		}
		w.Chat.Want("It is first.", "re: second", "re: third")
		w.Chat.WantIn("team", "re: Ann: elsewhere")
	})
}

// TestOneConversationKeepsItsOrder is the other half: nobody else waits, and so nothing
// comes between.
func TestOneConversationKeepsItsOrder(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("one", ot.Hold("", ot.Say("1")))
		w.Start()
		for _, text := range []string{"one", "two", "three", "four"} {
			w.Chat.Say(text)
		}
		w.Settle()
		w.Model.Release()
		w.Pass(20 * time.Second)
		w.Chat.Want("1", "re: two", "re: three", "re: four")
	})
}

// TestDeletedMessage has people delete what waits, what runs and what was never there. What waits
// is not answered, also if somebody else deleted it; of the rest nothing is kept.
func TestDeletedMessage(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		ot.Run(t, func(w *ot.World) {
			w.Model.On("dogs", ot.Hold("", ot.Say("Dogs bark.")))
			w.Start()
			begun := w.Chat.Say("what about dogs?")
			waits, last := w.Chat.Say("and cats?"), w.Chat.Say("and then?")
			w.Pass(2 * time.Second)
			w.Chat.Delete(waits)
			w.Chat.Delete(waits) // once more
			w.Chat.Delete(begun)
			unknown := last
			unknown.Message = "never"
			w.Chat.Delete(unknown)
			unknown.Conversation.ID = "elsewhere"
			w.Chat.Delete(unknown)
			w.Settle()
			if restarts {
				w.Model.On("dogs", ot.Say("Dogs bark."))
				w.Restart()
			} else {
				w.Model.Release()
			}
			w.Pass(30 * time.Second)
			if got := w.Model.Asked(); slices.Contains(got, "and cats?") || got[len(got)-1] != "and then?" {
				t.Errorf("the model was asked %q", got)
			}
			if marks := w.Chat.Marks(waits); !slices.Equal(marks, []platform.Mark{platform.MarkQueued}) {
				t.Errorf("what was deleted had the marks %q, want none taken from it", marks)
			}
			if got := w.Value(`SELECT group_concat(state, ' ') FROM (SELECT state FROM inbound_events WHERE data NOT LIKE '%"kind":"deleted"%' ORDER BY seq)`); got != "done stopped done" {
				t.Errorf("the messages are %s", got)
			}
			if n := w.Value(`SELECT count(*) FROM inbound_events WHERE data LIKE '%"kind":"deleted"%'`); n != "1" {
				t.Errorf("%s deletions are kept", n)
			}
			if n := w.Value(`SELECT count(*) FROM inbound_events WHERE data LIKE '%"kind":"deleted"%' AND raw IS NOT NULL`); n != "0" {
				t.Error("what the platform said of the deletion is kept, with the words that were deleted")
			}
		})
	}
}

// TestDeletedBeforeItIsHeard: a platform tells of a deletion before it tells of the message, which
// it failed to deliver at first. The message is not answered.
func TestDeletedBeforeItIsHeard(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Start()
		named := func(names ...messages.EventID) ot.Option {
			return func(in *messages.Inbound) { in.Aliases = names }
		}
		w.Chat.Delete(messages.Inbound{Conversation: w.Chat.Say("hello").Conversation, Message: "later"}, named("comment:7"))
		w.Chat.Say("what about dogs?", named("comment:7"))
		w.Chat.Say("what about cats?", named("comment:8"))
		w.Pass(10 * time.Second)
		if got := w.Model.Asked(); !slices.Equal(got, []string{"hello", "what about cats?"}) {
			t.Errorf("the model was asked %q", got)
		}
	})
}

// TestEditIntoACommand has people make a command of what waits, and of what was begun: the
// first is given at once, and what it replaces never runs.
func TestEditIntoACommand(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("dogs", ot.Hold("", ot.Say("Dogs bark.")))
		w.Start()
		begun := w.Chat.Say("what about dogs?")
		waits := w.Chat.Say("and cats?")
		w.Chat.Say("and then?")
		w.Pass(2 * time.Second)
		edit := w.Chat.Edit(waits, "/whoami")
		w.Chat.Again(edit)
		w.Chat.Edit(begun, "/stop")
		w.Pass(2 * time.Second)
		if !slices.ContainsFunc(w.Chat.Texts(ot.Room), func(text string) bool { return strings.HasPrefix(text, "You are ") }) {
			t.Errorf("the command was not given: %q", w.Chat.Texts(ot.Room))
		}
		w.Model.Release()
		w.Pass(10 * time.Second)
		if got := w.Model.Asked(); !slices.Equal(got, []string{"what about dogs?", "and then?"}) {
			t.Errorf("the model was asked %q", got)
		}
		if marks := w.Chat.Marks(waits); !slices.Equal(marks, []platform.Mark{platform.MarkQueued, platform.MarkNone}) {
			t.Errorf("the message had the marks %q, want one that is gone", marks)
		}
	})
}

// TestMessageThatWaitsForItsNextTry has begun: it is answered as it was, also if it is deleted
// or becomes a command meanwhile.
func TestMessageThatWaitsForItsNextTry(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *ot.World, said messages.Inbound){
		"Deleted":  func(w *ot.World, said messages.Inbound) { w.Chat.Delete(said) },
		"ACommand": func(w *ot.World, said messages.Inbound) { w.Chat.Edit(said, "/whoami") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				fail := ot.Fail("", errUnavailable)
				w.Model.On("first", fail, fail, fail, ot.Say("It is first."))
				w.Start()
				said := w.Chat.Say("first")
				w.Pass(8 * time.Second) // three tries; the next one is 4 s after the third
				change(w, said)
				w.Pass(time.Minute)
				w.Chat.Find("It is first.")
				if got := w.States("first"); got != "done" {
					t.Errorf("the message is %s", got)
				}
			})
		})
	}
}

func TestEditOfAMessage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		when  func(w *ot.World, said messages.Inbound)
		asked []string
		shown []string
	}{
		"Begun": {
			func(w *ot.World, said messages.Inbound) { w.Chat.Edit(said, "what about cats?") },
			[]string{"what about dogs?", "and then?"}, []string{"Dogs bark.", "re: and then?"},
		},
		"Answered": {
			func(w *ot.World, said messages.Inbound) {
				w.Model.Release()
				w.Pass(2 * time.Second)
				w.Chat.Edit(said, "what about cats?")
			},
			[]string{"what about dogs?", "and then?"}, []string{"Dogs bark.", "re: and then?"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Model.On("dogs", ot.Hold("", ot.Say("Dogs bark.")))
				w.Start()
				said := w.Chat.Say("what about dogs?")
				w.Chat.Say("and then?")
				w.Settle()
				tt.when(w, said)
				if w.Model.Held() > 0 {
					w.Model.Release()
				}
				w.Pass(10 * time.Second)
				if got := w.Model.Asked(); !slices.Equal(got, tt.asked) {
					t.Errorf("the model was asked %q, want %q", got, tt.asked)
				}
				w.Chat.Want(tt.shown...)
				if n := w.Value(`SELECT count(*) FROM inbound_events WHERE data LIKE '%cats%'`); n != "0" {
					t.Error("the text of the late edit is kept")
				}
				if got := w.Value(`SELECT state FROM inbound_events WHERE data LIKE '%"kind":"edit"%'`); got != "ignored" {
					t.Errorf("the edit is %s, want ignored", got)
				}
			})
		})
	}
}

// TestEditThatComesAgain has the platform deliver an earlier edit once more, to the next
// process: the later one holds.
func TestEditThatComesAgain(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("first", ot.Hold("", ot.Say("Never.")), ot.Hold("", ot.Say("It is first.")))
		w.Start()
		w.Chat.Say("first")
		waits := w.Chat.Say("what about dogs?")
		w.Settle()
		earlier := w.Chat.Edit(waits, "what about cats?")
		w.Chat.Edit(waits, "what about mice?")
		w.Settle()
		w.Process().Kill()
		w.Start()
		w.Settle()
		w.Chat.Again(earlier)
		w.Model.Release()
		w.Pass(10 * time.Second)
		w.Chat.Find("re: what about mice?")
	})
}

func TestEditOfAMessageThatWaits(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("first", ot.Hold("", ot.Say("It is first.")))
		w.Start()
		w.Chat.Say("first")
		waits := w.Chat.Say("what about dogs?")
		w.Settle()
		w.Chat.Edit(waits, "what about cats?")
		w.Chat.Edit(waits, "what about mice?")
		w.Model.Release()
		w.Pass(10 * time.Second)
		w.Chat.Want("It is first.", "re: what about mice?")
		if n := len(w.Model.Requests()); n != 2 {
			t.Errorf("the model was asked %d times, want 2", n)
		}
	})
}

// TestStopButtonEndsItsTurnOnly presses the button of a turn behind which something
// waits: the turn that it belongs to is the last one that it ends.
func TestStopButtonEndsItsTurnOnly(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("first", ot.Hold("I am ", ot.Say("It is first.")))
		w.Start()
		w.Chat.Say("first")
		w.Chat.Say("second")
		w.Pass(5 * time.Second)
		w.Chat.Press(w.Chat.Find("I am"), "Stop")
		w.Pass(5 * time.Second)
		w.Chat.Want("⏹ Stopped after 5 s.", "re: second")
		if got := w.States("first") + " " + w.States("second"); got != "stopped done" {
			t.Errorf("the entries are %s", got)
		}
		if notes := w.Chat.Notes(); len(notes) != 1 || !strings.Contains(notes[0], "Stopped") {
			t.Errorf("who pressed was told %q", notes)
		}
		w.Chat.Say("third")
		w.Pass(5 * time.Second)
		w.Chat.Want("⏹ Stopped after 5 s.", "re: second", "re: third")
	})
}

// TestStopEndsWhatWasSentBefore is /stop: what was sent before it ends, also what waits;
// what is sent behind it does not.
func TestStopEndsWhatWasSentBefore(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("first", ot.Hold("I am ", ot.Say("It is first.")))
		w.Start()
		w.Chat.Say("first")
		w.Chat.Say("second")
		w.Pass(time.Second)
		w.Chat.Say("/stop")
		w.Chat.Say("third")
		w.Pass(10 * time.Second)
		w.Chat.Find("⏹ Stopped after 1 s.")
		w.Chat.Find("re: third")
		if got := w.States("first") + " " + w.States("second") + " " + w.States("third"); got != "stopped stopped done" {
			t.Errorf("the entries are %s", got)
		}
		if got := w.Model.Asked(); !slices.Equal(got, []string{"first", "third"}) {
			t.Errorf("the model was asked %q", got)
		}
	})
}

// TestWhatWasStoppedIsNotAskedForAgain: a request that was stopped before anything came of it
// stays in the talk, but is no part of the next one.
func TestWhatWasStoppedIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	for begun, first := range map[string]ot.Step{
		"":                                      ot.Hold("", ot.Say("It is first.")),
		"I am ":                                 ot.Hold("I am ", ot.Say("It is first.")),
		"(Stopped before there was an answer.)": ot.Fail("", busyFor(time.Minute)), // it waits for its next try
	} {
		ot.Run(t, func(w *ot.World) {
			w.Model.On("first", first)
			w.Start()
			w.Chat.Say("first")
			w.Pass(time.Second)
			w.Chat.Say("/stop")
			w.Pass(time.Second)
			w.Chat.Say("second")
			w.Pass(10 * time.Second)
			var got []string
			for _, m := range w.Model.Requests()[1].Array {
				got = append(got, m.PlainText())
			}
			if want := []string{"first", cmp.Or(begun, "(Stopped before there was an answer.)"), "second"}; !slices.Equal(got, want) {
				t.Errorf("the model got %q, want %q", got, want)
			}
			w.Chat.Find("re: second")
		})
	}
}

// TestStopOfATurnThatWaitsForItsNextTry ends a turn on which nobody works.
func TestStopOfATurnThatWaitsForItsNextTry(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("first", ot.Fail("", errUnavailable))
		w.Start()
		w.Chat.Say("first")
		w.Pass(8 * time.Second) // three tries; the next one is 4 s after the third
		w.Chat.Say("/stop")
		w.Pass(time.Minute)
		w.Chat.Find("⏹ Stopped before it was done.")
		if n := len(w.Model.Requests()); n != 4 && n != 3 {
			t.Errorf("the model was asked %d times", n)
		}
		if got := w.States("first") + " " + w.Runs(); got != "stopped stopped" {
			t.Errorf("entry and run are %s", got)
		}
		if open := w.Open(); len(open) > 0 {
			t.Errorf("still open: %q", open)
		}
	})
}

// TestStopButtonOfATurnThatWaits presses a button that was shown before the turn was put
// aside: it names the turn's own place in the inbox, which belongs to what it stops.
func TestStopButtonOfATurnThatWaits(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("first", ot.Hold("I am ", ot.Fail("", &fault.Error{Kind: fault.RateLimited, RetryAfter: time.Minute})), ot.Say("It is first."))
		w.Model.On("second", ot.Say("It is second."))
		w.Start()
		w.Chat.Say("first")
		w.Chat.Say("second")
		w.Pass(5 * time.Second)
		shown := w.Chat.Find("I am")
		w.Model.Release()
		w.Pass(5 * time.Second)
		w.Chat.Find(", 2 of 5.")
		w.Chat.Press(shown, "Stop")
		w.Pass(5 * time.Second)
		w.Chat.Want("⏹ Stopped before it was done.", "It is second.")
		w.Pass(2 * time.Minute)
		if n := len(w.Model.Requests()); n != 2 {
			t.Errorf("the model was asked %d times, want 2", n)
		}
	})
}

// TestStopButtonWhileATurnIsTakenUp presses it after the turn has been taken from the
// inbox and before it runs.
func TestStopButtonWhileATurnIsTakenUp(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("first", ot.Hold("I am ", ot.Fail("", &fault.Error{Kind: fault.RateLimited, RetryAfter: 62 * time.Second})), ot.Hold("Now ", ot.Say("It is first.")))
		p := w.Start() // whose lease is not renewed at the moment when the wait is over, which would tell of the stop, too
		w.Chat.Say("first")
		w.Pass(5 * time.Second)
		shown := w.Chat.Find("I am")
		w.Model.Release()
		w.Settle()
		var once atomic.Bool
		p.After(func() {
			if w.Value(`SELECT attempts FROM inbound_events WHERE seq = 1`) != "2" || !once.CompareAndSwap(false, true) {
				return
			}
			p.After(nil)
			w.Chat.Press(shown, "Stop")
			time.Sleep(time.Millisecond) // all others have done what they can by then
		})
		w.Pass(70 * time.Second)
		if !once.Load() {
			t.Fatal("the turn was not taken up again")
		}
		w.Chat.Want("⏹ Stopped after 0 s.")
		if n := len(w.Model.Requests()); n > 2 || w.Model.Held() > 0 {
			t.Errorf("the model was asked %d times and still works", n)
		}
		if got := w.States("first"); got != "stopped" {
			t.Errorf("the entry is %s", got)
		}
	})
}

// TestAStopSaysAfterACrashWhatItDid: the process dies when the turn has ended and before
// /stop is answered. A /stop behind it has nothing to do.
func TestAStopSaysAfterACrashWhatItDid(t *testing.T) {
	ot.Run(t, func(w *ot.World) {
		w.Model.On("hello", ot.Hold("I think that ", ot.Say("no")))
		w.Start()
		w.KillAt(failpoint.AnswerStored, 1)
		w.Chat.Say("hello")
		w.Pass(2 * time.Second)
		w.Chat.Say("and then")
		w.Chat.Say("and at last")
		w.Pass(time.Second)
		w.Chat.Say("/stop")
		w.Settle()
		if !w.Process().Dead() || w.States("/stop") != "waiting" {
			t.Fatalf("the process is dead: %v, and /stop is %q", w.Process().Dead(), w.States("/stop"))
		}
		w.Start()
		w.Pass(time.Minute)
		w.Chat.Find("⏹ Stopped. What was said so far is kept. 2 queued messages were dropped. Resend any you still need.")
		w.Chat.Say("/stop")
		w.Pass(time.Second)
		w.Chat.Find("Nothing is running here.")
	})
}

// TestAStopDoesNotWaitForACommand: checks of the installation take their 20 seconds, and
// whoever stops a turn meanwhile does not wait for them, in the same chat or another.
func TestAStopDoesNotWaitForACommand(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Commands = func(c *chat.Config, _ *ot.Process) {
			c.Doctor = func(ctx context.Context) doctor.Report {
				<-ctx.Done()
				return doctor.Report{}
			}
		}
		w.Model.On("hello", ot.Hold("Well, ", ot.Say("Well, hello.")))
		w.Start()
		w.Chat.Say("hello", ot.From(ot.Olga))
		w.Pass(2 * time.Second)
		w.Chat.Say("/doctor", ot.From(ot.Olga))
		w.Pass(time.Second)
		w.Chat.Say("/stop", ot.From(ot.Olga))
		w.Pass(2 * time.Second)
		if w.Model.Held() != 0 || w.States("hello") != string(sessions.EntryStopped) {
			t.Errorf("the turn is %s, %d requests are open", w.States("hello"), w.Model.Held())
		}
		w.Chat.Find("⏹ Stopped. What was said so far is kept.")
		if got := w.States("/doctor"); got != string(sessions.EntryWaiting) {
			t.Errorf("the checks are over already: %s", got)
		}
		w.Pass(20 * time.Second)
		w.Chat.Find("**Checks:**")
	})
}

// TestMessageBehindACommandOfItsPoll begins after it, although nothing else keeps it back.
func TestMessageBehindACommandOfItsPoll(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		p := w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Second)
		var events []messages.Inbound
		for _, text := range []string{"/new", "and now?"} {
			events = append(events, messages.Inbound{
				Event: messages.EventID(text), Kind: messages.KindMessage, Conversation: room(ot.Room), Private: true,
				Sender: messages.Sender{ID: ot.Ann}, Text: text,
			})
		}
		if err := p.Engine.Accept(w.T.Context(), events...); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Second)
		requests := w.Model.Requests()
		if n := len(requests[len(requests)-1].Array); n != 1 {
			t.Errorf("the message behind /new begins with %d messages", n)
		}
	})
}

// TestResumeWaitsForNoSweep: what was said during a halt is answered as soon as the process
// sees that it is over.
func TestResumeWaitsForNoSweep(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Start()
		halt(w)
		w.Pass(time.Second)
		w.Chat.Say("hello")
		w.Pass(500 * time.Millisecond)
		resume(w)
		w.Pass(time.Second)
		w.Chat.Find("re: hello")
	})
}

// TestProcessThatStopsBeginsNothing: it ends what runs, and leaves what waits to the next one.
func TestProcessThatStopsBeginsNothing(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("first", ot.Hold("", ot.Say("It is first.")))
		p := w.Start()
		w.Chat.Say("first")
		w.Chat.Say("second")
		w.Settle()
		p.Shutdown()
		w.Settle()
		w.Model.Release()
		w.Pass(time.Second)
		if n := len(w.Model.Requests()); n != 1 {
			t.Errorf("the model was asked %d times", n)
		}
		w.Restart()
		w.Pass(time.Second)
		w.Chat.Want("It is first.", "re: second")
	})
}
