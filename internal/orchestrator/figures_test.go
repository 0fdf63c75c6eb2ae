package orchestrator_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/metrics"
	"remote-agent/internal/orchestrator"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/store"
)

// counting has what the processes of w do counted, and returns a check of what is served.
func counting(w *ot.World) (served func(want ...string)) {
	m := metrics.New("test")
	m.NameModels(func(model string) string { return model })
	configure := w.Configure
	w.Configure = func(c *orchestrator.Config, s *store.Store) {
		if configure != nil {
			configure(c, s)
		}
		c.Metrics = m
	}
	return func(want ...string) {
		w.T.Helper()
		rec := httptest.NewRecorder()
		m.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(w.T.Context(), http.MethodGet, "/metrics", nil))
		for _, line := range want {
			if !strings.Contains(rec.Body.String(), "\n"+line+"\n") {
				ours, _, _ := strings.Cut(rec.Body.String(), "\n# HELP go_")
				w.T.Errorf("there is no %s in\n%s", line, ours)
			}
		}
	}
}

// TestStalledTurns: of a turn nothing is heard for three minutes, because a model, a tool or a
// command takes that long; a turn that waits for a person has not stalled.
func TestStalledTurns(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		begin func(w *ot.World) (end func())
		want  metrics.Stalled
		told  bool // who watches, too
	}{
		"Model": {func(w *ot.World) func() {
			w.Model.On("hello", ot.Later(10*time.Second, ot.Hold("Let me ", ot.Say("think."))))
			w.Start()
			return w.Model.Release
		}, metrics.Stalled{Model: 1}, true},
		"Tool": {func(w *ot.World) func() {
			done := make(chan struct{})
			w.Tools.Hold(done)
			w.Model.On("hello", ot.Later(10*time.Second, ot.Call(ot.WriteTool, "slow")), ot.Say("It is done."))
			w.Start()
			return func() { close(done) }
		}, metrics.Stalled{Tool: 1}, true},
		"Agent": {func(w *ot.World) func() {
			agents(w)
			done := make(chan struct{})
			w.Agent.On("hello", func(r *ot.Errands) (string, error) {
				select {
				case <-time.After(10 * time.Second):
				case <-r.Context().Done():
				}
				r.Tell(assistant.ToolStarted{ID: "c1", Name: "bash", Kind: assistant.KindExecute})
				select {
				case <-done:
				case <-r.Context().Done():
				}
				r.Tell(assistant.ToolFinished{ID: "c1", OK: true})
				return "It is done.", nil
			})
			w.Start()
			return func() { close(done) }
		}, metrics.Stalled{Tool: 1}, true},
		"Person": {func(w *ot.World) func() {
			agents(w)
			w.Agent.On("hello", errand)
			w.Start()
			return func() { w.Chat.Say("/approve a-1") }
		}, metrics.Stalled{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				end := tt.begin(w)
				stalled := func(when string, want metrics.Stalled) {
					t.Helper()
					if got := w.Process().Engine.Stalled(); got != want {
						t.Errorf("%s %+v have stalled, want %+v", when, got, want)
					}
				}
				w.Chat.Say("hello")
				w.Pass(3*time.Minute + 5*time.Second)
				stalled("before three minutes of silence are over,", metrics.Stalled{})
				w.Pass(40 * time.Second)
				stalled("after that", tt.want)
				if texts := strings.Join(w.Chat.Texts(ot.Room), "\n"); strings.Contains(texts, "no output for 3:") != tt.told {
					t.Errorf("they read %q", texts)
				}
				end()
				w.Pass(10 * time.Second)
				stalled("in the end", metrics.Stalled{})
				if got := w.States("hello"); got != "done" {
					t.Errorf("the turn is %s", got)
				}
			})
		})
	}
}

