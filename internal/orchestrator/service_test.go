package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/chat"
	"remote-agent/internal/fault"
	"remote-agent/internal/mcpserver"
	"remote-agent/internal/messages"
	"remote-agent/internal/metrics"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/signin"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

// inTx changes the database as an operator does on the command line.
func inTx(w *ot.World, fn func(ctx context.Context, tx *store.Tx) error) {
	w.T.Helper()
	ctx := w.T.Context()
	if err := w.Process().Store.InTx(ctx, func(tx *store.Tx) error { return fn(ctx, tx) }); err != nil {
		w.T.Fatal(err)
	}
}

func halt(w *ot.World) {
	inTx(w, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.People().Halt(ctx, "chat/olga", "a fire")
		return err
	})
}

func resume(w *ot.World) {
	inTx(w, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.People().Resume(ctx)
		return err
	})
}

// TestTooMuchDuringAHalt is refused, and told at once, as at any other time.
func TestTooMuchDuringAHalt(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		m := metrics.New("test")
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.MaxWaiting, c.Metrics = 2, m }
		w.Start()
		halt(w)
		for _, text := range []string{"one", "two", "three", "/whoami", "four"} {
			w.Chat.Say(text)
			w.Pass(time.Second)
		}
		w.Chat.Want("The bot is halted", "2 messages queued here, which is the limit", "You are")
		if got := w.Rows(`SELECT state FROM inbound_events WHERE lane = 'turn' ORDER BY id`); !slices.Equal(got, []string{"waiting", "waiting", "refused", "refused"}) {
			t.Errorf("the entries are %q", got)
		}
		served := httptest.NewRecorder()
		m.Handler().ServeHTTP(served, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if want := `overflowed_total{platform="chat"} 2`; !strings.Contains(served.Body.String(), want) {
			t.Errorf("there is no %s in\n%s", want, served.Body)
		}
	})
}

// TestToolsAreCounted by what became of them.
func TestToolsAreCounted(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		m := metrics.New("test")
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Metrics = m }
		w.Model.On("do it", ot.Call(ot.ReadTool, "a"), ot.Call("none", "b"), ot.Call(ot.ReadTool, "c"), ot.Say("It is done."))
		w.Start()
		w.Chat.Say("do it")
		w.Pass(20 * time.Second)
		w.Chat.Find("It is done.")
		served := httptest.NewRecorder()
		m.Handler().ServeHTTP(served, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if want := `bot_tool_calls_total{outcome="ok",tool="look"} 2`; !strings.Contains(served.Body.String(), want) {
			t.Errorf("there is no %s in\n%s", want, served.Body)
		}
	})
}

// TestHalt ends what runs, keeps what comes, tells so once, and goes on after the resume,
// also in another process.
func TestHalt(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"SameProcess": false, "AfterARestart": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Model.On("first", ot.Hold("I begin ", ot.Say("Never.")))
				w.Start()
				w.Chat.Say("first")
				w.Chat.Say("second")
				w.Pass(2 * time.Second)
				halt(w)
				w.Pass(2 * time.Second)
				w.Chat.Find("the bot was halted.")
				w.Chat.Say("third")
				w.Chat.Say("elsewhere", ot.In("elsewhere"))
				w.Chat.Say("/whoami")
				w.Pass(time.Minute)
				w.Chat.Find("You are")
				w.Chat.WantIn("elsewhere", "⏸ The bot is halted: a fire. Your message is saved")
				told := 0
				for _, text := range w.Chat.Texts(ot.Room) {
					if strings.Contains(text, "The bot is halted") {
						told++
					}
				}
				if told != 1 {
					t.Errorf("they were told %d times: %q", told, w.Chat.Texts(ot.Room))
				}
				if !w.Process().Engine.Halted().Halted() {
					t.Error("the process does not know")
				}
				if restart {
					w.Restart()
					w.Pass(10 * time.Second)
				}
				if n := len(w.Model.Requests()); n != 1 {
					t.Errorf("the model was asked %d times while the bot was halted", n)
				}
				resume(w)
				w.Pass(10 * time.Second)
				w.Chat.Find("re: second")
				w.Chat.Find("re: third")
				w.Chat.Find("re: Ann: elsewhere")
				if got := w.States("first"); got != "stopped" {
					t.Errorf("the turn that was ended is %s", got)
				}
			})
		})
	}
}

