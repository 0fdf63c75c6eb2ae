package chat_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/chat"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/files"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/work"
)

// TestRepositoryIsNotSwitchedUnderATurn: whoever tries is told so, and can when it is over.
func TestRepositoryIsNotSwitchedUnderATurn(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Commands = func(c *chat.Config, p *ot.Process) { c.Work = work.New(work.Config{Store: p.Store, Log: c.Log}) }
		w.Model.On("slow", ot.Hold("I am ", ot.Say("I am slow.")))
		w.Start()
		ctx := w.T.Context()
		err := w.Process().Store.InTx(ctx, func(tx *store.Tx) error {
			_, err := tx.Registry().Create(ctx, sessions.Codebase{Name: "shop", DefaultCwd: "/shop", Assistant: string(ot.ModelName)})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		w.Chat.Say("slow")
		w.Pass(time.Second)
		talk(w, line{say: "/repo shop", want: "Something is still running or queued here. Send `/stop`, or wait for it, and then switch."})
		w.Model.Release()
		w.Pass(time.Second)
		talk(w, line{say: "/repo shop", want: "This conversation works on **shop**. The session ended"})
	})
}

// TestHandoffLeavesTheModelBehind: it is one of the other assistant.
func TestHandoffLeavesTheModelBehind(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) {
			c.Tiers = map[string]spend.Tier{"fast": {Model: "script-fast"}}
		}
		w.Model.On("slow", ot.Hold("I am ", ot.Say("I am slow.")))
		w.Start()
		talk(w,
			line{say: "/model fast", want: "**script-fast** answers"},
			line{say: "hello", want: "re: hello"})
		w.Chat.Say("slow")
		w.Pass(time.Second)
		talk(w, line{say: "/handoff agent", want: "Something is still running or queued here. Send `/stop`, or wait for it, and then hand over."})
		w.Model.Release()
		w.Pass(time.Second)
		talk(w,
			line{say: "/handoff agent", want: "**agent** now answers here"},
			line{say: "/model", want: "model **its own choice**"},
			line{say: "/handoff scripted", want: "**scripted** now answers here"},
			line{say: "/model", want: "model **script-1**"})
	})
}

// TestForkHasFilesOfItsOwn, also where the conversation has those of one that was handed over.
func TestForkHasFilesOfItsOwn(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Opens = func(platform.Opening) (string, error) { return "topic", nil }
		w.Start()
		talk(w,
			line{say: "hello", want: "re: hello"},
			line{say: "/handoff agent", want: "now answers here"},
			line{say: "hello", want: "agent: hello"},
			line{say: "/fork thread", want: "🍴 [A new thread]"})
		ctx := w.T.Context()
		err := w.Process().Store.InRead(ctx, func(tx *store.Tx) error {
			fork, err := tx.Conversations().FindConversation(ctx, messages.ConversationKey{Platform: ot.PlatformName, ID: "topic"})
			if fork.WorkID() != fork.ID {
				t.Errorf("the fork works in the files of %s", fork.WorkID())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestPlaceThatMayBeOpenIsLookedUp: the platform does not say whether it has opened a place,
// and is asked again with that in mind.
func TestPlaceThatMayBeOpenIsLookedUp(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		var again []bool
		w.Chat.Opens = func(o platform.Opening) (string, error) {
			if again = append(again, o.Again); len(again) == 1 {
				return "", &fault.Error{Kind: fault.Unavailable, Uncertain: true}
			}
			return "topic", nil
		}
		w.Start()
		talk(w, line{say: "hello", want: "re: hello"}, line{say: "/fork thread", want: "🍴 [A new thread]"})
		if !slices.Equal(again, []bool{false, true}) {
			t.Errorf("it was asked for as one that may be there: %v", again)
		}
	})
}

// TestPlaceThatMayBeOpenIsLookedUpInATurn: where another replica has the files, the fork is a
// turn there, which is tried again as a whole, and opens no second place.
func TestPlaceThatMayBeOpenIsLookedUpInATurn(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		asked := map[messages.DeliveryID][]bool{}
		w.Chat.Opens = func(o platform.Opening) (string, error) {
			asked[o.Delivery] = append(asked[o.Delivery], o.Again)
			switch n := len(asked[o.Delivery]); {
			case n == 1:
				return "", &fault.Error{Kind: fault.Unavailable, Uncertain: true}
			case n < 4:
				return "", fault.New(fault.Unavailable, "Away.")
			}
			return "topic " + string(o.Delivery), nil
		}
		first, second := w.Start(), w.Replica()
		w.Chat.DeliverTo(first)
		w.Share(first, second)
		rooms := []string{"1", "2", "3", "4", "5", "6", "7", "8"}
		for _, at := range rooms {
			talk(w, line{in: at, say: "hello", want: "hello"})
			w.Chat.Say("/fork thread", ot.In(at))
			w.Pass(30 * time.Second)
		}
		forked := 0
		for _, again := range asked {
			if len(again) == 4 {
				forked++
			}
			if again[0] || slices.Contains(again[1:], false) {
				t.Errorf("it was asked for as one that may be there: %v", again)
			}
		}
		if forked == 0 || len(asked) != len(rooms) {
			t.Errorf("%d forks were tried again as a turn, and %d at all", forked, len(asked))
		}
	})
}

