package orchestrator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/fault"
	ot "remote-agent/internal/orchestrator/orchestratortest"
)

// sentences is a text of n sentences that can be told apart.
func sentences(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "This is sentence %d of a long answer.\n\n", i)
	}
	return strings.TrimSpace(b.String())
}

func brief(w *ot.World) {
	w.Chat.Caps.MaxText, w.Chat.Caps.MaxMessages = 400, 4
}

// TestLongAnswersAreAbridged: of an answer of many messages the beginning and the end are
// shown, a file has all of it, and /full shows all of it as text.
func TestLongAnswersAreAbridged(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		brief(w)
		long := sentences(200)
		w.Model.On("hello", ot.Say(long))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Minute)
		posts := w.Chat.Posts(ot.Room)
		files := slices.DeleteFunc(slices.Clone(posts), func(p ot.Post) bool { return p.File == "" })
		if len(posts) > 4 || len(files) != 1 {
			t.Fatalf("there are %d messages, %d of them files", len(posts), len(files))
		}
		first, last := posts[0].Text, posts[len(posts)-1].Text
		if !strings.HasPrefix(first, "This is sentence 0 ") || !strings.HasSuffix(last, "This is sentence 199 of a long answer.") {
			t.Errorf("it begins %q and ends %q", first, last)
		}
		if f := posts[1]; f.File == "" || !strings.HasSuffix(f.File, ".md") || !strings.Contains(f.Text, "/full") {
			t.Errorf("behind the beginning there is %+v", f)
		}

		w.Chat.Say("/full")
		w.Pass(5 * time.Minute)
		var all []string
		for _, p := range w.Chat.Posts(ot.Room)[len(posts):] {
			if all = append(all, p.Text); p.File != "" {
				t.Errorf("/full posts the file %s", p.File)
			}
		}
		if got := strings.Join(all, "\n\n"); got != long {
			t.Errorf("/full posts %d messages with %d bytes, want %d", len(all), len(got), len(long))
		}
		w.Chat.Say("/full") // what it posted is no answer of its own
		w.Pass(5 * time.Minute)
		if n := len(w.Chat.Posts(ot.Room)); n != len(posts)+2*len(all) {
			t.Errorf("the second /full posts %d messages, the first %d", n-len(posts)-len(all), len(all))
		}
	})
}

// TestButtonOfAnAbridgedAnswerPostsAllOfIt: that answer, also when others came since.
func TestButtonOfAnAbridgedAnswerPostsAllOfIt(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		brief(w)
		long := sentences(60)
		w.Model.On("hello", ot.Say(long))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Minute)
		posts := w.Chat.Posts(ot.Room)
		last := posts[len(posts)-1]
		if labels(last) != "All as text" {
			t.Fatalf("under %q are the buttons %q", last.Text, labels(last))
		}
		w.Chat.Say("something else")
		w.Pass(time.Minute)
		before := len(w.Chat.Posts(ot.Room))
		w.Chat.Press(last, "All as text")
		w.Pass(time.Minute)
		var all []string
		for _, p := range w.Chat.Posts(ot.Room)[before:] {
			all = append(all, p.Text)
		}
		if got := strings.Join(all, "\n\n"); got != long {
			t.Errorf("the button posts %q", all)
		}
		w.Chat.Press(last, "All as text")
		w.Pass(time.Minute)
		if posts := w.Chat.Posts(ot.Room); len(posts) != before+len(all)+1 || posts[len(posts)-1].Text != "The whole answer was already requested; see below." {
			t.Errorf("the second press posts %+v", posts[before+len(all):])
		}
		w.Chat.Say("/full first")
		w.Pass(time.Minute)
		w.Chat.Find("This command takes no arguments")
	})
}

// TestAnswersOfFourMessagesAreWhole: the limit is above four.
func TestAnswersOfFourMessagesAreWhole(t *testing.T) {
	t.Parallel()
	for parts, files := range map[int]int{4: 0, 5: 1} {
		ot.Run(t, func(w *ot.World) {
			brief(w)
			w.Model.On("hello", ot.Say(strings.TrimSpace(strings.Repeat(strings.Repeat("word ", 75)+"end.\n\n", parts))))
			w.Start()
			w.Chat.Say("hello")
			w.Pass(time.Minute)
			n := 0
			for _, p := range w.Chat.Posts(ot.Room) {
				if p.File != "" {
					n++
				}
			}
			if len(w.Chat.Posts(ot.Room)) > 4 || n != files {
				t.Errorf("%d messages' worth is posted as %d with %d files", parts, len(w.Chat.Posts(ot.Room)), n)
			}
		})
	}
}

