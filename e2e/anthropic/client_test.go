package anthropic_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	client "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"remote-agent/internal/assistant"
	own "remote-agent/internal/assistant/anthropic"
	"remote-agent/internal/assistant/assistanttest"
	"remote-agent/internal/emulator/anthropic"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

const testKey = "sk-ant-canary_0123456789abcdef"

// sent is a request as it arrived.
type sent struct {
	method, path string
	header       http.Header
	body         []byte
}

// serve answers every request with the same stream and keeps the last request.
func serve(t *testing.T, stream []byte) (url string, last func() sent) {
	t.Helper()
	var got sent
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = sent{r.Method, r.URL.Path, r.Header.Clone(), body}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(stream)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() sent { return got }
}

func ownModel(t *testing.T, url string, change func(*own.Config)) *own.Model {
	t.Helper()
	c := own.Config{APIKey: testKey, BaseURL: url, Model: "test-model"}
	if change != nil {
		change(&c)
	}
	m, err := own.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.CloseIdleConnections)
	return m
}

func sdk(t *testing.T, url string) client.MessageService {
	t.Helper()
	web := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(web.CloseIdleConnections)
	return client.NewMessageService(option.WithBaseURL(url), option.WithAPIKey(testKey), option.WithHTTPClient(web),
		option.WithMaxRetries(0), option.WithoutOpenTelemetry())
}

// everything is a request with all that our client knows how to send.
func everything() assistant.Request {
	const model = "test-model"
	return assistant.Request{
		Conversation: "c", System: "Be <brief> & kind.",
		Tools: []messages.ToolSpec{
			{Name: "read", Description: "Reads.", Schema: json.RawMessage(`{"type":"object","required":["path"],"properties":{"path":{"type":"string"}}}`)},
			{Name: "list"},
		},
		Array: []messages.Message{
			{Role: messages.RoleUser, Blocks: []messages.Block{
				messages.Text{Text: "Look at this."},
				messages.Attachment{Name: "a.png", MediaType: "image/png", Data: "\x89PNG\r\n"},
				messages.Attachment{Name: "b.txt", Text: "some text"},
			}},
			{Role: messages.RoleAssistant, Blocks: []messages.Block{
				messages.Thinking{Text: "hm", Signature: "c2ln", Provider: "anthropic", Model: model},
				messages.Thinking{Signature: "redacted:ZGF0YQ==", Provider: "anthropic", Model: model},
				messages.Text{Text: "I look."},
				messages.ToolCall{ID: "c1", Name: "read", Arguments: `{"path":"ä/<x>","n":1.5}`},
				messages.ToolCall{ID: "c2", Name: "list", Arguments: ""},
			}},
			{Role: messages.RoleTool, Blocks: []messages.Block{
				messages.ToolResult{CallID: "c1", Content: "content"},
				messages.ToolResult{CallID: "c2", Content: "no such folder", IsError: true},
			}},
			messages.NewText(messages.RoleUser, "Stop after this."),
		},
	}
}

// TestSDKReadsWhatWeSend reads our requests with the SDK's types and writes them
// again: what the SDK does not know would be gone.
func TestSDKReadsWhatWeSend(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*own.Config){
		"plain":    nil,
		"budget":   func(c *own.Config) { c.ThinkingBudget = 2048 },
		"adaptive": func(c *own.Config) { c.ThinkingBudget, c.Effort = own.ThinkingAdaptive, "xhigh" },
	} {
		url, last := serve(t, nil)
		assistanttest.Collect(ownModel(t, url, change).Complete(deadline(t), everything()))
		ours := last()
		var params client.MessageNewParams
		if err := json.Unmarshal(ours.body, &params); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, ours.body)
		}
		if len(params.Messages) != 3 || len(params.Messages[0].Content) != 3 || params.Messages[0].Content[1].OfImage == nil ||
			params.Messages[1].Content[0].OfThinking == nil || params.Messages[1].Content[3].OfToolUse == nil || params.Messages[2].Content[0].OfToolResult == nil {
			t.Errorf("%s: the SDK reads %+v", name, params)
		}
		// The SDK sends it with its own client: the same body, and the same headers
		// as far as they are the API's.
		theirClient := sdk(t, url)
		stream := theirClient.NewStreaming(deadline(t), params)
		for stream.Next() {
		}
		_ = stream.Close()
		theirs := last()
		if diff := cmp.Diff(value(t, theirs.body), value(t, ours.body)); diff != "" {
			t.Errorf("%s: the request (-SDK +ours):\n%s", name, diff)
		}
		if ours.method != theirs.method || ours.path != theirs.path {
			t.Errorf("%s: %s %s, the SDK sends %s %s", name, ours.method, ours.path, theirs.method, theirs.path)
		}
		for _, h := range []string{"X-Api-Key", "Anthropic-Version", "Content-Type", "Authorization"} {
			if got, want := ours.header.Get(h), theirs.header.Get(h); got != want {
				t.Errorf("%s: %s is %q, the SDK sends %q", name, h, got, want)
			}
		}
	}
}

