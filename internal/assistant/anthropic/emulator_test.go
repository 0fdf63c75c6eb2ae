package anthropic_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/anthropic"
	"remote-agent/internal/assistant/assistanttest"
	emulated "remote-agent/internal/emulator/anthropic"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/messages/messagestest"
)

const (
	testKey   = "sk-ant-canary_0123456789abcdef"
	testModel = "test-model"
)

var scripts = map[assistanttest.Scenario]emulated.Script{
	assistanttest.Reply: emulated.Echo,
	assistanttest.Slow: func(emulated.Request) emulated.Response {
		var steps []emulated.Step
		for range 1000 {
			steps = append(steps, emulated.Delta("again "), emulated.Pause(20*time.Millisecond))
		}
		return emulated.Reply(steps...)
	},
	assistanttest.Calls: func(emulated.Request) emulated.Response {
		r := emulated.Text("I look.")
		for _, c := range assistanttest.CalledTools() {
			r = r.Then(emulated.ToolUse(emulated.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments, Pieces: 3}))
		}
		return r
	},
	assistanttest.CutCalls:     always(emulated.Reply(emulated.Delta("I look."), emulated.Raw(openCall), emulated.Cut())),
	assistanttest.Cut:          always(emulated.Reply(emulated.Delta("Hello"), emulated.Cut())),
	assistanttest.Unauthorized: always(emulated.Fail(401, "authentication_error", "invalid x-api-key "+testKey)),
	assistanttest.RateLimited:  always(emulated.RateLimited(7 * time.Second)),
	assistanttest.Quota:        always(emulated.SpendLimit()),
	assistanttest.Unavailable:  always(emulated.Overloaded()),
	assistanttest.Overflow:     always(emulated.PromptTooLong(210000, 200000)),
	assistanttest.Broken:       always(emulated.Reply(emulated.Delta("Hello"), emulated.Ping(3), emulated.StreamError("overloaded_error", "Overloaded, key "+testKey))),
}

// openCall begins a call and does not end it.
const openCall = `event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"change","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\"x"}}

`

func always(r emulated.Response) emulated.Script {
	return func(emulated.Request) emulated.Response { return r }
}

func emulate(tb testing.TB, script emulated.Script, change ...func(*anthropic.Config)) (*anthropic.Model, *emulated.Server) {
	tb.Helper()
	server := emulated.New(emulated.Options{APIKey: testKey})
	server.Script(script)
	if err := server.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(server.Close)
	config := anthropic.Config{APIKey: testKey, BaseURL: server.URL(), Model: testModel}
	for _, c := range change {
		c(&config)
	}
	m, err := anthropic.New(config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(m.CloseIdleConnections)
	return m, server
}

func TestModels(t *testing.T) {
	t.Parallel()
	server := emulated.New(emulated.Options{APIKey: testKey, Models: []string{"one", "two"}})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for key, want := range map[string]string{testKey: "one two", "sk-wrong": ""} {
		m, err := anthropic.New(anthropic.Config{APIKey: key, BaseURL: server.URL(), Model: testModel})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.CloseIdleConnections)
		if names, _ := m.Models(t.Context()); strings.Join(names, " ") != want {
			t.Errorf("models %q", names)
		}
	}
}

func question(text string) assistant.Request {
	return assistant.Request{Conversation: "c", Run: "r", System: "Be brief.", Array: []messages.Message{messages.NewText(messages.RoleUser, text)}}
}

func TestContract(t *testing.T) {
	assistanttest.ExerciseModel(t, assistanttest.ModelHarness{
		Secrets: []string{testKey},
		New: func(t *testing.T, s assistanttest.Scenario) (assistanttest.ModelSubject, bool) {
			t.Helper()
			script, ok := scripts[s]
			if !ok {
				return assistanttest.ModelSubject{}, false
			}
			m, server := emulate(t, script)
			return assistanttest.ModelSubject{
				Model: m, Request: question("Hi"),
				Bodies: func() [][]byte { return bodies(server) },
				Close: func() {
					m.CloseIdleConnections()
					server.Close()
					checkRefusals(t, server)
				},
			}, true
		},
	})
}

