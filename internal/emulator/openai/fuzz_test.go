package openai_test

import (
	"encoding/json"
	"testing"

	"remote-agent/internal/emulator/openai"
)

// FuzzRequest sends any body and checks that the answer is a completion or an
// error in the API's form.
func FuzzRequest(f *testing.F) {
	f.Add(`{"model":"m","messages":[{"role":"user","content":"x"}]}`)
	f.Add(`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{"}}]},{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"x"}]}]}`)
	f.Add(`{"model":"m","messages":[{"role":"user","content":{}}],"tools":[null]}`)
	f.Add(`[]`)
	s, _ := setup(f, openai.Options{KeepRequests: -1})
	f.Fuzz(func(t *testing.T, body string) {
		got := post(t, s, "key", body)
		if len(got.header["Content-Type"]) > 0 && got.header.Get("Content-Type") != "application/json" {
			return // it asked for a stream
		}
		var answer struct {
			Choices []any `json:"choices"`
			Error   *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil {
			t.Fatalf("%v: %s", err, got.body)
		}
		if (got.status == 200) != (len(answer.Choices) == 1) || (got.status == 400) != (answer.Error != nil) {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}