// TestRemovedWhileTheirTurnRuns ends it, and what of theirs waits is refused.
func TestRemovedWhileTheirTurnRuns(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("first", ot.Hold("I begin ", ot.Say("Never.")))
		w.Start()
		w.Chat.Say("first")
		w.Chat.Say("second")
		w.Pass(2 * time.Second)
		inTx(w, func(ctx context.Context, tx *store.Tx) error {
			return tx.People().SetRole(ctx, sessions.Identity{Platform: ot.PlatformName, UserID: ot.Ann, Role: sessions.Stranger}, sessions.GrantedByCLI, true)
		})
		w.Process().Engine.AccessChanged()
		w.Pass(5 * time.Second)
		w.Chat.Find("⏹ Stopped: the person who asked can no longer use the bot.")
		w.Chat.Find("You can no longer use this bot, so this was not started.")
		if n := len(w.Model.Requests()); n != 1 {
			t.Errorf("the model was asked %d times", n)
		}
		if got := w.States("first"); got != "stopped" {
			t.Errorf("the entry is %s", got)
		}
	})
}

// TestReload takes other settings while the process works: who may talk to it, how many
// conversations it works on.
func TestReload(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		slots(w, 1)
		w.Model.On("slow", ot.Hold("I begin ", ot.Say("It was slow.")))
		p := w.Start()
		w.Chat.Say("slow")
		w.Chat.Say("hello", ot.In("elsewhere"), ot.From(ot.Bob))
		w.Pass(2 * time.Second)
		p.Engine.Reload(w.T.Context(), orchestrator.Live{
			Slots:  2,
			Access: map[messages.Platform]orchestrator.AccessRule{ot.PlatformName: {IDs: only(ot.Bob)}},
		})
		w.Pass(10 * time.Second)
		w.Chat.WantIn("elsewhere", "re: BOB: hello")
		w.Chat.Find("⏹ Stopped: the person who asked can no longer use the bot.")
	})
}

func TestReadyAndIdle(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		p := w.Start()
		idle := func(want bool, questions ...string) {
			t.Helper()
			got, asked, err := p.Engine.Idle(w.T.Context(), room(ot.Room))
			if err != nil || got != want || !slices.Equal(asked, questions) {
				t.Errorf("idle: %v, waiting for %q, %v; want %v and %q", got, asked, err, want, questions)
			}
		}
		if err := p.Engine.Ready(); err != nil {
			t.Errorf("a process that runs is not ready: %v", err)
		}
		idle(true)
		w.Model.On("hello", ot.Hold("", ot.Call(ot.ExecuteTool, "it")), ot.Say("Done."))
		w.Chat.Say("hello")
		w.Settle()
		idle(false)
		if n := p.Engine.RunningTurns(); n != 1 {
			t.Errorf("%d turns run, want 1", n)
		}
		w.Model.Release()
		w.Pass(5 * time.Second)
		idle(true, "a-1")
		w.Chat.Say("/approve a-1")
		w.Pass(5 * time.Second)
		idle(true)
		p.Stop()
		if err := p.Engine.Ready(); !fault.Is(err, fault.Unavailable) {
			t.Errorf("a process that has stopped: %v", err)
		}
	})
}

// memo remembers one thing of everybody, and notes what it was asked.
type memo struct {
	err     error
	noted   int
	asked   []orchestrator.RecallLimits
	teaches bool
}

func (m *memo) Recall(_ context.Context, _ sessions.Conversation, entry sessions.Entry, limits orchestrator.RecallLimits) ([]messages.Quote, error) {
	m.asked = append(m.asked, limits)
	return []messages.Quote{{Relation: "remembered", Text: string(entry.In.Sender.ID) + " likes tea"}}, m.err
}

func (m *memo) Teaches(messages.Inbound) bool { return m.teaches }
func (m *memo) Noted()                        { m.noted++ }

