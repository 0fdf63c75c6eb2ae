package orchestrator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// worktrees is a scripted orchestrator.Worktrees: one error after the other for each
// preparation, then it is ready.
type worktrees struct {
	mu       sync.Mutex
	errs     []error
	prepared int
	cloned   []string
	released int
}

func (s *worktrees) Prepare(_ context.Context, _ sessions.Conversation, _ sessions.Entry, call command.Call) (orchestrator.Prepared, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prepared++
	if len(s.errs) > 0 {
		err := s.errs[0]
		if s.errs = s.errs[1:]; err != nil {
			return orchestrator.Prepared{}, err
		}
	}
	p := orchestrator.Prepared{Dir: "/tree/cmd", Tree: "/tree", GitData: "/git", Head: "abc", Checkpoint: "refs/x", Codebase: "demo", Branch: "bot/1", Notice: "The branch is new."}
	if call.Name == "ship" {
		p.Prompt = &command.Prompt{Meta: sessions.CommandMeta{Name: "ship"}, Expand: func(c command.Call, _ string) (string, []string) {
			return "Ship " + c.Rest, []string{"Nobody checked this."}
		}}
	}
	return p, nil
}

func (s *worktrees) Clone(_ context.Context, url string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cloned = append(s.cloned, url)
	return nil
}

func (*worktrees) Fork(context.Context, sessions.Conversation, sessions.Conversation) ([]string, error) {
	return nil, nil
}

func (s *worktrees) Release(context.Context, sessions.Conversation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released++
	return nil
}

// about has an event be about a repository, so that its turn is prepared.
var about = ot.With(func(in *messages.Inbound) { in.Repository = &messages.Repository{URL: "https://git.example/demo.git"} })

func scriptedWorktrees(w *ot.World, errs ...error) *worktrees {
	s := &worktrees{errs: errs}
	w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Worktrees = s }
	return s
}

// TestAnAgentWorksWhereItsFilesAre, which its session has on record.
func TestAnAgentWorksWhereItsFilesAre(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		s := &worktrees{}
		agents(w, func(c *orchestrator.Config) { c.Worktrees = s })
		w.Start()
		w.Chat.Say("/whoami")
		w.Pass(time.Second)
		adopt(w)
		w.Chat.Say("build it", about)
		w.Pass(time.Minute)
		if turns := w.Agent.Turns(); len(turns) != 1 || turns[0].Dir != "/tree/cmd" || turns[0].Tree != "/tree" || turns[0].GitData != "/git" {
			t.Errorf("the turns are %+v", turns)
		}
		if got := w.Value(`SELECT json_extract(config, '$.codebase') || ' ' || json_extract(config, '$.branch') FROM remote_agent_sessions`); got != "demo bot/1" {
			t.Errorf("the session is of %q", got)
		}
	})
}

// TestTheFirstMessageIsACommandFile of a repository whose files the conversation does not have
// yet: only those say whether there is such a command.
func TestTheFirstMessageIsACommandFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"/ship it": "re: Ship it", "/shop it": "There is no command `/shop`. Did you mean `/stop`?"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				scriptedWorktrees(w)
				w.Start()
				w.Chat.Say(text, about)
				w.Pass(time.Minute)
				w.Chat.Find(want)
			})
		})
	}
}

// TestCommandFileIsAloneWithItsFiles: what others said and posted before is no part of the
// request that a repository's own command makes; what came with the command is.
func TestCommandFileIsAloneWithItsFiles(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		scriptedWorktrees(w)
		w.Chat.Caps.SessionContext = true
		w.Chat.Files["log"], w.Chat.Files["own"] = "theirs", "mine"
		text := func(name string) messages.Attachment {
			return messages.Attachment{Name: name + ".txt", MediaType: "text/plain", Source: name}
		}
		w.Chat.Earlier = func(messages.Inbound) ([]messages.Quote, error) {
			return []messages.Quote{{Relation: "thread", Author: "Bob", Text: "Look.", Files: []messages.Attachment{text("log")}}}, nil
		}
		w.Start()
		w.Chat.Say("/whoami")
		w.Pass(time.Second)
		adopt(w)
		w.Chat.Say("/ship it", about, ot.With(func(in *messages.Inbound) { in.Attachments = []messages.Attachment{text("own")} }))
		w.Pass(time.Minute)
		request := w.Model.Requests()[0].Array[0]
		if got := request.PlainText(); !strings.HasPrefix(got, "Ship it") || strings.Contains(got, "Bob") {
			t.Errorf("the request is %q", got)
		}
		if last, is := request.Blocks[len(request.Blocks)-1].(messages.Attachment); !is || len(request.Blocks) != 2 || last.Text != "mine" {
			t.Errorf("the files are %+v", request.Blocks)
		}
	})
}

