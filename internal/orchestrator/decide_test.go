package orchestrator_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/chat"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
)

const team = "team" // a room where several people talk

func inTeam(who messages.UserID) []ot.Option { return []ot.Option{ot.In(team), ot.From(who)} }

// planned has Ann ask for a plan in the team's room, and returns the post that shows it.
func planned(w *ot.World) ot.Post {
	w.T.Helper()
	w.Model.On("Write a plan", ot.Say("1. Pack.\n2. Go."))
	w.Model.On("Carry out this plan", ot.Say("I packed and went."))
	w.Start()
	w.Chat.Say("/plan a trip", inTeam(ot.Ann)...)
	w.Pass(5 * time.Second)
	return w.Chat.Find("1. Pack.")
}

func planState(w *ot.World) string {
	w.T.Helper()
	return w.Value(`SELECT state || coalesce(' ' || decided_by, '') FROM plans ORDER BY version DESC LIMIT 1`)
}

// TestWhoDecidesOnAPlan has the requester, somebody else and an owner decide, by command
// and by button.
func TestWhoDecidesOnAPlan(t *testing.T) {
	t.Parallel()
	say := func(text string) func(w *ot.World, shown ot.Post, who messages.UserID) {
		return func(w *ot.World, _ ot.Post, who messages.UserID) { w.Chat.Say(text, inTeam(who)...) }
	}
	press := func(label string) func(w *ot.World, shown ot.Post, who messages.UserID) {
		return func(w *ot.World, shown ot.Post, who messages.UserID) { w.Chat.Press(shown, label, ot.From(who)) }
	}
	for name, tt := range map[string]struct {
		decide func(w *ot.World, shown ot.Post, who messages.UserID)
		state  string // of the plan, if whoever decides may
		runs   bool
	}{
		"Execute":       {say("/execute"), "done", true},
		"ExecuteByName": {say("/execute p-1"), "done", true},
		"Approve":       {say("/approve"), "approved", false},
		"Reject":        {say("/reject p-1 too far"), "rejected", false},
		"Edit":          {say("/edit p-1 1. Stay."), "proposed", false},
		"ApproveButton": {press("Approve"), "approved", false},
		"ExecuteButton": {press("Approve and run"), "done", true},
		"RejectButton":  {press("Reject"), "rejected", false},
	} {
		for _, who := range []messages.UserID{ot.Ann, ot.Bob, ot.Olga} {
			t.Run(name+"/"+string(who), func(t *testing.T) {
				t.Parallel()
				ot.Run(t, func(w *ot.World) {
					shown := planned(w)
					tt.decide(w, shown, who)
					w.Pass(10 * time.Second)
					may := who != ot.Bob
					asked := slices.ContainsFunc(w.Model.Asked(), func(s string) bool {
						return strings.Contains(s, "Carry out this plan") && strings.Contains(s, "1. Pack.")
					})
					if asked != (may && tt.runs) {
						t.Errorf("the plan was carried out: %v", asked)
					}
					want := "proposed"
					if may {
						want = tt.state
					}
					if got, _, _ := strings.Cut(planState(w), " "); got != want {
						t.Errorf("the plan is %s, want %s", got, want)
					}
					if told := strings.Join(append(w.Chat.Texts(team), w.Chat.Notes()...), "\n"); strings.Contains(told, "Only the person who asked for plan p-1 or an owner can decide on it.") == may {
						t.Errorf("they read %q", told)
					}
					if may && tt.state != "proposed" && !strings.HasSuffix(planState(w), string(who)) {
						t.Errorf("decided by %q, want %s", planState(w), who)
					}
				})
			})
		}
	}
}

// TestPlanIsDecidedOnce presses each button twice, and carries a plan out that is settled.
func TestPlanIsDecidedOnce(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		shown := planned(w)
		w.Chat.Press(shown, "Reject")
		w.Pass(2 * time.Second)
		w.Chat.Press(shown, "Approve and run")
		w.Pass(2 * time.Second)
		w.Chat.Say("/execute p-1", inTeam(ot.Ann)...)
		w.Pass(5 * time.Second)
		if got := planState(w); got != "rejected chat/ann" {
			t.Errorf("the plan is %s", got)
		}
		if asked := strings.Join(w.Model.Asked(), "\n"); strings.Contains(asked, "1. Pack.") {
			t.Errorf("it was carried out: %q", asked)
		}
		w.Chat.Find("Plan p-1 (version 1) is already rejected.")
	})
}

