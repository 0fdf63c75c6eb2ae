package orchestrator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/platform"
	"remote-agent/internal/store"
)

// access has the platform know nobody but whom rule names.
func access(w *ot.World, rule orchestrator.AccessRule) {
	w.Configure = func(c *orchestrator.Config, _ *store.Store) {
		c.Access = map[messages.Platform]orchestrator.AccessRule{ot.PlatformName: rule}
	}
}

func only(ids ...messages.UserID) map[messages.UserID]bool {
	all := make(map[messages.UserID]bool)
	for _, id := range ids {
		all[id] = true
	}
	return all
}

func TestWhoIsAnswered(t *testing.T) {
	t.Parallel()
	bot := ot.With(func(in *messages.Inbound) { in.Sender.Bot = true })
	external := ot.With(func(in *messages.Inbound) { in.Sender.External = true })
	nobody := ot.With(func(in *messages.Inbound) { in.Sender.ID = "" })
	everyone := orchestrator.AccessRule{Everyone: true}
	for name, tt := range map[string]struct {
		rule     orchestrator.AccessRule
		who      []ot.Option
		answered bool
	}{
		"NamedUser":                 {orchestrator.AccessRule{IDs: only(ot.Ann)}, nil, true},
		"NamedOwner":                {orchestrator.AccessRule{Owners: only(ot.Olga)}, []ot.Option{ot.From(ot.Olga)}, true},
		"Stranger":                  {orchestrator.AccessRule{IDs: only(ot.Ann)}, []ot.Option{ot.From(ot.Stranger)}, false},
		"NobodyIsNamed":             {orchestrator.AccessRule{}, nil, false},
		"Everyone":                  {everyone, []ot.Option{ot.From(ot.Stranger)}, true},
		"EveryoneIsNotOutsiders":    {everyone, []ot.Option{ot.From(ot.Stranger), external}, false},
		"OutsiderWhoIsNamed":        {orchestrator.AccessRule{Everyone: true, IDs: only(ot.Bob)}, []ot.Option{ot.From(ot.Bob), external}, true},
		"OutsiderWhoOwnsIt":         {orchestrator.AccessRule{Everyone: true, Owners: only(ot.Olga)}, []ot.Option{ot.From(ot.Olga), external}, true},
		"Bot":                       {everyone, []ot.Option{ot.From(ot.Stranger), bot}, false},
		"BotThatIsNamed":            {orchestrator.AccessRule{IDs: only(ot.Ann)}, []ot.Option{bot}, false},
		"BotThatIsNamedAsOwner":     {orchestrator.AccessRule{Owners: only(ot.Ann)}, []ot.Option{bot}, false},
		"NobodyKnowsWho":            {everyone, []ot.Option{nobody}, false},
		"UnknownEvenIfEmptyIsThere": {orchestrator.AccessRule{IDs: only("")}, []ot.Option{nobody}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				access(w, tt.rule)
				w.Start()
				w.Chat.Say("hello", tt.who...)
				w.Chat.Say("/whoami", tt.who...)
				w.Pass(10 * time.Second)
				texts := strings.Join(w.Chat.Texts(ot.Room), "\n")
				if answered := strings.Contains(texts, "re: hello"); answered != tt.answered {
					t.Errorf("answered: %v, want %v: %q", answered, tt.answered, texts)
				}
				if told := strings.Contains(texts, "You are") && !strings.Contains(texts, "private bot"); told != tt.answered {
					t.Errorf("the command was answered: %v, want %v: %q", told, tt.answered, texts)
				}
				kept := w.Value(`SELECT count(*) FROM inbound_events WHERE data LIKE '%hello%'`)
				if want := map[bool]string{true: "1", false: "0"}[tt.answered]; kept != want {
					t.Errorf("what they said is on record %s times, want %s", kept, want)
				}
			})
		})
	}
}

