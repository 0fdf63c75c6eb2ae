package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant/assistanttest"
	"remote-agent/internal/assistant/loop"
	"remote-agent/internal/messages"
)

// TestSignedCalls: Gemini signs the first of the calls that it makes together, and refuses
// them without.
func TestSignedCalls(t *testing.T) {
	t.Parallel()
	const refusal = `[{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts.","status":"INVALID_ARGUMENT"}}]`
	type signed struct {
		ID    string          `json:"id"`
		Type  string          `json:"type"`
		Extra json.RawMessage `json:"extra_content"`
	}
	told := make(chan []string, 20) // by request, what comes with each of the model's calls
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Model    string `json:"model"`
			Messages []struct {
				ToolCalls []signed `json:"tool_calls"`
			} `json:"messages"`
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		var all []string
		rounds, missing := 0, false
		for _, m := range request.Messages {
			for i, c := range m.ToolCalls {
				all = append(all, c.Type+string(c.Extra))
				missing = missing || i == 0 && c.Extra == nil
			}
			rounds += min(len(m.ToolCalls), 1)
		}
		told <- all
		switch {
		case missing && request.Model == "test-model":
			fails(400, refusal)(w, r)
		case rounds >= 2:
			stream(text("done"), finish("stop"), done)(w, r)
		default:
			stream(
				fmt.Sprintf(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a%d","type":"function","function":{"name":"look","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s%d+/="}}}]}}]}`, rounds, rounds),
				call(1, fmt.Sprint("b", rounds), "look", fmt.Sprintf(`{"n":%d}`, rounds)), finish("tool_calls"), done)(w, r)
		}
	}))
	defer server.Close()
	m := newModel(t, server.URL)
	turn := question("Hi")
	turn.Host = &assistanttest.Host{Specs: []messages.ToolSpec{{Name: "look"}}}
	got := assistanttest.Collect(loop.New(m, loop.Config{}).Run(t.Context(), turn))
	s := func(n int) string { return fmt.Sprintf(`function{"google":{"thought_signature":"s%d+/="}}`, n) }
	for i, want := range [][]string{nil, {s(0), "function"}, {s(0), "function", s(1), "function"}} {
		if all := <-told; cmp.Diff(want, all) != "" {
			t.Errorf("request %d: %q, want %q", i+1, all, want)
		}
	}
	if got.Err != nil || got.Text != "done" {
		t.Fatalf("%q, %v", got.Text, got.Err)
	}
	turn.Array, turn.Model = append(append(turn.Array, got.Messages...), messages.NewText(messages.RoleUser, "And now?")), "other"
	if got := assistanttest.Collect(loop.New(m, loop.Config{}).Run(t.Context(), turn)); got.Err != nil {
		t.Error(got.Err)
	}
	if all := strings.Join(<-told, " "); all != "function function function function" {
		t.Errorf("another model is told %s", all)
	}
}

// TestReasoningDetails: OpenRouter sends in pieces what signs calls, and wants it back whole
// with them; Gemini refuses the calls without.
func TestReasoningDetails(t *testing.T) {
	t.Parallel()
	const refusal = `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"Gemini models require OpenRouter reasoning details to be preserved in each request. Upstream error: Function call is missing a thought_signature in functionCall parts."}}}`
	told := make(chan string, 20) // by request, what comes with the model's calls
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Model    string `json:"model"`
			Messages []struct {
				Role    string          `json:"role"`
				Details json.RawMessage `json:"reasoning_details"`
			} `json:"messages"`
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		all, said, missing := "", 0, false
		for _, m := range request.Messages {
			all += string(m.Details)
			if m.Role == "assistant" {
				said++
				missing = missing || m.Details == nil
			}
		}
		told <- all
		switch {
		case missing && request.Model == "test-model":
			fails(400, refusal)(w, r)
		case said > 0:
			stream(text("done"), finish("stop"), done)(w, r)
		default:
			stream(
				`{"choices":[{"delta":{"role":"assistant","content":"","reasoning":"Let","reasoning_details":[{"type":"reasoning.text","text":"Let","format":"f-v1","index":0}]}}]}`,
				`{"choices":[{"delta":{"reasoning":" me","reasoning_details":[{"type":"reasoning.text","text":" me","index":0}]}}]}`,
				`{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":null,"signature":"s+/=","index":0}]}}]}`,
				call(0, "a", "look", "{}"), call(1, "b", "look", `{"n":1}`),
				`{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"d1","id":"a","index":0},{"type":"reasoning.encrypted","data":"d2","id":"b","index":0}]}}]}`,
				finish("tool_calls"), done)(w, r)
		}
	}))
	defer server.Close()
	m := newModel(t, server.URL)
	turn := question("Hi")
	turn.Host = &assistanttest.Host{Specs: []messages.ToolSpec{{Name: "look"}}}
	got := assistanttest.Collect(loop.New(m, loop.Config{}).Run(t.Context(), turn))
	if got.Err != nil || got.Text != "done" || got.Thoughts != "Let me" {
		t.Fatalf("%q, %q, %v", got.Text, got.Thoughts, got.Err)
	}
	const want = `[{"type":"reasoning.text","format":"f-v1","index":0,"text":"Let me","signature":"s+/="},` +
		`{"type":"reasoning.encrypted","id":"a","index":0,"data":"d1"},{"type":"reasoning.encrypted","id":"b","index":0,"data":"d2"}]`
	if first, second := <-told, <-told; first != "" || second != want {
		t.Errorf("the model is told %s, then %s; want %s", first, second, want)
	}
	turn.Array, turn.Model = append(append(turn.Array, got.Messages...), messages.NewText(messages.RoleUser, "And now?")), "other"
	if got := assistanttest.Collect(loop.New(m, loop.Config{}).Run(t.Context(), turn)); got.Err != nil {
		t.Error(got.Err)
	}
	if all := <-told; all != "" {
		t.Errorf("another model is told %s", all)
	}
}
