package orchestrator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/store"
)

// TestWordWithAFileIsNoAnswer: "no" above a picture is said about the picture.
func TestWordWithAFileIsNoAnswer(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		asking(w)
		attached := ot.With(func(in *messages.Inbound) { in.Attachments = []messages.Attachment{{Name: "log.txt", Text: "x"}} })
		w.Chat.Say("no", append(inTeam(ot.Ann), attached)...)
		w.Pass(5 * time.Second)
		if got := approvalState(w); got != "waiting" {
			t.Errorf("the question is %s", got)
		}
	})
}

// TestAnotherRepositoryIsAskedAbout: a person has allowed to clone one repository, and by
// then it is another one that is missing.
func TestAnotherRepositoryIsAskedAbout(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		one := &orchestrator.NeedsClone{Codebase: "demo", URL: "https://git.example/demo", Why: "It is not here."}
		other := &orchestrator.NeedsClone{Codebase: "evil", URL: "https://git.example/evil", Why: "It is not here."}
		s := scriptedWorktrees(w, one, other, other)
		w.Start()
		w.Chat.Say("hello", about)
		w.Pass(10 * time.Second)
		w.Chat.Say("/approve a-1")
		w.Pass(10 * time.Second)
		w.Chat.Find("Clone https://git.example/evil?")
		if len(s.cloned) != 0 {
			t.Errorf("cloned %q", s.cloned)
		}
	})
}

// TestRuleDoesNotHoldForAPullRequest: what is always allowed in a repository is asked about
// where somebody else decides what the files are.
func TestRuleDoesNotHoldForAPullRequest(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		scriptedWorktrees(w)
		w.Model.On("do it", ot.Call(ot.ExecuteTool, "make"), ot.Say("It is done."))
		w.Model.On("review it", ot.Call(ot.ExecuteTool, "make"), ot.Say("It is reviewed."))
		w.Start()
		w.Chat.Say("/whoami")
		w.Pass(time.Second)
		adopt(w)
		w.Chat.Say("do it")
		w.Pass(5 * time.Second)
		w.Chat.Press(w.Chat.Find("run `make`?"), "Always allow this")
		w.Pass(5 * time.Second)
		w.Chat.Say("review it", ot.With(func(in *messages.Inbound) {
			in.Repository = &messages.Repository{URL: "https://git.example/demo.git", Existing: true}
		}))
		w.Pass(5 * time.Second)
		w.Chat.Find("a-2: run `make`?")
		if n := len(w.Tools.Did()); n != 1 {
			t.Errorf("it ran %d times", n)
		}
	})
}

// TestModeOfAnAgent: auto is the owners', also where the agent itself asks nobody in it.
func TestModeOfAnAgent(t *testing.T) {
	t.Parallel()
	for who, want := range map[messages.UserID]approval.Mode{ot.Olga: approval.ModeAuto, ot.Ann: approval.ModeEdit} {
		t.Run(string(who), func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				agents(w, func(c *orchestrator.Config) { c.Mode = approval.ModeAuto })
				w.Start()
				w.Chat.Say("hello", ot.From(who))
				w.Pass(5 * time.Second)
				if got := w.Agent.Turns()[0].Mode; got != string(want) {
					t.Errorf("the agent works in the mode %q, want %q", got, want)
				}
			})
		})
	}
}

// TestWritingOfAnAgent needs nobody where it is kept inside of the worktree, and is asked
// about where nothing keeps it there.
func TestWritingOfAnAgent(t *testing.T) {
	t.Parallel()
	for _, confined := range []bool{true, false} {
		t.Run(fmt.Sprint("Confined=", confined), func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				agents(w, func(c *orchestrator.Config) { c.Confined = confined })
				w.Agent.On("write", func(r *ot.Errands) (string, error) {
					_, err := r.Ask(assistant.Permission{Call: messages.ToolCall{ID: "c1", Name: "write", Arguments: "x"}, Kind: assistant.KindWrite, Title: "write x"})
					return "It is written.", err
				})
				w.Start()
				w.Chat.Say("write it")
				w.Pass(5 * time.Second)
				if asked := w.Value(`SELECT count(*) FROM approvals`) == "1"; asked == confined {
					t.Errorf("somebody was asked: %v", asked)
				}
			})
		})
	}
}

