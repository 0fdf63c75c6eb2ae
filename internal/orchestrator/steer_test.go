package orchestrator_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// TestWhatIsSaidWhileATurnWorks says something while a tool of a turn runs. What belongs to
// the turn is in its next request, and the turn's answer is the answer to it; all else,
// and whatever is behind it, waits for a turn of its own.
func TestWhatIsSaidWhileATurnWorks(t *testing.T) {
	t.Parallel()
	said := func(text string, options ...ot.Option) func(w *ot.World) {
		return func(w *ot.World) { w.Chat.Say(text, options...) }
	}
	attached := ot.With(func(in *messages.Inbound) {
		in.Attachments = []messages.Attachment{{Name: "log.txt", MediaType: "text/plain", Source: "f1", Size: 4}}
	})
	scheduled := ot.With(func(in *messages.Inbound) { in.Schedule = 1 })
	for name, tt := range map[string]struct {
		say      []func(w *ot.World)
		room     string
		steered  []string // what the turn's second request ends with, besides the result
		answers  []string // after that of the turn
		requests int      // to the model, altogether
	}{
		"Nothing":          {nil, ot.Room, nil, nil, 2},
		"Words":            {[]func(w *ot.World){said("and quickly")}, ot.Room, []string{"and quickly"}, nil, 2},
		"AWord":            {[]func(w *ot.World){said("no, quickly")}, ot.Room, []string{"no, quickly"}, nil, 2}, // nothing is asked
		"AWordAlone":       {[]func(w *ot.World){said("no")}, ot.Room, []string{"no"}, nil, 2},
		"TwoOfThem":        {[]func(w *ot.World){said("and quickly"), said("please")}, ot.Room, []string{"and quickly", "please"}, nil, 2},
		"ACommandThatAsks": {[]func(w *ot.World){said("/plan a trip"), said("by train")}, ot.Room, nil, []string{"A plan.", "re: by train"}, 4},
		"WordsThenACommand": {
			[]func(w *ot.World){said("quickly"), said("/plan a trip"), said("by train")}, ot.Room,
			[]string{"quickly"}, []string{"A plan.", "re: by train"}, 4,
		},
		"ACommandAtOnce":  {[]func(w *ot.World){said("/whoami"), said("and quickly")}, ot.Room, []string{"and quickly"}, []string{"You are"}, 2},
		"AFile":           {[]func(w *ot.World){said("look at this", attached), said("well?")}, ot.Room, nil, []string{"re: look at this", "re: well?"}, 4},
		"AStandingTask":   {[]func(w *ot.World){said("by train", scheduled)}, ot.Room, nil, []string{"re: by train"}, 3},
		"SomebodyElse":    {[]func(w *ot.World){said("and me?", ot.From(ot.Bob), ot.In("team"))}, "team", nil, []string{"re: BOB: and me?"}, 3},
		"AStranger":       {[]func(w *ot.World){said("and me?", ot.From(ot.Stranger), ot.In("team"))}, "team", nil, nil, 2},
		"ANewSession":     {[]func(w *ot.World){said("/new"), said("hello")}, ot.Room, nil, []string{"Session ended", "re: hello"}, 3},
		"BeforeANewOne":   {[]func(w *ot.World){said("quickly"), said("/new"), said("hello")}, ot.Room, nil, []string{"Session ended", "re: hello"}, 4},
		"AnEditOfTheTurn": {[]func(w *ot.World){func(w *ot.World) { editFirst(w, "do it twice") }}, ot.Room, nil, nil, 2},
		"AnEditOfWhatWaits": {
			[]func(w *ot.World){func(w *ot.World) { w.Chat.Edit(w.Chat.Say("and slowly"), "and quickly") }}, ot.Room, []string{"and quickly"}, nil, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Chat.Files["f1"] = "text"
				w.Model.On("do it", ot.Call(ot.WriteTool, "it"), ot.Say("It is done."))
				for _, also := range []string{"quickly", "please", "no"} {
					w.Model.On(also, ot.Say("It is done."))
				}
				w.Model.On("Write a plan", ot.Say("A plan."))
				for _, text := range []string{"by train", "well?", "hello", "and me?", "look at this"} {
					w.Model.On(text, ot.Say("re: "+text))
				}
				goOn := make(chan struct{})
				w.Tools.Hold(goOn)
				w.Start()
				w.Chat.Say("do it", ot.In(tt.room))
				w.Pass(time.Second)
				for _, say := range tt.say {
					say(w)
				}
				w.Settle()
				close(goOn)
				w.Pass(20 * time.Second)
				if did := w.Tools.Did(); len(did) != 1 {
					t.Fatalf("the tools did %q", did)
				}
				requests := w.Model.Requests()
				if len(requests) != tt.requests {
					t.Errorf("the model was asked %d times, want %d: %q", len(requests), tt.requests, w.Model.Asked())
				}
				if got := afterResult(requests[1].Array); !slices.Equal(got, tt.steered) {
					t.Errorf("the second request ends with %q, want %q", got, tt.steered)
				}
				texts := slices.DeleteFunc(w.Chat.Texts(tt.room), func(s string) bool { return strings.HasPrefix(s, "✔ Worked") || strings.Contains(s, "It is done.") })
				ok := len(texts) == len(tt.answers)
				for _, answer := range tt.answers {
					ok = ok && slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, strings.TrimPrefix(answer, "re: BOB: ")) })
				}
				if !ok {
					t.Errorf("besides the turn's answer stands %q, want %q", texts, tt.answers)
				}
				if open := w.Open(); len(open) > 0 {
					t.Errorf("still open: %q", open)
				}
			})
		})
	}
}