// TestMemory shows what is remembered to the model and keeps it nowhere; a message that
// teaches is noted with its answer.
func TestMemory(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err   error
		shown bool
	}{"Remembered": {nil, true}, "Away": {errUnavailable, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				m := &memo{err: tt.err, teaches: true}
				w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Memory, c.Learner = m, m }
				w.Model.On("", ot.Say("Right."))
				w.Start()
				w.Chat.Say("hello")
				w.Pass(5 * time.Second)
				w.Chat.Say("again")
				w.Pass(5 * time.Second)
				for i, r := range w.Model.Requests() {
					last := r.Array[len(r.Array)-1].PlainText()
					if strings.Contains(last, "ann likes tea") != tt.shown {
						t.Errorf("request %d ends with %q", i, last)
					}
				}
				if n := strings.Count(strings.Join(w.Said(), "\n"), "likes tea"); n != 0 {
					t.Errorf("it is kept in the session %d times", n)
				}
				if n := w.Value(`SELECT count(*) FROM memory_lessons`); n != "2" || m.noted != 2 {
					t.Errorf("%s lessons, told of %d", n, m.noted)
				}
			})
		})
	}
}

// TestFailedCallsAreOnRecordAsThat.
func TestFailedCallsAreOnRecordAsThat(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("do it", ot.Call("dance", "now"), ot.Call(ot.WriteTool, "it"), ot.Say("It is over."))
		w.Start()
		w.Chat.Say("do it")
		w.Pass(5 * time.Second)
		if got := strings.Join(w.Rows(`SELECT tool_name, status, error_details IS NOT NULL FROM agent_tool_calls ORDER BY rowid`), " "); got != "dance|failed|1 note|completed|0" {
			t.Errorf("on record is %s", got)
		}
	})
}

// TestAgentsAreToldWhatIsRememberedInPrivate: what an agent was told is in its own session,
// where others of the room would find it.
func TestAgentsAreToldWhatIsRememberedInPrivate(t *testing.T) {
	t.Parallel()
	for where, told := range map[string]int{ot.Room: 1, team: 0} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				m := &memo{}
				agents(w, func(c *orchestrator.Config) { c.Memory = m })
				w.Start()
				w.Chat.Say("hello", ot.In(where))
				w.Pass(2 * time.Second)
				got := fmt.Sprint(w.Agent.Turns()[0].Array)
				if len(m.asked) != told || strings.Contains(got, "likes tea") != (told == 1) {
					t.Errorf("looked up %d times, and told %s", len(m.asked), got)
				}
			})
		})
	}
}

// create stores a profile.
func create(w *ot.World, p profile.Profile) profile.Profile {
	w.T.Helper()
	inTx(w, func(ctx context.Context, tx *store.Tx) (err error) {
		p, err = tx.Profiles().Create(ctx, p)
		return err
	})
	return p
}

// TestProfile narrows what a turn gets: its prompt, its window, its rounds, its memory.
func TestProfile(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		m := &memo{}
		w.Configure = func(c *orchestrator.Config, _ *store.Store) {
			c.Memory = m
			c.Tiers = map[string]spend.Tier{"fast": {Provider: string(ot.ModelName), Model: "script-fast"}}
		}
		w.Start()
		p := create(w, profile.Profile{
			Name: "scribe", Mode: profile.Mode("ask"), SystemPrompt: "You are a scribe.", MaxIterations: 20, ModelTier: "fast",
			Memory: profile.Memory{Enabled: false}, Plugins: profile.Texts{"look", "fly"},
		})
		w.Chat.Say("hello")
		w.Pass(2 * time.Second)
		inTx(w, func(ctx context.Context, tx *store.Tx) error {
			c, err := tx.Conversations().FindConversation(ctx, room(ot.Room))
			if err != nil {
				return err
			}
			s, _, err := tx.Sessions().ActiveSession(ctx, c.ID)
			if err != nil {
				return err
			}
			if err := tx.Sessions().DeactivateSession(ctx, s.ID, "test"); err != nil {
				return err
			}
			return tx.Conversations().UpdateConversation(ctx, c.ID, sessions.ConversationUpdate{AgentID: &p.ID})
		})
		asked := len(m.asked)
		w.Model.On("note it", ot.Call(ot.WriteTool, "it"), ot.Say("I may not."))
		w.Chat.Say("note it")
		w.Pass(5 * time.Second)
		w.Chat.Find("I may not.")
		r := w.Model.Requests()[1]
		if !strings.Contains(r.System, "You are a scribe.") || r.Model != "script-fast" {
			t.Errorf("it is asked of %q with %q", r.Model, r.System)
		}
		if did := w.Tools.Did(); len(did) != 0 {
			t.Errorf("a profile that only reads did %q", did)
		}
		if len(m.asked) != asked {
			t.Error("a profile without memory was told what is remembered")
		}
		if got := w.Value(`SELECT agent_name FROM remote_agent_sessions WHERE active`); got != "scribe" {
			t.Errorf("the session is of %q", got)
		}
	})
}

