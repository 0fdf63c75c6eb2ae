package openai_test

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
	"remote-agent/internal/assistant/assistanttest"
	"remote-agent/internal/assistant/loop"
	"remote-agent/internal/assistant/openai"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/messages/messagestest"
)

const testKey = "sk-proj-canary_0123456789abcdef"

func newModel(tb testing.TB, url string) *openai.Model {
	tb.Helper()
	m, err := openai.New(openai.Config{APIKey: testKey, BaseURL: url + "/v1", Model: "test-model"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(m.CloseIdleConnections)
	return m
}

func question(text string) assistant.Turn {
	return assistant.Turn{Conversation: "c", Run: "r", System: "Be brief.", Array: []messages.Message{messages.NewText(messages.RoleUser, text)}}
}

// stream answers with events: each is written as a data line, unless it begins
// with a colon or names its field itself.
func stream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			if !strings.HasPrefix(e, ":") && !strings.HasPrefix(e, "event:") && !strings.HasPrefix(e, "raw:") {
				e = "data: " + e + "\n"
			}
			_, _ = io.WriteString(w, strings.TrimPrefix(e, "raw:")+"\n")
			w.(http.Flusher).Flush()
		}
	}
}

func text(s string) string {
	quoted, _ := json.Marshal(s)
	return fmt.Sprintf(`{"id":"x1","model":"test-model-2026","choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}`, quoted)
}

func finish(reason string) string {
	return fmt.Sprintf(`{"id":"x1","model":"test-model-2026","choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason)
}

func call(index int, id, name, args string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]}}]}`, index, id, name, args)
}

const (
	usage = `{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4}}}`
	done  = "[DONE]"
)

func endless(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for r.Context().Err() == nil {
		_, _ = io.WriteString(w, "data: "+text("again ")+"\n\n")
		w.(http.Flusher).Flush()
		select {
		case <-ticker.C:
		case <-r.Context().Done():
		}
	}
}

