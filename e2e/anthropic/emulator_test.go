package anthropic_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	client "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"go.uber.org/goleak"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/anthropic"
	"remote-agent/internal/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const model = client.Model("test-model")

func setup(tb testing.TB, opts anthropic.Options) (*anthropic.Server, client.MessageService) {
	tb.Helper()
	opts.APIKey = "key"
	s := anthropic.New(opts)
	if err := s.Start(); err != nil {
		tb.Fatal(err)
	}
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	tb.Cleanup(func() {
		s.Close()
		web.CloseIdleConnections()
	})
	return s, client.NewMessageService(option.WithBaseURL(s.URL()), option.WithAPIKey("key"), option.WithHTTPClient(web),
		option.WithMaxRetries(0), option.WithoutOpenTelemetry())
}

func deadline(tb testing.TB) context.Context {
	tb.Helper()
	return waittest.Context(tb.Context(), tb)
}

func ask(blocks ...client.ContentBlockParamUnion) client.MessageNewParams {
	return client.MessageNewParams{
		Model: model, MaxTokens: 4096, Messages: []client.MessageParam{client.NewUserMessage(blocks...)},
		System: []client.TextBlockParam{{Text: "be brief"}},
	}
}

func user(text string) client.MessageNewParams { return ask(client.NewTextBlock(text)) }

// streamed is what the client saw of a stream.
type streamed struct {
	message client.Message
	events  []string
	err     error
}

func stream(ctx context.Context, c client.MessageService, params client.MessageNewParams) (out streamed) {
	events := c.NewStreaming(ctx, params)
	defer events.Close()
	for events.Next() {
		event := events.Current()
		out.events = append(out.events, event.Type)
		if err := out.message.Accumulate(event); err != nil {
			out.err = err
			return out
		}
	}
	out.err = events.Err()
	return out
}

func (s streamed) text() string { return textOf(s.message) }

func textOf(m client.Message) string {
	var text strings.Builder
	for _, b := range m.Content {
		text.WriteString(b.Text)
	}
	return text.String()
}

func TestEcho(t *testing.T) {
	t.Parallel()
	s, c := setup(t, anthropic.Options{})
	got := stream(deadline(t), c, user("hello"))
	if got.err != nil || got.text() != "echo: hello [1 messages]" || got.message.StopReason != "end_turn" ||
		got.message.Usage.InputTokens == 0 || got.message.Usage.OutputTokens < 2 {
		t.Errorf("streamed %+v", got)
	}
	want := "message_start content_block_start content_block_delta content_block_delta content_block_delta content_block_stop message_delta message_stop"
	if order := strings.Join(got.events, " "); order != want {
		t.Errorf("events %s", order)
	}
	whole, err := c.New(deadline(t), user("again"))
	if err != nil || textOf(*whole) != "echo: again [1 messages]" || whole.StopReason != "end_turn" || whole.Usage.OutputTokens < 2 {
		t.Errorf("whole %+v, %v", whole, err)
	}
	if err := s.Wait(deadline(t), func(st anthropic.Stats) bool { return st.Completed == 2 }); err != nil {
		t.Fatal(err)
	}
	r := s.Requests()
	if len(r) != 2 || r[0].LastUserText() != "hello" || r[0].System() != "be brief" || r[0].Header.Get("X-Api-Key") != "" || !r[0].Stream || r[1].Stream {
		t.Errorf("requests %+v", r)
	}
}