// bodies returns what was sent, without the marks of the cache: they are no part
// of the prefix.
func bodies(server *emulated.Server) [][]byte {
	var all [][]byte
	for _, r := range server.Requests() {
		all = append(all, bytes.ReplaceAll(r.Body, []byte(`,"cache_control":{"type":"ephemeral"}`), nil))
	}
	return all
}

func checkRefusals(tb testing.TB, server *emulated.Server) {
	tb.Helper()
	for _, r := range server.Refusals() {
		tb.Errorf("the API refused a request: %s\n%s", r.Error.Message, r.Body)
	}
}

// turn plays one round after another, as a tool loop does.
type turn struct {
	t     *testing.T
	model *anthropic.Model
	req   assistant.Request
}

func (tt *turn) ask() result {
	tt.t.Helper()
	tt.req.Array = messages.Repair(tt.req.Array)
	got := ask(tt.t.Context(), tt.model, tt.req)
	if got.Err != nil {
		tt.t.Fatal(got.Err)
	}
	// What is stored and read back must still be taken.
	for _, m := range got.Messages {
		records, err := messages.ToRecords(m)
		if err != nil {
			tt.t.Fatal(err)
		}
		for i := range records {
			records[i].Seq = int64(len(tt.req.Array) + 1)
		}
		again, err := messagestest.JoinRecords(records)
		if err != nil {
			tt.t.Fatal(err)
		}
		tt.req.Array = append(tt.req.Array, again...)
	}
	return got
}

func (tt *turn) results(content ...string) {
	open := messages.OpenCalls(tt.req.Array)
	if len(open) != len(content) {
		tt.t.Fatalf("%d open calls, want %d", len(open), len(content))
	}
	for i, c := range open {
		tt.req.Array = append(tt.req.Array, messages.NewToolResult(c.ID, content[i], false))
	}
}

func (tt *turn) say(text string) {
	tt.req.Array = append(tt.req.Array, messages.NewText(messages.RoleUser, text))
}

// TestRoundsWithThinkingAndCache plays two turns with tools. The emulator
// refuses thinking that changed, and says what its cache read.
func TestRoundsWithThinkingAndCache(t *testing.T) {
	t.Parallel()
	for name, budget := range map[string]int{"budget": 2048, "adaptive": anthropic.ThinkingAdaptive} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, server := emulate(t, emulated.Echo, func(c *anthropic.Config) { c.ThinkingBudget = budget })
			server.Enqueue(
				emulated.Reply(emulated.Thought("a <b> & \"ç\"\n"), emulated.Thought("d"), emulated.Redacted(), emulated.Delta("I look."),
					emulated.ToolUse(emulated.Call{ID: "toolu_1", Name: "look", Arguments: `{"path":"a"}`}),
					emulated.ToolUse(emulated.Call{ID: "toolu_2", Name: "peek", Arguments: `{}`})),
				emulated.Reply(emulated.Thought("more"), emulated.ToolUse(emulated.Call{ID: "toolu_3", Name: "look", Arguments: `{"path":"b"}`})),
				emulated.Reply(emulated.Thought("done"), emulated.Delta("It is fine.")),
			)
			tt := &turn{t, m, question("Look at " + strings.Repeat("all of it ", 50))}
			tt.req.Tools = assistanttest.ToolSpecs()
			if got := tt.ask(); got.Thoughts != "a <b> & \"ç\"\nd" || got.Text != "I look." || got.Finished.Usage.WrittenTokens == 0 {
				t.Errorf("first round: %+v", got)
			}
			tt.results("content of a", "files")
			second := tt.ask()
			tt.results("content of b")
			third := tt.ask()
			tt.say("Thanks. Anything else?")
			fourth := tt.ask()

			checkRefusals(t, server)
			used := []emulated.Usage{}
			for _, r := range server.Requests() {
				used = append(used, r.Usage)
			}
			for i, got := range []result{second, third, fourth} {
				before, now := used[i], used[i+1]
				if now.CacheRead != before.CacheRead+before.CacheWrite || now.Input != 0 {
					t.Errorf("request %d: %+v after %+v, the prefix is not stable", i+2, now, before)
				}
				u := got.Finished.Usage
				if int(u.CachedTokens) != now.CacheRead || int(u.WrittenTokens) != now.CacheWrite || int(u.InputTokens) != now.CacheRead+now.CacheWrite {
					t.Errorf("request %d: usage %+v, the API says %+v", i+2, u, now)
				}
			}
			last := server.Requests()[3]
			if n := strings.Count(string(last.Body), `"type":"thinking"`); n != 3 {
				t.Errorf("%d thinking blocks came back, want all 3", n)
			}
			if n := strings.Count(string(last.Body), `"type":"redacted_thinking"`); n != 1 {
				t.Errorf("%d redacted blocks came back, want 1", n)
			}
		})
	}
}

