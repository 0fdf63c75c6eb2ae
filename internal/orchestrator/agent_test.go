package orchestrator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/store"
)

// agents has new conversations belong to the external agent.
func agents(w *ot.World, more ...func(c *orchestrator.Config)) {
	w.Configure = func(c *orchestrator.Config, _ *store.Store) {
		c.Default = ot.AgentName
		for _, change := range more {
			change(c)
		}
	}
}

var mayI = assistant.Permission{
	Call: messages.ToolCall{ID: "c1", Name: "bash", Arguments: `{"command":"make"}`}, Kind: assistant.KindExecute,
	Title: "make", Detail: "`make`", Always: true,
}

// errand asks whether it may run make, and says what it was told.
func errand(r *ot.Errands) (string, error) {
	r.Tell(assistant.Resumable{Session: "s-1"})
	r.Tell(assistant.PlanUpdated{Steps: []assistant.Step{{Text: "Build it", Now: true}, {Text: "Run it"}}})
	r.Tell(assistant.ThoughtDelta{Text: "Let me see.\n"})
	r.Tell(assistant.ToolStarted{ID: "c1", Name: "bash", Summary: "make", Kind: assistant.KindExecute})
	may := mayI
	may.Call.ID += r.Resume // a later run has other names for what it does
	v, err := r.Ask(may)
	if err != nil {
		return "", err
	}
	r.Tell(assistant.ToolFinished{ID: "c1", OK: v.Allow})
	r.Tell(assistant.TextDelta{Text: "I was told: "})
	if v.Allow {
		return "I was told: yes", nil
	}
	return "I was told: " + v.Reason, nil
}

// TestAgentAsks has the agent wait for a person: its turn keeps its place, and neither its
// time nor its slot counts meanwhile.
func TestAgentAsks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ say, answer string }{
		"Yes": {"/approve a-1", "I was told: yes"},
		"No":  {"/deny a-1 later", "a person denied it: later"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				agents(w, func(c *orchestrator.Config) { c.Slots, c.TurnTimeout = 1, time.Minute })
				w.Agent.On("build", errand)
				w.Start()
				w.Chat.Say("build it")
				w.Pass(10 * time.Second)
				w.Chat.Find("a-1: run `make`?")
				w.Chat.Say("and you?", ot.In("elsewhere"))
				w.Pass(5 * time.Minute)
				w.Chat.WantIn("elsewhere", "agent: Ann: and you?")
				w.Chat.Say(tt.say)
				w.Pass(10 * time.Second)
				w.Chat.Find(tt.answer)
				if got := w.States("build it") + " " + w.Value(`SELECT assistant_session_id FROM remote_agent_sessions WHERE user_prompt = 'build it'`); got != "done s-1" {
					t.Errorf("entry and session are %q", got)
				}
			})
		})
	}
}

// TestNobodyIsAskedInVain: what the agent may be allowed for always only, and no rule can be made
// of, as without a repository.
func TestNobodyIsAskedInVain(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		agents(w)
		w.Agent.On("build", func(r *ot.Errands) (string, error) {
			may := mayI
			may.OnlyAlways = true
			_, err := r.Ask(may)
			return "The kind is " + string(fault.KindOf(err)), nil
		})
		w.Start()
		w.Chat.Say("build it")
		w.Pass(10 * time.Second)
		w.Chat.Find("The kind is unsupported")
	})
}

// askForMake has an agent that works on a repository ask whether it may run make.
func askForMake(w *ot.World, change func(*assistant.Permission)) {
	scriptedWorktrees(w)
	configure := w.Configure
	w.Configure = func(c *orchestrator.Config, s *store.Store) {
		configure(c, s)
		c.Default = ot.AgentName
	}
	w.Agent.On("build", func(r *ot.Errands) (string, error) {
		may := mayI
		change(&may)
		v, err := r.Ask(may)
		return fmt.Sprintf("I was told: %t, always %t", v.Allow, v.Always), err
	})
	w.Start()
	w.Chat.Say("/whoami")
	w.Pass(time.Second)
	adopt(w)
	w.Chat.Say("build it")
	w.Pass(10 * time.Second)
}