func value(t *testing.T, body []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return v
}

// answer is what a client makes of a stream.
type answer struct {
	Text     string
	Thoughts string
	Signed   []string
	Calls    []string
	Stop     string
	Input    int64
	Output   int64
	Cached   int64
	Written  int64
}

// TestSameStreamsSameAnswers gives recorded streams to the SDK and to our client.
func TestSameStreamsSameAnswers(t *testing.T) {
	t.Parallel()
	for name, stream := range recorded(t) {
		url, _ := serve(t, stream)
		theirs, ended, theirErr := sdkAnswer(t, url)
		ours, ourErr := ownAnswer(t, url)
		switch {
		case theirErr != nil, !ended:
			// The SDK takes a stream that was cut for a whole one.
			if !fault.Is(ourErr, fault.Unavailable) {
				t.Errorf("%s: the SDK says %v (ended: %v), we say %v", name, theirErr, ended, ourErr)
			}
			continue
		case theirs.Stop == "refusal", theirs.Stop == "pause_turn":
			if ourErr == nil {
				t.Errorf("%s: ends with %s, and we take it for an answer", name, theirs.Stop)
			}
			theirs = answer{Text: theirs.Text, Thoughts: theirs.Thoughts}
		case ourErr != nil:
			t.Errorf("%s: %v", name, ourErr)
		}
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Errorf("%s (-SDK +ours):\n%s", name, diff)
		}
	}
}

func sdkAnswer(t *testing.T, url string) (a answer, ended bool, err error) {
	t.Helper()
	got := stream(deadline(t), sdk(t, url), user("x"))
	for _, b := range got.message.Content {
		a.Text += b.Text
		a.Thoughts += b.Thinking
		switch b.Type {
		case "thinking":
			a.Signed = append(a.Signed, b.Signature)
		case "redacted_thinking":
			a.Signed = append(a.Signed, "redacted:"+b.Data)
		case "tool_use":
			a.Calls = append(a.Calls, call(t, b.ID, b.Name, string(b.Input)))
		}
	}
	u := got.message.Usage
	a.Stop, a.Output, a.Cached, a.Written = string(got.message.StopReason), u.OutputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens
	a.Input = u.InputTokens + a.Cached + a.Written
	n := len(got.events)
	return a, n > 0 && got.events[n-1] == "message_stop", got.err
}

func ownAnswer(t *testing.T, url string) (a answer, err error) {
	t.Helper()
	request := assistant.Request{Array: []messages.Message{messages.NewText(messages.RoleUser, "x")}}
	got := assistanttest.Collect(ownModel(t, url, nil).Complete(deadline(t), request))
	a.Text, a.Thoughts = got.Text, got.Thoughts
	if got.Err != nil {
		return a, got.Err
	}
	for _, b := range got.Messages[0].Blocks {
		switch b := b.(type) {
		case messages.Thinking:
			a.Signed = append(a.Signed, b.Signature)
		case messages.ToolCall:
			a.Calls = append(a.Calls, call(t, b.ID, b.Name, b.Arguments))
		case messages.Text, messages.ToolResult, messages.Attachment:
		}
	}
	var metadata struct {
		Stop string `json:"stop_reason"`
	}
	if err := json.Unmarshal(got.Messages[0].ProviderMetadata, &metadata); err != nil {
		t.Fatal(err)
	}
	u := got.Finished.Usage
	a.Stop, a.Input, a.Output, a.Cached, a.Written = metadata.Stop, u.InputTokens, u.OutputTokens, u.CachedTokens, u.WrittenTokens
	return a, nil
}

func call(t *testing.T, id, name, input string) string {
	t.Helper()
	return fmt.Sprint(id, " ", name, " ", value(t, []byte(input)))
}