// TestThinkingOfOthersIsLeftOut checks another model of the provider, another
// provider, and thinking without a signature.
func TestThinkingOfOthersIsLeftOut(t *testing.T) {
	t.Parallel()
	m, server := emulate(t, emulated.Echo)
	server.Enqueue(emulated.Reply(emulated.Thought("own thought"), emulated.ToolUse(emulated.Call{ID: "toolu_1", Name: "look", Arguments: `{}`})))
	tt := &turn{t, m, question("Look.")}
	tt.req.Tools = assistanttest.ToolSpecs()
	tt.ask()
	tt.req.Array[1].Blocks = append([]messages.Block{
		messages.Thinking{Text: "unsigned", Provider: "anthropic", Model: testModel},
		messages.Thinking{Text: "foreign", Signature: "x", Provider: "openai", Model: testModel},
	}, tt.req.Array[1].Blocks...)
	tt.results("x")
	tt.ask()
	tt.req.Model = "other-model"
	tt.say("And now?")
	tt.ask()
	checkRefusals(t, server)
	for i, want := range []bool{false, true, false} {
		body := string(server.Requests()[i].Body)
		if got := strings.Contains(body, "own thought"); got != want || strings.Contains(body, "unsigned") || strings.Contains(body, "foreign") {
			t.Errorf("request %d: own thinking %v, want %v: %s", i+1, got, want, body)
		}
	}
}

// TestThinkingThatIsRefusedIsLeftOut has a stored thought that changed. The
// conversation must not be stuck with it.
func TestThinkingThatIsRefusedIsLeftOut(t *testing.T) {
	t.Parallel()
	m, server := emulate(t, emulated.Echo, func(c *anthropic.Config) { c.ThinkingBudget = 1024 })
	req := question("Look.")
	req.Array = append(req.Array, messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{
		messages.Thinking{Text: "hm", Signature: "bm90IHRoZSBzaWduYXR1cmU=", Provider: "anthropic", Model: testModel}, messages.Text{Text: "Well."},
	}}, messages.NewText(messages.RoleUser, "Go on."))
	got := ask(t.Context(), m, req)
	if got.Err != nil || got.Text != "echo: Go on. [3 messages]" {
		t.Errorf("%+v", got)
	}
	if refused, sent := server.Refusals(), server.Requests(); len(refused) != 1 || len(sent) != 1 || strings.Contains(string(sent[0].Body), "thinking") {
		t.Errorf("%d refused and %d answered requests", len(refused), len(sent))
	}
}

