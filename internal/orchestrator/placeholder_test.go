package orchestrator_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/failpoint"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/platform"
)

// calls returns what was asked of the platform, without typing and marks.
func calls(w *ot.World) (what []string) {
	for _, a := range w.Chat.Calls() {
		what = append(what, a.What)
	}
	return what
}

// late sets up a platform that can look up what was sent, and whose edits are scarce.
func late(w *ot.World) {
	w.Chat.Caps.IdempotentSend, w.Chat.Caps.PlaceholderAfter = true, 2*time.Second
}

func TestShortTurnsNeedNoPlaceholder(t *testing.T) {
	t.Parallel()
	for takes, want := range map[time.Duration][]string{
		time.Second:     {"send"},
		3 * time.Second: {"send", "edit"},
	} {
		ot.Run(t, func(w *ot.World) {
			late(w)
			w.Model.On("hello", ot.Later(takes, ot.Say("The answer.")))
			w.Start()
			w.Chat.Say("hello")
			w.Pass(time.Minute)
			w.Chat.Want("The answer.")
			if got := calls(w); !slices.Equal(got, want) {
				t.Errorf("a turn of %v takes %q, want %q", takes, got, want)
			}
			for _, a := range w.Chat.Calls() {
				if a.Again {
					t.Errorf("%q was looked up", a.Text)
				}
			}
		})
	}
}

// TestShortAnswerIsNotSentTwice has the process die after a short answer was sent and
// before that is on record.
func TestShortAnswerIsNotSentTwice(t *testing.T) { // not beside others: failpoints are global
	ot.Run(t, func(w *ot.World) {
		late(w)
		w.Start()
		w.KillAt(failpoint.SentUnrecorded, 1)
		w.Chat.Say("hello")
		w.Pass(time.Minute)
		w.Start()
		w.Pass(time.Minute)
		if posts := w.Chat.Posts(ot.Room); len(posts) != 1 || posts[0].Text != "re: hello" {
			t.Errorf("there are %+v", posts)
		}
		var again []bool
		for _, a := range w.Chat.Calls() {
			again = append(again, a.Again)
		}
		if len(again) < 2 || again[0] || !again[1] {
			t.Errorf("of the calls these look up what may have been sent before: %v", again)
		}
	})
}

// TestASecondTryIsNotSentTwice has the platform refuse an answer for a moment, and the
// process die when the second try was carried out and before it hears of that.
func TestASecondTryIsNotSentTwice(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		late(w)
		tries := 0
		w.Chat.React = func(a ot.Asked) ot.Reaction {
			if a.What != "send" {
				return ot.Reaction{}
			}
			if tries++; tries == 1 {
				return ot.Reaction{Err: errUnavailable}
			}
			return ot.Reaction{Dies: tries == 2}
		}
		w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Minute)
		w.Start()
		w.Pass(time.Minute)
		if posts := w.Chat.Posts(ot.Room); len(posts) != 1 || posts[0].Text != "re: hello" {
			t.Errorf("after %d tries there are %+v", tries, posts)
		}
	})
}

// TestANoticeIsOneCall has a platform on which people see that a message was edited: what
// nobody has sent is neither looked up nor written over, and what may have been sent is.
func TestANoticeIsOneCall(t *testing.T) { // not beside others: failpoints are global
	opening := ot.With(func(in *messages.Inbound) { in.Opening = "ANN asks:" })
	ot.Run(t, func(w *ot.World) {
		late(w)
		w.Start()
		w.Chat.Say("hello", opening)
		w.Pass(time.Minute)
		w.Chat.Want("ANN asks:", "re: hello")
		if got := calls(w); !slices.Equal(got, []string{"send", "send"}) || slices.ContainsFunc(w.Chat.Calls(), func(a ot.Asked) bool { return a.Again }) {
			t.Errorf("the calls are %+v", w.Chat.Calls())
		}
	})
	ot.Run(t, func(w *ot.World) {
		late(w)
		w.Start()
		w.KillAt(failpoint.SentUnrecorded, 1)
		w.Chat.Say("hello", opening)
		w.Pass(time.Minute)
		w.Start()
		w.Pass(time.Minute)
		w.Chat.Want("ANN asks:", "re: hello")
		if posts := w.Chat.Posts(ot.Room); len(posts) != 2 {
			t.Errorf("after a crash there are %+v", posts)
		}
	})
}

// TestPlaceholderThatIsLeftOut has a platform that takes no placeholder for a while: it
// is tried for as long as the turn lasts, and the answer comes without one.
func TestPlaceholderThatIsLeftOut(t *testing.T) {
	t.Parallel()
	for busy, want := range map[time.Duration]int{time.Hour: 0, 30 * time.Second: 1} {
		ot.Run(t, func(w *ot.World) {
			late(w)
			w.Model.On("hello", ot.Later(time.Minute, ot.Say("The answer.")))
			w.Start()
			begin := time.Now()
			w.Chat.React = func(a ot.Asked) ot.Reaction {
				if a.Text == platform.Placeholder && time.Since(begin) < busy {
					return ot.Reaction{Err: &fault.Error{Kind: fault.RateLimited}}
				}
				return ot.Reaction{}
			}
			w.Chat.Say("hello")
			w.Pass(2 * time.Minute)
			if posts := w.Chat.Posts(ot.Room); len(posts) == 0 || len(posts) > 2 || posts[len(posts)-1].Text != "The answer." {
				t.Fatalf("there are %+v", posts)
			}
			shown := 0
			for _, p := range w.Chat.Posts(ot.Room) {
				if slices.Contains(p.Texts, platform.Placeholder) {
					shown++
				}
			}
			if min(shown, 1) != want {
				t.Errorf("busy for %v: %d placeholders were shown", busy, shown)
			}
		})
	}
}

