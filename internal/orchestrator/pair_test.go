package orchestrator_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

var strangersCode = regexp.MustCompile(`\*\*([B-Z]{3}-[B-Z]{3})\*\*`)

// pairs has owners be asked about strangers.
func pairs(w *ot.World) {
	w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Pairing = true }
}

// private is somebody's own chat with the bot.
func private(who messages.UserID) []ot.Option {
	return []ot.Option{ot.In("chat-" + string(who)), ot.From(who), ot.With(func(in *messages.Inbound) {
		in.Private, in.Sender.Name = true, "**Stan** the\nman"
	})}
}

func TestOwnersAreAskedAboutAStranger(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		pairs(w)
		w.Start()
		w.Chat.Say("my first words", private(ot.Stranger)...)
		w.Pass(time.Minute)
		if told := w.Chat.Texts("chat-stan"); len(told) != 1 || !strings.Contains(told[0], "Ask its owner to let you in") || strings.Contains(told[0], "code") {
			t.Fatalf("nobody can be asked, and the stranger reads %q", told)
		}

		w.Chat.Say("hello", private(ot.Olga)...)
		w.Pass(time.Minute)
		w.Chat.Say("my secret words", private(ot.Stranger)...)
		w.Chat.Say("and more of them", private(ot.Stranger)...)
		w.Pass(time.Minute)
		told := w.Chat.Texts("chat-stan")
		if len(told) != 2 || !strings.Contains(told[1], "waiting for an owner") {
			t.Fatalf("the stranger reads %q", told)
		}
		code := strangersCode.FindStringSubmatch(told[1])
		if code == nil {
			t.Fatalf("there is no code in %q", told[1])
		}
		cards := 0
		for _, p := range w.Chat.Posts("chat-olga") {
			if !strings.Contains(p.Text, code[1]) {
				continue
			}
			cards++
			if p.Silent || p.Texts[0] == platform.Placeholder {
				t.Errorf("the card began with %q, silent: %v", p.Texts[0], p.Silent)
			}
			var labels []string
			for _, b := range p.Buttons {
				labels = append(labels, b.Label)
			}
			if d := cmp.Diff([]string{"Allow", "Allow, read only", "No"}, labels); d != "" {
				t.Error("the buttons (-want +got):\n" + d)
			}
			if strings.Contains(p.Text, "secret") || !strings.HasPrefix(p.Text, "👤 `**Stan** the man` asks") {
				t.Errorf("the card says %q", p.Text)
			}
		}
		if cards != 1 {
			t.Errorf("the owner has %d cards: %q", cards, w.Chat.Texts("chat-olga"))
		}
		if n := w.Value(`SELECT count(*) FROM audit_log WHERE action = 'person.ask'`); n != "1" {
			t.Errorf("%s requests are in the audit log", n)
		}
		if n := w.Value(`SELECT count(*) FROM inbound_events WHERE data LIKE '%secret%' OR data LIKE '%first words%'`); n != "0" {
			t.Errorf("%s texts of a stranger were kept", n)
		}
	})
}

// TestAStrangerIsToldBesideTheCard has the platform's limit taken for a moment when somebody is
// to be told that they wait, as by the card that their owner gets at the same time: they are
// told once there is room, and not again where there is none soon.
func TestAStrangerIsToldBesideTheCard(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		taken time.Duration
		told  int
	}{
		"AMoment": {2 * time.Second, 1},
		"Long":    {time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				pairs(w)
				w.Start()
				w.Chat.Say("hello", private(ot.Olga)...)
				w.Pass(time.Minute)
				until := time.Now().Add(test.taken)
				w.Chat.React = func(a ot.Asked) ot.Reaction {
					if a.Room == "chat-stan" && time.Now().Before(until) {
						return ot.Reaction{Err: &fault.Error{Kind: fault.RateLimited, RetryAfter: time.Second}}
					}
					return ot.Reaction{}
				}
				w.Chat.Say("let me in", private(ot.Stranger)...)
				w.Pass(time.Minute)
				if told := w.Chat.Texts("chat-stan"); len(told) != test.told {
					t.Errorf("the stranger reads %q", told)
				}
			})
		})
	}
}