func TestPausedTurnIsContinued(t *testing.T) {
	t.Parallel()
	m, server := emulate(t, emulated.Echo)
	search := `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}`
	found := `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`
	server.Enqueue(
		emulated.Reply(emulated.Thought("hm"), emulated.Delta("Searching. "), emulated.Block(search)).WithStop("pause_turn").WithUsage(10, 5),
		emulated.Reply(emulated.Block(found), emulated.Delta("Still. ")).WithStop("pause_turn").WithUsage(20, 6),
		emulated.Text("Found it.").WithUsage(30, 7),
	)
	got := ask(t.Context(), m, question("Search."))
	if got.Err != nil || got.Text != "Searching. Still. Found it." || len(got.Messages) != 1 {
		t.Fatalf("%+v", got)
	}
	want := []messages.Block{
		// It cannot go back: what came with it has no place in the array.
		messages.Thinking{Text: "hm", Provider: "anthropic", Model: testModel},
		messages.Text{Text: got.Text},
	}
	if diff := cmp.Diff(want, got.Messages[0].Blocks); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if u := got.Finished.Usage; u.InputTokens != 60 || u.OutputTokens != 18 {
		t.Errorf("usage %+v", u)
	}
	checkRefusals(t, server)
	server.Script(always(emulated.Text("On and on. ").WithStop("pause_turn")))
	if got := ask(t.Context(), m, question("Search.")); !fault.Is(got.Err, fault.Unavailable) || len(got.Messages) != 0 {
		t.Errorf("a turn without end: %+v", got)
	}
	if n := len(server.Requests()); n != 3+9 {
		t.Errorf("%d requests", n)
	}
}

