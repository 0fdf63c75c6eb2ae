package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/assistanttest"
	emulated "remote-agent/internal/emulator/openai"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

func TestCallsAreAssembled(t *testing.T) {
	t.Parallel()
	bare := func(calls ...string) string { // with neither ids nor indices
		return `{"choices":[{"index":0,"delta":{"tool_calls":[` + strings.Join(calls, ",") + `]}}]}`
	}
	function := func(name, args string) string {
		return fmt.Sprintf(`{"function":{"name":%q,"arguments":%q}}`, name, args)
	}
	legacy := func(name, args string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"function_call":{"name":%q,"arguments":%q}}}]}`, name, args)
	}
	tests := map[string]struct {
		events []string
		want   []messages.Block
	}{
		"neither ids nor indices, at once": {
			[]string{bare(function("read", `{"a":1}`), function("read", `{"a":2}`))},
			[]messages.Block{messages.ToolCall{Name: "read", Arguments: `{"a":1}`}, messages.ToolCall{Name: "read", Arguments: `{"a":2}`}},
		},
		"neither ids nor indices, one by one": {
			[]string{bare(function("read", `{"a":1}`)), bare(function("read", `{"a":2}`)), bare(function("list", ``)), bare(function("read", `{}`))},
			[]messages.Block{
				messages.ToolCall{Name: "read", Arguments: `{"a":1}`}, messages.ToolCall{Name: "read", Arguments: `{"a":2}`},
				messages.ToolCall{Name: "list"}, messages.ToolCall{Name: "read", Arguments: `{}`},
			},
		},
		"ids without indices": {
			[]string{
				bare(`{"id":"c1","function":{"name":"read","arguments":"{}"}}`, `{"id":"c2","function":{"name":"list","arguments":""}}`),
				bare(`{"id":"c2","function":{"arguments":"{}"}}`),
			},
			[]messages.Block{messages.ToolCall{ID: "c1", Name: "read", Arguments: `{}`}, messages.ToolCall{ID: "c2", Name: "list", Arguments: `{}`}},
		},
		"neither ids nor indices, in pieces": {
			[]string{bare(function("read", "")), bare(function("", `{"a"`)), bare(function("read", `:1}`)), bare(function("read", ""))},
			[]messages.Block{messages.ToolCall{Name: "read", Arguments: `{"a":1}`}},
		},
		"arguments as an object": {
			[]string{bare(`{"id":"c1","function":{"name":"read","arguments":{"a":12345678901234567890,"b":["<"]}}}`)},
			[]messages.Block{messages.ToolCall{ID: "c1", Name: "read", Arguments: `{"a":12345678901234567890,"b":["\u003c"]}`}},
		},
		"a function call of the first kind": {
			[]string{text("I look."), legacy("read", ""), legacy("", `{"a":`), legacy("", `1}`)},
			[]messages.Block{messages.Text{Text: "I look."}, messages.ToolCall{Name: "read", Arguments: `{"a":1}`}},
		},
		"pieces by index": {
			[]string{text("I look."), call(0, "c1", "read", ""), call(1, "c2", "list", `{"a":`), call(0, "", "", `{"path"`), call(1, "", "", `1}`), call(0, "", "", `:"x"}`)},
			[]messages.Block{messages.Text{Text: "I look."}, messages.ToolCall{ID: "c1", Name: "read", Arguments: `{"path":"x"}`}, messages.ToolCall{ID: "c2", Name: "list", Arguments: `{"a":1}`}},
		},
		"every index 0": {
			[]string{call(0, "c1", "read", "{}"), call(0, "c2", "list", "{}")},
			[]messages.Block{messages.ToolCall{ID: "c1", Name: "read", Arguments: `{}`}, messages.ToolCall{ID: "c2", Name: "list", Arguments: `{}`}},
		},
		"every index 0, without ids": {
			[]string{call(0, "", "read", `{"a":1}`), call(0, "", "read", `{"a"`), call(0, "", "", `:2}`), call(0, "", "list", ``)},
			[]messages.Block{messages.ToolCall{Name: "read", Arguments: `{"a":1}`}, messages.ToolCall{Name: "read", Arguments: `{"a":2}`}, messages.ToolCall{Name: "list"}},
		},
		"another id in every piece": { // gateways that make one up for each
			[]string{call(0, "c1", "read", ``), call(0, "x1", "", `{"a"`), call(0, "x2", "", `:1}`), call(1, "c2", "list", `{`), call(1, "x3", "", `}`)},
			[]messages.Block{messages.ToolCall{ID: "c1", Name: "read", Arguments: `{"a":1}`}, messages.ToolCall{ID: "c2", Name: "list", Arguments: `{}`}},
		},
		"index 0 for the head of the second call only": { // DeepSeek behind Ollama's cloud
			[]string{call(0, "c1", "read", `{"a":1}`), call(0, "c2", "list", `{"a"`), call(1, "", "", `:2}`)},
			[]messages.Block{messages.ToolCall{ID: "c1", Name: "read", Arguments: `{"a":1}`}, messages.ToolCall{ID: "c2", Name: "list", Arguments: `{"a":2}`}},
		},
		"id in every piece": {
			[]string{call(0, "c1", "read", `{"a"`), call(0, "c1", "read", `:1}`)},
			[]messages.Block{messages.ToolCall{ID: "c1", Name: "read", Arguments: `{"a":1}`}},
		},
	}
	for name, tt := range tests {
		for _, reason := range []string{"tool_calls", "stop", "function_call"} { // some servers say stop
			t.Run(name+" "+reason, func(t *testing.T) {
				t.Parallel()
				got := completeOnce(t, stream(append(tt.events, finish(reason), usage, done)...))
				if got.Err != nil || got.Finished == nil || len(got.Messages) != 1 {
					t.Fatalf("an answer with calls is a success: %+v", got)
				}
				for i, b := range got.Messages[0].Blocks {
					if c, is := b.(messages.ToolCall); is && strings.HasPrefix(c.ID, "call_") { // it was made up
						c.ID = ""
						got.Messages[0].Blocks[i] = c
					}
				}
				if diff := cmp.Diff(tt.want, got.Messages[0].Blocks); diff != "" {
					t.Errorf("message (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// completeOnce asks the model without the loop.
func completeOnce(t *testing.T, handler http.HandlerFunc) result {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	request := assistant.Request{Array: question("Hi").Array, Tools: assistanttest.ToolSpecs()}
	return assistanttest.Collect(newModel(t, server.URL).Complete(t.Context(), request))
}

func TestCallsWithoutIDsGetOne(t *testing.T) {
	t.Parallel()
	got := completeOnce(t, stream(call(0, "", "read", `{}`), call(1, "", "read", `{}`), finish("tool_calls"), done))
	if got.Err != nil || len(got.Messages) != 1 {
		t.Fatalf("answer: %+v", got)
	}
	seen := map[string]bool{}
	for _, b := range got.Messages[0].Blocks {
		if c, ok := b.(messages.ToolCall); ok && messages.SafeID(c.ID) == c.ID {
			seen[c.ID] = true
		}
	}
	if len(seen) != 2 {
		t.Errorf("ids %v, want two", seen)
	}
}

func TestToolsOnTheWire(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ model, effort, public string }{
		"any model":                      {model: "test-model"},
		"a model with reasoning":         {model: "gpt-6-sol", effort: "none"},
		"a model that cannot be used so": {model: "gpt-6-astra", public: "OPENAI_MODEL"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var body []byte
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ = io.ReadAll(r.Body)
				backends[assistanttest.Reply](w, r)
			}))
			t.Cleanup(server.Close)
			turn := question("Hi")
			turn.Model = tt.model
			turn.Host = &assistanttest.Host{Specs: []messages.ToolSpec{
				{Name: "b", Description: "Does b.", Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}}}`)}, {Name: "a"},
			}}
			err := ask(t.Context(), newModel(t, server.URL), turn).Err
			if tt.public != "" {
				if !fault.Is(err, fault.Unsupported) || !strings.Contains(fault.Public(err), tt.public) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Tools    json.RawMessage `json:"tools"`
				Parallel json.RawMessage `json:"parallel_tool_calls"`
				Effort   string          `json:"reasoning_effort"`
			}
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatal(err)
			}
			const want = `[{"function":{"name":"b","description":"Does b.","parameters":{"type":"object","properties":{"x":{"type":"string"}}}},"type":"function"},` +
				`{"function":{"name":"a","parameters":{"type":"object","properties":{}}},"type":"function"}]`
			if string(got.Tools) != want || got.Parallel != nil || got.Effort != tt.effort {
				t.Errorf("tools %s, parallel %s, effort %q", got.Tools, got.Parallel, got.Effort)
			}
		})
	}
}