// TestErrorsNameCommandsAsTheyAreGiven where they have another prefix: of a turn that cannot
// be prepared, and of one that fails.
func TestErrorsNameCommandsAsTheyAreGiven(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		scriptedWorktrees(w, fault.New(fault.Invalid, "It is gone: `/status` says more, not `/nothing`."))
		w.Chat.Caps.CommandPrefix = "@bot "
		w.Model.On("limits", ot.Fail("", fault.New(fault.Forbidden, "Too much: `/new` helps.")))
		w.Start()
		w.Chat.Say("hello", about)
		w.Pass(time.Minute)
		w.Chat.Find("✖ It is gone: `@bot status` says more, not `/nothing`.")
		w.Chat.Say("limits")
		w.Pass(time.Minute)
		w.Chat.Find("✖ Too much: `@bot new` helps.")
	})
}

// What nobody can explain to a person, the operator finds by the number that they were given.
func TestAnUnexplainedPreparationIsInTheLog(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		s := &worktrees{errs: []error{errors.New("the index is in pieces")}}
		var log bytes.Buffer
		w.Configure = func(c *orchestrator.Config, _ *store.Store) {
			c.Worktrees, c.Log = s, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		}
		w.Start()
		w.Chat.Say("hello", about)
		w.Pass(time.Minute)
		_, number, ok := strings.Cut(w.Chat.Find("✖ Something went wrong in the bot.").Text, "(Error ")
		number, _, _ = strings.Cut(number, " ")
		if said := log.String(); !ok || !strings.Contains(said, number+" ") || !strings.Contains(said, "the index is in pieces") {
			t.Errorf("number %q; the log says:\n%s", number, said)
		}
	})
}

func TestPreparation(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		errs     []error
		say      string
		shown    []string
		prepared int
		asked    string
	}{
		"Ready":   {nil, "hello", []string{"re: hello", "The branch is new."}, 1, "hello"},
		"Command": {nil, "/ship it", []string{"You are", "re: Ship it", "Nobody checked this."}, 1, "Ship it"},
		"Away":    {[]error{errUnavailable, errUnavailable}, "hello", []string{"re: hello", "The branch is new."}, 3, "hello"},
		"Broken":  {[]error{fault.New(fault.Invalid, "The repository is broken.")}, "hello", []string{"✖ The repository is broken."}, 1, ""},
		"AwayForGood": {
			slices.Repeat([]error{errUnavailable}, 9), "hello", []string{"✖ The other side is away."}, 5, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				s := scriptedWorktrees(w, tt.errs...)
				w.Start()
				if strings.HasPrefix(tt.say, "/") { // which needs a codebase to be one of its commands
					w.Chat.Say("/whoami")
					w.Pass(time.Second)
					adopt(w)
				}
				w.Chat.Say(tt.say, about)
				w.Pass(time.Minute)
				w.Chat.Want(tt.shown...)
				if s.prepared != tt.prepared {
					t.Errorf("prepared %d times, want %d", s.prepared, tt.prepared)
				}
				if got := strings.Join(w.Model.Asked(), "|"); got != tt.asked {
					t.Errorf("the model was asked %q, want %q", got, tt.asked)
				}
				if open := w.Open(); len(open) > 0 {
					t.Errorf("still open: %q", open)
				}
			})
		})
	}
}

