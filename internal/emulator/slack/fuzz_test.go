package slack_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"remote-agent/internal/emulator/slack"
)

// FuzzPostMessage posts whatever blocks, metadata and text: the answer is JSON,
// and what is taken can be read back.
func FuzzPostMessage(f *testing.F) {
	f.Add("hi <@U1>", `[{"type":"section","text":{"type":"mrkdwn","text":"x"}}]`, `{"event_type":"a","event_payload":{}}`)
	f.Add("", `[{"type":"plan","title":"p","tasks":[{"task_id":"1","title":"t","status":"complete"}]}]`, "{}")
	f.Add("x", `[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"a"}]}]}]`, "")
	f.Add("<", `[{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"b"},"action_id":"c"}]}]`, "[]")
	f.Add("x", `[null]`, "null")
	f.Add("x", `[{"type":"table","rows":[[{"type":"raw_text","text":"a"}]]}]`, "1")
	f.Fuzz(func(t *testing.T, text, blocks, metadata string) {
		s := slack.New(slack.Options{NoEcho: true})
		defer s.Close()
		s.AddChannel(slack.Channel{ID: "C1"})
		ask := func(method string, args url.Values) answer {
			args.Set("token", s.BotToken())
			args.Set("channel", "C1")
			req := httptest.NewRequest(http.MethodPost, "/api/"+method, strings.NewReader(args.Encode()))
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, req)
			var out answer
			if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
				t.Fatalf("%s: %v: %q", method, err, w.Body)
			}
			return out
		}
		got := ask("chat.postMessage", url.Values{"text": {text}, "blocks": {blocks}, "metadata": {metadata}})
		if got["ok"] != true {
			if got.code() == "" || got.code() == "fatal_error" {
				t.Fatalf("answer %v", got)
			}
			return
		}
		history := ask("conversations.history", url.Values{"include_all_metadata": {"1"}})
		if messages, _ := history["messages"].([]any); len(messages) != 1 {
			t.Fatalf("history %v", history)
		}
		_ = s.Channel("C1").Messages[0].Buttons()
	})
}