// TestOnlyAlways: what the agent takes no yes for once for is not offered so.
func TestOnlyAlways(t *testing.T) {
	t.Parallel()
	for _, detail := range []string{mayI.Detail, ""} {
		ot.Run(t, func(w *ot.World) {
			askForMake(w, func(p *assistant.Permission) { p.OnlyAlways, p.Detail = true, detail })
			asked := w.Chat.Find("a-1: run `make`?")
			if strings.Contains(asked.Text, "approve a-1` to run") || len(asked.Buttons) != 2 || asked.Buttons[0].Label != "Always allow this" {
				t.Errorf("the question is %q, with %v", asked.Text, asked.Buttons)
			}
			w.Chat.Say("/approve a-1")
			w.Pass(10 * time.Second)
			w.Chat.Find("a-1 can only be approved for always: add the word always.")
			w.Chat.Say("/approve a-1 always")
			w.Pass(10 * time.Second)
			w.Chat.Find("I was told: true, always true")
		})
	}
}

// TestAnAgentCannotSayThatOnlyAlwaysIsOfUse: a text that it shows takes no answer away.
func TestAnAgentCannotSayThatOnlyAlwaysIsOfUse(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		askForMake(w, func(p *assistant.Permission) { p.Detail += "\n\n" + approval.Permanent })
		w.Chat.Say("/approve a-1")
		w.Pass(10 * time.Second)
		w.Chat.Find("I was told: true, always false")
	})
}

// TestNamesInAQuestionAreShownAsTheyAre: what is approved is what is read.
func TestNamesInAQuestionAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		agents(w)
		w.Agent.On("fetch", func(r *ot.Errands) (string, error) {
			may := mayI
			may.Kind, may.Title = assistant.KindNetwork, "Fetch [the docs](https://evil.example/__init__.py)"
			_, err := r.Ask(may)
			return "It is done.", err
		})
		w.Start()
		w.Chat.Say("fetch it")
		w.Pass(10 * time.Second)
		w.Chat.Find("a-1: `Fetch [the docs](https://evil.example/__init__.py)`?")
	})
}

func TestStopOfAnAgentThatAsks(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		agents(w)
		w.Agent.On("build", errand)
		w.Start()
		w.Chat.Say("build it")
		w.Pass(10 * time.Second)
		w.Chat.Say("/stop")
		w.Pass(10 * time.Second)
		w.Chat.Find("⏹ Stopped after 10 s.")
		if got := w.Value(`SELECT state FROM approvals`); got == "waiting" {
			t.Error("the question still waits")
		}
		if open := w.Open(); len(open) > 0 {
			t.Errorf("still open: %q", open)
		}
	})
}

// TestAgentWhoseProcessDies goes on in its own session, and asks again.
func TestAgentWhoseProcessDies(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		agents(w)
		w.Agent.On("build", errand)
		w.Start()
		w.Chat.Say("build it")
		w.Pass(10 * time.Second)
		w.Process().Kill()
		w.Start()
		w.Pass(10 * time.Second)
		turns := w.Agent.Turns()
		if len(turns) != 2 || turns[1].Resume != "s-1" {
			t.Fatalf("the agent had %d turns, the last one continues with %q", len(turns), turns[len(turns)-1].Resume)
		}
		w.Chat.Say("/approve a-2")
		w.Pass(10 * time.Second)
		w.Chat.Find("I was told: yes")
		if got := strings.Join(w.Rows(`SELECT state FROM approvals ORDER BY number`), " "); got != "canceled allowed" {
			t.Errorf("the questions are %s", got)
		}
	})
}

// TestTheCardSaysWhatAnAgentDidBefore its process died, not only the names of its tools.
func TestTheCardSaysWhatAnAgentDidBefore(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		agents(w)
		w.Agent.On("build", func(r *ot.Errands) (string, error) {
			may := mayI
			if may.Call.ID += r.Resume; r.Resume == "" {
				const id, name, does = "c0", "execute", "npm test"
				r.Tell(assistant.Resumable{Session: "s-1"})
				r.Tell(assistant.MessageDone{Message: messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{messages.ToolCall{ID: id, Name: name, Arguments: `{}`}}}})
				r.Tell(assistant.ToolStarted{ID: id, Name: name, Summary: does, Kind: assistant.KindExecute})
				r.Tell(assistant.MessageDone{Message: messages.Message{Role: messages.RoleTool, Blocks: []messages.Block{messages.ToolResult{CallID: id, Name: name, Content: "ok", Summary: does}}}})
				r.Tell(assistant.ToolFinished{ID: id, OK: true})
			}
			_, err := r.Ask(may)
			return "", err
		})
		w.Start()
		w.Chat.Say("build it")
		w.Pass(10 * time.Second)
		w.Process().Kill()
		w.Start()
		w.Pass(10 * time.Second)
		if text := w.Chat.Find("Waiting for approval of a-2").Text; !strings.Contains(text, "✔ npm test") {
			t.Errorf("the card is %q", text)
		}
	})
}