// TestNoticesOfAPreparation: each step has something to say, and all of it is said.
func TestNoticesOfAPreparation(t *testing.T) {
	t.Parallel()
	for name, session := range map[string]bool{"Chat": false, "Issue": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				scriptedWorktrees(w)
				w.Chat.Caps.SessionContext = session
				w.Chat.Earlier = func(messages.Inbound) ([]messages.Quote, error) {
					return []messages.Quote{{Relation: "thread", Author: "Bob", Text: "It broke."}}, nil
				}
				w.Start()
				w.Chat.Say("why?", about, attach(messages.Attachment{Name: "a.zip", MediaType: "application/zip", Source: "zip"}))
				w.Pass(10 * time.Second)
				notice := w.Chat.Find("The branch is new.").Text
				if !strings.Contains(notice, "⚠ a.zip: files of this kind") {
					t.Errorf("of the file they read %q", notice)
				}
				if told := strings.Contains(notice, "Using 1 earlier message as context."); told == session {
					t.Errorf("of what was said before they read %q", notice)
				}
			})
		})
	}
}

// moved has nothing to say of the files where a turn begins, and something where it goes on.
type moved struct {
	worktrees
	began bool
}

func (m *moved) Prepare(ctx context.Context, conv sessions.Conversation, entry sessions.Entry, call command.Call) (orchestrator.Prepared, error) {
	p, err := m.worktrees.Prepare(ctx, conv, entry, call)
	if !m.began {
		p.Notice = ""
	}
	m.began = true
	return p, err
}

// TestNoticeOfATurnThatGoesOn: a turn goes on with other files, as on another machine after the
// death of its process, and its person reads that once.
func TestNoticeOfATurnThatGoesOn(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		trees := &moved{}
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Worktrees = trees }
		w.Model.On("hello", ot.Hold("", ot.Say("Never.")), ot.Say("Hello."))
		w.Start()
		w.Chat.Say("hello", about)
		w.Pass(time.Second)
		if !trees.began || strings.Contains(strings.Join(w.Chat.Texts(ot.Room), "\n"), "The branch") {
			t.Fatalf("at first they read %q", w.Chat.Texts(ot.Room))
		}
		w.Process().Kill()
		w.Start()
		w.Pass(time.Minute)
		w.Chat.Find("Hello.")
		if n := strings.Count(strings.Join(w.Chat.Texts(ot.Room), "\n"), "The branch is new."); n != 1 {
			t.Errorf("they read %q", w.Chat.Texts(ot.Room))
		}
	})
}

// located notes which branch it is to prepare, and ends its process then, as often as it is told to.
type located struct {
	worktrees
	w        *ot.World
	dies     int
	branches []string
}

func (l *located) Prepare(ctx context.Context, conv sessions.Conversation, entry sessions.Entry, call command.Call) (orchestrator.Prepared, error) {
	if entry.In.Repository != nil {
		l.branches = append(l.branches, entry.In.Repository.Branch)
	}
	if l.dies--; l.dies >= 0 {
		l.w.Process().Die()
		runtime.Goexit()
	}
	return l.worktrees.Prepare(ctx, conv, entry, call)
}

// TestBranchOfAPullRequest is looked up before its turn, once, also if the process dies then;
// and again where that is long ago. It is not asked for where there is no repository.
func TestBranchOfAPullRequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		about   ot.Option
		away    time.Duration // before the next process
		fails   int
		located int
		want    string
	}{
		"Soon":         {about, 0, 0, 1, "fix-1 fix-1"},
		"Later":        {about, 20 * time.Minute, 0, 2, "fix-1 fix-2"},
		"NotAtOnce":    {about, 0, 2, 3, "fix-3 fix-3"},
		"NoRepository": {ot.With(func(*messages.Inbound) {}), 0, 0, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				l := &located{w: w, dies: 1}
				w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Worktrees = l }
				n := 0
				w.Chat.Locates = func(in messages.Inbound) (messages.Repository, error) {
					r := *in.Repository
					n++
					if r.Branch = fmt.Sprint("fix-", n); n <= tt.fails {
						return r, errUnavailable
					}
					return r, nil
				}
				w.Start()
				w.Chat.Say("/whoami")
				w.Pass(time.Second)
				if name == "NoRepository" {
					adopt(w) // so that its turn is prepared
				}
				w.Chat.Say("hello", tt.about)
				w.Pass(time.Minute)
				if w.Process().Dead() {
					w.Pass(tt.away)
					w.Start()
				}
				w.Pass(time.Minute)
				w.Chat.Find("re: hello")
				if got := strings.Join(l.branches, " "); got != tt.want || n != tt.located {
					t.Errorf("looked up %d times, and prepared %q; want %d, %q", n, got, tt.located, tt.want)
				}
			})
		})
	}
}