func TestStrangerIsToldOnceADayAndOnlyInPrivate(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Start()
		w.Chat.Say("let me in", ot.From(ot.Stranger), ot.In("team"))
		w.Chat.Say("let me in", ot.From(ot.Stranger))
		w.Chat.Say("please", ot.From(ot.Stranger))
		w.Pass(10 * time.Second)
		w.Chat.Want("This is a private bot. Ask its owner to let you in; your ID here is `stan`.")
		w.Chat.WantIn("team")
		w.Process().Stop()
		w.Pass(24 * time.Hour)
		w.Start()
		w.Chat.Say("please", ot.From(ot.Stranger))
		w.Pass(10 * time.Second)
		w.Chat.Want("This is a private bot.", "This is a private bot.")
	})
}

func TestOwnerCodeWorksOnceAndInPrivateOnly(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		access(w, orchestrator.AccessRule{})
		p := w.Start()
		offer := func() bool {
			t.Helper()
			offered, err := p.Engine.OfferOwnership(w.T.Context(), ot.PlatformName, "sesame")
			if err != nil {
				t.Fatal(err)
			}
			return offered
		}
		if !offer() {
			t.Fatal("nobody owns the bot, and no code is offered")
		}
		roles := func() []string { return w.Rows(`SELECT user_id, role FROM identities WHERE role <> 'stranger'`) }
		w.Chat.Say("/start sesame", ot.From(ot.Olga), ot.In("team"))
		w.Chat.Say("/start wrong", ot.From(ot.Bob))
		w.Chat.Say("sesame", ot.From(ot.Bob))
		said := w.Chat.Say("please sesame", ot.From(ot.Bob))
		w.Chat.Edit(said, "/start sesame")
		w.Chat.Say("/start sesame", ot.From(ot.Bob), ot.With(func(in *messages.Inbound) { in.Sender.Bot = true }))
		w.Chat.Say("/start sesame", ot.From(""))
		w.Chat.Say("/start sesame", ot.From(ot.Bob), ot.With(func(in *messages.Inbound) { in.Sender.Platform = "desk" }))
		w.Pass(10 * time.Second)
		if got := roles(); len(got) != 0 {
			t.Fatalf("somebody became %q", got)
		}
		w.Chat.Say("/start sesame", ot.From(ot.Olga))
		w.Chat.Say("/start sesame", ot.From(ot.Bob))
		w.Pass(10 * time.Second)
		if got := roles(); !slices.Equal(got, []string{"olga|owner"}) {
			t.Fatalf("the roles are %q", got)
		}
		if w.Chat.Find("You are the owner of this bot."); offer() {
			t.Error("another code is offered although there is an owner")
		}
		if left := w.Value(`SELECT count(*) FROM inbound_events WHERE data LIKE '%sesame%'`); left != "0" {
			t.Errorf("the code is kept in %s messages", left)
		}
	})
}

func TestOwnerCodeRunsOut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after time.Duration
		owner bool
	}{"InTime": {15*time.Minute - 10*time.Second, true}, "TooLate": {15*time.Minute + 10*time.Second, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				access(w, orchestrator.AccessRule{})
				p := w.Start()
				if _, err := p.Engine.OfferOwnership(w.T.Context(), ot.PlatformName, "sesame"); err != nil {
					t.Fatal(err)
				}
				p.Stop()
				w.Pass(tt.after)
				w.Start()
				w.Chat.Say("/start sesame")
				w.Pass(5 * time.Second)
				if owner := w.Value(`SELECT count(*) FROM identities WHERE role = 'owner'`) == "1"; owner != tt.owner {
					t.Errorf("they own the bot: %v, want %v", owner, tt.owner)
				}
			})
		})
	}
}

