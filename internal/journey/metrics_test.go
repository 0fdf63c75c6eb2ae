package journey_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/waittest"
)

// figures returns what /metrics says.
func (w *world) figures() string {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx(), http.MethodGet, "http://"+w.addr+"/metrics", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(body)
}

// counts waits until /metrics has all of the lines, and has none that contain what would name
// somebody or something.
func (w *world) counts(lines ...string) {
	w.t.Helper()
	var text string
	waittest.Until(w.t, "what happened is in the figures", func() bool {
		text = w.figures()
		for _, line := range lines {
			if !strings.Contains(text, "\n"+line) {
				return false
			}
		}
		return true
	})
	for _, named := range []string{`"` + itoa(ann), "telegram/", "acme", "invented"} {
		if strings.Contains(text, named) {
			w.t.Errorf("the figures name %q", named)
		}
	}
}

// TestTheFiguresCount a turn, a request that failed, and decisions of people.
func TestTheFiguresCount(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(sumRepo)
		w.with(map[string]string{"PATH": os.Getenv("PATH"), "MODEL_SMART": "openai:gpt-5-mini"}).start()
		w.counts(`bot_runs_stalled{reason="model"} 0`, `bot_runs_active 0`)
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")

		w.ai.Enqueue(openai.Text("hello"))
		w.says(ann, "hi")
		w.seesText(ann, "hello")
		w.settles()
		w.counts(`bot_runs_total{assistant="openai",outcome="answered",trigger="message"} 1`,
			`bot_run_seconds_count{assistant="openai",outcome="answered",trigger="message"} 1`,
			`bot_runs_total{assistant="openai",outcome="answered",trigger="command"} 1`,
			`bot_provider_requests_total{model="test-model",outcome="ok",provider="openai"} 1`,
			`bot_provider_first_token_seconds_count{model="test-model",provider="openai"} 1`)

		w.ai.Enqueue(openai.Fail(400, "invalid_request_error", "", "that is no request"))
		w.says(ann, "this will fail")
		w.seesText(ann, "✖")
		w.settles()
		w.counts(`bot_runs_total{assistant="openai",outcome="failed",trigger="message"} 1`,
			`bot_provider_requests_total{model="test-model",outcome="invalid",provider="openai"} 1`)

		w.ai.Enqueue(openai.Calls(call("bash", `{"command":"echo x"}`)), openai.Text("It said x."))
		w.says(ann, "run it")
		w.seesText(ann, "✋", "a-1")
		w.says(ann, "/approve a-1")
		w.seesText(ann, "It said x.")
		w.ai.Enqueue(openai.Calls(call("bash", `{"command":"echo y"}`)), openai.Text("As you like."))
		w.says(ann, "run that")
		w.seesText(ann, "✋", "a-2")
		w.says(ann, "/deny a-2")
		w.seesText(ann, "As you like.")
		w.settles()
		w.counts(`bot_approvals_total{outcome="approved"} 1`, `bot_approvals_total{outcome="denied"} 1`,
			`bot_approval_wait_seconds_count{outcome="approved"} 1`,
			`bot_tool_calls_total{outcome="ok",tool="bash"} 1`, `bot_tool_seconds_count{outcome="ok",tool="bash"} 1`)

		for _, chosen := range []string{"smart", "invented-by-ann"} {
			w.says(ann, "/model "+chosen)
			w.seesText(ann, "odel")
			w.says(ann, "say "+chosen)
			w.seesText(ann, "echo: say "+chosen)
		}
		w.settles()
		w.counts(`bot_provider_requests_total{model="gpt-5-mini",outcome="ok",provider="openai"} 1`,
			`bot_provider_requests_total{model="other",outcome="ok",provider="openai"} 1`,
			`bot_cost_usd_total{model="gpt-5-mini",provider="openai"} 0.`)
	})
}