// TestALateDecisionNamesWhoTookItBefore, rather than show the number of an account.
func TestALateDecisionNamesWhoTookItBefore(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		begin       func(w *ot.World)
		first, late string
		want        string
	}{
		"Plan":     {func(w *ot.World) { planned(w) }, "/reject p-1", "/approve p-1", "Plan p-1 (version 1) is already rejected by Olga Marsh."},
		"Execute":  {func(w *ot.World) { planned(w) }, "/reject p-1", "/execute p-1", "Plan p-1 (version 1) is already rejected by Olga Marsh."},
		"Approval": {func(w *ot.World) { asking(w) }, "/approve a-1", "/deny a-1", "a-1 is already allowed by Olga Marsh."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				tt.begin(w)
				inTx(w, func(ctx context.Context, tx *store.Tx) error {
					return tx.People().SaveIdentity(ctx, sessions.Identity{Platform: "chat", UserID: ot.Olga, Name: "Olga Marsh"})
				})
				w.Chat.Say(tt.first, inTeam(ot.Olga)...)
				w.Pass(5 * time.Second)
				w.Chat.Say(tt.late, inTeam(ot.Ann)...)
				w.Pass(5 * time.Second)
				w.Chat.Find(tt.want)
			})
		})
	}
}

// TestPlanBeginsAFreshSession is seed 002's rule: what is carried out knows the plan and
// nothing of the talk before it.
func TestPlanBeginsAFreshSession(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		planned(w)
		w.Chat.Say("/execute", inTeam(ot.Ann)...)
		w.Pass(5 * time.Second)
		w.Chat.Find("I packed and went.")
		if n := w.Value(`SELECT count(*) FROM remote_agent_sessions`); n != "2" {
			t.Errorf("%s sessions, want 2", n)
		}
		requests := w.Model.Requests()
		if n := len(requests[len(requests)-1].Array); n != 1 {
			t.Errorf("it began with %d messages, want the plan only", n)
		}
	})
}

// asking has a turn of Ann ask whether it may run a program, and returns the question.
func asking(w *ot.World) ot.Post {
	w.T.Helper()
	w.Model.On("do it", ot.Call(ot.ExecuteTool, "make it so"), ot.Say("It is done."))
	w.Start()
	w.Chat.Say("do it", inTeam(ot.Ann)...)
	w.Pass(5 * time.Second)
	return w.Chat.Find("run `make it so`?")
}