// TestForkThatIsStoppedLeavesNothing where another replica has the files and it is a turn.
func TestForkThatIsStoppedLeavesNothing(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		stopped, held := make(chan struct{}), 0
		w.Chat.Opens = func(o platform.Opening) (string, error) {
			held++
			<-stopped
			return "topic " + string(o.Delivery), nil
		}
		first, second := w.Start(), w.Replica()
		w.Chat.DeliverTo(first)
		w.Share(first, second)
		const turn = `SELECT count(*) FROM inbound_events WHERE lane = 'turn' AND data LIKE '%/fork thread%'`
		at, rooms := "", 0
		for ; w.Value(turn) == "0"; rooms++ {
			if rooms > 0 {
				stopped <- struct{}{}
				w.Pass(4 * time.Second)
			}
			at = fmt.Sprint("room ", rooms)
			talk(w, line{in: at, say: "hello", want: "hello"})
			w.Chat.Say("/fork thread", ot.In(at))
			w.Pass(4 * time.Second)
		}
		w.Chat.Say("/stop", ot.In(at))
		w.Pass(time.Second)
		close(stopped)
		w.Pass(10 * time.Second)
		if held != rooms {
			t.Errorf("%d places were asked for in %d rooms", held, rooms)
		}
		if left := w.Rows(`SELECT platform_conversation_id FROM remote_agent_conversations WHERE platform_conversation_id LIKE 'fork~%'`); len(left)+len(w.Open()) > 0 {
			t.Errorf("what was stopped left %q, still open: %q", left, w.Open())
		}
	})
}

// TestForkSurvivesAStop: the process is told to stop while the place of a fork is opened. The
// next one opens it for the same fork.
func TestForkSurvivesAStop(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		opened := make(chan struct{})
		asked := 0
		w.Chat.Opens = func(platform.Opening) (string, error) {
			if asked++; asked == 1 {
				<-opened
				return "", fault.New(fault.Canceled, "")
			}
			return "topic", nil
		}
		w.Start()
		talk(w, line{say: "hello", want: "re: hello"})
		w.Chat.Say("/fork thread")
		w.Pass(time.Second)
		w.Process().Shutdown()
		w.Pass(31 * time.Second) // its grace is over
		close(opened)
		w.Process().Stop()
		if n := w.Value(`SELECT count(*) FROM remote_agent_conversations`); n != "2" {
			t.Fatalf("%s conversations, want the fork's, too", n)
		}
		w.Start()
		w.Pass(10 * time.Second)
		w.Chat.Find("🍴 [A new thread]")
		if n := w.Value(`SELECT count(*) FROM audit_log WHERE action = 'session.fork'`); n != "1" {
			t.Errorf("it was forked %s times", n)
		}
	})
}

// TestFileOfASession has what tools returned in a private chat only, and is not posted where
// one person alone saw the question.
func TestFileOfASession(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change       func(in *messages.Inbound)
		file, output bool
	}{
		"InPrivate": {func(in *messages.Inbound) { in.Private = true }, true, true},
		"InATeam":   {func(in *messages.Inbound) { in.Private = false }, true, false},
		"Whispered": {func(in *messages.Inbound) { in.Private, in.Whispered = false, true }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Model.On("look at it", ot.Call(ot.ReadTool, "the thing"), ot.Say("I saw it."))
				dir, log := t.TempDir(), storetest.Log(t)
				w.Configure = func(c *orchestrator.Config, s *store.Store) {
					c.Files = files.NewIntake(files.NewStore(s, dir, log), nil, log)
				}
				var dot bytes.Buffer
				if err := png.Encode(&dot, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
					t.Fatal(err)
				}
				w.Tools.Draw(dot.Bytes())
				w.Start()
				talk(w, line{say: "look at it", want: "I saw it."})
				c, _ := w.Process().Commands.Find("sessions")
				r := command.Request{Role: sessions.User, Conv: sessions.Conversation{Key: messages.ConversationKey{Platform: ot.PlatformName, ID: ot.Room}}}
				r.Call, _ = command.Parse("/sessions show 1")
				tt.change(&r.Entry.In)
				reply, err := c.Run(w.T.Context(), r)
				if err != nil || (len(reply.Files) == 1) != tt.file {
					t.Fatalf("it has the files %+v, %v", reply.Files, err)
				}
				for _, part := range []string{"done: the thing", "### Attachment picture-1.png (image/png; 1 x 1 pixels; files/"} {
					if tt.file && strings.Contains(string(reply.Files[0].Data), part) != tt.output {
						t.Errorf("the file is %s", reply.Files[0].Data)
					}
				}
				if strings.Contains(reply.Text, "picture") {
					t.Errorf("the short transcript is %s", reply.Text)
				}
			})
		})
	}
}

// TestModelThatIsNotListed: who mistypes a model reads it at once, not with the next answer.
func TestModelThatIsNotListed(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.Listed = []string{"gpt-5.1", "gpt-5.1-mini", "llama3:latest", "sonnet-4-5-20250929", "vendor/large"}
		w.Start()
		const doubt = "⚠ Its API does not list this model. "
		for name, want := range map[string]string{
			"gpt-5.1": "", "llama3": "", "sonnet-4-5": "", "sonnet-4-5-latest": "", "vendor/large:online": "", "default": "",
			"GPT-5":     doubt + "Did you mean `gpt-5.1`, `gpt-5.1-mini`? `/model default` resets it.",
			"gpt5.1":    doubt + "Did you mean `gpt-5.1`, `gpt-5.1-mini`? `/model default` resets it.",
			"gpt-5.2":   doubt + "Did you mean `gpt-5.1`? `/model default` resets it.",
			"elsewhere": doubt + "`/model default` resets it.",
		} {
			before := len(w.Chat.Posts(ot.Room))
			talk(w, line{say: "/model " + name, want: "answers from the next message on."})
			said := w.Chat.Posts(ot.Room)[before:]
			if _, got, _ := strings.Cut(said[len(said)-1].Text, "thinking."); strings.TrimSpace(got) != want {
				t.Errorf("/model %s is answered %q, want %q", name, got, want)
			}
		}
	})
}
