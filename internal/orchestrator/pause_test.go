package orchestrator_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/platform"
	"remote-agent/internal/store"
)

// pauses returns how long lies between neighbors.
func pauses(times []time.Duration) []time.Duration {
	var out []time.Duration
	for i := 1; i < len(times); i++ {
		out = append(out, times[i]-times[i-1])
	}
	return out
}

// wantPauses fails the test unless each pause was at least as long as wanted, and no more
// than a sweep longer.
func wantPauses(t *testing.T, got []time.Duration, want ...time.Duration) {
	t.Helper()
	ok := len(got) == len(want)
	for i := 0; ok && i < len(got); i++ {
		ok = got[i] >= want[i] && got[i] <= want[i]+5*time.Second
	}
	if !ok {
		t.Errorf("the pauses were %v, want %v", got, want)
	}
}

// timed notes when the model is asked.
func timed(begin *time.Time, times *[]time.Duration, then ot.Step) ot.Step {
	return ot.Then(func() { *times = append(*times, time.Since(*begin)) }, then)
}

func TestTurnWaitsBeforeItIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err   error
		times int // it fails
		want  []time.Duration
	}{
		"Backoff":    {errUnavailable, 4, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}},
		"RetryAfter": {&fault.Error{Kind: fault.RateLimited, RetryAfter: 90 * time.Second}, 1, []time.Duration{90 * time.Second}},
		"AtLeast":    {&fault.Error{Kind: fault.RateLimited, RetryAfter: time.Millisecond}, 2, []time.Duration{time.Second, 2 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				var times []time.Duration
				begin := time.Now()
				steps := slices.Repeat([]ot.Step{timed(&begin, &times, ot.Fail("", tt.err))}, tt.times)
				w.Model.On("hello", append(steps, timed(&begin, &times, ot.Say("At last.")))...)
				w.Start()
				w.Chat.Say("hello")
				w.Settle()
				w.Chat.Find(", 2 of 5.")
				w.Chat.Say("elsewhere", ot.In("team")) // which rings and sweeps meanwhile
				w.Chat.Say("and behind it")
				w.Pass(2 * time.Minute)
				wantPauses(t, pauses(times), tt.want...)
				if texts := w.Chat.Texts(ot.Room); strings.HasPrefix(texts[0], "✔ Answered after") { // it was late
					w.Chat.Want(texts[0], "At last.", "re: and behind it")
				} else {
					w.Chat.Want("At last.", "re: and behind it")
				}
			})
		})
	}
}

// TestPauseOfATurnOutlivesTheProcess is why it is on record.
func TestPauseOfATurnOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		var times []time.Duration
		begin := time.Now()
		w.Model.On("hello",
			timed(&begin, &times, ot.Fail("", &fault.Error{Kind: fault.RateLimited, RetryAfter: 40 * time.Second})),
			timed(&begin, &times, ot.Say("At last.")))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(5 * time.Second)
		w.Restart()
		w.Pass(10 * time.Second)
		w.Process().Kill()
		w.Start()
		w.Pass(time.Minute)
		wantPauses(t, pauses(times), 40*time.Second)
		w.Chat.Want("✔ Answered after 40 s", "At last.")
	})
}

func TestDeliveryWaitsBeforeItIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err   error
		times int64
		want  []time.Duration
	}{
		"Backoff":      {errUnavailable, 5, []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}},
		"RetryAfter":   {&fault.Error{Kind: fault.RateLimited, RetryAfter: 70 * time.Second}, 1, []time.Duration{70 * time.Second}},
		"Unauthorized": {fault.New(fault.Unauthorized, ""), 2, []time.Duration{time.Minute, time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				var failed atomic.Int64
				w.Chat.React = func(a ot.Asked) ot.Reaction {
					if a.Text == "re: hello" && !a.Progress && failed.Add(1) <= tt.times {
						return ot.Reaction{Err: tt.err}
					}
					return ot.Reaction{}
				}
				w.Start()
				begin := time.Now()
				w.Chat.Say("hello")
				w.Pass(4 * time.Minute)
				final := func(a ot.Asked) bool { return a.Text == "re: hello" && !a.Progress }
				wantPauses(t, pauses(during(w, begin, final)), tt.want...)
				w.Chat.Want("re: hello")
				if n := len(w.Model.Requests()); n != 1 {
					t.Errorf("the model was asked %d times for one answer", n)
				}
				if open := w.Open(); len(open) > 0 {
					t.Errorf("still open: %q", open)
				}
			})
		})
	}
}