var backends = map[assistanttest.Scenario]http.HandlerFunc{
	assistanttest.Reply:        stream(text("Hello"), text(", "), text("world"), finish("stop"), usage, done),
	assistanttest.Slow:         endless,
	assistanttest.Cut:          stream(text("Hello"), text(", wor")),
	assistanttest.Unauthorized: fails(401, `{"error":{"message":"Incorrect API key provided: `+testKey+`. You can find your API key in settings.","type":"invalid_request_error","code":"invalid_api_key"}}`),
	assistanttest.RateLimited:  fails(429, `{"error":{"message":"Rate limit reached: 90000 tokens per min","type":"tokens","code":"rate_limit_exceeded"}}`, "Retry-After", "7"),
	assistanttest.Quota:        fails(429, `{"error":{"message":"You exceeded your current quota, please check your plan.","type":"insufficient_quota","code":"insufficient_quota"}}`),
	assistanttest.Unavailable:  fails(503, `{"error":{"message":"The server is overloaded","type":"server_error"}}`),
	assistanttest.Overflow:     fails(400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`),
	assistanttest.Broken:       stream(text("Hello"), `{"error":{"message":"overloaded, key `+testKey+`","type":"server_error","code":null}}`),
}

func TestContract(t *testing.T) {
	assistanttest.Exercise(t, assistanttest.Harness{
		Secrets: []string{testKey},
		New: func(t *testing.T, s assistanttest.Scenario) (assistanttest.Subject, bool) {
			t.Helper()
			backend, ok := backends[s]
			if !ok {
				return assistanttest.Subject{}, false
			}
			server := httptest.NewServer(backend)
			m := newModel(t, server.URL)
			return assistanttest.Subject{Assistant: loop.New(m, loop.Config{}), Turn: question("Hi"), Close: func() {
				m.CloseIdleConnections()
				server.Close()
			}}, true
		},
	})
}

type result = assistanttest.Result

// ask runs a turn with m behind the loop.
func ask(ctx context.Context, m *openai.Model, turn assistant.Turn) result {
	return assistanttest.Collect(loop.New(m, loop.Config{}).Run(ctx, turn))
}

var fails, page = assistanttest.Fails, assistanttest.Page

func askServer(t *testing.T, handler http.HandlerFunc) result {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return ask(t.Context(), newModel(t, server.URL), question("Hi"))
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	got := askServer(t, stream(text("Hello"), text(", world"), finish("stop"), usage, done))
	want := result{
		Text: "Hello, world",
		Messages: []messages.Message{{
			Role: messages.RoleAssistant, Blocks: []messages.Block{messages.Text{Text: "Hello, world"}},
			ProviderMetadata: json.RawMessage(`{"id":"x1","model":"test-model-2026","finish_reason":"stop"}`),
		}},
		Finished: &assistant.Finished{Usage: assistant.Usage{InputTokens: 12, OutputTokens: 3, CachedTokens: 4}, Model: "test-model-2026"},
		Used:     assistant.Usage{InputTokens: 12, OutputTokens: 3, CachedTokens: 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("turn (-want +got):\n%s", diff)
	}
}

// groqFailed is what Groq answers when it cannot read a call of the model.
const groqFailed = `{"error":{"message":"Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",` +
	`"type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=look{}"}}`

func TestStreamsOfManyServers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		handler http.HandlerFunc
		want    string
		kind    fault.Kind
	}{
		"no DONE":                   {stream(text("yes"), finish("stop")), "yes", ""},
		"finish with the last text": {stream(`{"choices":[{"delta":{"content":"yes"},"finish_reason":"stop"}]}`, done), "yes", ""},
		"comments and event names":  {stream(": hello", "event: message", text("yes"), ": ping", finish("stop"), done), "yes", ""},
		"400 keep-alives":           {stream(append(repeat(": ping", 400), text("yes"), finish("stop"), done)...), "yes", ""},
		"no space after data":       {stream("raw:data:"+text("yes")+"\n", "raw:data:"+finish("stop")+"\r\n\r\n"), "yes", ""},
		"cut after the finish":      {stream(text("yes"), finish("stop"), `raw:data: {"choi`), "yes", ""},
		"reasoning is left out":     {stream(`{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, text("yes"), finish("stop"), done), "yes", ""},
		"text in parts": {stream(`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}`,
			`{"choices":[{"delta":{"content": [{"type":"text","text":"y"},{"type":"text","text":"es"},null,{"type":"image"}]}}]}`, text(`, "content": [`), finish("stop"), done), `yes, "content": [`, ""},
		"refusal is an answer":       {stream(`{"choices":[{"delta":{"refusal":"I will not."}}]}`, finish("stop"), done), "I will not.", ""},
		"error null":                 {stream(`{"error":null,"choices":[{"delta":{"content":"yes"},"finish_reason":"stop"}]}`, done), "yes", ""},
		"the word error in the text": {stream(text(`"error": {"code": 1}`), finish("stop"), done), `"error": {"code": 1}`, ""},
		"other finish reason":        {stream(text("yes"), finish("eos"), done), "yes", ""},
		"second choice is ignored":   {stream(`{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}]}`), "yes", ""},

		"DONE without a finish reason": {stream(text("yes"), done), "yes", fault.Unavailable},
		"nothing at all":               {stream(), "", fault.Unavailable},
		"cut inside a line":            {stream(text("yes"), `raw:data: {"choices":[{"del`), "yes", fault.Unavailable},
		"not JSON":                     {stream(text("yes"), `{"choices":`), "yes", fault.Unavailable},
		"empty answer":                 {stream(finish("stop"), done), "", fault.Unavailable},
		"blank answer":                 {stream(text(" \n"), finish("stop"), done), " \n", fault.Unavailable},
		"content filter":               {stream(text("Well"), finish("content_filter"), done), "Well", fault.Invalid},
		"Gemini's filter":              {stream(text("Well"), finish("content_filter: PROHIBITED_CONTENT"), done), "Well", fault.Invalid},
		"call that Gemini cannot read": {stream(text("Now I change it."), finish("function_call_filter: MALFORMED_FUNCTION_CALL"), done), "Now I change it.", fault.Unavailable},
		"call that Groq cannot read":   {stream("event: error", groqFailed), "", fault.Unavailable},
		"Groq before the stream":       {fails(400, groqFailed), "", fault.Unavailable},
		"finish reason error":          {stream(text("Well"), finish("error"), done), "Well", fault.Unavailable},
		"length without text":          {stream(finish("length"), usage, done), "", fault.Exhausted},
		"error after keep-alives":      {stream(": ping", "event: error", `{"error":{"message":"Rate limit","code":"rate_limit_exceeded"}}`), "", fault.RateLimited},
		"error as a number":            {stream(`{"id":"x","error":{"message":"no","code":502},"choices":[{"delta":{},"finish_reason":"error"}]}`), "", fault.Unavailable},
		"error as a text":              {stream(`{"error":"model runner crashed"}`), "", fault.Unavailable},
		"key refused in the stream":    {stream(`{"error":{"message":"x","code":"invalid_api_key"}}`), "", fault.Unauthorized},
		"quota in the stream":          {stream(`{"error":{"message":"x","type":"insufficient_quota"}}`), "", fault.Exhausted},
		"web page":                     {page("text/html; charset=utf-8", "<html>"), "", fault.Unsupported},
		"a server that cannot stream":  {page("application/json", `{"choices":[{"message":{"content":"yes"}}]}`), "", fault.Unsupported},
		"error with status 200":        {page("application/json", `{"error":{"message":"x","code":429}}`), "", fault.RateLimited},
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

func repeat(s string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

// TestFailedRequestSaysWhatWasUsed: a model that thinks up to its limit is billed for it.
func TestFailedRequestSaysWhatWasUsed(t *testing.T) {
	t.Parallel()
	want := assistant.Usage{InputTokens: 12, OutputTokens: 3, CachedTokens: 4}
	for name, handler := range map[string]http.HandlerFunc{
		"length": stream(finish("length"), usage, done), "empty": stream(finish("stop"), usage, done),
		"filter": stream(text("Well"), finish("content_filter"), usage, done),
	} {
		if got := askServer(t, handler); got.Err == nil || got.Used != want {
			t.Errorf("%s: used %+v, error %v", name, got.Used, got.Err)
		}
	}
}

// TestUnfinishedAnswerIsEstimated: the API says only at the end what was used, so an answer
// that is stopped would be free, whatever the provider charges for it.
func TestUnfinishedAnswerIsEstimated(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(endless))
	t.Cleanup(server.Close)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	turn := question(strings.Repeat("Why? ", 300))
	turn.System = strings.Repeat("Because. ", 100)
	written := 0
	stopped := assistanttest.Collect(func(yield func(assistant.Event, error) bool) {
		for event, err := range loop.New(newModel(t, server.URL), loop.Config{}).Run(ctx, turn) {
			if d, ok := event.(assistant.TextDelta); ok {
				if written += len(d.Text); written > 30 {
					stop()
				}
			}
			if u, ok := event.(assistant.UsageUpdated); ok && u.Model != "test-model-2026" {
				t.Errorf("model %q", u.Model)
			}
			if !yield(event, err) {
				return
			}
		}
	})
	if u := stopped.Used; !fault.Is(stopped.Err, fault.Canceled) || u.InputTokens != 500+4+300 || u.OutputTokens < int64(written/3) || u.OutputTokens > int64(written) {
		t.Errorf("stopped after %d bytes: used %+v, error %v", written, u, stopped.Err)
	}
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		output  int64
	}{
		"text":    {stream(text("Hello")), 2},
		"call":    {stream(call(0, "c1", "look", `{"path":"x"}`)), 4},
		"thought": {stream(`{"choices":[{"index":0,"delta":{"reasoning_content":"Hm, hm"}}]}`), 2},
		"error":   {stream(text("Hello"), `{"error":{"message":"overloaded","type":"server_error","code":null}}`), 2},
		"nothing": {stream(), 0},
		"refused": {fails(503, `{"error":{"message":"The server is overloaded"}}`), 0},
		"counted": {stream(text("Hello"), usage), 3},
	} {
		got := askServer(t, tt.handler)
		if got.Err == nil || got.Used.OutputTokens != tt.output || (got.Used.InputTokens > 0) != (tt.output > 0) {
			t.Errorf("%s: used %+v, error %v; want %d tokens of output", name, got.Used, got.Err, tt.output)
		}
	}
}

// TestThinkingIsOutput: xAI and Gemini count what a model thought in the total only.
func TestThinkingIsOutput(t *testing.T) {
	t.Parallel()
	for counts, want := range map[string]int64{
		`"prompt_tokens":37,"completion_tokens":530,"total_tokens":800,"completion_tokens_details":{"reasoning_tokens":233}`: 763,
		`"prompt_tokens":37,"total_tokens":800`:                                         763,
		`"prompt_tokens":37,"completion_tokens":530,"total_tokens":567`:                 530,
		`"prompt_tokens":37,"completion_tokens":530`:                                    530,
		`"prompt_tokens":37,"completion_tokens":530,"total_tokens":9000000000000000000`: 1e9,
	} {
		got := askServer(t, stream(text("yes"), finish("stop"), `{"choices":[],"usage":{`+counts+`}}`, done))
		if got.Err != nil || got.Finished == nil || got.Finished.Usage.OutputTokens != want {
			t.Errorf("%s: %+v, error %v, want %d", counts, got.Finished, got.Err, want)
		}
	}
}

// TestCostThatTheAPISays is OpenRouter's: behind a key of one's own, its provider is paid as well.
func TestCostThatTheAPISays(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]float64{
		`"cost":0.25,"is_byok":false,"cost_details":{"upstream_inference_cost":0.24}`: 0.25,
		`"cost":0.25,"is_byok":true,"cost_details":{"upstream_inference_cost":4.5}`:   4.75,
		`"cost":0.25,"cost_details":{"upstream_inference_cost":null}`:                 0.25,
		`"cost":0`:                    0,
		`"cost":-1`:                   0,
		`"cost":{"total_cost":0.006}`: 0, // another form, as Perplexity has
		`"cost":"0.25"`:               0,
	} {
		got := askServer(t, stream(text(`Its "cost":9`), finish("stop"),
			`{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15,`+said+`}}`, done))
		if got.Err != nil || got.Finished == nil || got.Finished.Usage.CostUSD != want || got.Finished.Usage.OutputTokens != 3 {
			t.Errorf("%s: %+v, error %v, want %v", said, got.Finished, got.Err, want)
		}
	}
}

func TestAnswerCutAtTheLimitIsKeptAndSaysSo(t *testing.T) {
	t.Parallel()
	got := askServer(t, stream(text("A long"), call(0, "c1", "read", `{"pa`), finish("length"), usage, done))
	if got.Err != nil || got.Finished == nil || len(got.Messages) != 1 {
		t.Fatalf("turn: %+v", got)
	}
	if !strings.HasPrefix(got.Text, "A long") || !strings.Contains(got.Text, "cut off") {
		t.Errorf("text %q does not say that it was cut", got.Text)
	}
	want := []messages.Block{messages.Text{Text: got.Text}}
	if diff := cmp.Diff(want, got.Messages[0].Blocks); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestReasoningIsShownAndNotKept(t *testing.T) {
	t.Parallel()
	got := askServer(t, stream(`{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, text("yes"), finish("stop"), done))
	if got.Err != nil || got.Thoughts != "hm" || got.Text != "yes" {
		t.Fatalf("turn: %+v", got)
	}
	if diff := cmp.Diff([]messages.Block{messages.Text{Text: "yes"}}, got.Messages[0].Blocks); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	body := func(message, kind, code string) string {
		b, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": kind, "code": code}})
		return string(b)
	}
	tests := map[string]struct {
		handler  http.HandlerFunc
		kind     fault.Kind
		public   string // part of the public text
		wait     time.Duration
		overflow bool
		limit    int
	}{
		"key refused":               {handler: fails(401, ""), kind: fault.Unauthorized, public: "OPENAI_API_KEY"},
		"forbidden":                 {handler: fails(403, body("Country not supported", "request_forbidden", "")), kind: fault.Unauthorized, public: "OPENAI_API_KEY"},
		"key refused by Google":     {handler: fails(400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`), kind: fault.Unauthorized},
		"moderation":                {handler: fails(403, body("Your input was flagged", "", "")), kind: fault.Invalid, public: "content filter"},
		"Azure filter":              {handler: fails(400, body("The response was filtered due to Azure's content management policy", "", "content_filter")), kind: fault.Invalid, public: "content filter"},
		"unknown model":             {handler: fails(404, body("The model `gpt-9` does not exist", "invalid_request_error", "model_not_found")), kind: fault.Unsupported, public: "OPENAI_MODEL"},
		"unknown model as 400":      {handler: fails(400, body("Model gpt-9 not found", "", "")), kind: fault.Unsupported, public: "OPENAI_MODEL"},
		"wrong path":                {handler: fails(404, "404 page not found"), kind: fault.Unsupported, public: "OPENAI_BASE_URL"},
		"no tools: Ollama":          {handler: fails(400, body("registry.ollama.ai/library/gemma3:latest does not support tools", "api_error", "")), kind: fault.Unsupported, public: "cannot use tools"},
		"no tools: OpenRouter":      {handler: fails(404, `{"error":{"message":"No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing","code":404}}`), kind: fault.Unsupported, public: "cannot use tools"},
		"no tools: vLLM":            {handler: fails(400, `{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","code":400}`), kind: fault.Unsupported, public: "cannot use tools"},
		"no tools: llama.cpp":       {handler: fails(500, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`), kind: fault.Unsupported, public: "cannot use tools"},
		"no tools: Groq":            {handler: fails(400, body("`tool calling` is not supported with this model", "invalid_request_error", "")), kind: fault.Unsupported, public: "cannot use tools"},
		"no tools: Gemini":          {handler: fails(400, `[{"error":{"code":400,"message":"Function calling is not enabled for models/gemma-3-27b-it","status":"INVALID_ARGUMENT"}}]`), kind: fault.Unsupported, public: "cannot use tools"},
		"bad request":               {handler: fails(400, body("Unknown parameter: 'x'", "invalid_request_error", "")), kind: fault.Invalid, public: "refused"},
		"damaged picture":           {handler: fails(400, body("You uploaded an unsupported image. Please make sure your image is valid.", "invalid_request_error", "image_parse_error")), kind: fault.Invalid, public: "could not read"},
		"no money":                  {handler: fails(402, body("Insufficient credits", "", "")), kind: fault.Exhausted, public: "quota"},
		"spend limit":               {handler: fails(429, body("x", "enforced_spend_limit_reached", "")), kind: fault.Exhausted, public: "quota"},
		"Google quota with a wait":  {handler: fails(429, body("You exceeded your current quota. Please retry in 7.5s.", "", "")), kind: fault.RateLimited, wait: 7500 * time.Millisecond},
		"wait in milliseconds":      {handler: fails(429, "", "Retry-After-Ms", "1500", "Retry-After", "9"), kind: fault.RateLimited, wait: 1500 * time.Millisecond},
		"wait in a text":            {handler: fails(429, body("Rate limit reached. Please try again in 6m0s.", "requests", "rate_limit_exceeded")), kind: fault.RateLimited, wait: 6 * time.Minute},
		"wait that is nonsense":     {handler: fails(429, "", "Retry-After", "-5"), kind: fault.RateLimited},
		"wait that is huge":         {handler: fails(429, "", "Retry-After", "1e30"), kind: fault.RateLimited, wait: 24 * time.Hour},
		"server error":              {handler: fails(500, "oops"), kind: fault.Unavailable},
		"overloaded":                {handler: fails(529, "", "Retry-After", "3"), kind: fault.Unavailable, wait: 3 * time.Second},
		"timeout at the server":     {handler: fails(408, ""), kind: fault.Unavailable},
		"redirect":                  {handler: fails(307, "", "Location", "https://elsewhere.example/v1/chat/completions"), kind: fault.Unsupported, public: "OPENAI_BASE_URL"},
		"tokens per minute":         {handler: fails(429, body("Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.", "tokens", "rate_limit_exceeded")), kind: fault.RateLimited, wait: 2 * time.Second},
		"one request above the TPM": {handler: fails(429, body("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.", "tokens", "rate_limit_exceeded")), kind: fault.Exhausted, overflow: true, limit: 30000},
		"throttled, says tokens":    {handler: fails(400, body("ThrottlingException: too many tokens, exceeds the context window of tokens per minute", "", "")), kind: fault.Invalid},

		"overflow: OpenAI":     {handler: fails(400, body("This model's maximum context length is 8192 tokens.", "", "context_length_exceeded")), kind: fault.Exhausted, overflow: true, limit: 8192},
		"overflow: new OpenAI": {handler: fails(400, body("Your input exceeds the context window of this model.", "", "")), kind: fault.Exhausted, overflow: true},
		"overflow: Anthropic":  {handler: fails(400, body("prompt is too long: 210000 tokens > 200000 maximum", "", "")), kind: fault.Exhausted, overflow: true, limit: 200000},
		"overflow: Gemini":     {handler: fails(400, body("The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", "", "")), kind: fault.Exhausted, overflow: true, limit: 1048575},
		"overflow: llama.cpp":  {handler: fails(400, body("the request exceeds the available context size (4096 tokens), try increasing it", "exceed_context_size_error", "")), kind: fault.Exhausted, overflow: true, limit: 4096},
		"overflow: vLLM":       {handler: fails(400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. Please reduce the length of the messages.","type":"BadRequestError","code":400}`), kind: fault.Exhausted, overflow: true, limit: 4096},
		"overflow: LM Studio":  {handler: fails(400, `{"error":"Trying to keep the first 9000 tokens when the number is greater than the context length"}`), kind: fault.Exhausted, overflow: true},
		"overflow: behind one": {handler: fails(400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"message\":\"This model's maximum context length is 4096 tokens.\"}"}}}`), kind: fault.Exhausted, overflow: true, limit: 4096},
		"overflow: Groq":       {handler: fails(400, body("Please reduce the length of the messages or completion.", "", "")), kind: fault.Exhausted, overflow: true},
		"overflow: xAI":        {handler: fails(400, body("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", "", "")), kind: fault.Exhausted, overflow: true, limit: 131072},
		"overflow: Mistral":    {handler: fails(400, body("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", "", "")), kind: fault.Exhausted, overflow: true, limit: 32768},
		"overflow: Kimi":       {handler: fails(400, body("Your request exceeded model token limit: 8192", "", "")), kind: fault.Exhausted, overflow: true, limit: 8192},
		"overflow: Copilot":    {handler: fails(400, body("prompt token count of 70000 exceeds the limit of 64000", "", "")), kind: fault.Exhausted, overflow: true, limit: 64000},
		"overflow: Cerebras":   {handler: fails(400, ""), kind: fault.Exhausted, overflow: true},
		"overflow: 413":        {handler: fails(413, "<html>"), kind: fault.Exhausted, overflow: true},
		"overflow: OpenRouter": {handler: fails(400, body("This endpoint's maximum context length is 65,536 tokens. However, you requested about 90000", "", "")), kind: fault.Exhausted, overflow: true, limit: 65536},
		"overflow in a stream": {handler: stream(`{"error":{"message":"context_length_exceeded","code":"context_length_exceeded"}}`), kind: fault.Exhausted, overflow: true},
		"overflow: old llama.cpp": {handler: stream(`raw:error: {"code":400,"message":"the request exceeds the available context size. try increasing it","type":"invalid_request_error"}` + "\n"),
			kind: fault.Exhausted, overflow: true},
		"overflow: Together":    {handler: fails(400, body("The input (250000 tokens) is longer than the model's context length (131072 tokens).", "invalid_request_error", "")), kind: fault.Exhausted, overflow: true, limit: 131072},
		"overflow: Qwen":        {handler: fails(400, body("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]", "invalid_request_error", "invalid_parameter_error")), kind: fault.Exhausted, overflow: true, limit: 98304},
		"overflow as a failure": {handler: fails(500, `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`), kind: fault.Exhausted, overflow: true},
		"overflow by finishing": {handler: stream(finish("model_context_window_exceeded"), done), kind: fault.Exhausted, overflow: true},
		"length inside a call":  {handler: stream(call(0, "c1", "change", `{"content":"a`), finish("length"), done), kind: fault.Exhausted},
		"length in a thought":   {handler: stream(`{"choices":[{"delta":{"reasoning_content":"Hm"}}]}`, finish("length"), done), kind: fault.Exhausted},
		"length with no output": {handler: stream(finish("length"), done), kind: fault.Exhausted, overflow: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := askServer(t, tt.handler).Err
			assistanttest.Failure{
				Kind: tt.kind, Public: tt.public, Wait: tt.wait, Overflow: tt.overflow, Limit: tt.limit, Secret: "/chat/completions",
			}.Check(t, err)
		})
	}
}

func TestKeysOfAnyFormStayOutOfErrors(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"canary/with+odd=signs", "sk-ant-canary0123456789", "sk-or-v1-canary0123456789"} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(fails(500, `{"error":{"message":"request with `+key+` failed","code":"`+key+`","type":"`+key+`"}}`))
			defer server.Close()
			a, err := openai.New(openai.Config{APIKey: key, BaseURL: server.URL, Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			defer a.CloseIdleConnections()
			if err := ask(t.Context(), a, question("Hi")).Err; err == nil || strings.Contains(err.Error(), "canary") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestConnection(t *testing.T) {
	t.Parallel()
	assistanttest.ExerciseHTTP(t, assistanttest.HTTPHarness{
		New: func(tb testing.TB, url string, client *http.Client) assistant.Assistant {
			tb.Helper()
			m, err := openai.New(openai.Config{APIKey: testKey, BaseURL: url + "/v1", Model: "m", HTTPClient: client})
			if err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(m.CloseIdleConnections)
			return loop.New(m, loop.Config{})
		},
		Turn:      question("Hi"),
		Hello:     fmt.Sprintf("data: %s\n\n", text("Hello")),
		Yes:       fmt.Sprintf("data: %s\n\ndata: %s\n\ndata: [DONE]\n\n", text("yes"), finish("stop")),
		KeepAlive: ": still thinking\n\n",
	})
}

func askPipe(t *testing.T, write func(ctx context.Context, w io.Writer)) result {
	t.Helper()
	a, err := openai.New(openai.Config{APIKey: testKey, Model: "m", HTTPClient: assistanttest.Pipe(write)})
	if err != nil {
		t.Fatal(err)
	}
	return ask(t.Context(), a, question("Hi"))
}

func TestAnswerCutInsideCodeClosesIt(t *testing.T) {
	t.Parallel()
	got := askServer(t, stream(text("Look:\n```go\nfunc"), finish("length"), done))
	if n := strings.Count(got.Text, "```"); n != 2 {
		t.Errorf("%d code fences in %q", n, got.Text)
	}
}

func TestStreamThatStaysOpenAfterTheFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := time.Now()
		got := askPipe(t, func(ctx context.Context, w io.Writer) {
			_, _ = fmt.Fprintf(w, "data: %s\n\ndata: %s\n\n", text("yes"), finish("stop"))
			<-ctx.Done()
		})
		if got.Err != nil || got.Finished == nil {
			t.Errorf("turn: %+v", got)
		}
		if took := time.Since(from); took > 10*time.Second {
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
		backends[assistanttest.Reply](w, r)
	}))
	defer server.Close()
	turn := question("Hi")
	turn.Model = "other"
	if err := ask(t.Context(), newModel(t, server.URL), turn).Err; err != nil {
		t.Fatal(err)
	}
	const want = `{"model":"other","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}],"stream":true,"stream_options":{"include_usage":true}}`
	if diff := cmp.Diff(want, strings.TrimSpace(string(body))); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if err := messagestest.OpenAI(body); err != nil {
		t.Error(err)
	}
	if got := header.Get("Authorization"); got != "Bearer "+testKey {
		t.Errorf("Authorization %q", got)
	}
}

func TestNewNamesTheOptionToChange(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		config openai.Config
		want   string
	}{
		"nothing":          {openai.Config{Model: "m"}, "OPENAI_API_KEY"},
		"key with a break": {openai.Config{APIKey: "sk-a\nb", Model: "m"}, "OPENAI_API_KEY"},
		"no model":         {openai.Config{APIKey: "k"}, "OPENAI_MODEL"},
		"no scheme":        {openai.Config{BaseURL: "localhost:8080/v1", Model: "m"}, "OPENAI_BASE_URL"},
		"a password":       {openai.Config{BaseURL: "https://me:secret-word@api.example.com/v1", Model: "m"}, "OPENAI_BASE_URL"},
		"a query":          {openai.Config{BaseURL: "https://api.example.com/v1?key=secret-word", Model: "m"}, "OPENAI_BASE_URL"},
		"a bad escape":     {openai.Config{BaseURL: "https://secret-word%zz/v1", Model: "m"}, "OPENAI_BASE_URL"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := openai.New(tt.config)
			assistanttest.CheckOption(t, err, tt.want)
		})
	}
	if _, err := openai.New(openai.Config{BaseURL: " http://127.0.0.1:1/v1/ ", Model: "m"}); err != nil {
		t.Errorf("a local server needs no key: %v", err)
	}
}
