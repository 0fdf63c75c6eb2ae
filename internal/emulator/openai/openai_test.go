package openai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	client "github.com/sashabaranov/go-openai"
	"go.uber.org/goleak"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func setup(tb testing.TB, opts openai.Options) (*openai.Server, *client.Client) {
	tb.Helper()
	opts.APIKey = "key"
	s := openai.New(opts)
	if err := s.Start(); err != nil {
		tb.Fatal(err)
	}
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	config := client.DefaultConfig("key")
	config.BaseURL, config.HTTPClient = s.URL(), web
	tb.Cleanup(func() {
		s.Close()
		web.CloseIdleConnections()
	})
	return s, client.NewClientWithConfig(config)
}

func deadline(tb testing.TB) context.Context {
	tb.Helper()
	return waittest.Context(tb.Context(), tb)
}

func user(text string) client.ChatCompletionRequest {
	return client.ChatCompletionRequest{
		Model:         "test",
		Messages:      []client.ChatCompletionMessage{{Role: "system", Content: "be brief"}, {Role: "user", Content: text}},
		StreamOptions: &client.StreamOptions{IncludeUsage: true},
	}
}

// streamed is what the client saw of a stream.
type streamed struct {
	deltas []string
	args   map[int]string
	names  map[int]string
	finish string
	usage  *client.Usage
	err    error
}

func (s streamed) text() string { return strings.Join(s.deltas, "") }

func stream(ctx context.Context, c *client.Client, req client.ChatCompletionRequest) streamed {
	out := streamed{args: map[int]string{}, names: map[int]string{}}
	events, err := c.CreateChatCompletionStream(ctx, req)
	if err != nil {
		out.err = err
		return out
	}
	defer events.Close()
	for {
		chunk, err := events.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				out.err = err
			}
			return out
		}
		if chunk.Usage != nil {
			out.usage = chunk.Usage
		}
		for _, choice := range chunk.Choices {
			if choice.Delta.Content != "" {
				out.deltas = append(out.deltas, choice.Delta.Content)
			}
			for _, call := range choice.Delta.ToolCalls {
				out.args[*call.Index] += call.Function.Arguments
				out.names[*call.Index] += call.Function.Name
			}
			if choice.FinishReason != "" {
				out.finish = string(choice.FinishReason)
			}
		}
	}
}