func TestModelsAndCounting(t *testing.T) {
	t.Parallel()
	s, c := setup(t, anthropic.Options{Models: []string{model, "other"}})
	models := client.NewModelService(c.Options...)
	list, err := models.List(deadline(t), client.ModelListParams{})
	if err != nil || len(list.Data) != 2 || list.Data[0].ID != model {
		t.Errorf("models %+v, %v", list, err)
	}
	params := user("x")
	params.Model = "missing"
	got := stream(deadline(t), c, params)
	if e, ok := errors.AsType[*client.Error](got.err); !ok || e.StatusCode != http.StatusNotFound || e.Type() != "not_found_error" {
		t.Errorf("error %v", got.err)
	}
	short, err := c.CountTokens(deadline(t), client.MessageCountTokensParams{Model: model, Messages: user("x").Messages})
	if err != nil {
		t.Fatal(err)
	}
	long, err := c.CountTokens(deadline(t), client.MessageCountTokensParams{Model: model, Messages: user(strings.Repeat("x", 400)).Messages})
	if err != nil || long.InputTokens < short.InputTokens+99 {
		t.Errorf("%d and %d tokens, %v", short.InputTokens, long.InputTokens, err)
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests were counted", n)
	}
}

// tools returns tools of the given names.
func tools(names ...string) []client.ToolUnionParam {
	var list []client.ToolUnionParam
	for _, name := range names {
		list = append(list, client.ToolUnionParam{OfTool: &client.ToolParam{Name: name, InputSchema: client.ToolInputSchemaParam{Type: "object"}}})
	}
	return list
}

// TestToolsAndThinking plays a whole turn as the SDK does it: what it makes of
// an answer must pass the checks of the next request.
func TestToolsAndThinking(t *testing.T) {
	t.Parallel()
	s, c := setup(t, anthropic.Options{})
	answer := anthropic.Reply(
		anthropic.Thought("let me "), anthropic.Ping(2), anthropic.Thought("think"), anthropic.Redacted(), anthropic.Delta("I look."),
		anthropic.ToolUse(anthropic.Call{ID: "toolu_1", Name: "read", Arguments: `{"path":"ä.txt"}`, Pieces: 4}),
		anthropic.ToolUse(anthropic.Call{ID: "toolu_2", Name: "list", Arguments: `{}`}),
	)
	s.Enqueue(answer, answer)
	params := user("look")
	params.Tools = tools("read", "list")
	params.Thinking = client.ThinkingConfigParamOfEnabled(1024)
	first := stream(deadline(t), c, params)
	whole, err := c.New(deadline(t), params)
	if first.err != nil || err != nil {
		t.Fatal(first.err, err)
	}
	for name, m := range map[string]client.Message{"streamed": first.message, "whole": *whole} {
		b := m.Content
		if len(b) != 5 || m.StopReason != "tool_use" || b[0].Thinking != "let me think" || b[0].Signature == "" || b[1].Data == "" ||
			b[2].Text != "I look." || string(b[3].Input) != `{"path":"ä.txt"}` || b[4].ID != "toolu_2" {
			t.Fatalf("%s: %+v", name, m)
		}
		next := params
		next.Messages = append(next.Messages, m.ToParam(), client.NewUserMessage(
			client.NewToolResultBlock("toolu_1", "text", false), client.NewToolResultBlock("toolu_2", "no such directory", true), client.NewTextBlock("and be quick"),
		))
		got := stream(deadline(t), c, next)
		if got.err != nil || got.text() != "echo: and be quick [3 messages]" {
			t.Errorf("%s: %q, %v", name, got.text(), got.err)
		}
	}
	last := s.Requests()[3]
	if last.LastUserBlock() != "and be quick" {
		t.Errorf("last block %q", last.LastUserBlock())
	}
	if r := last.Results(); len(r) != 2 || r[0].ResultText() != "text" || !r[1].IsError {
		t.Errorf("results %+v", r)
	}
}