// TestApprovalsAreCounted when they are settled, with the time that people took, and once.
func TestApprovalsAreCounted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		settle  func(w *ot.World)
		outcome string
	}{
		"Approved": {func(w *ot.World) { w.Chat.Say("/approve a-1", inTeam(ot.Ann)...) }, "approved"},
		"Denied":   {func(w *ot.World) { w.Chat.Say("/deny a-1", inTeam(ot.Bob)...) }, "denied"},
		"Stopped":  {func(w *ot.World) { w.Chat.Say("/stop", inTeam(ot.Ann)...) }, "withdrawn"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				served := counting(w)
				asking(w)
				w.Pass(10 * time.Minute)
				tt.settle(w)
				w.Pass(10 * time.Second)
				w.Chat.Say("/approve a-1", inTeam(ot.Ann)...)
				w.Pass(10 * time.Second)
				served(`bot_approvals_total{outcome="`+tt.outcome+`"} 1`,
					`bot_approval_wait_seconds_bucket{outcome="`+tt.outcome+`",le="300"} 0`,
					`bot_approval_wait_seconds_bucket{outcome="`+tt.outcome+`",le="900"} 1`)
			})
		})
	}
	for name, tt := range map[string]struct {
		settle  func(w *ot.World)
		outcome string
	}{
		"AgentExpired": {func(w *ot.World) { w.Pass(2 * time.Minute) }, "expired"},
		"AgentStopped": {func(w *ot.World) { w.Chat.Say("/stop") }, "withdrawn"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				agents(w, func(c *orchestrator.Config) { c.Storage = hasty{c.Storage} })
				served := counting(w)
				w.Agent.On("build", errand)
				w.Start()
				w.Chat.Say("build it")
				w.Pass(10 * time.Second)
				tt.settle(w)
				w.Pass(10 * time.Second)
				served(`bot_approvals_total{outcome="`+tt.outcome+`"} 1`,
					`bot_approval_wait_seconds_count{outcome="`+tt.outcome+`"} 1`)
			})
		})
	}
}

// TestRunsAreCountedByWhatBeganThem.
func TestRunsAreCountedByWhatBeganThem(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		served := counting(w)
		standing(w)
		w.Pass(61 * time.Minute)
		w.Chat.Find("It is late.")
		w.Chat.Say("hello")
		w.Pass(5 * time.Second)
		served(`bot_runs_total{assistant="scripted",outcome="answered",trigger="schedule"} 1`,
			`bot_runs_total{assistant="scripted",outcome="answered",trigger="message"} 1`)
	})
}

// TestWhatAnAgentUsesIsCounted: tokens, and what it says that they cost.
func TestWhatAnAgentUsesIsCounted(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		agents(w)
		served := counting(w)
		w.Agent.On("build", func(r *ot.Errands) (string, error) {
			r.Used = assistant.Usage{InputTokens: 100, OutputTokens: 50, CachedTokens: 40, CostUSD: 0.25}
			return "Built.", nil
		})
		w.Start()
		for range 2 {
			w.Chat.Say("build it")
			w.Pass(5 * time.Second)
		}
		served(`bot_tokens_total{kind="input",model="other",provider="agent"} 200`,
			`bot_tokens_total{kind="output",model="other",provider="agent"} 100`,
			`bot_tokens_total{kind="cached",model="other",provider="agent"} 80`,
			`bot_cost_usd_total{model="other",provider="agent"} 0.5`)
	})
}

// TestWhatDoesNotFitIsCounted: a request that was too long, and the shorter one after it.
func TestWhatDoesNotFitIsCounted(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		served := counting(w)
		w.Model.On("hello", ot.Bill(assistant.Usage{InputTokens: 7, OutputTokens: 1}, overflow()), ot.Say("It fits."))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(10 * time.Second)
		w.Chat.Find("It fits.")
		served(`bot_tokens_total{kind="input",model="script-1",provider="scripted"} 17`,
			`bot_tokens_total{kind="output",model="script-1",provider="scripted"} 6`)
	})
}