// under has the conversation begin its next session with a profile, as /agent does.
func under(w *ot.World, p profile.Profile) {
	w.T.Helper()
	inTx(w, func(ctx context.Context, tx *store.Tx) error {
		c, err := tx.Conversations().FindConversation(ctx, room(ot.Room))
		if err != nil {
			return err
		}
		if s, active, err := tx.Sessions().ActiveSession(ctx, c.ID); err != nil || active {
			if err = errors.Join(err, tx.Sessions().DeactivateSession(ctx, s.ID, "test")); err != nil {
				return err
			}
		}
		return tx.Conversations().UpdateConversation(ctx, c.ID, sessions.ConversationUpdate{AgentID: &p.ID})
	})
}

// TestWhatIsSaidOfAProfile is said once in a session: what of it does not hold here, and that
// it is gone.
func TestWhatIsSaidOfAProfile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		of     assistant.Name
		p      profile.Profile
		before func(w *ot.World, p profile.Profile)
		said   string // in all messages besides the answers
	}{
		"Nothing":         {ot.ModelName, profile.Profile{}, nil, ""},
		"Tier":            {ot.ModelName, profile.Profile{ModelTier: "fast"}, nil, "⚠ The profile **scribe**: its model tier fast is not configured here. The conversation's own model is used."},
		"ToolsOfAModel":   {ot.ModelName, profile.Profile{Plugins: profile.Texts{"look"}}, nil, ""},
		"NothingOfAgents": {ot.AgentName, profile.Profile{}, nil, ""},
		"ToolsOfAnAgent":  {ot.AgentName, profile.Profile{Plugins: profile.Texts{"look"}}, nil, "⚠ The profile **scribe**: agent has its own tools, which plugins does not limit, but mode does. It limits only the tools of mcp_servers."},
		"ServersOfAgents": {ot.AgentName, profile.Profile{MCPServers: map[string]mcpserver.Server{"jira": {Command: "jira"}}}, nil, ""},
		"ModelOfAnAgent":  {ot.AgentName, profile.Profile{Model: "large"}, nil, "⚠ There is no large here."},
		"Gone": {ot.ModelName, profile.Profile{}, func(w *ot.World, p profile.Profile) {
			inTx(w, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Profiles().Delete(ctx, p.ID)
				return err
			})
		}, "The profile **scribe** was removed; continuing without one."},
		"GoneWithoutAName": {ot.ModelName, profile.Profile{}, func(w *ot.World, p profile.Profile) {
			inTx(w, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Profiles().Delete(ctx, p.ID)
				none := "" // as another program left it
				return errors.Join(err, tx.Sessions().UpdateSession(ctx, w.Value(`SELECT id FROM remote_agent_sessions WHERE active`), sessions.SessionUpdate{AgentName: &none}))
			})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Default = tt.of }
				w.Model.On("", ot.Say("Right."))
				w.Agent.On("", func(r *ot.Errands) (string, error) {
					if r.Model != "" {
						r.Tell(assistant.Notice{Text: "There is no " + r.Model + " here.", Once: true})
					}
					return "Right.", nil
				})
				w.Start()
				w.Chat.Say("/whoami")
				w.Pass(time.Second)
				p := tt.p
				p.Name, p.Mode, p.MaxIterations = "scribe", profile.Interactive, 20
				p = create(w, p)
				under(w, p)
				for n := range 3 {
					if n == 1 && tt.before != nil {
						tt.before(w, p)
					}
					w.Chat.Say("hello")
					w.Pass(5 * time.Second)
				}
				said := slices.DeleteFunc(w.Chat.Texts(ot.Room), func(s string) bool {
					return s == "Right." || strings.HasPrefix(s, "You are") || s == "✔ Answered below"
				})
				if got := strings.Join(said, "|"); got != tt.said {
					t.Errorf("they read %q, want %q", got, tt.said)
				}
			})
		})
	}
}