func TestThinkingMustComeBackAsItWas(t *testing.T) {
	t.Parallel()
	s, c := setup(t, anthropic.Options{})
	s.Enqueue(anthropic.Reply(anthropic.Thought("one"), anthropic.EndBlock(), anthropic.Thought("two"), anthropic.Redacted(),
		anthropic.ToolUse(anthropic.Call{ID: "toolu_1", Name: "read", Arguments: "{}"})))
	params := user("look")
	params.Tools = tools("read")
	first := stream(deadline(t), c, params)
	if first.err != nil || len(first.message.Content) != 4 {
		t.Fatalf("%+v", first)
	}
	next := func(change func(*client.MessageNewParams, *client.MessageParam)) error {
		p, m := params, first.message.ToParam()
		change(&p, &m)
		p.Messages = append(p.Messages, m, client.NewUserMessage(client.NewToolResultBlock("toolu_1", "x", false)))
		return stream(deadline(t), c, p).err
	}
	for name, test := range map[string]struct {
		want   string
		change func(*client.MessageNewParams, *client.MessageParam)
	}{
		"unchanged":    {"", func(*client.MessageNewParams, *client.MessageParam) {}},
		"all left out": {"", func(_ *client.MessageNewParams, m *client.MessageParam) { m.Content = m.Content[3:] }},
		"text": {"Invalid `signature`", func(_ *client.MessageNewParams, m *client.MessageParam) {
			m.Content[0].OfThinking.Thinking = "One"
		}},
		"signature": {"Invalid `signature`", func(_ *client.MessageNewParams, m *client.MessageParam) {
			m.Content[0].OfThinking.Signature = strings.ToLower(m.Content[0].OfThinking.Signature)
		}},
		"no signature": {"Invalid `signature`", func(_ *client.MessageNewParams, m *client.MessageParam) { m.Content[0].OfThinking.Signature = "" }},
		"redacted data": {"Invalid `data`", func(_ *client.MessageNewParams, m *client.MessageParam) {
			m.Content[2].OfRedactedThinking.Data += "A"
		}},
		"another model": {"Invalid `signature`", func(p *client.MessageNewParams, _ *client.MessageParam) { p.Model = "other-model" }},
		"one left out":  {"cannot be modified", func(_ *client.MessageNewParams, m *client.MessageParam) { m.Content = m.Content[1:] }},
		"last left out": {"cannot be modified", func(_ *client.MessageNewParams, m *client.MessageParam) {
			m.Content = append(m.Content[:2:2], m.Content[3])
		}},
		"moved": {"cannot be modified", func(_ *client.MessageNewParams, m *client.MessageParam) {
			m.Content[0], m.Content[1] = m.Content[1], m.Content[0]
		}},
	} {
		err := next(test.change)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestPromptCache(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s, c := setup(t, anthropic.Options{Now: func() time.Time { return now }})
	mark := client.NewCacheControlEphemeralParam()
	params := client.MessageNewParams{Model: model, MaxTokens: 64, Tools: tools("a", "b")}
	params.Tools[1].OfTool.CacheControl = mark
	params.System = []client.TextBlockParam{{Text: strings.Repeat("rules ", 100), CacheControl: mark}}
	turn := func(text string) client.Usage {
		t.Helper()
		for _, m := range params.Messages {
			m.Content[0].OfText.CacheControl = client.CacheControlEphemeralParam{}
		}
		block := client.NewTextBlock(text)
		block.OfText.CacheControl = mark
		params.Messages = append(params.Messages, client.NewUserMessage(block))
		got := stream(deadline(t), c, params)
		if got.err != nil {
			t.Fatal(got.err)
		}
		params.Messages = append(params.Messages, client.NewAssistantMessage(client.NewTextBlock(got.text())))
		return got.message.Usage
	}
	first := turn("one")
	if first.CacheReadInputTokens != 0 || first.CacheCreationInputTokens < 150 || first.InputTokens != 0 {
		t.Errorf("first: %+v", first)
	}
	second := turn("two")
	if second.CacheReadInputTokens != first.CacheCreationInputTokens || second.CacheCreationInputTokens == 0 || second.CacheCreationInputTokens > 100 {
		t.Errorf("second: read %d, wrote %d", second.CacheReadInputTokens, second.CacheCreationInputTokens)
	}
	if r := s.Requests()[1].Usage; r.CacheRead != int(second.CacheReadInputTokens) {
		t.Errorf("recorded %+v", r)
	}
	now = now.Add(4 * time.Minute)
	if third := turn("three"); third.CacheReadInputTokens != second.CacheReadInputTokens+second.CacheCreationInputTokens {
		t.Errorf("third: %+v", third)
	}
	params.System[0].Text = "x" + params.System[0].Text // the tools are still the same
	if other := turn("four"); other.CacheReadInputTokens == 0 || other.CacheReadInputTokens > 100 {
		t.Errorf("other system prompt: %+v", other)
	}
	now = now.Add(6 * time.Minute)
	if late := turn("five"); late.CacheReadInputTokens != 0 {
		t.Errorf("after the time to live: %+v", late)
	}
}

func TestPausedTurn(t *testing.T) {
	t.Parallel()
	s, c := setup(t, anthropic.Options{})
	paused := anthropic.Reply(anthropic.Delta("Searching."), anthropic.Block(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}`)).WithStop("pause_turn")
	s.Enqueue(paused, paused)
	params := user("search")
	for range 2 {
		got := stream(deadline(t), c, params)
		if got.err != nil || got.message.StopReason != "pause_turn" {
			t.Fatalf("%+v", got)
		}
		params.Messages = append(params.Messages, got.message.ToParam())
	}
	if got := stream(deadline(t), c, params); got.err != nil || got.text() != "echo: search [2 messages]" {
		t.Errorf("continued: %q, %v", got.text(), got.err)
	}
	params.Messages = append(params.Messages, client.NewAssistantMessage(client.NewTextBlock("and")))
	if got := stream(deadline(t), c, params); got.err == nil || !strings.Contains(got.err.Error(), "prefill") {
		t.Errorf("an answer that the client began: %v", got.err)
	}
	_, old := setup(t, anthropic.Options{Prefill: true})
	if got := stream(deadline(t), old, params); got.err != nil {
		t.Errorf("a model with prefill: %v", got.err)
	}
}

func TestStopReasons(t *testing.T) {
	t.Parallel()
	s, c := setup(t, anthropic.Options{})
	s.Enqueue(anthropic.Text("half").WithStop("max_tokens").WithUsage(7, 9), anthropic.Refuse("I "))
	if got := stream(deadline(t), c, user("x")); got.message.StopReason != "max_tokens" || got.message.Usage.InputTokens != 7 || got.message.Usage.OutputTokens != 9 {
		t.Errorf("%+v", got)
	}
	if got := stream(deadline(t), c, user("x")); got.message.StopReason != "refusal" || got.message.StopDetails.Category != "cyber" {
		t.Errorf("%+v", got)
	}
}

func TestStreamsThatEndBadly(t *testing.T) {
	t.Parallel()
	s, c := setup(t, anthropic.Options{})
	s.Enqueue(anthropic.Text("half").Then(anthropic.Cut()))
	if got := stream(deadline(t), c, user("x")); got.err != nil || got.message.StopReason != "" || got.text() != "half" {
		t.Errorf("cut: %+v", got)
	}
	s.Enqueue(anthropic.Text("half").Then(anthropic.StreamError("overloaded_error", "too busy")))
	got := stream(deadline(t), c, user("x"))
	if e, ok := errors.AsType[*client.Error](got.err); !ok || e.StatusCode != http.StatusOK || e.Type() != "overloaded_error" {
		t.Errorf("error in the stream: %+v", got)
	}
	gate := emulator.NewGate()
	s.Enqueue(anthropic.Text("half").Then(anthropic.Gate(gate), anthropic.Reset()))
	done := make(chan streamed, 1)
	go func() { done <- stream(deadline(t), c, user("x")) }()
	<-gate.Reached()
	gate.Open()
	if got := <-done; got.err == nil || got.message.StopReason != "" {
		t.Errorf("reset: %+v", got)
	}
	s.Enqueue(anthropic.Text("half").Then(anthropic.Cut()), anthropic.Text("half").Then(anthropic.StreamError("api_error", "oops")))
	for range 2 {
		if m, err := c.New(deadline(t), user("x")); err == nil {
			t.Errorf("in one piece: %+v", m)
		}
	}
}

func TestStall(t *testing.T) {
	t.Parallel()
	s, c := setup(t, anthropic.Options{})
	s.Enqueue(anthropic.Text("half").Then(anthropic.Gate(emulator.NewGate())))
	ctx, cancel := context.WithCancel(deadline(t))
	events := c.NewStreaming(ctx, user("x"))
	for events.Next() && events.Current().Type != "content_block_delta" {
	}
	cancel()
	_ = events.Close()
	if err := s.Wait(deadline(t), func(st anthropic.Stats) bool { return st.Canceled == 1 && st.Active == 0 }); err != nil {
		t.Error(err, s.Stats())
	}
}

func TestFramings(t *testing.T) {
	t.Parallel()
	s, c := setup(t, anthropic.Options{})
	long := strings.Repeat("wörld ", 20000)
	for name, r := range map[string]anthropic.Response{
		"ping":          anthropic.Reply(anthropic.Delta("a"), anthropic.Ping(400), anthropic.Delta("b")),
		"unknown event": anthropic.Reply(anthropic.Delta("a"), anthropic.Raw("event: news\ndata: {\"type\":\"news\"}\n\n: comment\n\n"), anthropic.Delta("b")),
		"unknown block": anthropic.Reply(anthropic.Delta("a"), anthropic.Block(`{"type":"hologram","data":"x"}`), anthropic.Delta("b")),
		"pause":         anthropic.Reply(anthropic.Delta("a"), anthropic.Pause(time.Millisecond), anthropic.Delta("b")),
		"huge":          anthropic.Pieces(long, 1000),
	} {
		want := "ab"
		if name == "huge" {
			want = long
		}
		s.Enqueue(r)
		if got := stream(deadline(t), c, user("x")); got.err != nil || got.text() != want || got.message.StopReason == "" {
			t.Errorf("%s: stop %q, %d bytes, %v", name, got.message.StopReason, len(got.text()), got.err)
		}
	}
	s.Enqueue(anthropic.Text("a").WithCRLF())
	if got := stream(deadline(t), c, user("x")); got.err != nil || got.text() != "a" {
		t.Errorf("CRLF: %+v", got)
	}
}

func TestErrorAnswers(t *testing.T) {
	t.Parallel()
	s, c := setup(t, anthropic.Options{})
	for name, test := range map[string]struct {
		response anthropic.Response
		status   int
		kind     string
	}{
		"rate limit":  {anthropic.RateLimited(2 * time.Second), 429, "rate_limit_error"},
		"spend limit": {anthropic.SpendLimit(), 429, "enforced_spend_limit_reached"},
		"no credit":   {anthropic.NoCredit(), 400, "invalid_request_error"},
		"overload":    {anthropic.Overloaded(), 529, "overloaded_error"},
		"server":      {anthropic.ServerError(503), 503, "api_error"},
		"key":         {anthropic.Unauthorized(), 401, "authentication_error"},
		"too long":    {anthropic.PromptTooLong(200, 100), 400, "invalid_request_error"},
		"too large":   {anthropic.TooLarge(), 413, "request_too_large"},
	} {
		s.Enqueue(test.response)
		got := stream(deadline(t), c, user("x"))
		e, ok := errors.AsType[*client.Error](got.err)
		if !ok || e.StatusCode != test.status || string(e.Type()) != test.kind || e.RequestID == "" {
			t.Errorf("%s: %v", name, got.err)
		}
	}
}

func TestOutputConfig(t *testing.T) {
	t.Parallel()
	s, c := setup(t, anthropic.Options{})
	s.Script(func(r anthropic.Request) anthropic.Response { return anthropic.Text(fmt.Sprint(r.WantsJSON())) })
	titled := user("x")
	titled.OutputConfig.Format = client.JSONOutputFormatParam{Schema: map[string]any{"type": "object"}}
	titled.OutputConfig.Effort = client.OutputConfigEffortXhigh
	if plain, got := stream(deadline(t), c, user("x")), stream(deadline(t), c, titled); plain.text() != "false" || got.text() != "true" {
		t.Errorf("%q, %q", plain.text(), got.text())
	}
}
