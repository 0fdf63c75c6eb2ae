package orchestrator_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/platform"
	"remote-agent/internal/store"
)

// outside is a command of somebody who is not in the team's room, as in the browser.
func outside(event, who, text string) messages.Inbound {
	return messages.Inbound{
		Event: messages.EventID(event), Kind: messages.KindMessage, Conversation: messages.ConversationKey{Platform: ot.PlatformName, ID: team},
		Sender: messages.Sender{ID: messages.UserID(who), Platform: "desk"}, Text: text, SentAt: time.Now(),
	}
}

// TestCommandsFromOutside has people of another platform give commands in a conversation:
// they have the role of their own platform, and the answer is told to them only.
func TestCommandsFromOutside(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		who, text string
		answer    string // begins with; empty: none is known
		state     string // of the plan
		runs      bool
	}{
		"an owner executes":       {"boss", "/execute p-1", "", "done desk/boss", true},
		"an owner approves":       {"boss", "/approve p-1", "✔ Approved plan p-1", "approved desk/boss", false},
		"an owner asks":           {"boss", "/status", "", "proposed ", false},
		"a member of the desk":    {"clerk", "/approve p-1", "✖ Only the person who asked", "proposed ", false},
		"a stranger":              {"passer-by", "/approve p-1", "", "proposed ", false},
		"a namesake of the owner": {string(ot.Ann), "/approve p-1", "", "proposed ", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Configure = func(c *orchestrator.Config, _ *store.Store) {
					c.Access["desk"] = orchestrator.AccessRule{
						Owners: map[messages.UserID]bool{"boss": true}, IDs: map[messages.UserID]bool{"clerk": true},
					}
				}
				planned(w)
				before := len(w.Chat.Posts(team))
				in := outside("web:1", tt.who, tt.text)
				answer, known, err := w.Process().Engine.Command(w.T.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				w.Pass(10 * time.Second)
				if tt.answer != "" && (!known || !strings.HasPrefix(answer.Text, tt.answer)) {
					t.Errorf("the answer: %t %q", known, answer.Text)
				}
				if got := strings.TrimSpace(planState(w)); got != strings.TrimSpace(tt.state) {
					t.Errorf("the plan is %q", got)
				}
				texts := strings.Join(w.Chat.Texts(team), "\n")
				if got := strings.Contains(texts, "I packed and went."); got != tt.runs {
					t.Errorf("the room has:\n%s", texts)
				}
				if after := len(w.Chat.Posts(team)); !tt.runs && after != before {
					t.Errorf("the room has %d posts, %d before:\n%s", after, before, texts)
				}
				if tt.state == "approved desk/boss" && !strings.Contains(texts, "Approved by desk/boss") {
					t.Errorf("the room does not show the decision:\n%s", texts)
				}
				if err := w.Process().Engine.Accept(w.T.Context(), in); err != nil { // once more, as after a lost answer
					t.Fatal(err)
				}
				w.Pass(10 * time.Second)
				if again := strings.Join(w.Chat.Texts(team), "\n"); again != texts {
					t.Errorf("the same command again changes the room:\n%s", again)
				}
			})
		})
	}
}

// plannedForBoss is planned, where boss owns the bot at the desk.
func plannedForBoss(w *ot.World) {
	w.Configure = func(c *orchestrator.Config, _ *store.Store) {
		c.Access["desk"] = orchestrator.AccessRule{Owners: map[messages.UserID]bool{"boss": true}}
	}
	planned(w)
}

// TestCommandsFromOutsideThatFail loses the commit that settles a command: the caller is
// not told what then may not be so, and the second run answers in the conversation.
func TestCommandsFromOutsideThatFail(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		plannedForBoss(w)
		p := w.Process()
		var commits atomic.Int64
		p.After(func() {
			if commits.Add(1) == 2 { // the first stores the command, the second begins it
				p.Fail(&fault.Error{Kind: fault.Unavailable})
			}
		})
		begin := time.Now()
		answer, known, err := p.Engine.Command(w.T.Context(), outside("web:1", "boss", "/whoami"))
		if err != nil || known || answer.Text != "" {
			t.Errorf("the answer: %t %q, %v", known, answer.Text, err)
		}
		if waited := time.Since(begin); waited > time.Second {
			t.Errorf("the caller waited %s", waited)
		}
		p.After(nil)
		p.Fail(nil)
		w.Pass(time.Minute)
		if got := w.Value(`SELECT state FROM inbound_events WHERE lane = 'control'`); got != "done" {
			t.Errorf("the command is %s", got)
		}
		if texts := strings.Join(w.Chat.Texts(team), "\n"); !strings.Contains(texts, "You are `boss` on desk, role **owner**") {
			t.Errorf("the room was not told:\n%s", texts)
		}
	})
}

