package responses_test

import (
	"encoding/json"
	"testing"

	"remote-agent/internal/emulator/responses"
)

// FuzzRequest sends any body and checks that the answer is a response or an error
// in the API's form.
func FuzzRequest(f *testing.F) {
	f.Add(`{"model":"m","input":"x"}`)
	f.Add(`{"model":"m","input":[{"type":"function_call","call_id":"a","name":"f","arguments":"{"},{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"x"}]}]}`)
	f.Add(`{"model":"m","input":[null],"tools":[null],"include":[null]}`)
	f.Add(`{"model":"m","input":[{"type":"reasoning","summary":[null],"encrypted_content":"bnVsbA=="}]}`)
	f.Add(`[]`)
	s, c := setup(f, responses.Options{KeepRequests: -1})
	f.Fuzz(func(t *testing.T, body string) {
		c := client{t, c.url, c.web}
		status, header, got := c.post(body)
		if header.Get("Content-Type") != "application/json" {
			return // it asked for a stream
		}
		var answer struct {
			Object string
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal([]byte(got), &answer); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		if (status == 200) != (answer.Object == "response") || (status >= 400) != (answer.Error != nil) {
			t.Errorf("%d %s", status, got)
		}
		if st := s.Stats(); st.Active < 0 {
			t.Errorf("stats %+v", st)
		}
	})
}
