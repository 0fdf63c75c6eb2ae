package responses_test

import (
	"net/http"
	"strings"
	"testing"

	"remote-agent/internal/emulator/responses"
)

// TestRules sends requests that the API refuses, each for one reason, and their
// neighbors that it takes.
func TestRules(t *testing.T) {
	t.Parallel()
	s, c := setup(t, responses.Options{})
	const (
		u    = `{"role":"user","content":"x"}`
		call = `{"type":"function_call","call_id":"c1","name":"f","arguments":"{"}`
		out  = `{"type":"function_call_output","call_id":"c1","output":"r"}`
		free = `{"type":"custom_tool_call","call_id":"c2","name":"f","input":""}`
		done = `{"type":"custom_tool_call_output","call_id":"c2","output":""}`
		tool = `{"type":"function","name":"f","parameters":{"type":"object"}}`
	)
	input := func(items ...string) string { return `"model":"m","input":[` + strings.Join(items, ",") + `]` }
	tests := map[string]struct{ body, want string }{
		"plain":             {`"model":"m","input":"x"`, ""},
		"roles":             {input(u, `{"type":"message","role":"developer","content":[{"type":"input_text","text":"x"}]}`, `{"role":"assistant","content":[{"type":"output_text","text":""}]}`), ""},
		"calls":             {input(u, call, free, done, u, out), ""},
		"reasoning":         {input(u, `{"type":"reasoning","summary":[]}`, call, out), ""},
		"what others ran":   {input(u, `{"type":"web_search_call","id":"ws_1","status":"completed"}`), ""},
		"tools":             {input(u) + `,"tools":[` + tool + `,{"type":"custom","name":"g"},{"type":"web_search"}],"tool_choice":"auto"`, ""},
		"not JSON":          {`"model":`, "not valid JSON"},
		"unknown parameter": {input(u) + `,"max_tokens":1`, "Unknown parameter: 'max_tokens'"},
		"no model":          {`"input":"x"`, "Missing required parameter: 'model'"},
		"no input":          {`"model":"m"`, "Missing required parameter: 'input'"},
		"empty input":       {input(), "empty array"},
		"input type":        {`"model":"m","input":7`, "expected a string or an array"},
		"output tokens":     {input(u) + `,"max_output_tokens":1`, "below minimum"},
		"stored":            {input(u) + `,"previous_response_id":"resp_1"`, "previous_response_not_found"},
		"item type":         {input(u, `{"type":"poem"}`), "'poem'"},
		"no type":           {input(u, `{}`), "input[1].type"},
		"role":              {input(`{"role":"tool","content":"x"}`), "'tool'"},
		"no content":        {input(`{"role":"user"}`), "input[0].content"},
		"content":           {input(`{"role":"user","content":7}`), "input[0].content"},
		"content type":      {input(`{"role":"user","content":[{"type":"output_text","text":"x"}]}`), "'output_text'"},
		"assistant's type":  {input(u, `{"role":"assistant","content":[{"type":"input_text","text":"x"}]}`), "'input_text'"},
		"no text":           {input(`{"role":"user","content":[{"type":"input_text"}]}`), "content[0].text"},
		"no call id":        {input(u, `{"type":"function_call","name":"f","arguments":"{}"}`), "input[1].call_id"},
		"long call id":      {input(u, strings.ReplaceAll(call, "c1", strings.Repeat("c", 65))), "maximum length 64"},
		"no name":           {input(u, `{"type":"function_call","call_id":"c1","arguments":"{}"}`), "input[1].name"},
		"name":              {input(u, `{"type":"function_call","call_id":"c1","name":"f.g","arguments":"{}"}`), "does not match pattern"},
		"no arguments":      {input(u, `{"type":"function_call","call_id":"c1","name":"f"}`), "input[1].arguments"},
		"no free input":     {input(u, `{"type":"custom_tool_call","call_id":"c1","name":"f"}`), "input[1].input"},
		"no action":         {input(u, `{"type":"local_shell_call","call_id":"c1"}`), "input[1].action"},
		"no output":         {input(u, call), "No tool output found for function call c1"},
		"no free output":    {input(u, free), "No tool output found for custom tool call c2"},
		"orphan":            {input(u, out), "No tool call found for function call output with call_id c1"},
		"output first":      {input(u, out, call), "No tool call found"},
		"twice":             {input(u, call, out, out), "Duplicate tool output"},
		"id again":          {input(u, call, out, call), "Duplicate call_id"},
		"other kind":        {input(u, call, strings.Replace(done, "c2", "c1", 1)), "No tool call found for custom tool call output"},
		"output type":       {input(u, call, strings.Replace(out, `"r"`, `{"a":1}`, 1)), "input[2].output"},
		"output part":       {input(u, call, strings.Replace(out, `"r"`, `[{"type":"output_text","text":"x"}]`, 1)), "'output_text'"},
		"no summary":        {input(u, `{"type":"reasoning"}`), "input[1].summary"},
		"made-up reasoning": {input(u, `{"type":"reasoning","summary":[],"encrypted_content":"c2VjcmV0"}`), "could not be verified"},
		"tool type":         {input(u) + `,"tools":[{"type":"poem","name":"f"}]`, "'poem'"},
		"tool name":         {input(u) + `,"tools":[{"type":"function"}]`, "tools[0].name"},
		"tool twice":        {input(u) + `,"tools":[` + tool + `,` + tool + `]`, "unique"},
		"tool of namespace": {input(u) + `,"tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"a b"}]}]`, "tools[0].tools[0].name"},
		"schema":            {input(u) + `,"tools":[{"type":"function","name":"f","parameters":[]}]`, "not an object"},
	}
	for name, tt := range tests {
		status, _, body := c.post("{" + tt.body + "}")
		if (status == http.StatusOK) != (tt.want == "") || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s, want %q", name, status, body, tt.want)
		}
	}
	if st := s.Stats(); st.Refused == 0 || len(s.Refusals()) != st.Refused {
		t.Errorf("stats %+v, %d refusals", st, len(s.Refusals()))
	}
}