// TestAStrangerIsAskedAboutInPrivateOnly has them write where others read it, and where
// nobody asks for pairing.
func TestAStrangerIsAskedAboutInPrivateOnly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pairing bool
		where   []ot.Option
	}{
		"InATeam":   {true, []ot.Option{ot.In("team"), ot.From(ot.Stranger)}}, // a refusal is shown to them only
		"SwitchOff": {false, private(ot.Stranger)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				if test.pairing {
					pairs(w)
				}
				w.Chat.Caps.OnlyFor = true
				w.Start()
				w.Chat.Say("hello", private(ot.Olga)...)
				w.Pass(time.Minute)
				w.Chat.Say("let me in", test.where...)
				w.Pass(time.Minute)
				if n := w.Value(`SELECT count(*) FROM pairings`); n != "0" {
					t.Errorf("%s requests are on record", n)
				}
				if told := w.Chat.Texts("chat-olga"); len(told) != 1 {
					t.Errorf("the owner reads %q", told)
				}
			})
		})
	}
}

// TestAWaitingStrangerIsRemindedSeldom has one write while an owner is asked: once an
// hour they are told that they wait, and each minute if they ask who they are.
func TestAWaitingStrangerIsRemindedSeldom(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		pairs(w)
		w.Start()
		w.Chat.Say("hello", private(ot.Olga)...)
		w.Pass(time.Minute)
		answers := func(text string) int {
			before := len(w.Chat.Texts("chat-stan"))
			w.Chat.Say(text, private(ot.Stranger)...)
			w.Pass(10 * time.Second)
			return len(w.Chat.Texts("chat-stan")) - before
		}
		var got []int
		for _, step := range []struct {
			text string
			wait time.Duration
		}{{"let me in", 0}, {"please", 0}, {"/whoami", 0}, {"/whoami", 0}, {"/whoami", time.Minute}, {"please", time.Hour}} {
			time.Sleep(step.wait)
			got = append(got, answers(step.text))
		}
		if d := cmp.Diff([]int{1, 0, 1, 0, 1, 1}, got); d != "" {
			t.Errorf("answers (-want +got):\n%s\nthey read %q", d, w.Chat.Texts("chat-stan"))
		}
		if n := w.Value(`SELECT count(*) FROM pairings`); n != "1" {
			t.Errorf("%s requests are on record", n)
		}
	})
}

// TestWhoIsAskedAboutAStranger: owners who wrote lately, and nobody else; about who was
// removed nobody is asked.
func TestWhoIsAskedAboutAStranger(t *testing.T) {
	t.Parallel()
	const uma messages.UserID = "uma"
	for name, tt := range map[string]struct {
		before func(w *ot.World)
		asked  string
	}{
		"AnOwner":          {func(w *ot.World) { w.Chat.Say("hello", private(ot.Olga)...); w.Away(89 * 24 * time.Hour) }, "1"},
		"AnOwnerOfLongAgo": {func(w *ot.World) { w.Chat.Say("hello", private(ot.Olga)...); w.Away(91 * 24 * time.Hour) }, "0"},
		"AUser": {func(w *ot.World) {
			grant(w, uma, sessions.User)
			w.Chat.Say("hello", private(uma)...)
			w.Pass(10 * time.Second)
		}, "0"},
		"SomebodyWhoWasRemoved": {func(w *ot.World) {
			w.Chat.Say("hello", private(ot.Olga)...)
			remove(w, ot.Stranger)
			w.Pass(10 * time.Second)
		}, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				pairs(w)
				w.Start()
				tt.before(w)
				w.Chat.Say("let me in", private(ot.Stranger)...)
				w.Pass(time.Minute)
				if n := w.Value(`SELECT count(*) FROM pairings`); n != tt.asked {
					t.Errorf("%s requests are on record, want %s", n, tt.asked)
				}
				w.Chat.WantIn("chat-stan", "This is a private bot.")
			})
		})
	}
}

// TestACardHasTheNameThatThePlatformTells: events of a platform may come without names.
func TestACardHasTheNameThatThePlatformTells(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		pairs(w)
		w.Chat.Names = map[messages.UserID]string{ot.Stranger: "Stan"}
		w.Start()
		w.Chat.Say("hello", private(ot.Olga)...)
		w.Chat.Say("me, too", append(private(ot.Stranger), ot.With(func(in *messages.Inbound) { in.Sender.Name = "" }))...)
		w.Pass(time.Minute)
		if told := w.Chat.Texts("chat-olga"); !strings.HasPrefix(told[len(told)-1], "👤 `Stan` asks") {
			t.Errorf("the owner reads %q", told)
		}
	})
}