// TestGateAfterTheTurnBegan has the platform change its mind: who was admitted when the
// turn began is answered, and who is turned away before is refused once.
func TestGateAfterTheTurnBegan(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		slow, asked := make(chan struct{}), 0
		w.Chat.Caps.OutcomeMarks = true
		gateFor(w, func(in messages.Inbound) (bool, error) {
			if in.Conversation.ID != ot.Room {
				return true, nil
			}
			if asked++; asked == 1 { // what follows the acceptance; what precedes the turn comes when there is a slot
				<-slow
				return false, nil
			}
			return true, nil
		})
		one := w.Configure
		w.Configure = func(c *orchestrator.Config, s *store.Store) { one(c, s); c.Slots = 1 }
		w.Model.On("hello", ot.Hold("Well, ", ot.Say("Well, hello.")))
		w.Start()
		w.Chat.Say("hello elsewhere", ot.In("team"))
		said := w.Chat.Say("hello")
		w.Settle()
		w.Model.Release()
		w.Pass(2 * time.Second)
		if w.Model.Held() != 1 || asked != 2 {
			t.Fatalf("the turn has not begun; asked %d times", asked)
		}
		close(slow)
		w.Settle()
		if got := w.States("hello"); got != "running" {
			t.Errorf("the entry is %s after the platform said no, want running", got)
		}
		w.Model.Release()
		w.Pass(5 * time.Second)
		w.Chat.Want("Well, hello.")
		if got := w.States("hello"); got != "done" {
			t.Errorf("the entry is %s, want done", got)
		}
		if marks := w.Chat.Marks(said); len(marks) == 0 || marks[len(marks)-1] != "done" {
			t.Errorf("marks: %q", marks)
		}
	})
}

func TestGateRefusesAndSaysWhy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err   error
		why   string
		texts []string
	}{
		"No": {nil, "not admitted", []string{"Only people with write access can use the bot here."}},
		// Each is told: they may be of people who may.
		"CannotSay": {errUnavailable, errUnavailable.Error(), []string{"Could not check your access, so nothing was done.", "Could not check your access, so nothing was done."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				gateFor(w, func(in messages.Inbound) (bool, error) { return in.Sender.ID == ot.Ann, tt.err })
				w.Start()
				w.Chat.Say("hello", ot.From(ot.Bob))
				w.Chat.Say("/status", ot.From(ot.Bob))
				w.Pass(20 * time.Second)
				w.Chat.Want(tt.texts...)
				if n := len(w.Model.Requests()); n != 0 {
					t.Errorf("the model was asked %d times", n)
				}
				if got := w.Rows(`SELECT state, coalesce(json_extract(data, '$.text'), ''), error FROM inbound_events`); !slices.Equal(got, []string{"refused||" + tt.why, "refused||" + tt.why}) {
					t.Errorf("the entries are %q, want two that are refused, without their text, and why", got)
				}
				if open := w.Open(); len(open) > 0 {
					t.Errorf("still open: %q", open)
				}
			})
		})
	}
}

// TestWhoMayNotIsToldWhileATurnRuns: they need not wait for its end.
func TestWhoMayNotIsToldWhileATurnRuns(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		gateFor(w, func(in messages.Inbound) (bool, error) { return in.Sender.ID == ot.Ann, nil })
		w.Model.On("slow", ot.Hold("", ot.Say("Done.")))
		w.Start()
		w.Chat.Say("slow", inTeam(ot.Ann)...)
		w.Pass(2 * time.Second)
		w.Chat.Say("hello", inTeam(ot.Bob)...)
		w.Pass(2 * time.Second)
		w.Chat.Find("Only people with write access can use the bot here.")
		if got := w.Rows(`SELECT state FROM inbound_events ORDER BY seq`); !slices.Equal(got, []string{"running", "refused"}) {
			t.Errorf("the entries are %q", got)
		}
	})
}

// TestGateThatIsAwayLosesNothing has the platform not answer who may for a while:
// nobody is refused for that, and what was said is answered in order.
func TestGateThatIsAwayLosesNothing(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		var back atomic.Bool // the program's clockwork does not order itself behind the test's writes
		gateFor(w, func(messages.Inbound) (bool, error) {
			if !back.Load() {
				return false, errUnavailable
			}
			return true, nil
		})
		w.Start()
		w.Chat.Say("hello")
		w.Chat.Say("hello again")
		w.Pass(2 * time.Second)
		back.Store(true)
		w.Pass(30 * time.Second)
		if got := w.Rows(`SELECT state FROM inbound_events`); !slices.Equal(got, []string{"done", "done"}) {
			t.Errorf("the entries are %q", got)
		}
		if n := len(w.Model.Requests()); n != 2 {
			t.Errorf("the model was asked %d times", n)
		}
		if open := w.Open(); len(open) > 0 {
			t.Errorf("still open: %q", open)
		}
	})
}

