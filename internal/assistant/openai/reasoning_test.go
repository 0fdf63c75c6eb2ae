package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant/assistanttest"
	"remote-agent/internal/assistant/loop"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// TestReasoningByItsOtherName: so vLLM, Ollama and OpenRouter call it.
func TestReasoningByItsOtherName(t *testing.T) {
	t.Parallel()
	got := askServer(t, stream(
		`{"choices":[{"delta":{"role":"assistant","content":"","reasoning":"h"}}]}`, `{"choices":[{"delta":{"content":null,"reasoning":"m","reasoning_content":null}}]}`,
		`{"choices":[{"delta":{"reasoning":"!","reasoning_content":"!"}}]}`, text("yes"), finish("stop"), done))
	if got.Err != nil || got.Thoughts != "hm!" || got.Text != "yes" {
		t.Fatalf("turn: %+v", got)
	}
}

// TestTimesThatAreNoWholeSeconds: SambaNova's chunks have them, and nobody needs them.
func TestTimesThatAreNoWholeSeconds(t *testing.T) {
	t.Parallel()
	for _, created := range []string{"1746709563.492141", "1.7e9", `"2026-11-28"`, "null", "1746709563"} {
		chunk := func(delta string) string {
			return `{"created":` + created + `,"choices":[{"index":0,` + delta + `}]}`
		}
		got := askServer(t, stream(chunk(`"delta":{"content":"y\u0000\"created\": 1.5es"}`), chunk(`"delta":{},"finish_reason":"stop"`), usage, done))
		if got.Err != nil || got.Text != "y\x00\"created\": 1.5es" {
			t.Errorf("%s: %q, %v", created, got.Text, got.Err)
		}
	}
}

// TestReasoningThatIsWantedBack: DeepSeek's and Kimi's models refuse what they said with calls if
// what they thought before it is missing, in these words.
func TestReasoningThatIsWantedBack(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]string{
		"DeepSeek":   `{"error":{"message":"The ` + "`reasoning_content`" + ` in the thinking mode must be passed back to the API.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`,
		"Kimi":       `{"error":{"message":"thinking is enabled but reasoning_content is missing in assistant tool call message at index 3","type":"invalid_request_error"}}`,
		"OpenRouter": `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"thinking is enabled but reasoning_content is missing in assistant tool call message at index 3\"}}","provider_name":"Moonshot"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := make(chan string, 20) // by request, what stands as reasoning in each of the model's messages
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var request struct {
					Messages []struct {
						Role      string  `json:"role"`
						Reasoning *string `json:"reasoning_content"`
					} `json:"messages"`
				}
				_ = json.NewDecoder(r.Body).Decode(&request)
				is, missing, said := "", false, 0
				for _, m := range request.Messages {
					if m.Role == "assistant" {
						said++
						missing = missing || m.Reasoning == nil
						if m.Reasoning != nil {
							is += "<" + *m.Reasoning + ">"
						}
					}
				}
				told <- is
				switch {
				case missing:
					fails(400, refusal)(w, r)
				case said >= 3:
					stream(text("done"), finish("stop"), done)(w, r)
				default:
					stream(fmt.Sprintf(`{"choices":[{"delta":{"reasoning_content":"thought %d"}}]}`, said), call(0, fmt.Sprint("c", said), "look", fmt.Sprintf(`{"n":%d}`, said)), finish("tool_calls"), done)(w, r)
				}
			}))
			defer server.Close()
			m := newModel(t, server.URL)
			turn := question("Hi")
			turn.Host = &assistanttest.Host{Specs: []messages.ToolSpec{{Name: "look"}}}
			run := func() (result, []string) {
				got := assistanttest.Collect(loop.New(m, loop.Config{}).Run(t.Context(), turn))
				var all []string
				for len(told) > 0 {
					all = append(all, <-told)
				}
				return got, all
			}
			got, all := run()
			if want := []string{"", "", "< >", "< ><thought 1>", "< ><thought 1><thought 2>"}; got.Err != nil || got.Text != "done" || cmp.Diff(want, all) != "" {
				t.Errorf("%v, %q, %q", got.Err, got.Text, all)
			}

			// Another model is told nothing of it.
			turn.Array, turn.Model = append(turn.Array, got.Messages...), "other"
			turn.Array = append(turn.Array, messages.NewText(messages.RoleUser, "And now?"))
			if got, all := run(); got.Err != nil || cmp.Diff([]string{"", "< >< >< >< >"}, all) != "" {
				t.Errorf("%v: the other model is told %q", got.Err, all)
			}
		})
	}
}

// TestReasoningThatIsNotWanted: a server that does not know the field refuses it, and somebody
// whose words its error repeats keeps nobody else from being answered.
func TestReasoningThatIsNotWanted(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "reasoning_content") {
			fails(400, `{"error":{"message":"bad request: reasoning_content"}}`)(w, r)
			return
		}
		stream(text("done"), finish("stop"), done)(w, r)
	}))
	defer server.Close()
	m := newModel(t, server.URL)
	ask := func(words string) result {
		turn := question("Hi")
		turn.Array = append(turn.Array, messages.NewText(messages.RoleAssistant, "Hello."), messages.NewText(messages.RoleUser, words))
		return assistanttest.Collect(loop.New(m, loop.Config{}).Run(t.Context(), turn))
	}
	if got := ask("What is reasoning_content?"); got.Err == nil {
		t.Fatal("it was answered")
	}
	if got := ask("And now?"); got.Err != nil || got.Text != "done" {
		t.Errorf("afterwards: %q, %v", got.Text, got.Err)
	}
}

// TestReasoningBetweenTags: a model server that knows nothing of the model's reasoning sends
// it as the beginning of the answer.
func TestReasoningBetweenTags(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]struct{ text, thought string }{
		"<think>Hm, <b>.</think>\n\nYes.":            {"Yes.", "Hm, <b>."},
		"\n<think>\nHm </thin\n</think>Yes. <think>": {"Yes. <think>", "\nHm </thin\n"},
		"<think></think>Yes.":                        {"Yes.", ""},
		"In <think>tags</think>":                     {"In <think>tags</think>", ""},
		"  <thing> is not <":                         {"  <thing> is not <", ""},
		"<thi":                                       {"<thi", ""},
	} {
		for _, size := range []int{1, 3, len(said)} {
			var events []string
			for piece := range slices.Chunk([]byte(said), size) {
				events = append(events, text(string(piece)))
			}
			got := completeOnce(t, stream(append(events, finish("stop"), usage, done)...))
			if got.Err != nil || got.Text != want.text || got.Thoughts != want.thought || len(got.Messages) != 1 || got.Messages[0].PlainText() != want.text {
				t.Errorf("%q in pieces of %d: text %q, thought %q, %v, %v", said, size, got.Text, got.Thoughts, got.Messages, got.Err)
			}
		}
	}
	only := completeOnce(t, stream(text("<think>Hm, too long"), finish("length"), done))
	if !fault.Is(only.Err, fault.Exhausted) || strings.Contains(fault.Public(only.Err), "conversation") {
		t.Errorf("reasoning that is cut: %v", only.Err)
	}
}
