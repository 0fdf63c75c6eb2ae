package anthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/anthropic"
	"remote-agent/internal/assistant/assistanttest"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/messages/messagestest"
)

type result = assistanttest.Result

func ask(ctx context.Context, m *anthropic.Model, r assistant.Request) result {
	return assistanttest.Collect(m.Complete(ctx, r))
}

var fails, page = assistanttest.Fails, assistanttest.Page

// stream answers with events, each a data line under the name of its type.
func stream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		writeEvents(w, events...)
	}
}

func writeEvents(w io.Writer, events ...string) {
	for _, e := range events {
		var head struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal([]byte(e), &head)
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", head.Type, e)
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}
}

const (
	begin   = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"test-model-2026","content":[],"stop_reason":null,"usage":{"input_tokens":5,"cache_creation_input_tokens":3,"cache_read_input_tokens":4,"output_tokens":1}}}`
	open    = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	closed  = `{"type":"content_block_stop","index":0}`
	endTurn = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}`
	useTool = `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}}`
	stop    = `{"type":"message_stop"}`
	ping    = `{"type":"ping"}`
)

func text(s string) string {
	quoted, _ := json.Marshal(s)
	return fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}`, quoted)
}

func call(index int, input string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"toolu_%d","name":"look","input":%s}}`, index, index, input)
}

func piece(index int, s string) string {
	quoted, _ := json.Marshal(s)
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, index, quoted)
}

func end(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index) }

func newModel(tb testing.TB, url string) *anthropic.Model {
	tb.Helper()
	m, err := anthropic.New(anthropic.Config{APIKey: testKey, BaseURL: url, Model: testModel})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(m.CloseIdleConnections)
	return m
}