// TestWhoDecidesOnAQuestion: Ann asked. Anybody in the room may say no; yes is hers and
// the owners', or with the rule of the second person everybody's but hers.
func TestWhoDecidesOnAQuestion(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		second bool
		who    messages.UserID
		where  string
		say    string // or a label of the question
		ran    bool
		state  string
	}{
		"Requester":            {false, ot.Ann, team, "/approve a-1", true, "allowed"},
		"RequesterByButton":    {false, ot.Ann, team, "Run it", true, "allowed"},
		"SomebodyElse":         {false, ot.Bob, team, "/approve a-1", false, "waiting"},
		"SomebodyElseByButton": {false, ot.Bob, team, "Run it", false, "waiting"},
		"Owner":                {false, ot.Olga, team, "/approve a-1", true, "allowed"},
		"OwnerByButton":        {false, ot.Olga, team, "Run it", true, "allowed"},
		"OwnerFromElsewhere":   {false, ot.Olga, ot.Room, "/approve a-1", true, "allowed"},
		"UserFromElsewhere":    {false, ot.Bob, ot.Room, "/deny a-1", false, "waiting"},
		"AnybodyMaySayNo":      {false, ot.Bob, team, "/deny a-1 no", false, "denied"},
		"AnybodyByButton":      {false, ot.Bob, team, "Don't run", false, "denied"},
		"Second/Requester":     {true, ot.Ann, team, "/approve a-1", false, "waiting"},
		"Second/SomebodyElse":  {true, ot.Bob, team, "/approve a-1", true, "allowed"},
		"Second/Owner":         {true, ot.Olga, team, "/approve a-1", true, "allowed"},
		"Stranger":             {false, ot.Stranger, team, "/approve a-1", false, "waiting"},
		"WordOfRequester":      {false, ot.Ann, team, "yes", false, "waiting"}, // so that nothing runs unseen
		"WordOfAStranger":      {false, ot.Stranger, team, "no", false, "waiting"},
		"AnybodyByWord":        {false, ot.Bob, team, "no", false, "denied"},
		"StrangerByButton":     {false, ot.Stranger, team, "Run it", false, "waiting"},
		"NotAQuestion":         {false, ot.Ann, team, "/approve a-9", false, "waiting"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.SecondApprover = tt.second }
				question := asking(w)
				if slices.ContainsFunc(question.Buttons, func(b messages.Button) bool { return b.Label == tt.say }) {
					w.Chat.Press(question, tt.say, ot.From(tt.who))
				} else {
					w.Chat.Say(tt.say, ot.In(tt.where), ot.From(tt.who))
				}
				w.Pass(10 * time.Second)
				if ran := len(w.Tools.Did()) == 1; ran != tt.ran {
					t.Errorf("it ran: %v, want %v; %q", ran, tt.ran, w.Chat.Texts(team))
				}
				if got := w.Value(`SELECT state FROM approvals`); got != tt.state {
					t.Errorf("the question is %s, want %s", got, tt.state)
				}
				open := w.Open()
				if waits := len(open) > 0; waits != (tt.state == "waiting") {
					t.Errorf("open: %q", open)
				}
				if settled := len(w.Chat.Find("run `make it so`?").Buttons) == 0; settled != (tt.state != "waiting") {
					t.Errorf("the buttons are gone: %v", settled)
				}
			})
		})
	}
}

// TestSecondPersonIsAnotherOne, not who asked with another account that they have linked.
func TestSecondPersonIsAnotherOne(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.SecondApprover = true }
		question := asking(w)
		account := func(id messages.UserID) memory.Account {
			return memory.Account{Name: string(ot.PlatformName) + "/" + string(id)}
		}
		err := w.Process().Store.InTx(w.T.Context(), func(tx *store.Tx) error {
			_, err := tx.Persons().JoinPeople(w.T.Context(), account(ot.Ann), account(ot.Bob))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		w.Chat.Press(question, "Run it", ot.From(ot.Bob))
		w.Chat.Say("/approve a-1", inTeam(ot.Bob)...)
		w.Pass(5 * time.Second)
		w.Chat.Find("Someone else has to decide on a-1")
		if got := w.Value(`SELECT state FROM approvals`); got != "waiting" {
			t.Errorf("after the other account of who asked it is %s", got)
		}
		w.Chat.Say("/approve a-1", inTeam(ot.Olga)...)
		w.Pass(5 * time.Second)
		if got := w.Value(`SELECT state FROM approvals`); got != "allowed" {
			t.Errorf("after somebody else it is %s", got)
		}
	})
}

// TestRemovedRequesterDecidesNothing, not even when they were removed after their command
// was let in.
func TestRemovedRequesterDecidesNothing(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		asking(w)
		ann := sessions.Identity{Platform: ot.PlatformName, UserID: ot.Ann}
		var conv sessions.Conversation
		err := w.Process().Store.InTx(w.T.Context(), func(tx *store.Tx) error {
			a, err := tx.Questions().Approval(w.T.Context(), 1)
			if err != nil {
				return err
			}
			if conv, err = tx.Conversations().Conversation(w.T.Context(), a.ConversationID); err != nil {
				return err
			}
			return tx.People().SetRole(w.T.Context(), ann, "cli", true)
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []approval.Decision{approval.Once, approval.Deny} {
			r := command.Request{Conv: conv, Role: sessions.User, Entry: sessions.Entry{In: messages.Inbound{Conversation: conv.Key, Sender: messages.Sender{ID: ot.Ann}}}}
			_, err = w.Process().Engine.Decide(w.T.Context(), r, orchestrator.Decision{Number: 1, Decision: d})
			if !fault.Is(err, fault.Forbidden) || fault.Public(err) != "You can no longer use this bot." {
				t.Errorf("%s: %v", d, err)
			}
		}
		if got := w.Value(`SELECT state FROM approvals`); got != "waiting" && got != "canceled" {
			t.Errorf("the question is %s", got)
		}
	})
}