// TestWhatWasDeletedMeanwhileIsNotAnswered: the platform finds out only when the turn is to begin.
func TestWhatWasDeletedMeanwhileIsNotAnswered(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Worktrees = &located{w: w} }
		w.Chat.Locates = func(in messages.Inbound) (messages.Repository, error) {
			if in.Text == "never mind" {
				return *in.Repository, platform.ErrWithdrawn
			}
			return *in.Repository, nil
		}
		w.Start()
		w.Chat.Say("never mind", about)
		w.Chat.Say("hello", about)
		w.Pass(time.Minute)
		w.Chat.Find("re: hello")
		if got := w.States("never mind") + " " + w.States("hello"); got != "stopped done" || strings.Contains(strings.Join(w.Chat.Texts(ot.Room), "\n"), "never") {
			t.Errorf("entries are %s, and there stand %q", got, w.Chat.Texts(ot.Room))
		}
	})
}

// TestPreparationIsStopped while it works on the directory, which takes as long as it likes.
func TestPreparationIsStopped(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Worktrees = &slowWorktrees{} }
		w.Start()
		w.Chat.Say("hello", about)
		w.Pass(5 * time.Second)
		w.Chat.Say("/stop")
		w.Chat.Say("and now?")
		w.Pass(2 * time.Second)
		w.Chat.Find("re: and now?")
		if got := w.States("hello"); got != "stopped" {
			t.Errorf("the entry is %s", got)
		}
	})
}

// slowWorktrees is not ready for a greeting before its turn ends.
type slowWorktrees struct{ worktrees }

func (s *slowWorktrees) Prepare(ctx context.Context, conv sessions.Conversation, entry sessions.Entry, call command.Call) (orchestrator.Prepared, error) {
	if entry.In.Text != "hello" {
		return s.worktrees.Prepare(ctx, conv, entry, call)
	}
	<-ctx.Done()
	return orchestrator.Prepared{}, context.Cause(ctx)
}

// TestWhatComesWhileATurnIsPrepared is not left out, although nothing else was open when its
// preparation began: a message that was edited is answered as it is now, and a notice goes out
// before the answer.
func TestWhatComesWhileATurnIsPrepared(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		s := &pausedWorktrees{pause: 10 * time.Second}
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Worktrees = s }
		w.Start()
		said := w.Chat.Say("good morning", about)
		w.Pass(5 * time.Second)
		w.Chat.Edit(said, "good evening")
		inTx(w, func(ctx context.Context, tx *store.Tx) error {
			conv, err := tx.Conversations().FindConversation(ctx, room(ot.Room))
			if err != nil {
				return err
			}
			return tx.Deliveries().AddDelivery(ctx, &messages.Delivery{ConversationID: conv.ID, Text: "The disk is nearly full.", Final: true})
		})
		w.Pass(time.Minute)
		if shown := w.Chat.Texts(ot.Room); len(shown) < 2 || shown[0] != "The disk is nearly full." || shown[len(shown)-1] != "re: good evening" {
			t.Errorf("shown in this order: %q", shown)
		}
		if s.prepared != 1 {
			t.Errorf("prepared %d times", s.prepared)
		}
	})
}

