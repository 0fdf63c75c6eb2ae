package messagestest_test

import (
	"testing"

	"remote-agent/internal/messages/messagestest"
)

const (
	openAICall   = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	openAIResult = `{"role":"tool","tool_call_id":"a","content":"x"}`
	openAIUser   = `{"role":"user","content":"hi"}`

	anthropicUser   = `{"role":"user","content":[{"type":"text","text":"hi"}]}`
	anthropicCall   = `{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"a","name":"f","input":{}}]}`
	anthropicResult = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"x"}]}`
)

func TestOpenAI(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body string
		ok   bool
	}{
		"a call":               {openAIUser + "," + openAICall + "," + openAIResult, true},
		"nothing":              {``, false},
		"no result":            {openAIUser + "," + openAICall, false},
		"late result":          {openAIUser + "," + openAICall + "," + openAIUser + "," + openAIResult, false},
		"orphan":               {openAIUser + "," + openAIResult, false},
		"second result":        {openAIUser + "," + openAICall + "," + openAIResult + "," + openAIResult, false},
		"blank":                {`{"role":"user","content":" "}`, false},
		"null content":         {`{"role":"user","content":null}`, false},
		"ends with a bot":      {openAIUser + `,{"role":"assistant","content":"x"}`, false},
		"no arguments":         {openAIUser + `,{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f"}}]},` + openAIResult, false},
		"bad name":             {openAIUser + `,{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f.g","arguments":"{}"}}]},` + openAIResult, false},
		"picture of a tool":    {openAIUser + "," + openAICall + `,{"role":"tool","tool_call_id":"a","content":[{"type":"image_url"}]}`, false},
		"picture behind it":    {openAIUser + "," + openAICall + "," + openAIResult + `,{"role":"user","content":[{"type":"image_url"}]}`, true},
		"system in the middle": {openAIUser + `,{"role":"system","content":"x"},` + openAIUser, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := messagestest.OpenAI([]byte(`{"messages":[` + tt.body + `]}`)); (err == nil) != tt.ok {
				t.Errorf("error %v, want ok %v", err, tt.ok)
			}
		})
	}
}

func TestAnthropic(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body string
		ok   bool
	}{
		"a call":            {anthropicUser + "," + anthropicCall + "," + anthropicResult, true},
		"nothing":           {``, false},
		"no result":         {anthropicUser + "," + anthropicCall + "," + anthropicUser, false},
		"orphan":            {anthropicResult, false},
		"same role":         {anthropicUser + "," + anthropicUser, false},
		"begins with a bot": {anthropicCall + "," + anthropicResult, false},
		"ends with a bot":   {anthropicUser + `,{"role":"assistant","content":[{"type":"text","text":"x"}]}`, false},
		"empty":             {`{"role":"user","content":[]}`, false},
		"blank":             {`{"role":"user","content":[{"type":"text","text":" "}]}`, false},
		"text before a result": {anthropicUser + "," + anthropicCall +
			`,{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a"}]}`, false},
		"text after a call": {anthropicUser +
			`,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"text","text":"x"}]},` + anthropicResult, false},
		"picture of a tool": {anthropicUser + "," + anthropicCall +
			`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"},{"type":"image"}]}]}`, true},
		"picture of a failed call": {anthropicUser + "," + anthropicCall +
			`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"image"}]}]}`, false},
		"blank result": {anthropicUser + "," + anthropicCall +
			`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":" "}]}]}`, false},
		"id used again": {anthropicUser + "," + anthropicCall + "," + anthropicResult + "," + anthropicCall + "," + anthropicResult, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := messagestest.Anthropic([]byte(`{"messages":[` + tt.body + `]}`)); (err == nil) != tt.ok {
				t.Errorf("error %v, want ok %v", err, tt.ok)
			}
		})
	}
}