// TestRemovedRequesterDecidesOnNoPlan, not even when they were removed while the platform
// was asked whether it admits them, which can take a while.
func TestRemovedRequesterDecidesOnNoPlan(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"/approve p-1", "/reject p-1", "/edit p-1 Go at once."} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Chat.Admits = func(_ context.Context, in messages.Inbound) (bool, error) {
					if in.Text == text {
						remove(w, ot.Ann)
					}
					return true, nil
				}
				planned(w)
				w.Chat.Say(text, inTeam(ot.Ann)...)
				w.Pass(5 * time.Second)
				w.Chat.Find("You can no longer use this bot.")
				if got, _, _ := strings.Cut(planState(w), " "); got != "proposed" {
					t.Errorf("the plan is %s", got)
				}
			})
		})
	}
}

// TestQuestionThatNobodyDecides expires, and the turn goes on without what it asked for.
func TestQuestionThatNobodyDecides(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		asking(w)
		w.Process().Stop() // nobody has to look for that
		w.Pass(25 * time.Hour)
		w.Start()
		w.Chat.Say("/approve a-1", inTeam(ot.Ann)...)
		w.Pass(20 * time.Second)
		if got := w.Value(`SELECT state FROM approvals`); got != "expired" || len(w.Tools.Did()) != 0 {
			t.Errorf("the question is %s, and the tools did %q", got, w.Tools.Did())
		}
		w.Chat.Find("It is done.")
		w.Chat.Find("Expired; not run")
	})
}

// TestStopOfATurnThatAsks takes its question back.
func TestStopOfATurnThatAsks(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		question := asking(w)
		w.Chat.Say("/approvals", inTeam(ot.Bob)...)
		w.Settle() // commands wait for no other one
		w.Chat.Say("/stop", inTeam(ot.Ann)...)
		w.Pass(10 * time.Second)
		w.Chat.Find("(for ANN)")
		w.Chat.Find("The turn ended; not run")
		w.Chat.Press(question, "Run it")
		w.Chat.Say("/approvals", inTeam(ot.Bob)...)
		w.Pass(10 * time.Second)
		w.Chat.Find("No pending approvals.")
		if did := w.Tools.Did(); len(did) != 0 {
			t.Errorf("the tools did %q", did)
		}
		if open := w.Open(); len(open) > 0 {
			t.Errorf("still open: %q", open)
		}
	})
}

// TestModes: a conversation that only reads asks nobody, and an owner's in auto neither.
func TestModes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		mode  approval.Mode
		who   messages.UserID
		tool  string
		ran   bool
		asked bool
	}{
		"AskRefuses":        {approval.ModeAsk, ot.Olga, ot.WriteTool, false, false},
		"AskReads":          {approval.ModeAsk, ot.Ann, ot.ReadTool, true, false},
		"EditWrites":        {approval.ModeEdit, ot.Ann, ot.WriteTool, true, false},
		"EditAsksToRun":     {approval.ModeEdit, ot.Olga, ot.ExecuteTool, false, true},
		"AutoOfAnOwner":     {approval.ModeAuto, ot.Olga, ot.ExecuteTool, true, false},
		"AutoOfAUserIsEdit": {approval.ModeAuto, ot.Ann, ot.ExecuteTool, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Mode = tt.mode }
				w.Model.On("do it", ot.Call(tt.tool, "it"), ot.Say("It is over."))
				w.Start()
				w.Chat.Say("do it", ot.From(tt.who))
				w.Pass(5 * time.Second)
				if ran := len(w.Tools.Did()) == 1; ran != tt.ran {
					t.Errorf("it ran: %v", ran)
				}
				if asked := len(w.Rows(`SELECT number FROM approvals`)) == 1; asked != tt.asked {
					t.Errorf("somebody was asked: %v", asked)
				}
			})
		})
	}
}