// recorded returns streams by where they are from: those that the SDK's authors
// recorded of the API for their own tests, and those of our emulator.
func recorded(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	dir := sdkDir(t)
	for _, pattern := range []string{"toolrunner/testdata/cassettes/*.yaml", "lib/betafallback/testdata/*/*.sse"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("the SDK has no %s any more: %v", pattern, err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for i, stream := range streams(t, file, raw) {
				all[fmt.Sprintf("%s %d", filepath.Base(file), i)] = stream
			}
		}
	}
	if len(all) < 6 {
		t.Errorf("only %d recorded streams were found in the SDK", len(all))
	}
	for name, r := range map[string]anthropic.Response{
		"all kinds": anthropic.Reply(anthropic.Thought("let me "), anthropic.Ping(2), anthropic.Thought("think"), anthropic.Redacted(), anthropic.Delta("I löok."),
			anthropic.ToolUse(anthropic.Call{ID: "toolu_1", Name: "read", Arguments: `{"path":"ä.txt"}`, Pieces: 4}),
			anthropic.ToolUse(anthropic.Call{ID: "toolu_2", Name: "list", Arguments: `{}`})),
		"CRLF":            anthropic.Text("a", "b").WithCRLF(),
		"unknown event":   anthropic.Reply(anthropic.Delta("a"), anthropic.Raw("event: news\ndata: {\"type\":\"news\"}\n\n: comment\n\n"), anthropic.Delta("b")),
		"unknown block":   anthropic.Reply(anthropic.Delta("a"), anthropic.Block(`{"type":"hologram","data":"x"}`), anthropic.Delta("b")),
		"words after it":  anthropic.Calls(anthropic.Call{ID: "toolu_1", Name: "read", Arguments: `{"path":"x"}`}).Then(anthropic.Delta("x")).WithStop("tool_use"),
		"usage":           anthropic.Text("x").WithUsage(7, 9),
		"refusal":         anthropic.Refuse("I "),
		"cut":             anthropic.Text("half").Then(anthropic.Cut()),
		"cut in a call":   anthropic.Text("half").Then(anthropic.Raw("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"b\",\"input\":{}}}\n\n"), anthropic.Cut()),
		"cut at the end":  anthropic.Text("half").Then(anthropic.Raw("event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\n"), anthropic.Cut()),
		"error inside":    anthropic.Text("half").Then(anthropic.StreamError("overloaded_error", "Overloaded")),
		"garbage":         anthropic.Text("half").Then(anthropic.Raw("event: content_block_delta\ndata: {\"type\":\n\n")),
		"huge":            anthropic.Pieces(strings.Repeat("wörld ", 20000), 1000),
		"nothing, ending": anthropic.Text("x").Then(anthropic.EndBlock(), anthropic.Delta("y")),
	} {
		all["emulator: "+name] = play(t, r)
	}
	return all
}

// play returns the stream in which the emulator answers a request whose beginning
// it has in its cache.
func play(t *testing.T, r anthropic.Response) []byte {
	t.Helper()
	const body = `{"model":"test-model","max_tokens":64,"stream":true,"system":[{"type":"text","text":"Be brief and kind.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"x"}]}`
	s := anthropic.New(anthropic.Options{})
	s.Enqueue(anthropic.Text("not this one"), r)
	rec := httptest.NewRecorder()
	for range 2 {
		rec = httptest.NewRecorder()
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", strings.NewReader(body))
		req.Header.Set("X-Api-Key", "k")
		req.Header.Set("Anthropic-Version", "2023-06-01")
		s.Handler().ServeHTTP(rec, req)
		if rec.Code != http.StatusOK {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
	}
	return rec.Body.Bytes()
}

func sdkDir(t *testing.T) string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/anthropics/anthropic-sdk-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(dir))
}

// streams returns those of a file: a stream as it is, or a cassette with requests
// and their answers.
func streams(t *testing.T, file string, raw []byte) (all [][]byte) {
	t.Helper()
	if filepath.Ext(file) == ".sse" {
		return [][]byte{raw}
	}
	var cassette struct {
		Interactions []struct {
			Response struct {
				Body string `yaml:"body"`
			} `yaml:"response"`
		} `yaml:"interactions"`
	}
	if err := yaml.Unmarshal(raw, &cassette); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for _, i := range cassette.Interactions {
		if body := []byte(i.Response.Body); bytes.HasPrefix(body, []byte("event: ")) {
			all = append(all, body)
		}
	}
	return all
}