// brokenProfiles cannot read a profile, once.
type brokenProfiles struct {
	orchestrator.Storage
	err *error
}

func (s brokenProfiles) InTx(ctx context.Context, fn func(tx orchestrator.Tx) error) error {
	return s.Storage.InTx(ctx, func(tx orchestrator.Tx) error { return fn(brokenProfilesTx{tx, s.err}) })
}

type brokenProfilesTx struct {
	orchestrator.Tx
	err *error
}

func (tx brokenProfilesTx) Profiles() profile.Store {
	return brokenStore{tx.Tx.Profiles(), tx.err}
}

type brokenStore struct {
	profile.Store
	err *error
}

func (s brokenStore) Agent(ctx context.Context, id string) (profile.Profile, error) {
	if err := *s.err; err != nil {
		*s.err = nil
		return profile.Profile{}, err
	}
	return s.Store.Agent(ctx, id)
}

// TestProfileThatCannotBeRead: one that somebody wrote wrongly by hand is refused with the
// reason; a database that is away is asked again.
func TestProfileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"Wrong":   {fault.New(fault.Internal, "The profile cannot be read: its plugins are no list."), "✖ The profile cannot be read: its plugins are no list."},
		"Unknown": {fault.Wrap(errors.New("disk"), fault.Internal, "read"), "re: hello"},
		"Away":    {errUnavailable, "re: hello"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				var failing error
				w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Storage = brokenProfiles{c.Storage, &failing} }
				w.Start()
				w.Chat.Say("/whoami")
				w.Pass(time.Second)
				under(w, create(w, profile.Profile{Name: "scribe", Mode: profile.Interactive, MaxIterations: 20}))
				failing = tt.err
				w.Chat.Say("hello")
				w.Pass(2 * time.Minute)
				w.Chat.Want("You are", tt.want)
			})
		})
	}
}

// TestProfileThatCannotBeReadTakesNoPlan: the plan waits, and the session goes on.
func TestProfileThatCannotBeReadTakesNoPlan(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		var failing error
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Storage = brokenProfiles{c.Storage, &failing} }
		w.Model.On("Write a plan", ot.Say("1. Pack."))
		w.Model.On("Carry out this plan", ot.Say("I packed."))
		w.Start()
		w.Chat.Say("/plan a trip")
		w.Pass(5 * time.Second)
		under(w, create(w, profile.Profile{Name: "scribe", Mode: profile.Interactive, MaxIterations: 20}))
		w.Chat.Say("hello")
		w.Pass(5 * time.Second)
		failing = fault.New(fault.Internal, "The profile cannot be read.")
		w.Chat.Say("/execute")
		w.Pass(5 * time.Second)
		w.Chat.Find("✖ The profile cannot be read.")
		if got := planState(w) + ", " + w.Value(`SELECT count(*) FROM remote_agent_sessions WHERE active`); got != "proposed , 1" {
			t.Errorf("the plan is %s sessions are active", got)
		}
		w.Chat.Say("/execute")
		w.Pass(5 * time.Second)
		w.Chat.Find("I packed.")
	})
}

// TestSessionHasOnRecordWhatItsTurnsRan: what somebody changes between them shows there.
func TestSessionHasOnRecordWhatItsTurnsRan(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		p := w.Start()
		say := func(text string) string {
			w.Chat.Say(text)
			w.Pass(2 * time.Second)
			return w.Value(`SELECT model || ' ' || system_prompt || ' ' || json_extract(config, '$.max_rounds') FROM remote_agent_sessions`)
		}
		if got := say("one"); !strings.HasPrefix(got, "script-1 You are Remote Agent") || !strings.HasSuffix(got, " 50") {
			t.Errorf("the session is of %.40s … %s", got, got[len(got)-10:])
		}
		next := *p.Engine.Live()
		next.SystemPrompt, next.MaxRounds = "Obey.", 7
		p.Engine.Reload(w.T.Context(), next)
		if got := say("two"); !strings.HasPrefix(got, "script-1 Obey.") || !strings.HasSuffix(got, " 7") {
			t.Errorf("the session is of %.40s … %s", got, got[len(got)-10:])
		}
	})
}

