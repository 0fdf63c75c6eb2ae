package orchestrator_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// TestAStrangerIsAskedAboutInPrivateOnly has them write where others read it, and where
// nobody asks for pairing.
func TestAStrangerIsAskedAboutInPrivateOnly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pairing bool
		where   []ot.Option
	}{
		"InATeam":   {true, []ot.Option{ot.In("team"), ot.From(ot.Stranger)}},
		"SwitchOff": {false, private(ot.Stranger)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				if test.pairing {
					pairs(w)
				}
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