// TestLongAnswersWithoutFiles are abridged where the platform has no files, too, and
// where it refuses one.
func TestLongAnswersWithoutFiles(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{true, false} {
		ot.Run(t, func(w *ot.World) {
			brief(w)
			w.Chat.Plain = plain
			w.Chat.React = func(a ot.Asked) ot.Reaction {
				if a.What == "file" {
					return ot.Reaction{Err: fault.New(fault.Forbidden, "No files here.")}
				}
				return ot.Reaction{}
			}
			w.Model.On("hello", ot.Say(sentences(200)))
			w.Start()
			w.Chat.Say("hello")
			w.Pass(time.Minute)
			texts := w.Chat.Texts(ot.Room)
			all := strings.Join(texts, "\n---\n")
			if len(texts) < 2 || len(texts) > 4 || strings.Count(all, "/full") != 1 || !strings.Contains(all, "sentence 0 ") || !strings.HasSuffix(all, "sentence 199 of a long answer.") {
				t.Errorf("without files (%v) it says %q", plain, texts)
			}
		})
	}
}

// TestFileIsPostedOnce has the process die around each call that a long answer takes,
// before the platform did what was asked for, and after it.
func TestFileIsPostedOnce(t *testing.T) {
	t.Parallel()
	for nth := 1; nth <= 7; nth++ {
		for _, done := range []bool{false, true} {
			ot.Run(t, func(w *ot.World) {
				brief(w)
				w.Model.On("hello", ot.Say(sentences(200)))
				p, n := w.Start(), 0
				w.Chat.React = func(ot.Asked) ot.Reaction {
					if n++; n == nth {
						return ot.Reaction{Err: unsure(), Done: done, Dies: true}
					}
					return ot.Reaction{}
				}
				w.Chat.Say("hello")
				w.Pass(time.Minute)
				if p.Dead() {
					w.Chat.ReactBy(nil)
					w.Start()
					w.Pass(time.Minute)
				}
				files := 0
				for _, p := range w.Chat.Posts(ot.Room) {
					if p.File != "" {
						files++
					}
				}
				texts, strays := w.Chat.Texts(ot.Room), w.Chat.Strays(ot.Room)
				if files != 1 || strays > 1 || len(texts) > 4 || !strings.HasSuffix(texts[len(texts)-1], "sentence 199 of a long answer.") {
					t.Errorf("after death at call %d (done: %v) there are %d files, %d strays, %q", nth, done, files, strays, texts)
				}
			})
		}
	}
}

// TestMessageThatCannotBeEditedIsTakenBack: what replaces a message leaves none behind.
func TestMessageThatCannotBeEditedIsTakenBack(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("hello", ot.Later(time.Second, ot.Say("The answer.")))
		w.Start()
		first := true
		w.Chat.React = func(a ot.Asked) ot.Reaction {
			if a.What == "edit" && !a.Progress && first {
				first = false
				return ot.Reaction{Err: fault.New(fault.NotFound, "It cannot be edited.")}
			}
			return ot.Reaction{}
		}
		w.Chat.Say("hello")
		w.Pass(time.Minute)
		if posts := w.Chat.Posts(ot.Room); first || len(posts) != 1 || posts[0].Text != "The answer." {
			t.Errorf("there are %+v", posts)
		}
	})
}

// TestALongAnswerIsCutBeforeItIsStored: to find where a long answer is cut can take a busy
// machine longer than an end of a turn may take to be stored. It is done before, once, and
// whoever writes elsewhere does not wait for it.
func TestALongAnswerIsCutBeforeItIsStored(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		brief(w)
		w.Chat.Caps.Measure = func(text string) int {
			if strings.Contains(text, "sentence") {
				time.Sleep(100 * time.Millisecond)
			}
			return len(text)
		}
		w.Model.On("hello", ot.Say(sentences(200)))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(5 * time.Second) // it is being cut
		w.Chat.Say("how are you?", ot.In("elsewhere"))
		w.Pass(2 * time.Second)
		if n := len(w.Chat.Posts("elsewhere")); n != 1 {
			t.Errorf("meanwhile, %d messages answer somebody else", n)
		}
		w.Pass(5 * time.Minute)
		if asked := w.Model.Asked(); len(asked) != 2 {
			t.Errorf("the model was asked %q", asked)
		}
		if posts := w.Chat.Posts(ot.Room); len(posts) != 4 || !strings.HasSuffix(posts[3].Text, "This is sentence 199 of a long answer.") {
			t.Errorf("it is %d messages", len(posts))
		}
	})
}