// TestBudgetOfATurn asks before it is overdrawn, and goes on where that is allowed.
func TestBudgets(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		configure func(c *orchestrator.Config)
		question  string
	}{
		"Rounds":     {func(c *orchestrator.Config) { c.MaxRounds = 2 }, "It has made 2 model requests."},
		"TurnTokens": {func(c *orchestrator.Config) { c.Budget = spend.Budget{TurnTokens: 20} }, "30 of 20 tokens"},
	} {
		for decision, shown := range map[string]string{"/approve a-1": "It is done.", "/deny a-1": "✖"} {
			t.Run(name+strings.ReplaceAll(decision, " a-1", ""), func(t *testing.T) {
				t.Parallel()
				ot.Run(t, func(w *ot.World) {
					w.Configure = func(c *orchestrator.Config, _ *store.Store) { tt.configure(c) }
					w.Model.On("do it", ot.Call(ot.ReadTool, "a"), ot.Call(ot.ReadTool, "b"), ot.Call(ot.ReadTool, "c"), ot.Say("It is done."))
					w.Start()
					w.Chat.Say("do it")
					w.Pass(5 * time.Second)
					if got := w.Value(`SELECT state FROM approvals`); got != "waiting" || w.Model.Held() != 0 {
						t.Fatalf("the question is %s", got)
					}
					if !strings.Contains(w.Chat.Find("Continue this turn?").Text, tt.question) {
						t.Errorf("the question is %q", w.Chat.Find("Continue this turn?").Text)
					}
					w.Chat.Say(decision)
					w.Pass(10 * time.Second)
					for i := 2; i < 5 && decision == "/approve a-1" && w.Value(`SELECT count(*) FROM approvals WHERE state = 'waiting'`) == "1"; i++ {
						w.Chat.Say("/approve a-" + string(rune('0'+i)))
						w.Pass(10 * time.Second)
					}
					if texts := strings.Join(w.Chat.Texts(ot.Room), "\n"); !strings.Contains(texts, shown) {
						t.Errorf("they read %q, want %q in it", texts, shown)
					}
					if open := w.Open(); len(open) > 0 {
						t.Errorf("still open: %q", open)
					}
				})
			})
		}
	}
}

// TestLinksToThePages has what people decide on, and what failed, lead to its page; where
// nobody reaches the pages there is no link.
func TestLinksToThePages(t *testing.T) {
	t.Parallel()
	for name, pages := range map[string]string{"Reached": "https://bot.example", "NotReached": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.Mode, c.Pages = approval.ModeEdit, pages }
				w.Commands = func(c *chat.Config, _ *ot.Process) { c.Pages = pages }
				w.Model.On("do it", ot.Call(ot.ExecuteTool, "it"), ot.Say("It is over."))
				w.Model.On("break", ot.Fail("", fault.New(fault.NotFound, "")))
				planned(w)
				w.Chat.Say("/edit p-1 1. Stay.", inTeam(ot.Ann)...)
				w.Chat.Say("do it")
				w.Pass(5 * time.Second)
				w.Chat.Say("/deny a-1")
				w.Pass(10 * time.Second)
				w.Chat.Say("break")
				w.Pass(10 * time.Second)
				session := w.Value(`SELECT session_id FROM agent_runs ORDER BY started_ms DESC LIMIT 1`)
				for text, page := range map[string]string{
					"1. Pack.": "/approvals/p-1", "1. Stay.": "/approvals/p-1", "a-1: run": "/approvals/a-1", "✖ Not found.": "/sessions/" + session,
				} {
					link := " [Open](https://bot.example" + page + ")"
					if got := w.Chat.Find(text).Text; strings.Contains(got, "[Open]") != (pages != "") || !strings.Contains(got, link) && pages != "" {
						t.Errorf("%s is shown as %q, want the link%s", text, got, link)
					}
				}
			})
		})
	}
}