// TestAClosingWhileATurnIsPrepared: what somebody says while closing an issue is answered with what
// was said before, although the closing arrives before its turn begins.
func TestAClosingWhileATurnIsPrepared(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) {
			c.Worktrees = &pausedWorktrees{pause: 10 * time.Second}
		}
		w.Start()
		closes := ot.With(func(in *messages.Inbound) { in.Kind = messages.KindClosed })
		w.Chat.Say("hello", about)
		w.Pass(time.Minute)
		w.Chat.Say("thanks", about)
		w.Pass(time.Second)
		w.Chat.Do(closes)
		w.Pass(time.Minute)
		w.Chat.Find("re: thanks")
		if got := w.Value(`SELECT count(*) FROM remote_agent_sessions`); got != "1" {
			t.Errorf("there are %s sessions", got)
		}
		w.Chat.Do(closes)
		w.Pass(time.Second)
		if got := w.Value(`SELECT count(*) FROM remote_agent_sessions WHERE active`); got != "0" {
			t.Errorf("%s sessions go on after a closing", got)
		}
	})
}

// pausedWorktrees takes a while to prepare anything.
type pausedWorktrees struct {
	worktrees
	pause time.Duration
}

func (s *pausedWorktrees) Prepare(ctx context.Context, conv sessions.Conversation, entry sessions.Entry, call command.Call) (orchestrator.Prepared, error) {
	time.Sleep(s.pause)
	return s.worktrees.Prepare(ctx, conv, entry, call)
}

// adopt gives the conversation a codebase.
func adopt(w *ot.World) {
	w.T.Helper()
	inTx(w, func(ctx context.Context, tx *store.Tx) error {
		c, err := tx.Registry().Create(ctx, sessions.Codebase{Name: "demo", DefaultCwd: "/tree", Assistant: string(ot.ModelName)})
		if err != nil {
			return err
		}
		if err := tx.Registry().RegisterCommand(ctx, c.ID, "ship", sessions.CommandDef{Path: "ship.md", Description: "ship something"}); err != nil {
			return err
		}
		conv, err := tx.Conversations().FindConversation(ctx, room(ot.Room))
		if err != nil {
			return err
		}
		return tx.Conversations().UpdateConversation(ctx, conv.ID, sessions.ConversationUpdate{CodebaseID: &c.ID})
	})
}

// TestAlwaysAllowed asks once in a codebase for what is allowed there from then on.
func TestAlwaysAllowed(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		s := scriptedWorktrees(w)
		w.Model.On("do it", ot.Call(ot.ExecuteTool, "make"), ot.Say("It is done."))
		w.Model.On("a third time", ot.Call(ot.ExecuteTool, "make"), ot.Say("It is done a third time."))
		w.Model.On("once more", ot.Call(ot.ExecuteTool, "make"), ot.Say("It is done again."))
		w.Start()
		w.Chat.Say("/whoami")
		w.Pass(time.Second)
		adopt(w)
		w.Chat.Say("do it")
		w.Pass(5 * time.Second)
		w.Chat.Press(w.Chat.Find("run `make`?"), "Always allow this")
		w.Pass(5 * time.Second)
		w.Chat.Find("It is done.")
		w.Chat.Say("once more")
		w.Pass(5 * time.Second)
		w.Chat.Find("It is done again.")
		if got := w.Value(`SELECT count(*) FROM approvals`); got != "1" || len(w.Tools.Did()) != 2 {
			t.Errorf("%s questions, and the tools did %q", got, w.Tools.Did())
		}
		w.Chat.Say("/allow")
		w.Pass(time.Second)
		w.Chat.Find("run `make` (by chat/ann)")
		w.Chat.Say("/allow revoke 1")
		w.Pass(time.Second)
		w.Chat.Say("a third time")
		w.Pass(5 * time.Second)
		w.Chat.Find("a-2: run `make`?")
		w.Chat.Do(ot.With(func(in *messages.Inbound) { in.Kind = messages.KindClosed }))
		w.Pass(time.Second)
		w.Chat.Say("/deny a-2")
		w.Pass(5 * time.Second)
		w.Chat.Do(ot.With(func(in *messages.Inbound) { in.Kind = messages.KindClosed }))
		w.Pass(time.Second)
		if s.released != 1 {
			t.Errorf("the worktree was freed %d times, want once: when nothing waited any more", s.released)
		}
	})
}