// TestWordsThatWaitForAdmission are not taken into a turn: the platform is asked about each
// message first.
func TestWordsThatWaitForAdmission(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		gateFor(w, func(messages.Inbound) (bool, error) { return true, nil })
		w.Model.On("do it", ot.Call(ot.WriteTool, "it"), ot.Say("It is done."))
		goOn := make(chan struct{})
		w.Tools.Hold(goOn)
		w.Start()
		w.Chat.Say("do it")
		w.Pass(time.Second)
		w.Chat.Say("and quickly")
		close(goOn)
		w.Pass(10 * time.Second)
		if got := w.Model.Asked(); !slices.Equal(got, []string{"do it", "do it", "and quickly"}) {
			t.Errorf("the model was asked %q", got)
		}
	})
}

// TestWordsOfSomebodyWhoWasRemoved are not taken into their turn, which ends a moment later.
func TestWordsOfSomebodyWhoWasRemoved(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("do it", ot.Call(ot.WriteTool, "it"), ot.Hold("", ot.Say("It is done.")))
		goOn := make(chan struct{})
		w.Tools.Hold(goOn)
		w.Start()
		w.Chat.Say("do it")
		w.Pass(time.Second)
		w.Chat.Say("and quickly")
		remove(w, ot.Ann)
		close(goOn)
		w.Pass(10 * time.Second)
		if got := w.Rows(`SELECT state FROM inbound_events ORDER BY seq`); !slices.Equal(got, []string{"stopped", "refused"}) {
			t.Errorf("the entries are %q", got)
		}
	})
}

func editFirst(w *ot.World, text string) {
	w.Chat.Do(func(in *messages.Inbound) { in.Kind, in.Message, in.Text = messages.KindEdit, "m1", text })
}

// afterResult returns what people say behind the last result of a tool.
func afterResult(array []messages.Message) []string {
	var out []string
	for _, m := range array {
		switch m.Role {
		case messages.RoleTool:
			out = nil
		case messages.RoleUser:
			for _, b := range m.Blocks {
				if text, ok := b.(messages.Text); ok {
					out = append(out, text.Text)
				}
			}
		case messages.RoleAssistant:
		}
	}
	return out
}

// TestWordsOfAReader are taken into a turn of theirs, and into none that may do more than
// they may by now.
func TestWordsOfAReader(t *testing.T) {
	t.Parallel()
	for began, requests := range map[sessions.Role]int{sessions.Reader: 2, sessions.User: 3} {
		t.Run(string(began), func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Model.On("do it", func(r *ot.Requested) (messages.Message, error) {
					grant(w, "rita", sessions.Reader)
					w.Chat.Say("and quickly", ot.From("rita"))
					return ot.Call(ot.ReadTool, "it")(r)
				}, ot.Say("It is done."))
				w.Model.On("and quickly", ot.Say("Quickly."))
				w.Start()
				grant(w, "rita", began)
				w.Chat.Say("do it", ot.From("rita"))
				w.Pass(10 * time.Second)
				if asked := w.Model.Asked(); len(asked) != requests || w.States("and quickly") != "done" {
					t.Errorf("the model was asked %q; the words are %s", asked, w.States("and quickly"))
				}
			})
		})
	}
}

// TestSteeredWordsOutliveTheProcess kills the process when the turn's words have been
// taken in: they are on record with it, and are not said again.
func TestSteeredWordsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("do it", ot.Call(ot.WriteTool, "it"))
		w.Model.On("quickly", ot.Hold("", ot.Say("Never.")), ot.Say("It is done."))
		goOn := make(chan struct{})
		w.Tools.Hold(goOn)
		w.Start()
		w.Chat.Say("do it")
		w.Pass(time.Second)
		w.Chat.Say("and quickly")
		close(goOn)
		w.Settle()
		if w.Model.Held() != 1 {
			t.Fatal("the second request did not come")
		}
		w.Process().Kill()
		w.Start()
		w.Pass(10 * time.Second)
		w.Chat.Find("It is done.")
		if n := strings.Count(strings.Join(w.Said(), "\n"), "and quickly"); n != 1 {
			t.Errorf("the words are %d times in the session: %q", n, w.Said())
		}
		if got := w.States("and quickly"); got != "done" {
			t.Errorf("the entry is %s", got)
		}
	})
}