// TestRunIsPressedTwice before it begins: the second press changes nothing.
func TestRunIsPressedTwice(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		shown := planned(w)
		w.Model.On("wait", ot.Hold("", ot.Say("I waited.")))
		w.Chat.Say("wait", inTeam(ot.Ann)...)
		w.Pass(time.Second)
		w.Chat.Press(shown, "Approve and run", ot.From(ot.Ann))
		w.Pass(time.Second)
		w.Chat.Press(shown, "Approve and run", ot.From(ot.Ann))
		w.Pass(time.Second)
		w.Model.Release()
		w.Pass(10 * time.Second)
		if got, _, _ := strings.Cut(planState(w), " "); got != "done" {
			t.Errorf("the plan is %s", got)
		}
		texts := strings.Join(w.Chat.Texts(team), "\n")
		if n := strings.Count(texts, "▶ Run requested by "); n != 1 {
			t.Errorf("the plan says %d times that it is to run: %q", n, texts)
		}
		if strings.Contains(texts, "✖") {
			t.Errorf("the second press fails in the chat: %q", texts)
		}
		if notes := strings.Join(w.Chat.Notes(), "\n"); !strings.Contains(notes, "Plan p-1 was already sent to run.") {
			t.Errorf("who pressed was told %q", notes)
		}
	})
}

// TestDecidedPlanHoldsUpNoTurn while its message loses the buttons, which takes as long as
// any call: neither its own nor one of what is said next.
func TestDecidedPlanHoldsUpNoTurn(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(w *ot.World, shown ot.Post){
		"Run": func(w *ot.World, shown ot.Post) { w.Chat.Press(shown, "Approve and run", ot.From(ot.Ann)) },
		"SayMore": func(w *ot.World, shown ot.Post) {
			w.Chat.Press(shown, "Reject", ot.From(ot.Ann))
			w.Pass(100 * time.Millisecond)
			w.Chat.Say("then stay", inTeam(ot.Ann)...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				shown := planned(w)
				w.Chat.ReactBy(func(a ot.Asked) ot.Reaction {
					if a.Post == shown.ID {
						time.Sleep(time.Second)
					}
					return ot.Reaction{}
				})
				then(w, shown)
				w.Pass(500 * time.Millisecond)
				if n := len(w.Model.Asked()); n != 2 {
					t.Errorf("the model was asked %d times by now, want 2", n)
				}
				w.Pass(5 * time.Second)
				if left := w.Chat.Find("1. Pack.\n2. Go.\n\n---").Buttons; len(left) > 0 {
					t.Errorf("the plan has the buttons %v", left)
				}
			})
		})
	}
}

// TestDenyThatNamesAPlan rejects it, as /reject denies a question that it names: no other
// decision is taken, whatever waits.
func TestDenyThatNamesAPlan(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		planned(w)
		w.Model.On("do it", ot.Call(ot.ExecuteTool, "make it so"), ot.Say("It is done."))
		w.Chat.Say("do it", inTeam(ot.Ann)...)
		w.Pass(5 * time.Second)
		for _, said := range []struct{ text, plan string }{{"/deny p-9", "proposed"}, {"/deny p-1 too far", "rejected"}} {
			w.Chat.Say(said.text, inTeam(ot.Ann)...)
			w.Pass(5 * time.Second)
			if got, _, _ := strings.Cut(planState(w), " "); got != said.plan || approvalState(w) != "waiting" {
				t.Errorf("after %q the plan is %s and the question %s", said.text, got, approvalState(w))
			}
		}
	})
}

// TestRequestsOfEarlierRunsCount, of a turn that was tried again.
func TestRequestsOfEarlierRunsCount(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.MaxRounds = 2 }
		w.Model.On("do it", ot.Call(ot.ReadTool, "a"), ot.Fail("", &fault.Error{Kind: fault.Unavailable}), ot.Call(ot.ReadTool, "b"), ot.Say("It is done."))
		w.Start()
		w.Chat.Say("do it")
		w.Pass(time.Minute)
		if got := w.Chat.Find("Continue this turn?").Text; !strings.Contains(got, "It has made 2 model requests.") {
			t.Errorf("the question is %q", got)
		}
	})
}