// TestCommandsFromOutsideAtOnce: nobody waits for the answer to what has none.
func TestCommandsFromOutsideAtOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ who, text string }{
		"a message of an owner": {"boss", "hello"},
		"a stranger":            {"passer-by", "/status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Configure = func(c *orchestrator.Config, _ *store.Store) {
					c.Access["desk"] = orchestrator.AccessRule{Owners: map[messages.UserID]bool{"boss": true}}
				}
				planned(w)
				begin := time.Now()
				for range 2 { // the second came before
					if _, known, err := w.Process().Engine.Command(w.T.Context(), outside("web:1", tt.who, tt.text)); known || err != nil {
						t.Errorf("an answer is known: %t, %v", known, err)
					}
				}
				if waited := time.Since(begin); waited > time.Second {
					t.Errorf("the caller waited %s", waited)
				}
			})
		})
	}
}

// TestCommandFromOutsideThatIsSentTwice at once, as by a form: nobody waits for an answer that
// another one is told, and what it says is done once.
func TestCommandFromOutsideThatIsSentTwice(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		plannedForBoss(w)
		begin := time.Now()
		var told atomic.Int64
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				_, known, err := w.Process().Engine.Command(w.T.Context(), outside("web:1", "boss", "/approve p-1"))
				if err != nil {
					t.Error(err)
				}
				if known {
					told.Add(1)
				}
			})
		}
		all.Wait()
		if waited := time.Since(begin); told.Load() > 1 || waited > time.Second {
			t.Errorf("%d were told, after %s", told.Load(), waited)
		}
		w.Pass(time.Second)
		if n := w.Value(`SELECT count(*) FROM audit_log WHERE action = 'plan.approve'`); n != "1" {
			t.Errorf("it was approved %s times", n)
		}
	})
}

// TestAnswerThatTakesLongIsToldAllTheSame, if it is just being stored when the caller's patience
// ends: it is said nowhere else.
func TestAnswerThatTakesLongIsToldAllTheSame(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		plannedForBoss(w)
		p := w.Process()
		var commits atomic.Int64
		p.After(func() {
			if commits.Add(1) == 3 { // the first stores the command, the second begins it
				time.Sleep(6 * time.Second)
			}
		})
		before := len(w.Chat.Posts(team))
		answer, known, err := p.Engine.Command(w.T.Context(), outside("web:1", "boss", "/whoami"))
		if err != nil || !known || !strings.HasPrefix(answer.Text, "You are `boss`") {
			t.Errorf("the answer: %t %q, %v", known, answer.Text, err)
		}
		w.Pass(10 * time.Second)
		if n := len(w.Chat.Posts(team)) - before; n != 0 {
			t.Errorf("%d posts came into the room", n)
		}
	})
}

// busy is a platform that has no time to ask about whoever it does not know.
type busy struct{ platform.Adapter }

func (busy) Screen(messages.Inbound) platform.Screening { return platform.ScreenBusy }

func (busy) Admits(context.Context, messages.Inbound) (bool, error) { return false, nil }

// TestCommandsFromOutsideAreNotScreened: a platform is not asked about accounts of another.
func TestCommandsFromOutsideAreNotScreened(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		plannedForBoss(w)
		w.Process().Stop()
		configure := w.Configure
		w.Configure = func(c *orchestrator.Config, s *store.Store) {
			configure(c, s)
			for i, a := range c.Adapters {
				c.Adapters[i] = busy{a}
			}
		}
		answer, known, err := w.Start().Engine.Command(w.T.Context(), outside("web:1", "boss", "/whoami"))
		if err != nil || !known || !strings.HasPrefix(answer.Text, "You are `boss` on desk") {
			t.Errorf("the answer: %t %q, %v", known, answer.Text, err)
		}
	})
}