// standing has Ann's conversation run a profile's standing task every hour.
func standing(w *ot.World) { w.T.Helper(); standingEvery(w, 3600) }

func standingEvery(w *ot.World, seconds int64) {
	w.T.Helper()
	w.Start()
	p := create(w, profile.Profile{Name: "watch", Interval: seconds, Objectives: profile.Texts{"Look at the clock."}, Mode: profile.Mode("edit"), MaxIterations: 5})
	w.Chat.Say("/whoami") // so that there is a conversation
	w.Pass(2 * time.Second)
	inTx(w, func(ctx context.Context, tx *store.Tx) error {
		c, err := tx.Conversations().FindConversation(ctx, room(ot.Room))
		if err != nil {
			return err
		}
		return tx.Conversations().UpdateConversation(ctx, c.ID, sessions.ConversationUpdate{AgentID: &p.ID})
	})
	w.Model.On("Look at the clock", ot.Say("It is late."))
	w.Chat.Say("/schedule on")
	w.Pass(2 * time.Second)
}

// TestStandingTask runs when it is due, once, also over restarts, in the name of who
// switched it on, and not while a run of it is at work.
func TestStandingTask(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		standing(w)
		w.Pass(50 * time.Minute)
		if n := len(w.Model.Requests()); n != 0 {
			t.Fatalf("the model was asked %d times before the time", n)
		}
		w.Pass(11 * time.Minute)
		w.Chat.Find("It is late.")
		w.Restart()
		w.Pass(30 * time.Second)
		if n := len(w.Model.Requests()); n != 1 {
			t.Errorf("the model was asked %d times, want once an hour", n)
		}
		w.Process().Kill()
		w.Pass(3 * time.Hour) // runs that are missed are not made up for
		w.Start()
		w.Pass(30 * time.Second)
		if n := len(w.Model.Requests()); n != 2 {
			t.Errorf("the model was asked %d times after three hours away, want 2", n)
		}
		w.Chat.Say("/schedule off")
		w.Pass(2 * time.Second)
		w.Process().Stop()
		w.Pass(2 * time.Hour)
		w.Start()
		w.Pass(30 * time.Second)
		if n := len(w.Model.Requests()); n != 2 {
			t.Errorf("it went on after it was switched off: %d", n)
		}
	})
}

// TestStandingTaskOfSomebodyWhoWasRemoved ends.
func TestStandingTaskOfSomebodyWhoWasRemoved(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		standing(w)
		inTx(w, func(ctx context.Context, tx *store.Tx) error {
			return tx.People().SetRole(ctx, sessions.Identity{Platform: ot.PlatformName, UserID: ot.Ann, Role: sessions.Stranger}, sessions.GrantedByCLI, true)
		})
		w.Process().Stop()
		w.Pass(61 * time.Minute)
		w.Start()
		w.Pass(30 * time.Second)
		if n := len(w.Model.Requests()); n != 0 {
			t.Errorf("the model was asked %d times in the name of somebody who was removed", n)
		}
		if n := w.Value(`SELECT count(*) FROM agent_schedules`); n != "0" {
			t.Errorf("%s tasks stand", n)
		}
	})
}