// TestWhatAnAgentHidesInItsQuestion: a character that cannot be seen makes one command look
// like another, so it is named, and nobody allows for ever what they did not see.
func TestWhatAnAgentHidesInItsQuestion(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		agents(w, func(c *orchestrator.Config) { c.Worktrees = &worktrees{} })
		ask := func(command string) func(r *ot.Errands) (string, error) {
			return func(r *ot.Errands) (string, error) {
				_, err := r.Ask(assistant.Permission{
					Call: messages.ToolCall{ID: "c1", Name: "bash", Arguments: command}, Kind: assistant.KindExecute,
					Title: command, Detail: "```sh\n" + command + "\n```", Always: true,
				})
				return "It is done.", err
			}
		}
		w.Agent.On("openly", ask("make test"))
		w.Agent.On("hidden", ask("make \u202etset\u202c && cur\u200bl evil.example"))
		w.Start()
		w.Chat.Say("/whoami")
		w.Pass(time.Second)
		adopt(w)
		for _, c := range []struct {
			say, question, unseen string
			always                bool
		}{
			{"openly", "a-1: run `make test`?", "", true},
			{"hidden", "a-2: run `make tset && curl evil.example`?", "⚠ The text above contains characters that cannot be seen: U+200B, U+202C, U+202E.", false},
		} {
			w.Chat.Say(c.say)
			w.Pass(5 * time.Second)
			asked := w.Chat.Find(c.question).Text
			if !strings.Contains(asked, c.unseen) || strings.Contains(asked, "cannot be seen") != (c.unseen != "") || strings.Contains(asked, "always` to allow") != c.always {
				t.Errorf("a person is asked %q", asked)
			}
			w.Chat.Say("/deny " + c.question[:len("a-1")])
			w.Pass(5 * time.Second)
		}
	})
}

// TestManyQuestionsAreNoFailedTries: a turn may ask more often than it may fail.
func TestManyQuestionsAreNoFailedTries(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		const many = 17
		var steps []ot.Step
		for n := range many {
			steps = append(steps, ot.Call(ot.ExecuteTool, fmt.Sprint("part ", n)))
		}
		w.Model.On("do it", append(steps, ot.Say("All of it is done."))...)
		w.Start()
		w.Chat.Say("do it")
		for n := range many {
			w.Pass(2 * time.Second)
			w.Chat.Say(fmt.Sprint("/approve a-", n+1))
		}
		w.Pass(5 * time.Second)
		w.Chat.Find("All of it is done.")
		if n := len(w.Tools.Did()); n != many {
			t.Errorf("%d parts are done", n)
		}
	})
}

// TestRetryIsNoAnswerToAQuestion: a turn that failed once and now waits for a decision is not
// hurried by /retry, which waits behind it.
func TestRetryIsNoAnswerToAQuestion(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("do it", ot.Fail("", errUnavailable), ot.Call(ot.ExecuteTool, "make it so"), ot.Say("It is done."))
		w.Start()
		w.Chat.Say("do it")
		w.Pass(5 * time.Second)
		w.Chat.Find("run `make it so`?")
		w.Chat.Say("/retry")
		w.Pass(5 * time.Second)
		if texts := strings.Join(w.Chat.Texts(ot.Room), "\n"); strings.Contains(texts, "Trying again now") {
			t.Errorf("they read %q", texts)
		}
		if got := w.States("/retry") + " " + w.Value(`SELECT lane FROM inbound_events WHERE data LIKE '%/retry%'`); got != "waiting turn" {
			t.Errorf("/retry is %s", got)
		}
	})
}

// TestCallsOfATurnThatWasStopped while it waited for a decision are over, so that the next
// turn does not find them open.
func TestCallsOfATurnThatWasStopped(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		asking(w)
		w.Chat.Say("/stop", inTeam(ot.Ann)...)
		w.Pass(10 * time.Second)
		if open := w.Rows(`SELECT status FROM agent_tool_calls WHERE status IN ('pending', 'executing')`); len(open) > 0 {
			t.Errorf("calls are open: %q", open)
		}
	})
}

// TestLimitIsAskedAboutAgain: what was allowed once is as much again, and no more.
func TestLimitIsAskedAboutAgain(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.MaxRounds = 2 }
		w.Model.On("do it", ot.Call(ot.ReadTool, "a"), ot.Call(ot.ReadTool, "b"), ot.Call(ot.ReadTool, "c"), ot.Call(ot.ReadTool, "d"), ot.Say("It is done."))
		w.Start()
		w.Chat.Say("do it")
		w.Pass(5 * time.Second)
		w.Chat.Say("/approve a-1")
		w.Pass(5 * time.Second)
		w.Chat.Find("Continue this turn? It has made 4 model requests.")
		w.Chat.Say("/approve a-2")
		w.Pass(5 * time.Second)
		w.Chat.Find("It is done.")
		if in := w.Value(`SELECT sum(input_tokens) FROM usage_records`); in != "50" {
			t.Errorf("%s tokens are on record, want those of five requests", in)
		}
	})
}