// TestErrorsNameTheRequest checks that an operator finds the id by which the
// provider finds a request, however it failed.
func TestErrorsNameTheRequest(t *testing.T) {
	t.Parallel()
	withID := func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Request-Id", "req_42")
			next(w, r)
		}
	}
	const failure = `{"type":"error","error":{"type":"overloaded_error","message":"x"},"request_id":"req_42"}`
	for name, handler := range map[string]http.HandlerFunc{
		"refused":            withID(fails(529, `{"type":"error"}`)),
		"refused, in body":   fails(529, failure),
		"in the stream":      withID(stream(begin, `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`)),
		"in the stream only": stream(begin, failure),
		"cut":                withID(stream(begin, open, text("x"))),
		"garbled":            withID(stream(begin, text("x"))),
	} {
		err := askServer(t, handler).Err
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "(request req_42)") || strings.Contains(fault.Public(err), "req_42") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func askServer(t *testing.T, handler http.HandlerFunc) result {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return ask(t.Context(), newModel(t, server.URL), question("Hi"))
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	want := result{
		Text: "Hello, world",
		Messages: []messages.Message{{
			Role: messages.RoleAssistant, Blocks: []messages.Block{messages.Text{Text: "Hello, world"}},
			ProviderMetadata: json.RawMessage(`{"id":"msg_1","model":"test-model-2026","stop_reason":"end_turn"}`),
		}},
		Finished: &assistant.Finished{
			Usage: assistant.Usage{InputTokens: 12, OutputTokens: 9, CachedTokens: 4, WrittenTokens: 3}, Model: "test-model-2026",
		},
	}
	for name, end := range map[string]string{
		"Anthropic": endTurn,
		"SGLang":    strings.Replace(endTurn, `"usage":{`, `"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,`, 1),
	} {
		got := askServer(t, stream(begin, ping, open, text("Hello"), text(", world"), closed, end, stop))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("answer of %s (-want +got):\n%s", name, diff)
		}
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		handler http.HandlerFunc
		want    string
		kind    fault.Kind
	}{
		"400 pings":               {stream(append(append([]string{begin, open}, repeat(ping, 400)...), text("yes"), endTurn, stop)...), "yes", ""},
		"no names of events":      {unnamed(begin, ping, open, text("yes"), closed, endTurn, stop), "yes", ""},
		"counts as texts":         {stream(strings.Replace(begin, `"input_tokens":5`, `"input_tokens":"5"`, 1), open, text("yes"), closed, endTurn, stop), "yes", ""},
		"a delta of another form": {stream(begin, open, text("yes"), `{"type":"content_block_delta","index":0,"delta":{"type":"poem_delta","text":["no"]}}`, closed, endTurn, stop), "yes", ""},
		"text in the start":       {stream(begin, strings.Replace(open, `"text":""`, `"text":"y"`, 1), text("es"), closed, endTurn, stop), "yes", ""},
		"no block stop":           {stream(begin, open, text("yes"), endTurn, stop), "yes", ""},
		"citations":               {stream(begin, open, text("yes"), `{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"char_location","cited_text":"x"}}}`, closed, endTurn, stop), "yes", ""},
		"thinking in a text":      {stream(begin, open, text("yes"), `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"no"}}`, closed, endTurn, stop), "yes", ""},
		"a number left out":       {stream(begin, strings.Replace(open, `"index":0`, `"index":3`, 1), strings.Replace(text("yes"), `"index":0`, `"index":3`, 1), endTurn, stop), "yes", ""},
		"something after it":      {stream(begin, open, text("yes"), closed, endTurn, stop, text("no")), "yes", ""},
		"usage twice":             {stream(begin, open, text("yes"), closed, strings.Replace(endTurn, `"end_turn"`, "null", 1), endTurn, stop), "yes", ""},
		"no message_stop":         {stream(begin, open, text("yes"), closed, endTurn), "yes", fault.Unavailable},
		"no stop reason":          {stream(begin, open, text("yes"), closed, stop), "yes", fault.Unavailable},
		"nothing at all":          {stream(), "", fault.Unavailable},
		"cut in the last event": {func(w http.ResponseWriter, r *http.Request) {
			stream(begin, open, text("yes"), closed, endTurn)(w, r)
			_, _ = io.WriteString(w, "event: message_stop\ndata: {\"type\":\"mess")
		}, "yes", fault.Unavailable},
		"not JSON":              {stream(begin, open, text("yes"), `{"type":`), "yes", fault.Unavailable},
		"status 204":            {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, "", fault.Unsupported},
		"unnamed error":         {unnamed(begin, open, text("yes"), `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`), "yes", fault.Unavailable},
		"delta without a block": {stream(begin, text("yes")), "", fault.Unavailable},
		"a block twice":         {stream(begin, open, text("y"), open), "y", fault.Unavailable},
		"a negative number":     {stream(begin, strings.Replace(open, `"index":0`, `"index":-1`, 1)), "", fault.Unavailable},
		"a huge number":         {stream(begin, strings.Replace(open, `"index":0`, `"index":4000000000`, 1)), "", fault.Unavailable},
		"web page":              {page("text/html; charset=utf-8", "<html>"), "", fault.Unsupported},
		"cannot stream":         {page("application/json", `{"type":"message","content":[{"type":"text","text":"yes"}]}`), "", fault.Unsupported},
		"error with status 200": {page("application/json", `{"type":"error","error":{"type":"rate_limit_error","message":"x"}}`), "", fault.RateLimited},
		"open call":             {stream(begin, open, text("yes"), closed, call(1, `{}`), piece(1, `{"a`), useTool, stop), "yes", fault.Unavailable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := askServer(t, tt.handler)
			if got.Text != tt.want || fault.KindOf(got.Err) != tt.kind {
				t.Errorf("text %q, error of kind %q (%v), want %q, %q", got.Text, fault.KindOf(got.Err), got.Err, tt.want, tt.kind)
			}
			if (tt.kind == "") != (len(got.Messages) == 1 && got.Finished != nil) {
				t.Errorf("%d messages, finished %v", len(got.Messages), got.Finished)
			}
		})
	}
}

// unnamed answers with events that have no name, as some servers send them.
func unnamed(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", e)
		}
	}
}