// TestAStrangerMayAskAgain a day after their request ran out or was declined: with another
// code, and owners are asked once more.
func TestAStrangerMayAskAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		declined bool
		reads    string // meanwhile
	}{
		"RunOut":   {false, "you are waiting for an owner"},
		"Declined": {true, "An owner declined your request. Your ID here is `stan`."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				pairs(w)
				w.Start()
				w.Chat.Say("hello", private(ot.Olga)...)
				asks := func() (code string) {
					t.Helper()
					w.Chat.Say("let me in", private(ot.Stranger)...)
					w.Pass(time.Minute)
					told := w.Chat.Texts("chat-stan")
					found := strangersCode.FindStringSubmatch(told[len(told)-1])
					cards := w.Chat.Posts("chat-olga")
					if found == nil || !strings.Contains(cards[len(cards)-1].Text, found[1]) {
						t.Fatalf("the stranger reads %q, and the owner %q", told, w.Chat.Texts("chat-olga"))
					}
					return found[1]
				}
				first := asks()
				if tt.declined {
					inTx(w, func(ctx context.Context, tx *store.Tx) error {
						return tx.People().SettlePairing(ctx, 1, sessions.PairingDenied, "chat/olga")
					})
				}
				w.Away(23 * time.Hour)
				w.Chat.Say("let me in", private(ot.Stranger)...)
				w.Pass(time.Minute)
				if told := w.Chat.Texts("chat-stan"); !strings.Contains(told[len(told)-1], tt.reads) {
					t.Errorf("the stranger reads %q", told)
				}
				w.Away(time.Hour)
				if asks() == first {
					t.Error("the code is the same")
				}
			})
		})
	}
}

// TestWhoCanBeAskedIsAskedAtOnce: that nobody could be asked a moment ago, or that somebody
// was, does not keep the next stranger waiting.
func TestWhoCanBeAskedIsAskedAtOnce(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		pairs(w)
		w.Start()
		for i, who := range []messages.UserID{"s1", ot.Olga, "s2", "s3"} {
			w.Chat.Say("hello", private(who)...)
			w.Pass(time.Second)
			if n, want := w.Value(`SELECT count(*) FROM pairings`), []string{"0", "0", "1", "2"}[i]; n != want {
				t.Errorf("after %s wrote, %s requests are on record, want %s", who, n, want)
			}
		}
		if cards := w.Chat.Texts("chat-olga"); len(cards) != 1+2 {
			t.Errorf("the owner reads %q", cards)
		}
	})
}

// TestWhoAsksIsToldThoughNobodyCanBeAsked: who they are is told to strangers each time that
// they want to know it, and what is told by the way once a day.
func TestWhoAsksIsToldThoughNobodyCanBeAsked(t *testing.T) {
	t.Parallel()
	for name, pairing := range map[string]bool{"Pairing": true, "Without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				if pairing {
					pairs(w)
				}
				w.Start()
				var told []int
				for _, text := range []string{"let me in", "please", "/whoami", "please", "/whoami"} {
					w.Chat.Say(text, private(ot.Stranger)...)
					w.Pass(2 * time.Minute)
					told = append(told, len(w.Chat.Texts("chat-stan")))
				}
				if d := cmp.Diff([]int{1, 1, 2, 2, 3}, told); d != "" {
					t.Errorf("answers (-want +got):\n%s\nthey read %q", d, w.Chat.Texts("chat-stan"))
				}
			})
		})
	}
}

// TestTooManyStrangersAsk: beyond a number of requests in a day owners are left alone, and
// the stranger is told what they are told where nobody can be asked.
func TestTooManyStrangersAsk(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		pairs(w)
		w.Start()
		w.Chat.Say("hello", private(ot.Olga)...)
		w.Pass(time.Second)
		for n := range sessions.MaxPairings + 1 {
			w.Chat.Say("let me in", private(messages.UserID(fmt.Sprint("s", n)))...)
			w.Pass(10 * time.Second)
		}
		if cards := len(w.Chat.Texts("chat-olga")) - 1; cards != sessions.MaxPairings {
			t.Errorf("the owner has %d cards", cards)
		}
		w.Chat.WantIn(fmt.Sprint("chat-s", sessions.MaxPairings-1), "you are waiting for an owner")
		w.Chat.WantIn(fmt.Sprint("chat-s", sessions.MaxPairings), "Ask its owner to let you in")
	})
}