// TestCloneIsAsked before a repository that is missing is cloned; the message waits.
func TestCloneIsAsked(t *testing.T) {
	t.Parallel()
	need := &orchestrator.NeedsClone{Codebase: "demo", URL: "https://git.example/demo", Why: "It is not here."}
	for name, tt := range map[string]struct {
		say    string
		cloned int
		shown  string
	}{
		"Yes":     {"/approve a-1", 1, "re: hello"},
		"Useless": {"/approve a-1", 1, "✖ https://git.example/demo was cloned, but demo still cannot use it."},
		"No":      {"/deny a-1", 0, "✖ demo was not cloned, so your message was not answered."},
		"Stop":    {"/stop", 0, "✖"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				s := scriptedWorktrees(w, need, need)
				if name != "Yes" {
					s.errs = []error{need, need, need}
				}
				w.Start()
				w.Chat.Say("hello", about)
				w.Pass(10 * time.Second)
				w.Chat.Find("Clone https://git.example/demo?")
				w.Chat.Say(tt.say)
				w.Pass(10 * time.Second)
				if len(s.cloned) != tt.cloned {
					t.Errorf("cloned %q", s.cloned)
				}
				if name != "Stop" {
					w.Chat.Find(tt.shown)
				} else if n := len(w.Model.Requests()); n != 0 || w.States("hello") != "stopped" {
					t.Errorf("the model was asked %d times, and the entry is %s", n, w.States("hello"))
				}
				if open := w.Open(); len(open) > 0 {
					t.Errorf("still open: %q", open)
				}
			})
		})
	}
}

// TestFlood has more strangers write than is recorded: what they write costs next to
// nothing, and whoever may talk to the bot is answered meanwhile.
func TestFlood(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		p := w.Start()
		for i := range 5 {
			var all []messages.Inbound
			for n := range 60 {
				id := messages.UserID(fmt.Sprint("s", i, "-", n))
				all = append(all, messages.Inbound{
					Event: messages.EventID("e-" + id), Kind: messages.KindMessage, Conversation: room("d-" + string(id)), Private: true,
					Sender: messages.Sender{ID: id}, Text: "let me in",
				})
			}
			if err := p.Engine.Accept(w.T.Context(), all...); err != nil {
				t.Fatal(err)
			}
			w.Settle()
		}
		w.Chat.Say("hello")
		w.Pass(5 * time.Second)
		w.Chat.Want("re: hello")
		if n := w.Value(`SELECT count(*) < 200 FROM inbound_events`); n != "1" {
			t.Error("all of them are recorded")
		}
		w.Pass(2 * time.Minute) // then they are recorded again
		w.Chat.Say("let me in", ot.From(ot.Stranger), ot.In("d-stan"))
		w.Settle()
		if n := w.Value(`SELECT count(*) FROM inbound_events WHERE sender = 'stan'`); n != "1" {
			t.Errorf("%s records of whoever came later", n)
		}
	})
}

// TestForkIntoAPlaceOfItsOwn opens a place, once, whatever becomes of the process.
func TestForkIntoAPlaceOfItsOwn(t *testing.T) {
	for name, point := range map[string]int{"": 0, "BeforeItIsOpened": 1, "BeforeItIsRecorded": 2, "BeforeItIsTold": 3} {
		t.Run(name, func(t *testing.T) {
			ot.Run(t, func(w *ot.World) {
				opened := map[messages.DeliveryID]string{}
				w.Chat.Opens = func(o platform.Opening) (string, error) {
					if opened[o.Delivery] == "" {
						opened[o.Delivery] = fmt.Sprint("topic-", len(opened))
					}
					return opened[o.Delivery], nil
				}
				w.Start()
				w.Chat.Say("remember the cat")
				w.Pass(2 * time.Second)
				if point > 0 {
					w.KillAt(forkPoints[point-1], 1)
				}
				w.Chat.Say("/fork thread")
				w.Settle()
				if point > 0 {
					if !w.Process().Dead() {
						t.Fatal("the process did not come to the point")
					}
					w.Start()
				}
				w.Pass(40 * time.Second)
				w.Chat.Find("🍴 [A new thread](https://chat.example/topic-0) continues with 2 messages")
				w.Chat.Say("which animal?", ot.In("topic-0"))
				w.Pass(5 * time.Second)
				if len(opened) != 1 {
					t.Errorf("%d places were opened", len(opened))
				}
				if n := len(w.Chat.Texts("topic-0")); n != 2 {
					t.Errorf("in the fork stands %q, want its first message and an answer", w.Chat.Texts("topic-0"))
				}
				last := w.Model.Requests()[len(w.Model.Requests())-1]
				if got := last.Array[0].PlainText(); got != "remember the cat" {
					t.Errorf("the fork begins with %q", got)
				}
			})
		})
	}
}