func TestSchemaThatIsNoJSONNamesTheTool(t *testing.T) {
	t.Parallel()
	turn := question("Hi")
	turn.Host = &assistanttest.Host{Specs: []messages.ToolSpec{{Name: "broken", Schema: json.RawMessage(`{"type":`)}}}
	err := ask(t.Context(), newModel(t, "http://127.0.0.1:1"), turn).Err
	if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "broken") {
		t.Errorf("error %v of kind %q", err, fault.KindOf(err))
	}
}

// TestHugeArguments has a model write 10 MB of arguments, in pieces and in lines
// that are too long.
func TestHugeArguments(t *testing.T) {
	t.Parallel()
	args := `{"content":"` + strings.Repeat("x", 10<<20) + `"}`
	tests := map[string]struct {
		pieces int
		kind   fault.Kind
	}{"in pieces": {pieces: 6}, "at once": {pieces: 2, kind: fault.Unavailable}}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, server := emulate(t, emulated.Echo)
			server.Enqueue(emulated.Calls(emulated.Call{ID: "c1", Name: "change", Arguments: args, Pieces: tt.pieces}))
			host := &assistanttest.Host{Specs: assistanttest.ToolSpecs()}
			turn := question("Write it.")
			turn.Host = host
			got := ask(t.Context(), m, turn)
			if fault.KindOf(got.Err) != tt.kind || len(host.Ran()) > 0 {
				t.Fatalf("error %v, %d calls ran", got.Err, len(host.Ran()))
			}
			if tt.kind == "" {
				requests := server.Requests()
				last := requests[len(requests)-1]
				if len(last.Body) > 10_000 || !strings.Contains(string(last.Body), "the limit is 1048576") {
					t.Errorf("the second request has %d bytes: %.2000s", len(last.Body), last.Body)
				}
			}
			turn.Array = append(append(turn.Array, got.Messages...), messages.NewText(messages.RoleUser, "And now?"))
			if next := ask(t.Context(), m, turn); next.Err != nil || !strings.Contains(next.Text, "And now?") {
				t.Errorf("the next turn: %+v", next)
			}
		})
	}
}

// TestInvalidUTF8InAStream has text and arguments with bytes that are no UTF-8.
func TestInvalidUTF8InAStream(t *testing.T) {
	t.Parallel()
	m, server := emulate(t, emulated.Echo)
	server.Enqueue(emulated.Reply(
		emulated.Raw("data: {\"choices\":[{\"delta\":{\"content\":\"a\xffb\"}}]}\n\n"),
		emulated.Raw("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\xff\",\"type\":\"function\",\"function\":{\"name\":\"change\",\"arguments\":\"{\\\"path\\\":\\\"\xfe\\\"}\"}}]}}]}\n\n"),
	))
	host := &assistanttest.Host{Specs: assistanttest.ToolSpecs()}
	turn := question("Hi")
	turn.Host = host
	got := ask(t.Context(), m, turn)
	if got.Err != nil || len(host.Ran()) != 1 || host.Ran()[0].Arguments != "{\"path\":\"\uFFFD\"}" {
		t.Fatalf("run: %+v, ran %+v", got, host.Ran())
	}
	if refusals := server.Refusals(); len(refusals) > 0 {
		t.Errorf("the API refused requests: %+v", refusals)
	}
}
