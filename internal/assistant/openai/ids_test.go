package openai_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"remote-agent/internal/assistant/assistanttest"
	"remote-agent/internal/assistant/loop"
	"remote-agent/internal/messages"
)

// TestWhatMistralRefuses: a conversation in which another model called tools goes on with
// one of Mistral's, whose API tells the usage unasked and refuses to be asked for it. It
// also refuses what a person wrote before the model answered the results of its tools.
func TestWhatMistralRefuses(t *testing.T) {
	t.Parallel()
	refused, requests := 0, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		var request struct {
			StreamOptions json.RawMessage `json:"stream_options"`
			Messages      []struct {
				Role      string `json:"role"`
				Content   string `json:"content"`
				ToolCalls []struct {
					ID string `json:"id"`
				} `json:"tool_calls"`
				ToolCallID string `json:"tool_call_id"`
			} `json:"messages"`
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		if request.StreamOptions != nil {
			refused++
			fails(422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options","include_usage"],"msg":"Extra inputs are not permitted","input":true}]},"type":"invalid_request_error","param":null,"code":null}`)(w, r)
			return
		}
		var made, answered []string
		for _, m := range request.Messages {
			for _, c := range m.ToolCalls {
				made = append(made, c.ID)
			}
			if m.ToolCallID != "" {
				answered = append(answered, m.ToolCallID)
			}
		}
		if strings.Join(made, " ") != strings.Join(answered, " ") {
			t.Errorf("calls %q, results %q", made, answered)
		}
		for _, id := range made {
			if len(id) != 9 || strings.ContainsAny(id, "_-") {
				refused++
				fails(400, `{"object":"error","message":"Tool call id was `+id+` but must be a-z, A-Z, 0-9, with a length of 9.","type":"invalid_function_call","param":null,"code":"3280"}`)(w, r)
				return
			}
		}
		for i, m := range request.Messages[1:] {
			if before := request.Messages[i].Role; before == "tool" && m.Role == "user" {
				refused++
				fails(400, `{"object":"error","message":"Unexpected role 'user' after role 'tool'","type":"invalid_request_message_order","param":null,"code":"3230"}`)(w, r)
				return
			}
			if m.Role == "assistant" && m.ToolCalls == nil && m.Content == "" {
				t.Errorf("message %d is empty", i+1)
			}
		}
		if len(made) < 3 {
			stream(call(0, "AbCdEf123", "look", "{}"), finish("tool_calls"), done)(w, r)
			return
		}
		stream(text(strings.Join(made, " ")), finish("stop"), done)(w, r)
	}))
	defer server.Close()
	turn := question("Hi")
	turn.Host = &assistanttest.Host{Specs: []messages.ToolSpec{{Name: "look"}}}
	turn.Array = append(turn.Array,
		messages.Message{Role: messages.RoleAssistant, Blocks: []messages.Block{
			messages.ToolCall{ID: "toolu_01A", Name: "look", Arguments: "{}"}, messages.ToolCall{ID: "call_2", Name: "look", Arguments: `{"n":1}`},
		}},
		messages.NewToolResult("toolu_01A", "one", false), messages.NewToolResult("call_2", "two", false),
		messages.NewText(messages.RoleUser, "And now?"))
	m := newModel(t, server.URL)
	for range 2 {
		got := assistanttest.Collect(loop.New(m, loop.Config{}).Run(t.Context(), turn))
		if got.Err != nil || !strings.HasSuffix(got.Text, "AbCdEf123") {
			t.Fatalf("%q, %v", got.Text, got.Err)
		}
	}
	if refused != 3 || requests != 7 {
		t.Errorf("%d of %d requests were refused", refused, requests)
	}
}