// TestOwnerCodeOutlivesNoDecision offers a code and has somebody decide otherwise before it
// is used: who was removed stays so, and where the configuration says who may, it makes
// nobody an owner.
func TestOwnerCodeOutlivesNoDecision(t *testing.T) {
	t.Parallel()
	reload := func(rule orchestrator.AccessRule) func(w *ot.World) {
		return func(w *ot.World) {
			w.Process().Engine.Reload(w.T.Context(), orchestrator.Live{Access: map[messages.Platform]orchestrator.AccessRule{ot.PlatformName: rule}})
		}
	}
	for name, tt := range map[string]struct {
		meanwhile func(w *ot.World)
		owner     bool
	}{
		"Nothing":     {func(*ot.World) {}, true},
		"Removed":     {func(w *ot.World) { remove(w, ot.Olga) }, false},
		"UsersNamed":  {reload(orchestrator.AccessRule{IDs: only(ot.Ann)}), false},
		"OwnersNamed": {reload(orchestrator.AccessRule{Owners: only(ot.Ann)}), false},
		"EveryoneMay": {reload(orchestrator.AccessRule{Everyone: true}), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				access(w, orchestrator.AccessRule{})
				p := w.Start()
				if offered, err := p.Engine.OfferOwnership(w.T.Context(), ot.PlatformName, "sesame"); !offered || err != nil {
					t.Fatalf("offered: %v, %v", offered, err)
				}
				tt.meanwhile(w)
				w.Chat.Say("/start sesame", ot.From(ot.Olga))
				w.Pass(5 * time.Second)
				if owner := w.Value(`SELECT count(*) FROM identities WHERE role = 'owner'`) == "1"; owner != tt.owner {
					t.Errorf("they own the bot: %v", owner)
				}
			})
		})
	}
}

// screening is a platform that says before anything is stored whether it can be asked about
// somebody.
type screening struct {
	platform.Adapter
	says  platform.Screening
	asked *[]messages.InboundKind
}

func (s screening) Screen(in messages.Inbound) platform.Screening {
	*s.asked = append(*s.asked, in.Kind)
	return s.says
}

func (screening) Admits(context.Context, messages.Inbound) (bool, error) { return true, nil }

// TestWhomAPlatformDoesNotAskAbout: nothing is kept of who was turned away a moment ago, and
// who came when too many did is told so once. What else a platform tells is not about
// the rights of anybody.
func TestWhomAPlatformDoesNotAskAbout(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		says platform.Screening
		told []string
	}{
		"Denied": {platform.ScreenDenied, nil},
		"Busy":   {platform.ScreenBusy, []string{"Too many new people"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				var asked []messages.InboundKind
				w.Configure = func(c *orchestrator.Config, _ *store.Store) {
					c.Adapters[0] = screening{c.Adapters[0], tt.says, &asked}
				}
				w.Start()
				said := w.Chat.Say("hello")
				w.Pass(time.Second)
				w.Chat.Edit(said, "hello again")
				w.Chat.Do(ot.With(func(in *messages.Inbound) { in.Kind, in.Action = messages.KindAction, "x" }))
				w.Chat.Say("hello?")
				w.Pass(time.Second)
				w.Chat.Want(tt.told...)
				if n := w.Value(`SELECT count(*) FROM inbound_events`); n != "0" {
					t.Errorf("%s events are on record", n)
				}
				w.Chat.Delete(said)
				w.Chat.Do(ot.With(func(in *messages.Inbound) { in.Kind = messages.KindGone }))
				w.Settle()
				m := messages.KindMessage
				if want := []messages.InboundKind{m, messages.KindEdit, messages.KindAction, m}; !slices.Equal(asked, want) {
					t.Errorf("the platform was asked about %q, want %q", asked, want)
				}
				if n := w.Value(`SELECT count(*) FROM inbound_events`); n != "1" {
					t.Errorf("%s events are on record, want that the bot was removed", n)
				}
			})
		})
	}
}