// TestPreparationIsTriedAgain: whoever waits for a repository that cannot be reached sees
// why, and how long, in the message that becomes the answer.
func TestPreparationIsTriedAgain(t *testing.T) {
	t.Parallel()
	away := func(after time.Duration) error {
		return &fault.Error{Kind: fault.Unavailable, RetryAfter: after, Public: "The server of the repository is away."}
	}
	for name, tt := range map[string]struct {
		errs []error
		do   func(w *ot.World, shown ot.Post)
		want []string
		asks int
	}{
		"it comes back": {
			errs: []error{away(12 * time.Second), away(0)},
			do: func(w *ot.World, _ ot.Post) {
				w.Pass(6 * time.Second)
				w.Chat.Want("⏳ The server of the repository is away. Trying again in 7 s, 2 of 5.")
				w.Pass(10 * time.Second)
			},
			want: []string{"✔ Answered after 14 s", "The branch is new.", "re: hello"}, asks: 1,
		},
		"nobody wants to wait": {
			errs: []error{away(100 * time.Second)},
			do: func(w *ot.World, shown ot.Post) {
				w.Chat.Press(shown, "Retry now")
				w.Pass(2 * time.Second)
			},
			want: []string{"re: hello", "The branch is new."}, asks: 1,
		},
		"it is stopped": {
			errs: []error{away(12 * time.Second)},
			do: func(w *ot.World, shown ot.Post) {
				w.Chat.Press(shown, "Stop")
				w.Pass(20 * time.Second)
			},
			want: []string{"⏹ Canceled before it started."},
		},
		"the process dies": {
			errs: []error{away(12 * time.Second)},
			do: func(w *ot.World, _ ot.Post) {
				w.Process().Kill()
				w.Start()
				w.Pass(time.Minute)
			},
			want: []string{"✔ Answered after 15 s", "The branch is new.", "re: hello"}, asks: 1,
		},
		"it is stopped after a crash": {
			errs: []error{away(100 * time.Second)},
			do: func(w *ot.World, shown ot.Post) {
				w.Process().Kill()
				w.Start()
				w.Chat.Press(shown, "Stop")
				w.Pass(time.Minute)
			},
			want: []string{"⏹ Canceled before it started."},
		},
		"not for a countdown": {
			errs: []error{away(10 * time.Minute)},
			do:   func(w *ot.World, _ ot.Post) { w.Pass(11 * time.Minute) },
			want: []string{"✔ Answered after 10:00", "The branch is new.", "re: hello"}, asks: 1,
		},
		"it stays away": {
			errs: slices.Repeat([]error{away(time.Second)}, 9),
			do:   func(w *ot.World, _ ot.Post) { w.Pass(time.Minute) },
			want: []string{"✖ The server of the repository is away."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Chat.Caps.Buttons, w.Chat.Caps.SilentEdits = true, true
				scriptedWorktrees(w, tt.errs...)
				w.Start()
				w.Chat.Say("hello", about)
				w.Pass(100 * time.Millisecond)
				tt.do(w, w.Chat.Find("⏳ The server of the repository is away. Trying again in"))
				w.Chat.Want(tt.want...)
				if got := len(w.Model.Asked()); got != tt.asks {
					t.Errorf("the model was asked %d times", got)
				}
				if open := w.Open(); len(open) > 0 {
					t.Errorf("still open: %q", open)
				}
			})
		})
	}
}
