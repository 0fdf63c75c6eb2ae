package app

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"remote-agent/internal/assistant"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/metrics"
)

// scripted is a model API that says what it was told to.
type scripted struct {
	events []assistant.Event
	err    error
}

func (scripted) Name() assistant.Name { return "openai" }

func (scripted) Model() string { return "small" }

func (s scripted) Complete(context.Context, assistant.Request) iter.Seq2[assistant.Event, error] {
	return func(yield func(assistant.Event, error) bool) {
		for _, e := range s.events {
			if !yield(e, nil) {
				return
			}
		}
		if s.err != nil {
			yield(nil, s.err)
		}
	}
}

// TestRequestsAreMetered by what became of them, and what they used where nobody else counts it.
func TestRequestsAreMetered(t *testing.T) {
	t.Parallel()
	text, done := assistant.TextDelta{Text: "a"}, assistant.MessageDone{Message: messages.NewText(messages.RoleAssistant, "a")}
	used := assistant.Usage{InputTokens: 1_000_000, CachedTokens: 10}
	end := assistant.Finished{Usage: used, Model: "gpt-5-mini-2025-08-07"}
	broken := errors.New("it broke")
	for name, tt := range map[string]struct {
		events  []assistant.Event
		err     error
		model   string // that is asked for
		stop    bool   // whoever listens goes away after the first event
		cancels bool   // the turn has ended
		uses    bool
		want    string
		tokens  bool
	}{
		"Answered":       {events: []assistant.Event{text, done, end}, want: `model="small",outcome="ok"`},
		"Other":          {events: []assistant.Event{text, done, end}, model: "large", want: `model="large",outcome="ok"`},
		"AnsweredOnce":   {events: []assistant.Event{text, done, end}, uses: true, want: `model="small",outcome="ok"`, tokens: true},
		"Billed":         {events: []assistant.Event{assistant.UsageUpdated(end)}, err: broken, uses: true, want: `model="small",outcome="internal"`, tokens: true},
		"RateLimited":    {err: fault.New(fault.RateLimited, "Slow down."), want: `model="small",outcome="rate_limited"`},
		"TooLong":        {err: assistant.Overflow(0, broken), want: `model="small",outcome="overflow"`},
		"QuotaUsedUp":    {err: fault.New(fault.Exhausted, "No money."), want: `model="small",outcome="exhausted"`},
		"CutOff":         {events: []assistant.Event{text}, want: `model="small",outcome="unavailable"`},
		"NobodyListens":  {events: []assistant.Event{text, done, end}, stop: true, want: `model="small",outcome="canceled"`},
		"Stopped":        {events: []assistant.Event{text}, err: fault.New(fault.Unavailable, "Gone."), cancels: true, want: `model="small",outcome="canceled"`},
		"StoppedAtOnce":  {cancels: true, want: `model="small",outcome="canceled"`},
		"StoppedTooLate": {events: []assistant.Event{text, done, end}, cancels: true, want: `model="small",outcome="ok"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := metrics.New("test")
			m.NameModels(func(model string) string { return model })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.cancels {
				cancel()
			}
			var got []assistant.Event
			var failed error
			for e, err := range (&meter{scripted{events: tt.events, err: tt.err}, m, tt.uses}).Complete(ctx, assistant.Request{Model: tt.model}) {
				if failed = err; err == nil {
					got = append(got, e)
				}
				if tt.stop {
					break
				}
			}
			if !tt.stop && (len(got) != len(tt.events) || !errors.Is(failed, tt.err)) {
				t.Errorf("%d events and %v came through", len(got), failed)
			}
			served := httptest.NewRecorder()
			m.Handler().ServeHTTP(served, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
			ours, _, _ := strings.Cut(served.Body.String(), "\n# HELP go_")
			if strings.Count(ours, "\nbot_provider_requests_total{") != 1 || !strings.Contains(ours, "\nbot_provider_requests_total{"+tt.want+`,provider="openai"} 1`) {
				t.Errorf("no %s alone in\n%s", tt.want, ours)
			}
			if got := strings.Contains(ours, `bot_tokens_total{kind="input",model="small",provider="openai"} 1000000`) &&
				strings.Contains(ours, `bot_cost_usd_total{model="small",provider="openai"} 0.`); got != tt.tokens {
				t.Errorf("tokens and dollars are counted: %t in\n%s", got, ours)
			}
		})
	}
}

// TestModelsAreNamed as the price list or the operator names them, and no other way.
func TestModelsAreNamed(t *testing.T) {
	t.Parallel()
	d := &daemon{roster: &roster{all: map[assistant.Name]assistant.Assistant{"small": namedModel("my-model")}}}
	d.live.Store(&config.Config{Tiers: map[string]config.Tier{"fast": {Assistant: "small", Model: "their-model"}}})
	for model, want := range map[string]string{
		"openai/gpt-5-mini-2025-08-07": "gpt-5-mini", "my-model": "my-model", "their-model": "their-model", "her-model": "other", "": "other",
	} {
		if got := d.nameModel(model); got != want {
			t.Errorf("%q is named %q, want %q", model, got, want)
		}
	}
}

// namedModel is an assistant that asks a model of this name.
type namedModel string

func (namedModel) Name() assistant.Name { return "small" }

func (n namedModel) Model() string { return string(n) }

func (namedModel) Run(context.Context, assistant.Turn) iter.Seq2[assistant.Event, error] { return nil }