// TestAgentHearsWhatDidNotRun: it had no answer to its question when the process died, so that
// its call has no effect that it would have to look for. Who had said yes is told.
func TestAgentHearsWhatDidNotRun(t *testing.T) {
	t.Parallel()
	for state, want := range map[approval.State]string{
		approval.Waiting: "not run: the service stopped before anybody had allowed it.",
		approval.Allowed: "not run: a person allowed it",
		approval.Denied:  "not run: it was not allowed.",

		approval.Canceled: "not run: the service stopped before anybody had allowed it.", // it stopped in order
	} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				agents(w)
				w.Agent.On("build", func(r *ot.Errands) (string, error) {
					r.Tell(assistant.MessageDone{Message: messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{mayI.Call}}})
					_, err := r.Ask(mayI)
					return "", err
				}, func(*ot.Errands) (string, error) { return "I go on", nil })
				w.Start()
				w.Chat.Say("build it")
				w.Pass(10 * time.Second)
				if state == approval.Canceled {
					w.Process().Stop()
				} else {
					w.Process().Kill()
				}
				if state == approval.Allowed || state == approval.Denied {
					inTx(w, func(ctx context.Context, tx *store.Tx) error {
						a, err := tx.Questions().Approval(ctx, 1)
						if a.State, a.DecidedBy, a.DecidedAt = state, a.Requester, time.Now(); err != nil {
							return err
						}
						return tx.Questions().SettleApproval(ctx, a)
					})
				}
				w.Start()
				w.Pass(10 * time.Second)
				w.Chat.Find("I go on")
				turns := w.Agent.Turns()
				last := turns[len(turns)-1].Array
				result, _ := last[len(last)-1].Blocks[0].(messages.ToolResult)
				if result.CallID != "c1" || !result.IsError || !strings.HasPrefix(result.Content, want) {
					t.Errorf("it reads %+v", last)
				}
				if got := w.Value(`SELECT status FROM agent_tool_calls WHERE tool_call_id = 'c1'`); got != "failed" {
					t.Errorf("the call is %s", got)
				}
				if restarted := strings.Contains(w.Chat.Find("a-1: run").Text, "The bot restarted; not run. The agent asks again if it still needs this"); restarted != (state == approval.Waiting || state == approval.Canceled) {
					t.Errorf("the question reads %q", w.Chat.Find("a-1: run").Text)
				}
				told := strings.Contains(strings.Join(w.Chat.Texts(ot.Room), "\n"), "⚠ a-1 was approved, but the bot was restarted before the agent had the answer")
				if told != (state == approval.Allowed) {
					t.Errorf("people read %q", w.Chat.Texts(ot.Room))
				}
			})
		})
	}
}

// TestAQuestionThatTheAgentTakesBack says so while the turn goes on.
func TestAQuestionThatTheAgentTakesBack(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		agents(w)
		w.Agent.On("build", func(r *ot.Errands) (string, error) {
			ctx, takeBack := context.WithCancel(r.Context())
			defer takeBack()
			time.AfterFunc(5*time.Second, takeBack)
			_, err := r.Host.Ask(ctx, mayI)
			time.Sleep(20 * time.Second)
			return fmt.Sprint("I know it now: ", err), nil
		})
		w.Start()
		w.Chat.Say("build it")
		w.Pass(10 * time.Second)
		if text := w.Chat.Find("a-1: run").Text; !strings.HasSuffix(text, "**The agent no longer asks; not run**") {
			t.Errorf("the question reads %q", text)
		}
		w.Pass(20 * time.Second)
		w.Chat.Find("I know it now: context canceled")
	})
}

// TestStopOfAProcessWhoseAgentAsks waits for nobody's decision: the next process asks again.
func TestStopOfAProcessWhoseAgentAsks(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		agents(w)
		w.Agent.On("build", errand)
		w.Start()
		w.Chat.Say("build it")
		w.Pass(10 * time.Second)
		begin := time.Now()
		w.Process().Stop()
		if took := time.Since(begin); took > time.Second {
			t.Errorf("the stop took %s", took)
		}
		w.Chat.Find("Restarting. I'll continue this answer afterwards.")
		if got := w.Value(`SELECT count(*) FROM remote_agent_conversations WHERE lease_owner <> ''`); got != "0" {
			t.Errorf("%s leases are held", got)
		}
		w.Start()
		w.Pass(10 * time.Second)
		w.Chat.Say("/approve a-2")
		w.Pass(10 * time.Second)
		w.Chat.Find("I was told: yes")
		if got := strings.Join(w.Rows(`SELECT state FROM approvals ORDER BY number`), " "); got != "canceled allowed" {
			t.Errorf("the questions are %s", got)
		}
	})
}