// TestBudgetOfADay is everybody's: what comes later is refused until the next day.
func TestBudgetOfADay(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Budget = spend.Budget{DayTokens: 20} }
		w.Start()
		for _, text := range []string{"one", "two", "three"} {
			w.Chat.Say(text)
			w.Pass(5 * time.Second)
		}
		w.Chat.Want("re: one", "re: two", "✖ The daily budget is used up (30 of 20 tokens).")
		if text := w.Chat.Find("budget is used up").Text; strings.Contains(text, "new") {
			t.Errorf("a new session does not help: %s", text)
		}
		if n := len(w.Model.Requests()); n != 2 {
			t.Errorf("the model was asked %d times, want 2: 15 tokens each of 20", n)
		}
		w.Process().Stop()
		w.Pass(24 * time.Hour)
		w.Model.On("four", ot.Say("It is four."))
		w.Start()
		w.Chat.Say("four")
		w.Pass(5 * time.Second)
		w.Chat.Find("It is four.")
	})
}

// TestFailedRequestsAreOnTheBudget: a request that brings no answer is billed, each try of it.
func TestFailedRequestsAreOnTheBudget(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		counted := metrics.New("test")
		w.Configure = func(c *orchestrator.Config, _ *store.Store) {
			c.Budget, c.Metrics = spend.Budget{DayTokens: 40}, counted
			counted.NameModels(func(model string) string { return model })
		}
		used := assistant.Usage{InputTokens: 10, OutputTokens: 6}
		w.Model.On("one", ot.Bill(used, assistant.ErrEmpty), ot.Say("At last."))
		w.Model.On("two", ot.Bill(used, fault.New(fault.Exhausted, "The model used up its output limit.")))
		w.Start()
		w.Chat.Say("one")
		w.Pass(2 * time.Minute)
		w.Chat.Find("At last.")
		if sum := w.Value(`SELECT sum(input_tokens + output_tokens) FROM usage_records`); sum != "31" {
			t.Errorf("%s tokens on record, want 16 of the failed try and 15 of the answer", sum)
		}
		w.Chat.Say("two")
		w.Pass(5 * time.Second)
		w.Chat.Find("used up its output limit")
		w.Chat.Say("three")
		w.Pass(5 * time.Second)
		w.Chat.Find("The daily budget is used up (47 of 40 tokens).")
		shown := httptest.NewRecorder()
		counted.Handler().ServeHTTP(shown, httptest.NewRequestWithContext(w.T.Context(), http.MethodGet, "/metrics", nil))
		if want := fmt.Sprintf("bot_tokens_total{kind=\"input\",model=\"script-1\",provider=%q} 30\n", ot.ModelName); !strings.Contains(shown.Body.String(), want) {
			t.Errorf("the metrics have no %s:\n%s", want, shown.Body.String())
		}
	})
}

// TestFirstTokenIsOfTheModel: what a tool takes is not the model's.
func TestFirstTokenIsOfTheModel(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		measured := metrics.New("test")
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Metrics = measured }
		done := make(chan struct{})
		w.Tools.Hold(done)
		w.Model.On("hello", ot.Call(ot.WriteTool, "slow"), ot.Then(func() { time.Sleep(2 * time.Second) }, ot.Say("It is done.")))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(30 * time.Second)
		close(done)
		w.Pass(5 * time.Second)
		w.Chat.Find("It is done.")
		shown := httptest.NewRecorder()
		measured.Handler().ServeHTTP(shown, httptest.NewRequestWithContext(w.T.Context(), http.MethodGet, "/metrics", nil))
		if want := fmt.Sprintf("bot_provider_first_token_seconds_sum{model=\"other\",provider=%q} 2\n", ot.ModelName); !strings.Contains(shown.Body.String(), want) {
			t.Errorf("the metrics have no %s:\n%s", want, shown.Body.String())
		}
	})
}

// TestSecretsAreRedacted from what is shown, stored and given to the model by tools.
func TestSecretsAreRedacted(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) {
			c.Redact = func(s string) string { return strings.ReplaceAll(s, "sesame", "[secret]") }
		}
		w.Model.On("hello", ot.Call(ot.WriteTool, "sesame"), ot.Say("It is sesame."))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(5 * time.Second)
		w.Chat.Find("It is [secret].")
		for _, p := range w.Chat.Posts(ot.Room) {
			if strings.Contains(strings.Join(p.Texts, "\n"), "sesame") {
				t.Errorf("shown: %q", p.Texts)
			}
		}
		for _, b := range w.Model.Requests()[1].Array[2].Blocks {
			if r, ok := b.(messages.ToolResult); ok && strings.Contains(r.Content, "sesame") {
				t.Errorf("the model got %q", r.Content)
			}
		}
		if n := w.Value(`SELECT count(*) FROM agent_messages WHERE role = 'tool' AND (content LIKE '%sesame%' OR data_json LIKE '%sesame%')`); n != "0" {
			t.Error("a result is stored with the secret")
		}
	})
}