func TestEcho(t *testing.T) {
	t.Parallel()
	s, c := setup(t, openai.Options{})
	got := stream(deadline(t), c, user("hello"))
	if got.err != nil || got.text() != "echo: hello [1 messages]" || got.finish != "stop" || got.usage == nil || got.usage.TotalTokens == 0 {
		t.Errorf("streamed %+v", got)
	}
	req := user("again")
	req.StreamOptions = nil
	whole, err := c.CreateChatCompletion(deadline(t), req)
	if err != nil || whole.Choices[0].Message.Content != "echo: again [1 messages]" || whole.Choices[0].FinishReason != "stop" {
		t.Errorf("whole %+v, %v", whole, err)
	}
	if err := s.Wait(deadline(t), func(st openai.Stats) bool { return st.Completed == 2 }); err != nil {
		t.Fatal(err)
	}
	r := s.Requests()
	if len(r) != 2 || r[0].LastUserText() != "hello" || strings.Join(r[0].Roles(), ",") != "system,user" || r[0].Header.Get("Authorization") != "" {
		t.Errorf("requests %+v", r)
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	_, c := setup(t, openai.Options{Models: []string{"test", "other"}})
	list, err := c.ListModels(deadline(t))
	if err != nil || len(list.Models) != 2 || list.Models[0].ID != "test" {
		t.Errorf("models %+v, %v", list, err)
	}
	req := user("x")
	req.Model = "missing"
	got := stream(deadline(t), c, req)
	if e, ok := errors.AsType[*client.APIError](got.err); !ok || e.HTTPStatusCode != 404 || e.Code != "model_not_found" {
		t.Errorf("error %v", got.err)
	}
}

func TestParallelToolCalls(t *testing.T) {
	t.Parallel()
	s, c := setup(t, openai.Options{})
	answer := openai.Text("let me see").Then(openai.CallSteps(
		openai.Call{ID: "call_1", Name: "read", Arguments: `{"path":"ä.txt"}`, Pieces: 4},
		openai.Call{ID: "call_2", Name: "list", Arguments: `{}`},
	)...)
	s.Enqueue(answer, answer)
	req := user("look")
	tool := func(name string) client.Tool {
		return client.Tool{Type: "function", Function: &client.FunctionDefinition{Name: name, Parameters: map[string]any{"type": "object"}}}
	}
	req.Tools = []client.Tool{tool("read"), tool("list")}
	got := stream(deadline(t), c, req)
	if got.err != nil || got.finish != "tool_calls" || got.text() != "let me see" ||
		got.args[0] != `{"path":"ä.txt"}` || got.args[1] != `{}` || got.names[0] != "read" || got.names[1] != "list" {
		t.Errorf("streamed %+v", got)
	}
	req.StreamOptions = nil
	whole, err := c.CreateChatCompletion(deadline(t), req)
	if err != nil {
		t.Fatal(err)
	}
	m := whole.Choices[0].Message
	if len(m.ToolCalls) != 2 || m.ToolCalls[0].Function.Arguments != `{"path":"ä.txt"}` {
		t.Errorf("whole %+v", m)
	}
	// What the client makes of it must pass the checks.
	req.Messages = append(req.Messages, m,
		client.ChatCompletionMessage{Role: "tool", ToolCallID: "call_1", Content: "text"},
		client.ChatCompletionMessage{Role: "tool", ToolCallID: "call_2", Content: "files"})
	if _, err := c.CreateChatCompletion(deadline(t), req); err != nil {
		t.Error(err)
	}
}

func TestStreamsThatEndBadly(t *testing.T) {
	t.Parallel()
	s, c := setup(t, openai.Options{})
	s.Enqueue(openai.Text("half").Then(openai.Cut()))
	if got := stream(deadline(t), c, user("x")); got.err != nil || got.finish != "" || got.text() != "half" {
		t.Errorf("cut: %+v", got)
	}
	s.Enqueue(openai.Text("half").Then(openai.StreamError("overloaded_error", "too busy")))
	if got := stream(deadline(t), c, user("x")); got.err == nil || !strings.Contains(got.err.Error(), "too busy") {
		t.Errorf("error in the stream: %+v", got)
	}
	gate := emulator.NewGate()
	s.Enqueue(openai.Text("half").Then(openai.Gate(gate), openai.Reset()))
	done := make(chan streamed, 1)
	go func() { done <- stream(deadline(t), c, user("x")) }()
	<-gate.Reached()
	gate.Open()
	if got := <-done; got.err == nil || got.finish != "" {
		t.Errorf("reset: %+v", got)
	}
}

func TestFramings(t *testing.T) {
	t.Parallel()
	s, c := setup(t, openai.Options{})
	long := strings.Repeat("wörld ", 20000)
	for name, r := range map[string]openai.Response{
		"CRLF":       openai.Text("a", "b").WithCRLF(),
		"no space":   openai.Text("a", "b").WithoutSpace(),
		"keep-alive": openai.Reply(openai.Delta("a"), openai.KeepAlive(50), openai.Delta("b")),
		"pause":      openai.Reply(openai.Delta("a"), openai.Pause(time.Millisecond), openai.Delta("b")),
		"no role":    openai.Text("a", "b").WithoutRole().WithStop("length").WithUsage(3, 4),
		"huge":       openai.Pieces(long, 1000),
	} {
		want := "ab"
		if name == "huge" {
			want = long
		}
		s.Enqueue(r)
		if got := stream(deadline(t), c, user("x")); got.err != nil || got.text() != want || got.finish == "" {
			t.Errorf("%s: finish %q, %d bytes, %v", name, got.finish, len(got.text()), got.err)
		}
	}
}

func TestErrorAnswers(t *testing.T) {
	t.Parallel()
	s, c := setup(t, openai.Options{})
	for name, test := range map[string]struct {
		response openai.Response
		status   int
		code     any
	}{
		"rate limit": {openai.RateLimited(2 * time.Second), 429, "rate_limit_exceeded"},
		"quota":      {openai.QuotaExhausted(), 429, "insufficient_quota"},
		"overload":   {openai.Overloaded(), 529, nil},
		"server":     {openai.ServerError(503), 503, nil},
		"key":        {openai.Unauthorized(), 401, "invalid_api_key"},
		"overflow":   {openai.ContextOverflow(100, 200), 400, "context_length_exceeded"},
	} {
		s.Enqueue(test.response)
		got := stream(deadline(t), c, user("x"))
		e, ok := errors.AsType[*client.APIError](got.err)
		if !ok || e.HTTPStatusCode != test.status || test.code != nil && e.Code != test.code {
			t.Errorf("%s: %v", name, got.err)
		}
	}
	for after, header := range map[time.Duration]string{2 * time.Second: "Retry-After=2", 250 * time.Millisecond: "Retry-After-Ms=250"} {
		s.Enqueue(openai.RateLimited(after))
		resp := post(t, s, "key", `{"model":"m","messages":[{"role":"user","content":"x"}]}`)
		name, value, _ := strings.Cut(header, "=")
		if resp.header.Get(name) != value || resp.status != 429 {
			t.Errorf("%s: %+v", header, resp)
		}
	}
	s.Enqueue(openai.Page(502, "<html>bad gateway</html>"))
	if resp := post(t, s, "key", `{"model":"m","messages":[{"role":"user","content":"x"}]}`); resp.status != 502 || !strings.Contains(resp.body, "<html>") {
		t.Errorf("page: %+v", resp)
	}
	if resp := post(t, s, "wrong", `{}`); resp.status != 401 {
		t.Errorf("wrong key: %+v", resp)
	}
}

func TestCancellationIsSeen(t *testing.T) {
	t.Parallel()
	s, c := setup(t, openai.Options{})
	gate := emulator.NewGate() // never opened: an idle stall
	s.Enqueue(openai.Text("thinking").Then(openai.Gate(gate), openai.Delta("never")))
	ctx, cancel := context.WithCancel(deadline(t))
	done := make(chan streamed, 1)
	go func() { done <- stream(ctx, c, user("x")) }()
	if r, err := s.WaitRequest(deadline(t), 1); err != nil || r.N != 1 {
		t.Fatalf("request %+v, %v", r, err)
	}
	<-gate.Reached()
	cancel()
	if got := <-done; got.err == nil || got.finish != "" {
		t.Errorf("streamed %+v", got)
	}
	if err := s.Wait(deadline(t), func(st openai.Stats) bool { return st.Canceled == 1 && st.Active == 0 }); err != nil {
		t.Errorf("%v: %+v", err, s.Stats())
	}
}

func TestCloseEndsAnswers(t *testing.T) {
	t.Parallel()
	s, c := setup(t, openai.Options{})
	gate := emulator.NewGate()
	s.Enqueue(openai.Reply(openai.Gate(gate)))
	done := make(chan streamed, 1)
	go func() { done <- stream(deadline(t), c, user("x")) }()
	<-gate.Reached()
	s.Close()
	if got := <-done; got.finish != "" {
		t.Errorf("streamed %+v", got)
	}
}

type posted struct {
	status int
	body   string
	header http.Header
}

func post(tb testing.TB, s *openai.Server, key, body string) posted {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, s.URL()+"/chat/completions", strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return posted{resp.StatusCode, string(b), resp.Header}
}

func TestRequestsAreChecked(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, openai.Options{ContextTokens: 1000})
	const (
		hi     = `{"role":"user","content":"hi"}`
		calls  = `{"role":"assistant","content":null,"tool_calls":[%s]}`
		one    = `{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`
		two    = `{"id":"b","type":"function","function":{"name":"f","arguments":"not json"}}`
		result = `{"role":"tool","tool_call_id":"%s","content":"x"}`
	)
	call := func(list string) string { return fmt.Sprintf(calls, list) }
	res := func(id string) string { return fmt.Sprintf(result, id) }
	long := strings.Repeat("x", 65)
	cases := []struct{ want, messages string }{
		{"", hi},
		{"", hi + "," + call(one+","+two) + "," + res("b") + "," + res("a")},
		{"", hi + "," + call(one) + `,{"role":"tool","tool_call_id":"a","content":""},` + hi},
		{"", `{"role":"developer","content":"x"},{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}`},
		{"did not have response messages: a", hi + "," + call(one)},
		{"did not have response messages: b", hi + "," + call(one+","+two) + "," + res("a") + "," + hi},
		{"did not have response messages: a", call(one) + "," + hi + "," + res("a")},
		{"must be a response to a preceeding message", hi + "," + res("a")}, //nolint:misspell // as the API spells it
		{"not found in 'tool_calls'", call(one) + "," + res("b")},
		{"Duplicate response", call(one) + "," + res("a") + "," + res("a")},
		{"Duplicate tool call id", call(one+","+one) + "," + res("a")},
		{"got null", `{"role":"user","content":null}`},
		{"got null", `{"role":"assistant"}`},
		{"got null", call(one) + `,{"role":"tool","tool_call_id":"a"}`},
		{"empty string", `{"role":"user","content":""}`},
		{"empty string", `{"role":"assistant","content":""}`},
		{"empty string", `{"role":"user","content":[{"type":"text","text":""}]}`},
		{"empty array", `{"role":"user","content":[]}`},
		{"empty array", `{"role":"assistant","content":"x","tool_calls":[]}`},
		{"Invalid value: 'robot'", `{"role":"robot","content":"x"}`},
		{"tool_call_id", `{"role":"tool","content":"x"}`},
		{"string too long", call(strings.Replace(one, `"a"`, `"`+long+`"`, 1))},
		{"does not match pattern", call(strings.Replace(one, `"a"`, `"a b"`, 1))},
		{"string too long", call(strings.Replace(one, `"f"`, `"`+long+`"`, 1))},
		{"arguments", call(`{"id":"a","type":"function","function":{"name":"f"}}`)},
		{"maximum context length is 1000", `{"role":"user","content":"` + strings.Repeat("x", 8000) + `"}`},
		{"Invalid type", `{"role":7}`},
		{"", call(one) + "," + res("a") + `,{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}`},
		{"Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL",
			call(one) + `,{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]}`},
		{"unsupported image", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/bmp;base64,iVBORw=="}}]}`},
	}
	for _, c := range cases {
		check(t, s, c.want, `{"model":"m","messages":[`+c.messages+`]}`)
	}
	whole := []struct{ want, body string }{
		{"could not parse the JSON body", `{`},
		{"could not parse the JSON body", "{\"model\":\"\xff\"}"},
		{"must provide a model", `{"messages":[` + hi + `]}`},
		{"Missing required parameter: 'messages'", `{"model":"m"}`},
		{"empty array", `{"model":"m","messages":[]}`},
		{"Unrecognized request argument supplied: system", `{"model":"m","system":"x","messages":[` + hi + `]}`},
		{"only allowed when 'stream'", `{"model":"m","stream_options":{"include_usage":true},"messages":[` + hi + `]}`},
		{"'tools': empty array", `{"model":"m","tools":[],"messages":[` + hi + `]}`},
		{"'tools' are specified", `{"model":"m","tool_choice":"auto","messages":[` + hi + `]}`},
		{"must be unique", `{"model":"m","tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}],"messages":[` + hi + `]}`},
		{"at the same time", `{"model":"m","max_tokens":1,"max_completion_tokens":1,"messages":[` + hi + `]}`},
		{"between 0 and 2", `{"model":"m","temperature":3,"messages":[` + hi + `]}`},
	}
	for _, c := range whole {
		check(t, s, c.want, c.body)
	}
	if st := s.Stats(); st.Received != 5 || st.Refused != len(cases)+len(whole)-5 || len(s.Refusals()) != st.Refused {
		t.Errorf("stats %+v", st)
	}
}

func check(t *testing.T, s *openai.Server, want, body string) {
	t.Helper()
	got := post(t, s, "key", body)
	switch {
	case want == "" && got.status != 200:
		t.Errorf("%.300s was refused: %s", body, got.body)
	case want != "" && (got.status != 400 || !strings.Contains(got.body, want) || !strings.HasPrefix(got.body, `{"error":{`)):
		t.Errorf("%.300s: got %d %s, want %q", body, got.status, got.body, want)
	}
}

func BenchmarkStream(b *testing.B) {
	_, c := setup(b, openai.Options{KeepRequests: -1})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if got := stream(b.Context(), c, user("hello")); got.finish != "stop" {
				b.Fatalf("%+v", got)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}