// TestDeliveryHasNoLastTry has the platform away for hours: pauses grow to five minutes,
// and the answer comes.
func TestDeliveryHasNoLastTry(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		away := time.Now().Add(40 * time.Minute)
		w.Chat.React = func(a ot.Asked) ot.Reaction {
			if time.Now().Before(away) {
				return ot.Reaction{Err: errUnavailable}
			}
			return ot.Reaction{}
		}
		w.Start()
		begin := time.Now()
		w.Chat.Say("hello")
		w.Pass(50 * time.Minute)
		got := pauses(during(w, begin, func(a ot.Asked) bool { return strings.HasSuffix(a.Text, platform.Placeholder) }))
		if longest := slices.Max(got); longest < 5*time.Minute || longest > 5*time.Minute+6*time.Second {
			t.Errorf("the longest pause was %v, want 5 minutes: %v", longest, got)
		}
		w.Chat.Want("re: hello")
	})
}

// withCommand are commands and one more.
type withCommand struct {
	orchestrator.Commands
	more command.Command
}

func (c withCommand) Find(name string) (command.Command, bool) {
	if name == c.more.Name {
		return c.more, true
	}
	return c.Commands.Find(name)
}

// TestJobWaitsBeforeItIsTriedAgain is for commands that run in order, like turns.
func TestJobWaitsBeforeItIsTriedAgain(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		var times []time.Duration
		begin := time.Now()
		job := command.Command{Name: "fetch", Usage: "fetch", Summary: "fetch something", Lane: command.Job,
			Run: func(context.Context, command.Request) (command.Reply, error) {
				times = append(times, time.Since(begin))
				if len(times) < 4 {
					return command.Reply{}, errUnavailable
				}
				return command.Reply{Text: "Fetched."}, nil
			}}
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Commands = withCommand{c.Commands, job} }
		w.Start()
		w.Chat.Say("/fetch")
		w.Chat.Say("and then?")
		w.Pass(30 * time.Second)
		wantPauses(t, pauses(times), time.Second, 2*time.Second, 4*time.Second)
		w.Chat.Want("✔ Answered after 7 s", "Fetched.", "re: and then?")
	})
}

// TestARefusedJobNeedsNoAdvice beyond why: nobody asks a command in another way, and what
// is not allowed is not allowed the next time.
func TestARefusedJobNeedsNoAdvice(t *testing.T) {
	t.Parallel()
	for why, want := range map[error]string{
		fault.New(fault.Invalid, "Specify one repository."):        "✖ Specify one repository.",
		fault.New(fault.Forbidden, "That host is not allowed."):    "✖ That host is not allowed.",
		fault.New(fault.Unsupported, "It is a local folder."):      "✖ It is a local folder.",
		fault.New(fault.NotFound, "There is no such branch here."): "✖ There is no such branch here.\n\nUse `/fetch` to try again.", // `/retry` takes the last turn back
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				job := command.Command{Name: "fetch", Usage: "fetch", Summary: "fetch something", Lane: command.Job,
					Run: func(context.Context, command.Request) (command.Reply, error) { return command.Reply{}, why }}
				w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Commands = withCommand{c.Commands, job} }
				w.Start()
				w.Chat.Say("/fetch")
				w.Pass(5 * time.Second)
				if said := w.Chat.Texts(ot.Room); !slices.Equal(said, []string{want}) {
					t.Errorf("it is answered with %q, want %q", said, want)
				}
			})
		})
	}
}

func TestTextThatThePlatformRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind fault.Kind
		file error // what becomes of the file with the text
		want string
	}{
		"Invalid":     {fault.Invalid, nil, "refuses to show the text of this message. The file has it."},
		"FileInvalid": {fault.Invalid, fault.New(fault.Invalid, "no media here"), "this platform refuses to show its text"},
		"FileLater":   {fault.Invalid, fault.New(fault.Unavailable, "down"), "refuses to show the text of this message. The file has it."},
		"Unsupported": {fault.Unsupported, nil, "this platform refuses to show its text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				files := 0
				w.Chat.React = func(a ot.Asked) ot.Reaction {
					if a.What == "file" {
						if files++; files == 1 {
							return ot.Reaction{Err: tt.file}
						}
					} else if strings.Contains(a.Text, "<evil>") {
						return ot.Reaction{Err: fault.New(tt.kind, "can't parse entities")}
					}
					return ot.Reaction{}
				}
				w.Model.On("hello", ot.Say("This is <evil> markup."))
				w.Start()
				w.Chat.Say("hello")
				w.Chat.Say("next")
				w.Pass(20 * time.Second)
				w.Chat.Want(tt.want, "re: next")
				if !slices.Contains(w.Said(), "assistant|This is <evil> markup.") {
					t.Errorf("the answer is not kept: %q", w.Said())
				}
				if got := w.States("hello"); got != "done" {
					t.Errorf("the entry is %s", got)
				}
				posted := strings.HasSuffix(w.Chat.Posts(ot.Room)[0].File, ".md")
				if asked := w.Value(`SELECT COUNT(*) FROM audit_log WHERE action = 'file.send'`) == "1"; posted != strings.HasSuffix(tt.want, "has it.") || posted && !asked {
					t.Errorf("posted as a file: %t, in the audit log: %t", posted, asked)
				}
			})
		})
	}
}

// TestPlatformRefusesEverything has no way to show even the notice: it is given up, and
// the conversation goes on.
func TestPlatformRefusesEverything(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]fault.Kind{"Invalid": fault.Invalid, "Gone": fault.Gone, "Forbidden": fault.Forbidden} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				var broken atomic.Bool
				broken.Store(true)
				w.Chat.React = func(ot.Asked) ot.Reaction {
					if broken.Load() {
						return ot.Reaction{Err: fault.New(kind, "")}
					}
					return ot.Reaction{}
				}
				w.Start()
				w.Chat.Say("hello")
				w.Pass(20 * time.Second)
				w.Chat.Want()
				if got := w.Value(`SELECT state FROM deliveries`); got != "failed" {
					t.Errorf("the delivery is %s", got)
				}
				broken.Store(false)
				w.Model.On("next", ot.Say("here")) // whether or not the refused placeholder ended the turn before its answer
				w.Chat.Say("next")
				w.Pass(20 * time.Second)
				w.Chat.Want("here")
			})
		})
	}
}

// TestMessageThatCannotBeEditedAnyMore is sent anew, and what may be left of it is
// taken back.
func TestMessageThatCannotBeEditedAnyMore(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		var gone atomic.Bool
		w.Chat.React = func(a ot.Asked) ot.Reaction {
			if a.What == "edit" && a.Text == "re: hello" && !a.Progress && gone.CompareAndSwap(false, true) {
				return ot.Reaction{Err: fault.New(fault.NotFound, "message to edit not found")}
			}
			return ot.Reaction{}
		}
		w.Start()
		w.Chat.Say("hello")
		w.Pass(20 * time.Second)
		w.Chat.Want("re: hello")
		if posts := w.Chat.Posts(ot.Room); len(posts) != 1 || posts[0].Text != "re: hello" {
			t.Errorf("%+v, want the answer alone", posts)
		}
	})
}

// TestUncertainSend has a send fail that may have happened. Where the platform looks it
// up nothing stands twice; where it does not, at most a placeholder is left behind.
func TestUncertainSend(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		finds, done bool
		posts       int
	}{
		"FoundWhereItArrived":  {true, true, 1},
		"SentWhereItDidNot":    {true, false, 1},
		"StrayWhereItArrived":  {false, true, 2},
		"NoStrayWhereItDidNot": {false, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Chat.Caps.IdempotentSend, w.Chat.Caps.Streaming = tt.finds, !tt.finds
				var failed atomic.Bool
				w.Chat.React = func(a ot.Asked) ot.Reaction {
					if a.What == "send" && failed.CompareAndSwap(false, true) {
						return ot.Reaction{Err: &fault.Error{Kind: fault.Unavailable, Uncertain: true}, Done: tt.done}
					}
					return ot.Reaction{}
				}
				w.Start()
				w.Chat.Say("hello")
				w.Pass(20 * time.Second)
				w.Chat.Want("re: hello")
				if posts := w.Chat.Posts(ot.Room); len(posts) != tt.posts {
					t.Errorf("%d posts, want %d: %+v", len(posts), tt.posts, posts)
				}
				again := false
				for _, a := range w.Chat.Calls() {
					again = again || a.Again
				}
				if !again {
					t.Error("the platform was not told that the message may be there already")
				}
			})
		})
	}
}