// TestAgentThatFailed is not begun again on its own once it has done something: the
// person decides.
func TestAgentThatFailed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before assistant.Event
		turns  int
		shown  string
	}{
		"BeforeItBegan":     {nil, 2, "agent says hello"},
		"AfterItSaidAThing": {assistant.TextDelta{Text: "Well, "}, 1, "✖ The other side is away."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				agents(w)
				w.Agent.On("build", func(r *ot.Errands) (string, error) {
					if tt.before != nil {
						r.Tell(tt.before)
					}
					return "", errUnavailable
				}, func(*ot.Errands) (string, error) { return "agent says hello", nil })
				w.Start()
				w.Chat.Say("build it")
				w.Settle()
				if texts := strings.Join(w.Chat.Texts(ot.Room), "\n"); strings.Contains(texts, ", 2 of 2.") != (tt.turns == 2) {
					t.Errorf("they read %q, and there are %d tries", texts, tt.turns)
				}
				w.Pass(30 * time.Second)
				w.Chat.Find(tt.shown)
				if n := len(w.Agent.Turns()); n != tt.turns {
					t.Errorf("the agent had %d turns, want %d", n, tt.turns)
				}
			})
		})
	}
}

// TestHandoff gives the conversation to the other assistant, with what was said.
func TestHandoff(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Start()
		w.Chat.Say("remember the cat")
		w.Pass(2 * time.Second)
		w.Chat.Say("/handoff agent")
		w.Pass(2 * time.Second)
		w.Chat.Say("which animal?")
		w.Pass(2 * time.Second)
		w.Chat.Say("/handoff scripted")
		w.Pass(2 * time.Second)
		w.Chat.Say("and now?")
		w.Pass(2 * time.Second)
		w.Chat.Want("re: remember the cat", "**agent** now answers here instead of scripted.", "agent: which animal?", "**scripted** now answers here", "re: and now?")
		if got := w.Agent.Turns()[0].Array; len(got) != 3 || got[0].PlainText() != "remember the cat" {
			t.Errorf("the agent got %+v", got)
		}
		if n := len(w.Agent.Released()); n != 1 {
			t.Errorf("the agent's process was ended %d times", n)
		}
		if got := w.Rows(`SELECT ai_assistant_type FROM remote_agent_conversations ORDER BY id`); !slices.Equal(got, []string{"scripted", "agent", "scripted"}) {
			t.Errorf("the conversations are of %q", got)
		}
	})
}

func TestHandoffIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ say, text string }{
		"NoName":  {"/handoff", "Specify an assistant: `/handoff agent`."},
		"Itself":  {"/handoff scripted", "scripted is already in use here."},
		"Unknown": {"/handoff nobody", "There is no assistant \"nobody\" here. Available: agent."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Start()
				w.Chat.Say(tt.say)
				w.Pass(2 * time.Second)
				w.Chat.Want(tt.text)
			})
		})
	}
	t.Run("WhileATurnRuns", func(t *testing.T) {
		t.Parallel()
		ot.Run(t, func(w *ot.World) {
			w.Model.On("hello", ot.Hold("", ot.Say("Hello.")))
			w.Start()
			w.Chat.Say("hello")
			w.Settle()
			w.Chat.Say("/handoff agent")
			w.Pass(2 * time.Second)
			w.Chat.Find("Something is still running or queued here.")
		})
	})
}

// TestCostOfTheAgentsSession has a turn fail: the next one is told what the agent's session
// has cost, until that begins anew.
func TestCostOfTheAgentsSession(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		agents(w)
		var told []float64
		w.Agent.On("work", func(r *ot.Errands) (string, error) {
			told = append(told, r.ResumeCostUSD)
			switch len(told) {
			case 1:
				r.Tell(assistant.Resumable{Session: "s-1"})
				r.Tell(assistant.Resumable{Session: "s-1", CostUSD: 1.25})
				return "", fault.New(fault.Exhausted, "No more.")
			case 2:
				r.Tell(assistant.Resumable{Session: "s-2"})
			}
			return "Done.", nil
		})
		w.Start()
		for range 3 {
			w.Chat.Say("work")
			w.Pass(10 * time.Second)
		}
		if !slices.Equal(told, []float64{0, 1.25, 0}) {
			t.Errorf("told %v", told)
		}
	})
}