// TestFilesReachTheModel has text files of a message read before its turn.
func TestFilesReachTheModel(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file, mediaType, content, want string
	}{
		"Read":                {"log.txt", "text/plain", "the content", "the content"},
		"Gone":                {"log.txt", "text/plain", "", "log.txt"},
		"NamedScript":         {"run.sh", "application/x-shellscript", "echo the content", "echo the content"},
		"TypeScriptIsNoVideo": {"app.ts", "video/mp2t", "let x: 'the content'", "let x: 'the content'"},
		"UnknownName":         {"App.kt", "application/octet-stream", "val x = 1", "val x = 1"},
		"UnknownType":         {"index.php", "application/x-php", "<?php echo 1;", "<?php echo 1;"},
		"NoType":              {"Makefile", "", "all: build", "all: build"},
		"NoText":              {"a.bin", "application/octet-stream", "\xff\x00the content", "a.bin"},
		"ControlsAreNoText":   {"a.zip", "application/zip", "PK\x03\x04the content", "a.zip"},
		"ColorsAreText":       {"build.out", "", "\x1b[31mred\x1b[0m\r\n\fblue", "red"},
		"ZerosAreNoText":      {"a.tar", "application/x-tar", "name\x00\x00the content", "a.tar"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				if tt.content != "" {
					w.Chat.Files["f1"] = tt.content
				}
				w.Start()
				w.Chat.Say("look", ot.With(func(in *messages.Inbound) {
					in.Attachments = []messages.Attachment{{Name: tt.file, MediaType: tt.mediaType, Source: "f1", Size: 11}}
				}))
				w.Pass(5 * time.Second)
				got := fmt.Sprint(w.Model.Requests()[0].Array)
				if !strings.Contains(got, tt.want) || tt.want == tt.file && strings.Contains(got, "the content") {
					t.Errorf("the model got %s, want %q in it", got, tt.want)
				}
				w.Chat.Find("re: look")
			})
		})
	}
}

// TestCrowd has one person send more than is kept: what is too much is refused once, and
// taken again when there is room.
func TestCrowd(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.MaxWaiting = 2 }
		w.Model.On("one", ot.Hold("", ot.Say("1")))
		w.Start()
		for _, text := range []string{"one", "two", "three", "four", "five"} {
			w.Chat.Say(text)
			w.Settle()
		}
		w.Chat.Say("/whoami")
		w.Settle()
		w.Chat.Find("2 messages queued here, which is the limit")
		w.Chat.Find("You are")
		w.Model.Release()
		w.Pass(10 * time.Second)
		w.Chat.Say("six")
		w.Pass(10 * time.Second)
		if got, want := w.Model.Asked(), []string{"one", "two", "three", "six"}; !slices.Equal(got, want) {
			t.Errorf("the model was asked %q, want %q", got, want)
		}
		if n := w.Value(`SELECT count(*) FROM inbound_events WHERE data LIKE '%four%' OR data LIKE '%five%'`); n != "0" {
			t.Error("the text of what was refused is kept")
		}
	})
}

// TestWordsBehindACommandThatHasNotRun come with /new in one poll, and the turn asks again
// before that has run: they belong to the next session all the same.
func TestWordsBehindACommandThatHasNotRun(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("do it", ot.Call(ot.WriteTool, "it"), ot.Say("It is done."))
		w.Model.On("hello", ot.Say("Hello."))
		goOn := make(chan struct{})
		w.Tools.Hold(goOn)
		p := w.Start()
		w.Chat.Say("do it")
		w.Pass(time.Second)
		var once atomic.Bool
		p.After(func() {
			if w.States("hello") == "waiting" && once.CompareAndSwap(false, true) {
				close(goOn)
				time.Sleep(time.Millisecond) // the turn has asked again by then
			}
		})
		var events []messages.Inbound
		for i, text := range []string{"/new", "hello"} {
			events = append(events, messages.Inbound{
				Event: messages.EventID(fmt.Sprint("b", i)), Kind: messages.KindMessage, Conversation: room(ot.Room), Private: true,
				Sender: messages.Sender{ID: ot.Ann}, Text: text,
			})
		}
		if err := p.Engine.Accept(w.T.Context(), events...); err != nil {
			t.Fatal(err)
		}
		w.Pass(10 * time.Second)
		if !once.Load() {
			t.Fatal("the messages were not accepted together")
		}
		if got := w.Model.Asked(); !slices.Equal(got, []string{"do it", "do it", "hello"}) {
			t.Errorf("the model was asked %q", got)
		}
		if n := w.Value(`SELECT count(*) FROM remote_agent_sessions`); n != "2" {
			t.Errorf("%s sessions, want 2", n)
		}
	})
}
