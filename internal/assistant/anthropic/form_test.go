package anthropic_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"remote-agent/internal/assistant/anthropic"
	"remote-agent/internal/fault"
)

// TestFormOfEachModel has models that do not take what is set for all of them. Each gets
// what it takes in its place, and after the first request at once.
func TestFormOfEachModel(t *testing.T) {
	t.Parallel()
	const (
		noAdaptive = "adaptive thinking is not supported on this model"
		noBudget   = `"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`
		noEffort   = "This model does not support the effort parameter."
	)
	const adaptive, small, large = `{"type":"adaptive"}`, `{"type":"enabled","budget_tokens":2048}`, `{"type":"enabled","budget_tokens":8192}`
	tests := map[string]struct {
		budget  int
		effort  string
		refuses [][2]string // a piece of a body, and what the model says of it
		want    []string    // the thinking and the effort of each request of two turns
		blames  string      // what the error of a turn is about
	}{
		"takes a budget only": {
			budget: anthropic.ThinkingAdaptive, refuses: [][2]string{{adaptive, noAdaptive}}, want: []string{adaptive, large, large},
		},
		"takes no budget": {budget: 2048, refuses: [][2]string{{small, noBudget}}, want: []string{small, adaptive, adaptive}},
		"does not think": {
			budget: 2048, refuses: [][2]string{{adaptive, noAdaptive}, {small, "thinking is not supported on this model"}},
			want: []string{small, adaptive, "", ""},
		},
		"takes no effort": {effort: "high", refuses: [][2]string{{"output_config", noEffort}}, want: []string{" high", "", ""}},
		"does not know the field": {
			effort: "high", refuses: [][2]string{{"output_config", "output_config: Extra inputs are not permitted"}}, want: []string{" high", "", ""},
		},
		"takes neither": {
			budget: anthropic.ThinkingAdaptive, effort: "max", refuses: [][2]string{{adaptive, noAdaptive}, {"output_config", noEffort}},
			want: []string{adaptive + " max", large + " max", large, large},
		},
		"takes both": {budget: anthropic.ThinkingAdaptive, effort: "max", want: []string{adaptive + " max", adaptive + " max"}},
		"takes no form, of its thinking": {
			budget: 2048, refuses: [][2]string{{"messages", noBudget}},
			want: []string{small, adaptive, "", small, adaptive, ""}, blames: "ANTHROPIC_THINKING_TOKENS",
		},
		"takes no form, of its effort": {
			effort: "low", refuses: [][2]string{{"messages", noEffort}}, want: []string{" low", "", " low", ""}, blames: "ANTHROPIC_EFFORT",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked forms
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asked.note(body)
				for _, refused := range tt.refuses {
					if bytes.Contains(body, []byte(refused[0])) && !bytes.Contains(body, []byte(`"model":"other"`)) {
						e, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": refused[1]}})
						fails(400, string(e))(w, r)
						return
					}
				}
				stream(begin, open, text("yes"), closed, endTurn, stop)(w, r)
			}))
			t.Cleanup(server.Close)
			var logged bytes.Buffer
			m, err := anthropic.New(anthropic.Config{
				APIKey: testKey, BaseURL: server.URL, Model: testModel, ThinkingBudget: tt.budget, Effort: tt.effort,
				MaxTokens: 16384, Log: slog.New(slog.NewTextHandler(&logged, nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(m.CloseIdleConnections)
			for range 2 {
				got := ask(t.Context(), m, question("Hi"))
				if tt.blames != "" {
					if !fault.Is(got.Err, fault.Unsupported) || !strings.Contains(fault.Public(got.Err), tt.blames) {
						t.Errorf("error %v, want one about %s", got.Err, tt.blames)
					}
				} else if got.Err != nil || got.Text != "yes" {
					t.Errorf("%q, %v", got.Text, got.Err)
				}
			}
			if got := asked.all(); !slices.Equal(got, tt.want) {
				t.Errorf("asked for %q, want %q", got, tt.want)
			}
			if changes := strings.Count(logged.String(), "in another form"); tt.blames == "" && changes != len(tt.want)-2 {
				t.Errorf("%d changes of the form were logged, want %d: %s", changes, len(tt.want)-2, logged.String())
			}

			other := question("Hi")
			other.Model = "other"
			ask(t.Context(), m, other)
			if got := asked.all(); got[len(got)-1] != tt.want[0] {
				t.Errorf("another model was asked for %q, want %q", got[len(got)-1], tt.want[0])
			}
		})
	}
}

// forms are the thinking and the effort that requests asked for.
type forms struct {
	mu   sync.Mutex // guards list
	list []string
}

func (f *forms) note(body []byte) {
	var r struct {
		Thinking     json.RawMessage `json:"thinking"`
		OutputConfig struct {
			Effort string `json:"effort"`
		} `json:"output_config"`
	}
	_ = json.Unmarshal(body, &r)
	form := string(r.Thinking)
	if r.OutputConfig.Effort != "" {
		form += " " + r.OutputConfig.Effort
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, form)
}

func (f *forms) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.list)
}