func TestResetConnectionIsUnavailable(t *testing.T) {
	t.Parallel()
	m, _ := emulate(t, always(emulated.Reply(emulated.Delta("Hello"), emulated.Reset())))
	got := ask(t.Context(), m, question("Hi"))
	if !fault.Is(got.Err, fault.Unavailable) || len(got.Messages) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestUnfinishedAnswerIsEstimated: the API says only at the end how much was written.
func TestUnfinishedAnswerIsEstimated(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Because. ", 100)
	for name, steps := range map[string][]emulated.Step{
		"text":    {emulated.Delta(long), emulated.Cut()},
		"thought": {emulated.Thought(long), emulated.Cut()},
		"call":    {emulated.ToolUse(emulated.Call{ID: "toolu_1", Name: "look", Arguments: `{"path":"` + long[:900-11] + `"}`}), emulated.Cut()},
	} {
		m, _ := emulate(t, always(emulated.Reply(steps...)))
		got := ask(t.Context(), m, question("Hi"))
		if got.Err == nil || got.Used.OutputTokens != 300 || got.Used.InputTokens == 0 {
			t.Errorf("%s: used %+v, error %v", name, got.Used, got.Err)
		}
	}
}

// TestEndsOfAnswers plays the stop reasons, and errors of the emulator that the
// contract does not have.
func TestEndsOfAnswers(t *testing.T) {
	t.Parallel()
	call := emulated.ToolUse(emulated.Call{ID: "toolu_1", Name: "look", Arguments: `{"path":"x"}`})
	for name, tt := range map[string]struct {
		response emulated.Response
		text     string
		kind     fault.Kind
	}{
		"stop sequence":   {emulated.Text("yes").WithStop("stop_sequence"), "yes", ""},
		"unknown reason":  {emulated.Text("yes").WithStop("tea_time"), "yes", ""},
		"max tokens":      {emulated.Text("yes").Then(call).WithStop("max_tokens"), "yes\n\n*(cut off here: the model reached its output limit)*", ""},
		"cut code":        {emulated.Text("```go\nx").WithStop("max_tokens"), "```go\nx\n```\n\n*(cut off here: the model reached its output limit)*", ""},
		"unknown block":   {emulated.Reply(emulated.Delta("y"), emulated.Block(`{"type":"hologram","text":"!"}`), emulated.Delta("es")), "yes", ""},
		"unknown event":   {emulated.Reply(emulated.Delta("y"), emulated.Raw("event: x\ndata: {\"type\":\"x\"}\n\n: c\n\n"), emulated.Delta("es")), "yes", ""},
		"CRLF":            {emulated.Text("yes").WithCRLF(), "yes", ""},
		"cut by limit":    {emulated.Calls().Then(call).WithStop("max_tokens"), "", fault.Exhausted},
		"window":          {emulated.Text("yes").WithStop("model_context_window_exceeded"), "yes", fault.Exhausted},
		"refusal":         {emulated.Refuse("I "), "I ", fault.Invalid},
		"empty":           {emulated.Text(), "", fault.Unavailable},
		"blank":           {emulated.Text(" \n"), " \n", fault.Unavailable},
		"only thinking":   {emulated.Reply(emulated.Thought("hm")), "", fault.Unavailable},
		"no credit":       {emulated.NoCredit(), "", fault.Exhausted},
		"payment":         {emulated.Fail(402, "billing_error", "x"), "", fault.Exhausted},
		"too large":       {emulated.TooLarge(), "", fault.Exhausted},
		"window and max":  {emulated.Fail(400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length"), "", fault.Exhausted},
		"forbidden":       {emulated.Fail(403, "permission_error", "x"), "", fault.Unauthorized},
		"model":           {emulated.Fail(404, "not_found_error", "model: test-model"), "", fault.Unsupported},
		"server":          {emulated.ServerError(500), "", fault.Unavailable},
		"proxy":           {emulated.Page(502, "<html>"), "", fault.Unavailable},
		"filter":          {emulated.Fail(400, "invalid_request_error", "Output blocked by content filtering policy"), "", fault.Invalid},
		"budget":          {emulated.Fail(400, "invalid_request_error", "adaptive thinking is not supported on this model"), "", fault.Unsupported},
		"limit":           {emulated.Fail(400, "invalid_request_error", "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for m"), "", fault.Unsupported},
		"rate in stream":  {emulated.Text("y").Then(emulated.StreamError("rate_limit_error", "x")), "y", fault.RateLimited},
		"spend in stream": {emulated.Text("y").Then(emulated.StreamError("rate_limit_error", "enforced_spend_limit_reached")), "y", fault.Exhausted},
		"key in stream":   {emulated.Text("y").Then(emulated.StreamError("authentication_error", "x")), "y", fault.Unauthorized},
		"bad in stream":   {emulated.Text("y").Then(emulated.StreamError("invalid_request_error", "x")), "y", fault.Invalid},
		"new in stream":   {emulated.Text("y").Then(emulated.StreamError("brand_new_error", "x")), "y", fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, server := emulate(t, always(tt.response))
			got := ask(t.Context(), m, question("Hi"))
			if got.Text != tt.text || fault.KindOf(got.Err) != tt.kind {
				t.Errorf("text %q, error of kind %q (%v), want %q, %q", got.Text, fault.KindOf(got.Err), got.Err, tt.text, tt.kind)
			}
			if (tt.kind == "") != (len(got.Messages) == 1 && got.Finished != nil) {
				t.Errorf("%d messages, finished %v", len(got.Messages), got.Finished)
			}
			if begun := tt.text != "" || name == "cut by limit" || name == "empty" || name == "only thinking"; tt.kind != "" && begun != (got.Used.InputTokens > 0) {
				t.Errorf("used %+v", got.Used)
			}
			for _, m := range got.Messages {
				if m.PlainText() != tt.text || len(m.Blocks) != 1 {
					t.Errorf("message %+v", m)
				}
			}
			if n := server.Stats().Received; n != 1 {
				t.Errorf("%d requests, want one: the model does not retry", n)
			}
		})
	}
}

func BenchmarkComplete(b *testing.B) {
	m, _ := emulate(b, func(emulated.Request) emulated.Response {
		return emulated.Pieces(strings.Repeat("some words of an answer. ", 20), 20)
	})
	req := question("Hi")
	b.ReportAllocs()
	for b.Loop() {
		if r := ask(b.Context(), m, req); r.Err != nil {
			b.Fatal(r.Err)
		}
	}
}