// TestShortTurnThatWaitsShowsIt: a turn that is put aside before it had a placeholder
// says that it goes on, in a message that the answer then takes.
func TestShortTurnThatWaitsShowsIt(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		late(w)
		w.Model.On("hello", ot.Fail("", fault.New(fault.Unavailable, "The model is away.")), ot.Say("The answer."))
		w.Start()
		w.Chat.Say("hello")
		w.Settle()
		if posts := w.Chat.Posts(ot.Room); len(posts) != 1 || !strings.Contains(posts[0].Text, "The model is away.") {
			t.Errorf("at once there are %+v", posts)
		}
		w.Pass(time.Minute)
		w.Chat.Want("The answer.")
		if n := len(w.Chat.Posts(ot.Room)); n != 1 {
			t.Errorf("there are %d messages", n)
		}
	})
}

// TestAnAnswerSentAnewIsNotSentTwice has an answer sent in another message, because its
// placeholder is gone, and the process die before it learns where that is.
func TestAnAnswerSentAnewIsNotSentTwice(t *testing.T) { // not beside others: failpoints are global
	ot.Run(t, func(w *ot.World) {
		late(w)
		w.Model.On("hello", ot.Later(3*time.Second, ot.Say("The answer.")))
		w.Start()
		w.KillAt(failpoint.SentUnrecorded, 1)
		w.Chat.React = func(a ot.Asked) ot.Reaction {
			if a.What == "edit" && a.Text == "The answer." {
				return ot.Reaction{Err: fault.New(fault.NotFound, "")}
			}
			return ot.Reaction{}
		}
		w.Chat.Say("hello")
		w.Pass(time.Minute)
		if !w.Process().Dead() {
			t.Fatal("the process never sent an answer anew")
		}
		w.Chat.ReactBy(nil)
		w.Start()
		w.Pass(time.Minute)
		if posts := w.Chat.Posts(ot.Room); len(posts) != 1 || posts[0].Text != "The answer." {
			t.Errorf("there are %+v", posts)
		}
	})
}

// TestAFileSentAnewIsNotSentTwice is the same of a file that cannot take the place of the
// message that was posted for it.
func TestAFileSentAnewIsNotSentTwice(t *testing.T) { // not beside others: failpoints are global
	ot.Run(t, func(w *ot.World) {
		brief(w)
		w.Chat.Caps.IdempotentSend = true
		w.Model.On("hello", ot.Say(sentences(200)))
		w.Start()
		w.KillAt(failpoint.SentUnrecorded, 2) // behind the beginning of the answer
		w.Chat.React = func(a ot.Asked) ot.Reaction {
			if a.What == "file" && a.Post != "" {
				return ot.Reaction{Err: fault.New(fault.Unsupported, "")}
			}
			return ot.Reaction{}
		}
		w.Chat.Say("hello")
		w.Pass(time.Minute)
		if !w.Process().Dead() {
			t.Fatal("the process never sent a file")
		}
		w.Start()
		w.Pass(time.Minute)
		files := 0
		for _, p := range w.Chat.Posts(ot.Room) {
			if p.File != "" {
				files++
			}
		}
		if files != 1 {
			t.Errorf("the file stands %d times in %q", files, w.Chat.Texts(ot.Room))
		}
	})
}

// TestAPlaceholderThatMayBeOnRecordStays: the lease is lost after a record of the
// placeholder whose outcome is not known, and whoever goes on may have put the answer in it.
func TestAPlaceholderThatMayBeOnRecordStays(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("hello", ot.Later(time.Minute, ot.Say("The answer.")), ot.Say("The answer."))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(50 * time.Millisecond)
		w.Process().Lose()
		w.Pass(time.Second)
		steal(w, 8*time.Second)
		w.Pass(7 * time.Second) // the next renewal
		for _, a := range w.Chat.Calls() {
			if a.What == "delete" {
				t.Errorf("%s was taken back, and %q is on record", a.Post, w.Rows(`SELECT message_id FROM deliveries`))
			}
		}
		w.Pass(time.Minute)
		w.Chat.Find("The answer.")
		if n := w.Chat.Strays(ot.Room); n > 0 {
			t.Errorf("%d placeholders were left behind", n)
		}
	})
}

// TestAPlaceholderThatIsNotOnRecordIsTakenBack: the lease is lost before its id was recorded,
// so nobody else knows of it.
func TestAPlaceholderThatIsNotOnRecordIsTakenBack(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("hello", ot.Later(time.Minute, ot.Say("Never.")), ot.Say("The answer."))
		w.Start()
		w.Chat.Say("hello")
		w.Settle()
		steal(w, 8*time.Second)
		w.Pass(time.Minute)
		w.Chat.Find("The answer.")
		if n := w.Chat.Strays(ot.Room); n > 0 {
			t.Errorf("%d placeholders were left behind", n)
		}
	})
}

// TestALongTurnShowsAfterTheDatabaseWasAway: it is away when the id of the placeholder is to
// be recorded, and back soon.
func TestALongTurnShowsAfterTheDatabaseWasAway(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("hello", ot.Hold("So far.", ot.Say("The answer.")))
		w.Start()
		w.Chat.Say("hello")
		w.Settle()
		w.Process().Fail(errUnavailable)
		w.Pass(time.Second)
		w.Process().Fail(nil)
		w.Pass(5 * time.Second)
		w.Chat.Find("So far.")
		w.Model.Release()
		w.Pass(time.Minute)
		w.Chat.Find("The answer.")
		if n := w.Chat.Strays(ot.Room); n > 0 {
			t.Errorf("%d placeholders were left behind", n)
		}
	})
}
