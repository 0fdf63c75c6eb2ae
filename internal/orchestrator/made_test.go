package orchestrator_test

import (
	"strings"
	"testing"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	ot "remote-agent/internal/orchestrator/orchestratortest"
)

// TestFilesOfAnAgent come when they are made, above its answer, also where it failed then or its
// process died, and are on record. Where the bot cannot send any, people are told so once.
func TestFilesOfAnAgent(t *testing.T) { // not beside others: one ends the process
	for name, tt := range map[string]struct {
		plain bool // the platform takes no files
		fails bool
		dies  bool // the bot, before the answer
		want  string
	}{
		"Sent":    {want: "picture-1.png picture-2.png answer"},
		"Failed":  {fails: true, want: "picture-1.png picture-2.png answer"},
		"Died":    {dies: true, want: "picture-1.png picture-2.png answer"},
		"NoFiles": {plain: true, want: "answer"},
	} {
		t.Run(name, func(t *testing.T) {
			ot.Run(t, func(w *ot.World) {
				agents(w)
				w.Chat.Plain = tt.plain
				draw := func(r *ot.Errands) (string, error) {
					r.Tell(assistant.TextDelta{Text: "Here they are."})
					r.Tell(assistant.FileMade{Name: "picture-1.png", Data: []byte("one")})
					r.Tell(assistant.FileMade{Name: "picture-2.png", Data: []byte("two")})
					switch {
					case tt.fails:
						return "", fault.New(fault.Invalid, "It broke.")
					case tt.dies:
						w.Process().Die()
						<-r.Context().Done()
					}
					return "Here they are.", nil
				}
				w.Agent.On("draw", draw, func(*ot.Errands) (string, error) { return "Here they are.", nil })
				w.Start()
				w.Chat.Say("draw it")
				w.Pass(10 * time.Second)
				if tt.dies {
					w.Start()
					w.Pass(time.Minute)
				}
				var got []string
				for _, p := range w.Chat.Posts(ot.Room) {
					if p.File != "" {
						got = append(got, p.File)
					} else if strings.Contains(p.Text, "Here they are.") {
						got = append(got, "answer")
					}
				}
				if tt.plain {
					w.Chat.Find("⚠ The answer comes with files, such as picture-1.png, that the bot cannot send here.")
				}
				if shown := strings.Join(got, " "); shown != tt.want {
					t.Errorf("people see %q, want %q", shown, tt.want)
				}
				if n := w.Value(`SELECT COUNT(*) FROM audit_log WHERE action = 'file.send'`); (n == "2") == tt.plain {
					t.Errorf("%s files are on record", n)
				}
			})
		})
	}
}

// TestPicturesOfATool of ours are for people, and its model reads that they were shown. What is no
// picture stays away, and so do those of which there are too many.
func TestPicturesOfATool(t *testing.T) {
	t.Parallel()
	for name, plain := range map[string]bool{"Sent": false, "NoFiles": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Chat.Plain = plain
				w.Model.On("draw", ot.Call(ot.ReadTool, "a"), ot.Call(ot.ReadTool, "b"), ot.Say("Here they are."))
				const png = "\x89PNG\r\n\x1a\n"
				w.Tools.Draw([]byte(png+"1"), []byte("<svg/>"), []byte("GIF89a"), []byte(png+"2"), []byte(png+"3"), []byte(png+"4"), []byte(png+"5"))
				w.Start()
				w.Chat.Say("draw it")
				w.Pass(20 * time.Second)
				w.Chat.Find("Here they are.")
				files := 0
				for _, p := range w.Chat.Posts(ot.Room) {
					if p.File != "" {
						files++
					}
				}
				asked := w.Model.Requests()
				last := asked[len(asked)-1].Array
				read, _ := last[2].Blocks[0].(messages.ToolResult)
				shown := strings.Contains(read.Content, "[shown to the person: picture-1.png, picture-2.gif, picture-3.png")
				if plain && (files != 0 || shown) || !plain && (files != 10 || !shown) {
					t.Errorf("people see %d files, and the model reads %+v", files, read)
				}
			})
		})
	}
}

// TestWhatAnAgentSaysByTheWay is read when it happens, and above the last word of the turn,
// however that is.
func TestWhatAnAgentSaysByTheWay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rest time.Duration // how long the turn goes on
		ends error
		ask  bool // it is a question, which is refused
		want string
	}{
		"LongTurn":  {rest: time.Minute, want: "The answer."},
		"ShortTurn": {rest: time.Second, want: "The answer."},
		"Failed":    {rest: time.Second, ends: fault.New(fault.Invalid, "It broke."), want: "It broke."},
		"Question":  {rest: time.Second, ask: true, want: "The answer."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				agents(w)
				said := "⚠ It was denied."
				w.Agent.On("work", func(r *ot.Errands) (string, error) {
					r.Tell(assistant.TextDelta{Text: "I begin."})
					work(r, time.Second) // until that is shown
					if tt.ask {
						_, _ = r.Ask(assistant.Permission{Kind: assistant.KindExecute, Title: "rm it", Detail: "rm", Call: messages.ToolCall{ID: "1", Name: "bash", Arguments: "{}"}})
					} else {
						r.Tell(assistant.Notice{Text: "It was denied."})
					}
					work(r, tt.rest)
					return "The answer.", tt.ends
				})
				w.Start()
				w.Chat.Say("work")
				w.Pass(1500 * time.Millisecond)
				if tt.ask {
					said = "✋ **a-1"
					w.Chat.Say("/deny a-1")
				}
				w.Chat.Find(said)
				w.Pass(2 * time.Minute)
				told, last := -1, -1
				for i, p := range w.Chat.Posts(ot.Room) {
					switch {
					case strings.Contains(p.Text, said) && told < 0:
						told = i
					case strings.Contains(p.Text, tt.want):
						last = i
					}
				}
				if told < 0 || last < told {
					t.Errorf("it was told at %d, and the last word is at %d of %q", told, last, w.Chat.Texts(ot.Room))
				}
			})
		})
	}
}

// work is what an agent does for a while, in time that stands still.
func work(r *ot.Errands, d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
}