// TestSecretsInWhatAnAgentTellsAreRedacted: the steps of its plan, what it notes by the way, and
// why it failed are shown, too.
func TestSecretsInWhatAnAgentTellsAreRedacted(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		agents(w, func(c *orchestrator.Config) {
			c.Redact = func(s string) string { return strings.ReplaceAll(s, "sesame", "[secret]") }
		})
		w.Agent.On("hello", func(r *ot.Errands) (string, error) {
			steps := []assistant.Step{{Text: "Say sesame", Now: true}}
			r.Tell(assistant.PlanUpdated{Steps: steps})
			r.Tell(assistant.Notice{Text: "Nobody may say sesame."})
			select {
			case <-time.After(10 * time.Second): // long enough to be shown
			case <-r.Context().Done():
			}
			if steps[0].Text != "Say sesame" {
				t.Error("the agent's own plan was changed")
			}
			return "", fault.New(fault.Forbidden, "It may not say sesame.")
		})
		w.Start()
		w.Chat.Say("hello")
		w.Pass(20 * time.Second)
		shown := ""
		for _, p := range w.Chat.Posts(ot.Room) {
			shown += strings.Join(p.Texts, "\n") + "\n"
		}
		for _, want := range []string{"Say [secret]", "Nobody may say [secret].", "It may not say [secret]."} {
			if !strings.Contains(shown, want) {
				t.Errorf("no %q is shown", want)
			}
		}
		if strings.Contains(shown, "sesame") {
			t.Errorf("shown: %s", shown)
		}
		if n := w.Value(`SELECT count(*) FROM deliveries WHERE body LIKE '%sesame%'`); n != "0" {
			t.Errorf("%s deliveries are stored with the secret", n)
		}
	})
}

// TestLinkThatSignsInIsSentAndNotKept: whoever opens it acts as the person who asked.
func TestLinkThatSignsInIsSentAndNotKept(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Commands = func(c *chat.Config, _ *ot.Process) {
			c.Link = func(context.Context, signin.Account) (string, bool, error) {
				return "https://bot.example/sesame", false, nil
			}
		}
		w.Start()
		w.Chat.Say("/web")
		w.Chat.Say("/web", ot.In(team))
		w.Pass(2 * time.Second)
		w.Chat.Want("This link signs you in", "https://bot.example/sesame")
		w.Chat.WantIn(team, "Send this in a private chat with me.")
		if n := w.Value(`SELECT count(*) FROM deliveries WHERE body LIKE '%sesame%'`); n != "0" {
			t.Errorf("the link is on record in %s deliveries", n)
		}
	})
}

// TestManyStrangers come: as many as there are places are told no, the others when they write
// again and there is one, and everybody else is answered meanwhile.
func TestManyStrangers(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Start()
		for i := range 60 {
			id := messages.UserID("s" + string(rune('A'+i/10)) + string(rune('0'+i%10)))
			w.Chat.Say("let me in", ot.From(id), ot.In(string(id)), ot.With(func(in *messages.Inbound) { in.Private = true }))
			w.Settle()
		}
		w.Chat.Say("hello")
		w.Pass(time.Second)
		w.Chat.Want("re: hello")
		w.Pass(10 * time.Minute)
		w.Chat.Say("let me in", private("sF9")...)
		w.Pass(time.Minute)
		w.Chat.WantIn("chat-sF9", "This is a private bot.")
		told := 0
		for _, a := range w.Chat.Calls() {
			if strings.Contains(a.Text, "private bot") {
				told++
			}
		}
		if told != 10+1 {
			t.Errorf("%d were told no, want 10 at once and one later", told)
		}
		if n := w.Value(`SELECT count(*) FROM inbound_events WHERE data LIKE '%let me in%'`); n != "0" {
			t.Error("what strangers wrote is kept")
		}
	})
}
