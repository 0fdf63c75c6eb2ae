package orchestrator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/store"
)

// asksAs has the agent put a call on record and ask about it.
func asksAs(r *ot.Errands, id string, change func(*assistant.Permission)) (assistant.Verdict, error) {
	may := mayI
	may.Call.ID = id
	if change != nil {
		change(&may)
	}
	r.Tell(assistant.MessageDone{Message: messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{may.Call}}})
	return r.Ask(may)
}

// allows has the person who asked allow what is asked under a number, behind the back of the process.
func allows(w *ot.World, number int64) {
	w.T.Helper()
	inTx(w, func(ctx context.Context, tx *store.Tx) error {
		a, err := tx.Questions().Approval(ctx, number)
		if a.State, a.DecidedBy, a.DecidedAt = approval.Allowed, a.Requester, time.Now(); err != nil {
			return err
		}
		return tx.Questions().SettleApproval(ctx, a)
	})
}

// TestAYesThatTheAgentDidNotHear counts, once, for exactly what it was given for.
func TestAYesThatTheAgentDidNotHear(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		asks func(*assistant.Permission) // the second process, otherwise than the first
		late time.Duration               // how long the process was down
		want string                      // the states of all that was asked
	}{
		"TheSame":         {nil, 0, "allowed allowed waiting"},
		"AnotherCommand":  {func(p *assistant.Permission) { p.Call.Arguments = `{"command":"make install"}` }, 0, "allowed waiting"},
		"AnotherTool":     {func(p *assistant.Permission) { p.Call.Name = "shell" }, 0, "allowed waiting"},
		"ShownOtherwise":  {func(p *assistant.Permission) { p.Detail = "`make` as root" }, 0, "allowed waiting"},
		"CalledOtherwise": {func(p *assistant.Permission) { p.Title = "make it" }, 0, "allowed waiting"},
		"OfAnotherKind":   {func(p *assistant.Permission) { p.Kind = assistant.KindOther }, 0, "allowed waiting"},
		"TooLate":         {nil, approval.TTL, "allowed waiting"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				agents(w)
				w.Agent.On("build", func(r *ot.Errands) (string, error) {
					_, err := asksAs(r, "c1", nil)
					return "", err
				}, func(r *ot.Errands) (string, error) {
					v, err := asksAs(r, "c2", tt.asks)
					if !v.Allow {
						return "I was told no", err
					}
					r.Tell(assistant.ToolStarted{ID: "c2", Name: "bash", Summary: "make", Kind: assistant.KindExecute})
					r.Tell(assistant.ToolFinished{ID: "c2", OK: true})
					_, err = asksAs(r, "c3", tt.asks) // once is once
					return "", err
				})
				w.Start()
				w.Chat.Say("build it")
				w.Pass(10 * time.Second)
				w.Process().Kill()
				allows(w, 1)
				time.Sleep(tt.late)
				w.Start()
				w.Pass(10 * time.Second)
				if tt.asks == nil && tt.late == 0 {
					if got := w.Value(`SELECT detail FROM audit_log WHERE action = 'tool.run'`); !strings.Contains(got, `"call":"c2"`) || !strings.Contains(got, `"approval":"a-2"`) {
						t.Errorf("on record as %s", got)
					}
				}
				if got := strings.Join(w.Rows(`SELECT state FROM approvals ORDER BY number`), " "); got != tt.want {
					t.Errorf("what was asked is %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// TestAYesThatTheAgentMayHaveHeard counts no more: its call may have run.
func TestAYesThatTheAgentMayHaveHeard(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		agents(w)
		asks := func(id string, heard bool) func(r *ot.Errands) (string, error) {
			return func(r *ot.Errands) (string, error) {
				v, err := asksAs(r, id, nil)
				if v.Allow && heard {
					r.Tell(assistant.ToolStarted{ID: id, Name: "bash", Summary: "make", Kind: assistant.KindExecute})
					_, err = asksAs(r, id+"-more", func(p *assistant.Permission) { p.Call.Arguments, p.Detail = `{"command":"ls"}`, "`ls`" })
				}
				return "", err
			}
		}
		w.Agent.On("build", asks("c1", false), asks("c2", true), asks("c3", false))
		w.Start()
		w.Chat.Say("build it")
		w.Pass(10 * time.Second)
		w.Process().Kill()
		allows(w, 1)
		w.Start()
		w.Pass(10 * time.Second)
		w.Process().Kill()
		w.Start()
		w.Pass(10 * time.Second)
		if got := strings.Join(w.Rows(`SELECT tool_call_id || ' ' || state FROM approvals ORDER BY number`), ", "); got != "c1 allowed, c2 allowed, c2-more canceled, c3 waiting" {
			t.Errorf("what was asked: %s", got)
		}
	})
}
