package anthropic_test

import (
	"encoding/json"
	"testing"

	"remote-agent/internal/emulator/anthropic"
)

// FuzzRequest sends any body and checks that the answer is a message or an error
// in the API's form.
func FuzzRequest(f *testing.F) {
	f.Add(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`)
	f.Add(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"}]}]}]}`)
	f.Add(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[null]}],"tools":[null],"system":[null]}`)
	f.Add(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}],"cache_control":{"type":"ephemeral"}}`)
	f.Add(`{"model":"m","max_tokens":null,"messages":[{"role":"user","content":"x"}]}`)
	f.Add(`[]`)
	s := setup(f, anthropic.Options{KeepRequests: -1})
	f.Fuzz(func(t *testing.T, body string) {
		got := post(t, s, body)
		if got.header.Get("Content-Type") != "application/json" {
			return // it asked for a stream
		}
		var answer struct {
			Type  string `json:"type"`
			Error *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil {
			t.Fatalf("%v: %s", err, got.body)
		}
		if (got.status == 200) != (answer.Type == "message") || (got.status >= 400) != (answer.Error != nil) {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}