func repeat(s string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

func TestCalls(t *testing.T) {
	t.Parallel()
	noID := strings.Replace(call(3, `{}`), "toolu_3", "", 1)
	got := askServer(t, stream(begin, open, text("I look."), closed,
		call(1, `{}`), piece(1, ""), piece(1, `{"path":`), piece(1, `"x"}`), end(1),
		call(2, `{"path":"whole"}`), end(2),
		noID, piece(3, `{"pa`), end(3),
		call(4, `{}`), end(4),
		useTool, stop))
	if got.Err != nil || len(got.Messages) != 1 || got.Finished == nil {
		t.Fatalf("%+v", got)
	}
	blocks := got.Messages[0].Blocks
	if c, ok := blocks[3].(messages.ToolCall); !ok || !strings.HasPrefix(c.ID, "call_") {
		t.Fatalf("the call without an id is %+v", blocks[3])
	} else {
		c.ID = ""
		blocks[3] = c
	}
	want := []messages.Block{
		messages.Text{Text: "I look."},
		messages.ToolCall{ID: "toolu_1", Name: "look", Arguments: `{"path":"x"}`},
		messages.ToolCall{ID: "toolu_2", Name: "look", Arguments: `{"path":"whole"}`},
		messages.ToolCall{Name: "look", Arguments: `{"pa`}, // the caller answers it with an error
		messages.ToolCall{ID: "toolu_4", Name: "look", Arguments: `{}`},
	}
	if diff := cmp.Diff(want, blocks); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	body := func(kind, message string) string {
		b, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}, "request_id": "req_1"})
		return string(b)
	}
	const invalid = "invalid_request_error"
	tests := map[string]struct {
		handler  http.HandlerFunc
		kind     fault.Kind
		public   string // part of the public text
		wait     time.Duration
		overflow bool
		limit    int
	}{
		"key refused":      {handler: fails(401, ""), kind: fault.Unauthorized, public: "ANTHROPIC_API_KEY"},
		"forbidden":        {handler: fails(403, body("permission_error", "x")), kind: fault.Unauthorized, public: "ANTHROPIC_API_KEY"},
		"unknown model":    {handler: fails(404, body("not_found_error", "model: x")), kind: fault.Unsupported, public: "ANTHROPIC_MODEL"},
		"wrong path":       {handler: fails(404, "404 page not found"), kind: fault.Unsupported, public: "ANTHROPIC_BASE_URL"},
		"bad request":      {handler: fails(400, body(invalid, "foo: Extra inputs are not permitted")), kind: fault.Invalid, public: "refused"},
		"usage limit":      {handler: fails(400, body(invalid, "You have reached your specified API usage limits.")), kind: fault.Exhausted, public: "quota"},
		"spend limit":      {handler: fails(429, `{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":"enforced_spend_limit_reached"}}}`), kind: fault.Exhausted, public: "quota"},
		"hopeless":         {handler: fails(429, body("rate_limit_error", "x"), "X-Should-Retry", "false"), kind: fault.Exhausted, public: "quota"},
		"not so hopeless":  {handler: fails(429, body("rate_limit_error", "x"), "X-Should-Retry", "false", "Retry-After", "2"), kind: fault.RateLimited, wait: 2 * time.Second},
		"wait as a date":   {handler: fails(429, "", "Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT"), kind: fault.RateLimited},
		"wait in ms":       {handler: fails(429, "", "Retry-After-Ms", "1500", "Retry-After", "9"), kind: fault.RateLimited, wait: 1500 * time.Millisecond},
		"wait of nonsense": {handler: fails(429, "", "Retry-After", "-5"), kind: fault.RateLimited},
		"huge wait":        {handler: fails(429, "", "Retry-After", "1e30"), kind: fault.RateLimited, wait: 24 * time.Hour},
		"says tokens":      {handler: fails(429, body("rate_limit_error", "prompt is too long for 40,000 input tokens per minute")), kind: fault.RateLimited},
		"server error":     {handler: fails(500, "oops"), kind: fault.Unavailable},
		"overloaded":       {handler: fails(529, body("overloaded_error", "Overloaded"), "Retry-After", "3"), kind: fault.Unavailable, wait: 3 * time.Second},
		"gateway timeout":  {handler: fails(504, body("timeout_error", "x")), kind: fault.Unavailable},
		"redirect":         {handler: fails(307, "", "Location", "https://elsewhere.example/v1/messages"), kind: fault.Unsupported, public: "ANTHROPIC_BASE_URL"},
		"error as a text":  {handler: fails(400, `{"error":"no"}`), kind: fault.Invalid},
		"damaged PDF":      {handler: fails(400, body(invalid, "messages.0.content.1.document.source.base64.data: The PDF specified was not valid.")), kind: fault.Invalid, public: "could not read"},
		"budget":           {handler: fails(400, body(invalid, "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\"")), kind: fault.Unsupported, public: "ANTHROPIC_THINKING_TOKENS"},
		"effort":           {handler: fails(400, body(invalid, "This model does not support the effort parameter.")), kind: fault.Unsupported, public: "ANTHROPIC_EFFORT"},
		"max tokens":       {handler: fails(400, body(invalid, "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens")), kind: fault.Unsupported, public: "ANTHROPIC_MAX_TOKENS"},
		"array refused":    {handler: fails(400, body(invalid, "messages.1.content.0: Invalid `signature` in `thinking` block")), kind: fault.Invalid, public: "refused"},

		"overflow":             {handler: fails(400, body(invalid, "prompt is too long: 210000 tokens > 200000 maximum")), kind: fault.Exhausted, overflow: true, limit: 200000},
		"overflow: plain":      {handler: fails(400, body(invalid, "prompt is too long")), kind: fault.Exhausted, overflow: true},
		"overflow: max tokens": {handler: fails(400, body(invalid, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease")), kind: fault.Exhausted, overflow: true, limit: 200000},
		"overflow: Bedrock":    {handler: fails(400, `{"message":"Input is too long for requested model."}`), kind: fault.Exhausted, overflow: true},
		"overflow: Z.ai":       {handler: fails(400, body("1261", "Prompt exceeds max length")), kind: fault.Exhausted, overflow: true},
		"overflow: 413":        {handler: fails(413, "<html>"), kind: fault.Exhausted, overflow: true},
		"overflow in a stream": {handler: stream(begin, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}`), kind: fault.Exhausted, overflow: true, limit: 8},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := askServer(t, tt.handler).Err
			assistanttest.Failure{
				Kind: tt.kind, Public: tt.public, Wait: tt.wait, Overflow: tt.overflow, Limit: tt.limit, Secret: "/v1/messages",
			}.Check(t, err)
		})
	}
}

func TestConnection(t *testing.T) {
	t.Parallel()
	events := func(list ...string) string {
		var s strings.Builder
		writeEvents(&s, list...)
		return s.String()
	}
	q := question("Hi")
	assistanttest.ExerciseHTTP(t, assistanttest.HTTPHarness{
		New: func(tb testing.TB, url string, client *http.Client) assistant.Assistant {
			tb.Helper()
			m, err := anthropic.New(anthropic.Config{APIKey: testKey, BaseURL: url, Model: "m", HTTPClient: client})
			if err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(m.CloseIdleConnections)
			return assistanttest.Once(m)
		},
		Turn:      assistant.Turn{Conversation: q.Conversation, Run: q.Run, System: q.System, Array: q.Array},
		Hello:     events(begin, open, text("Hello")),
		Yes:       events(begin, open, text("yes"), closed, endTurn, stop),
		KeepAlive: events(ping),
	})
}

// TestOwnAPIAnswersAtOnce checks that a request to Anthropic's own API, which begins each
// answer at once, does not wait as long as one to a server that loads a model.
func TestOwnAPIAnswersAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silent := assistanttest.Pipe(func(ctx context.Context, _ io.Writer) { <-ctx.Done() })
		m, err := anthropic.New(anthropic.Config{APIKey: testKey, Model: testModel, HTTPClient: silent})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		got := ask(t.Context(), m, question("Hi"))
		if took := time.Since(begin); took != 90*time.Second || !strings.Contains(fault.Public(got.Err), "sent nothing for 1m30s") {
			t.Errorf("after %v: %v", took, got.Err)
		}
	})
}

func pipeModel(t *testing.T, write func(ctx context.Context, w io.Writer)) *anthropic.Model {
	t.Helper()
	m, err := anthropic.New(anthropic.Config{APIKey: testKey, Model: "m", HTTPClient: assistanttest.Pipe(write)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestStreamThatGoesOnAfterTheMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := time.Now()
		got := ask(t.Context(), pipeModel(t, func(ctx context.Context, w io.Writer) {
			writeEvents(w, begin, open, text("yes"), closed, endTurn, stop)
			for ctx.Err() == nil {
				writeEvents(w, ping)
				select {
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		}), question("Hi"))
		if got.Err != nil || got.Finished == nil {
			t.Errorf("%+v", got)
		}
		if took := time.Since(from); took > time.Second {
			t.Errorf("waited %v for the end of the stream", took)
		}
	})
}

func TestRequest(t *testing.T) {
	t.Parallel()
	var body []byte
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		body, _ = io.ReadAll(r.Body)
		stream(begin, open, text("yes"), closed, endTurn, stop)(w, r)
	}))
	defer server.Close()
	m, err := anthropic.New(anthropic.Config{APIKey: testKey, BaseURL: server.URL + "/v1/", Model: testModel, MaxTokens: 4096, ThinkingBudget: 2048})
	if err != nil {
		t.Fatal(err)
	}
	defer m.CloseIdleConnections()
	req := question("Hi")
	req.Model = "other"
	if err := ask(t.Context(), m, req).Err; err != nil {
		t.Fatal(err)
	}
	const want = `{"model":"other","max_tokens":4096,"stream":true,"thinking":{"type":"enabled","budget_tokens":2048},` +
		`"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]}]}`
	if diff := cmp.Diff(want, strings.TrimSpace(string(body))); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if err := messagestest.Anthropic(body); err != nil {
		t.Error(err)
	}
	if header.Get("X-Api-Key") != testKey || header.Get("Authorization") != "" || header.Get("Anthropic-Version") == "" {
		t.Errorf("headers %v", header)
	}
}

func TestNothingToAnswer(t *testing.T) {
	t.Parallel()
	got := ask(t.Context(), newModel(t, "http://127.0.0.1:1"), assistant.Request{})
	if !fault.Is(got.Err, fault.Invalid) {
		t.Errorf("error %v", got.Err)
	}
}

func TestNewNamesTheOptionToChange(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		config anthropic.Config
		want   string
	}{
		"nothing":            {anthropic.Config{Model: "m"}, "ANTHROPIC_API_KEY"},
		"key with a break":   {anthropic.Config{APIKey: "sk-a\nb", Model: "m"}, "ANTHROPIC_API_KEY"},
		"no model":           {anthropic.Config{APIKey: "k"}, "ANTHROPIC_MODEL"},
		"no scheme":          {anthropic.Config{BaseURL: "localhost:8080", Model: "m"}, "ANTHROPIC_BASE_URL"},
		"a password":         {anthropic.Config{BaseURL: "https://me:secret-word@api.example.com", Model: "m"}, "ANTHROPIC_BASE_URL"},
		"a query":            {anthropic.Config{BaseURL: "https://api.example.com?key=secret-word", Model: "m"}, "ANTHROPIC_BASE_URL"},
		"a bad escape":       {anthropic.Config{BaseURL: "https://secret-word%zz/", Model: "m"}, "ANTHROPIC_BASE_URL"},
		"negative limit":     {anthropic.Config{APIKey: "k", Model: "m", MaxTokens: -1}, "ANTHROPIC_MAX_TOKENS"},
		"small budget":       {anthropic.Config{APIKey: "k", Model: "m", ThinkingBudget: 1000}, "ANTHROPIC_THINKING_TOKENS"},
		"unknown budget":     {anthropic.Config{APIKey: "k", Model: "m", ThinkingBudget: -2}, "ANTHROPIC_THINKING_TOKENS"},
		"unknown effort":     {anthropic.Config{APIKey: "k", Model: "m", Effort: "much"}, "ANTHROPIC_EFFORT"},
		"budget above limit": {anthropic.Config{APIKey: "k", Model: "m", MaxTokens: 2048, ThinkingBudget: 2048}, "ANTHROPIC_MAX_TOKENS"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := anthropic.New(tt.config)
			assistanttest.CheckOption(t, err, tt.want)
		})
	}
	m, err := anthropic.New(anthropic.Config{BaseURL: " http://127.0.0.1:1/v1/ ", Model: " m ", ThinkingBudget: 50000})
	if err != nil || m.Name() != "anthropic" || m.Model() != "m" {
		t.Errorf("a local server needs no key: %v", err)
	}
}
