package orchestrator_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// grant gives somebody a role, as another process does.
func grant(w *ot.World, who messages.UserID, role sessions.Role) {
	w.T.Helper()
	err := w.Process().Store.InTx(w.T.Context(), func(tx *store.Tx) error {
		return tx.People().SetRole(w.T.Context(), sessions.Identity{Platform: ot.PlatformName, UserID: who, Role: role}, "cli", false)
	})
	if err != nil {
		w.T.Fatal(err)
	}
}

// TestReadersChangeNothing has somebody who may only ask try all that changes
// something.
func TestReadersChangeNothing(t *testing.T) {
	t.Parallel()
	const reader messages.UserID = "rita"
	as := func(room string) []ot.Option { return []ot.Option{ot.In(room), ot.From(reader)} }
	for name, test := range map[string]func(w *ot.World){
		"Tool": func(w *ot.World) {
			w.Model.On("break it", ot.Call(ot.WriteTool, "x"), ot.Say("I could not."))
			w.Chat.Say("break it", as(ot.Room)...)
			w.Pass(5 * time.Second)
			w.Chat.Want("I could not.")
			if did := w.Tools.Did(); len(did) != 0 {
				w.T.Errorf("the tools did %v", did)
			}
		},
		"Agent": func(w *ot.World) {
			var verdict assistant.Verdict
			w.Agent.On("break it", func(r *ot.Errands) (string, error) {
				v, err := r.Ask(assistant.Permission{Call: messages.ToolCall{ID: "c-1", Name: "rm", Arguments: "x"}, Kind: assistant.KindExecute, Title: "rm x"})
				verdict = v
				return "I did not.", err
			})
			grant(w, reader, sessions.User)
			w.Chat.Say("/handoff "+string(ot.AgentName), as(ot.Room)...)
			w.Pass(5 * time.Second)
			grant(w, reader, sessions.Reader)
			w.Chat.Say("break it", as(ot.Room)...)
			w.Pass(5 * time.Second)
			turns := w.Agent.Turns()
			if len(turns) != 1 || turns[0].Mode != string(approval.ModeAsk) || verdict.Allow || !strings.Contains(verdict.Reason, "read-only access") {
				w.T.Errorf("the agent has %d turns and the verdict %+v", len(turns), verdict)
			}
		},
		"Schedule": func(w *ot.World) {
			w.Chat.Say("/schedule on", as(ot.Room)...)
			w.Chat.Say("/mode auto", as(ot.Room)...)
			w.Pass(5 * time.Second)
			if n := len(w.Chat.Texts(ot.Room)); n != 2 || w.Value("SELECT count(*) FROM agent_schedules") != "0" {
				w.T.Errorf("it says %q", w.Chat.Texts(ot.Room))
			}
		},
		"Approval": func(w *ot.World) {
			w.Model.On("run it", ot.Call(ot.ExecuteTool, "x"), ot.Say("Done."))
			w.Chat.Say("run it", inTeam(ot.Ann)...)
			w.Pass(5 * time.Second)
			w.Chat.Find("a-1: run")
			w.Chat.Say("/approve a-1", as(team)...)
			w.Chat.Say("/deny a-1", as(team)...)
			w.Chat.Press(w.Chat.Find("x"), "Run it", ot.From(reader))
			w.Pass(5 * time.Second)
			if got := w.Value(`SELECT state FROM approvals`); got != "waiting" {
				w.T.Errorf("the question is %s", got)
			}
			if did := w.Tools.Did(); len(did) != 0 {
				w.T.Errorf("the tools did %v", did)
			}
		},
		"Plan": func(w *ot.World) {
			w.Model.On("Write a plan", ot.Say("1. Pack."))
			w.Model.On("Carry out this plan", ot.Say("I packed."))
			w.Chat.Say("/plan a trip", as(ot.Room)...)
			w.Pass(5 * time.Second)
			for _, text := range []string{"/execute", "/execute p-1", "/command-invoke execute", "/approve p-1", "/edit p-1 x", "/reject p-1"} {
				w.Chat.Say(text, as(ot.Room)...)
				w.Pass(5 * time.Second)
			}
			for _, label := range []string{"Approve and run", "Approve", "Reject"} {
				w.Chat.Press(w.Chat.Find("1. Pack."), label, ot.From(reader))
				w.Pass(5 * time.Second)
			}
			if got := planState(w); strings.TrimSpace(got) != "proposed" {
				w.T.Errorf("the plan is %s", got)
			}
			if slices.ContainsFunc(w.Chat.Texts(ot.Room), func(s string) bool { return strings.Contains(s, "I packed") }) {
				w.T.Error("the plan was carried out")
			}
		},
		"Demoted": func(w *ot.World) {
			grant(w, reader, sessions.User)
			w.Model.On("work", ot.Hold("working", ot.Say("done")))
			w.Chat.Say("work", as(ot.Room)...)
			w.Pass(5 * time.Second)
			grant(w, reader, sessions.Reader)
			w.Pass(5 * time.Second)
			w.Chat.Find("has read-only access now")
			w.Model.On("why", ot.Say("Because."))
			w.Chat.Say("why", as(ot.Room)...)
			w.Pass(5 * time.Second)
			w.Chat.Find("Because.")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Configure = func(c *orchestrator.Config, _ *store.Store) { c.SecondApprover = true }
				w.Start()
				grant(w, reader, sessions.Reader)
				w.Pass(time.Second)
				test(w)
			})
		})
	}
}