// TestOwnerCodeInAFlood: whoever has the code gets in although more strangers write than
// is recorded, and is answered; what else the platform tells is not lost.
func TestOwnerCodeInAFlood(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		access(w, orchestrator.AccessRule{})
		p := w.Start()
		if _, err := p.Engine.OfferOwnership(w.T.Context(), ot.PlatformName, "sesame"); err != nil {
			t.Fatal(err)
		}
		for n := range 110 {
			w.Chat.Say("let me in", ot.From(messages.UserID(fmt.Sprint("s", n))))
		}
		if n := w.Value(`SELECT count(*) FROM inbound_events`); n != "100" {
			t.Errorf("%s of 110 messages of strangers are on record", n)
		}
		w.Chat.Say("start sesame", ot.From(ot.Olga)) // some platforms keep to themselves what begins with a slash
		w.Chat.Do(ot.From(""), ot.In("team"), ot.With(func(in *messages.Inbound) { in.Kind, in.MigratedTo = messages.KindMigrated, "supergroup" }))
		w.Settle()
		w.Chat.Say("hello", ot.From(ot.Olga))
		if n := w.Value(`SELECT count(*) FROM inbound_events`); n != "103" {
			t.Errorf("%s events are on record", n)
		}
		w.Pass(10 * time.Second)
		w.Chat.Find("re: hello")
		if got := w.Value(`SELECT user_id FROM identities WHERE role = 'owner'`); got != string(ot.Olga) {
			t.Errorf("the owner is %s", got)
		}
		if got := w.Model.Asked(); !slices.Equal(got, []string{"hello"}) {
			t.Errorf("the model was asked %q", got)
		}
	})
}

// TestNoOwnershipWhereTheConfigurationDecides: a code would be shown that does nothing.
func TestNoOwnershipWhereTheConfigurationDecides(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]orchestrator.AccessRule{
		"Users": {IDs: only(ot.Ann)}, "Owners": {Owners: only(ot.Olga)}, "Everyone": {Everyone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				access(w, rule)
				if offered, err := w.Start().Engine.OfferOwnership(w.T.Context(), ot.PlatformName, "sesame"); offered || err != nil {
					t.Errorf("offered: %v, %v", offered, err)
				}
			})
		})
	}
}

// TestNoOwnershipWhereThePlatformDecides: a code would let in whom the platform does not.
func TestNoOwnershipWhereThePlatformDecides(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		gateFor(w, func(messages.Inbound) (bool, error) { return true, nil })
		if offered, err := w.Start().Engine.OfferOwnership(w.T.Context(), ot.PlatformName, "sesame"); offered || err != nil {
			t.Errorf("offered: %v, %v", offered, err)
		}
	})
}

// TestStrangerIsToldNoAlone: where others read, the refusal is shown to the stranger only,
// and what is no message is not answered.
func TestStrangerIsToldNoAlone(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Chat.Caps.OnlyFor = true
		w.Start()
		edited := w.Chat.Do(ot.From(ot.Stranger), ot.With(func(in *messages.Inbound) { in.Kind, in.Action = messages.KindAction, "x" }))
		w.Chat.Edit(edited, "let me in")
		w.Pass(10 * time.Second)
		w.Chat.Want()
		w.Chat.Say("let me in", ot.From(ot.Stranger), ot.In("team"))
		w.Pass(10 * time.Second)
		if posts := w.Chat.Posts("team"); len(posts) != 1 || posts[0].OnlyFor != ot.Stranger {
			t.Errorf("in the room stands %+v", posts)
		}
	})
}

// TestCommandOfSomebodyWhoWasRemoved before it ran changes nothing.
func TestCommandOfSomebodyWhoWasRemoved(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		p := w.Start()
		var once atomic.Bool
		p.After(func() {
			if w.States("/mode ask") == "waiting" && once.CompareAndSwap(false, true) {
				remove(w, ot.Ann)
			}
		})
		w.Chat.Say("/mode ask")
		w.Pass(5 * time.Second)
		w.Chat.Want("You can no longer use this bot.")
		if got := w.Value(`SELECT count(*) FROM audit_log WHERE action = 'settings.mode'`); got != "0" {
			t.Error("the mode was changed")
		}
	})
}