// TestCostIsOnRecordWithThatOfTheSession: where the process dies behind it, the turn's part of
// what the agent's session has cost is not lost, and not counted twice where it goes on.
func TestCostIsOnRecordWithThatOfTheSession(t *testing.T) {
	t.Parallel()
	for name, dies := range map[string]bool{"Dies": true, "GoesOn": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				agents(w)
				w.Agent.On("work", func(r *ot.Errands) (string, error) {
					r.Tell(assistant.UsageUpdated{Usage: assistant.Usage{OutputTokens: 10, CostUSD: 1.25}})
					r.Tell(assistant.Resumable{Session: "s-1", CostUSD: 1.25})
					if dies {
						_, err := r.Ask(mayI)
						return "", err
					}
					r.Tell(assistant.Finished{Usage: assistant.Usage{OutputTokens: 1012, CostUSD: 1.25}, Model: "claude-sonnet-4-5"})
					return "", fault.New(fault.Exhausted, "No more.")
				})
				w.Start()
				w.Chat.Say("work")
				w.Pass(10 * time.Second)
				if dies {
					w.Process().Kill()
				}
				want := map[bool]string{true: "10 1250000", false: "1012 1250000"}[dies]
				if got := w.Value(`SELECT sum(output_tokens) || ' ' || sum(cost_micros) FROM usage_records`); got != want {
					t.Errorf("on record are %s tokens and millionths, want %s", got, want)
				}
			})
		})
	}
}

// TestAgentAsksTwice at once: while one question is open, the card says for which the turn waits.
func TestAgentAsksTwice(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		agents(w)
		w.Agent.On("build", func(r *ot.Errands) (string, error) {
			var both sync.WaitGroup
			for _, id := range []string{"c1", "c2"} {
				may := mayI
				may.Call.ID = id
				both.Go(func() { _, _ = r.Host.Ask(r.Context(), may) })
			}
			both.Wait()
			return "It is built.", nil
		})
		w.Start()
		w.Chat.Say("build it")
		w.Pass(10 * time.Second)
		if text := w.Chat.Find("Waiting for approval of").Text; !strings.Contains(text, "a-1") || !strings.Contains(text, "a-2") {
			t.Errorf("the card is %q", text)
		}
		w.Chat.Say("/approve a-2")
		w.Pass(10 * time.Second)
		if text := w.Chat.Find("Waiting for approval of").Text; !strings.HasSuffix(text, "of a-1") {
			t.Errorf("one question is open, and the card is %q", text)
		}
		w.Chat.Say("/approve a-1")
		w.Pass(10 * time.Second)
		w.Chat.Find("It is built.")
	})
}

// TestAgentThatWasDenied and does it nevertheless has nobody's approval on record.
func TestAgentThatWasDenied(t *testing.T) {
	t.Parallel()
	for say, want := range map[string]string{"/deny a-1": "-", "/approve a-1": "a-1"} {
		t.Run(say, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				agents(w)
				w.Agent.On("build", func(r *ot.Errands) (string, error) {
					r.Tell(assistant.MessageDone{Message: messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{mayI.Call}}})
					if _, err := r.Ask(mayI); err != nil {
						return "", err
					}
					r.Tell(assistant.ToolStarted{ID: mayI.Call.ID, Name: "bash", Summary: "make", Kind: assistant.KindExecute})
					r.Tell(assistant.ToolFinished{ID: mayI.Call.ID, OK: true})
					return "It is built.", nil
				})
				w.Start()
				w.Chat.Say("build it")
				w.Pass(5 * time.Second)
				w.Chat.Say(say)
				w.Pass(5 * time.Second)
				if got := w.Value(`SELECT json_extract(detail, '$.approval') FROM audit_log WHERE action = 'tool.run'`); got != want {
					t.Errorf("the approval on record is %s, want %s", got, want)
				}
			})
		})
	}
}

// TestAgentOfAClosedConversation ends its process.
func TestAgentOfAClosedConversation(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		agents(w)
		w.Start()
		w.Chat.Say("hello")
		w.Pass(2 * time.Second)
		w.Chat.Do(ot.With(func(in *messages.Inbound) { in.Kind = messages.KindClosed }))
		w.Pass(2 * time.Second)
		if got := w.Agent.Released(); len(got) != 1 || got[0] != w.Value(`SELECT id FROM remote_agent_conversations`) {
			t.Errorf("ended are those of %q", got)
		}
	})
}
