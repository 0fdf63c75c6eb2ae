package responses_test

import (
	"errors"
	"io"
	"testing"

	sdk "github.com/sashabaranov/go-openai"

	"remote-agent/internal/emulator/responses"
)

// TestAnotherClient plays a turn with a client that others wrote.
func TestAnotherClient(t *testing.T) {
	t.Parallel()
	s, c := setup(t, responses.Options{})
	config := sdk.DefaultConfig("key")
	config.BaseURL, config.HTTPClient = c.url, c.web
	other := sdk.NewClientWithConfig(config)
	s.Enqueue(responses.Text("I look.").Then(responses.Function(responses.Call{ID: "call_1", Name: "look", Arguments: `{"path":"x"}`})))
	req := sdk.CreateResponseRequest{
		Model: "m", Input: []any{sdk.ResponseInputMessage{Role: "user", Content: "look"}},
		Tools: []sdk.ResponseTool{sdk.NewResponseFunctionTool(sdk.FunctionDefinition{Name: "look", Parameters: map[string]any{"type": "object"}})},
	}
	stream, err := other.CreateResponseStream(deadline(t), req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var last *sdk.CreateResponseResponse
	text, arguments := "", ""
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case sdk.ResponseStreamEventOutputTextDelta:
			text += e.Delta
		case sdk.ResponseStreamEventFunctionArgumentsDelta:
			arguments += e.Delta
		case sdk.ResponseStreamEventCompleted:
			last = e.Response
		}
	}
	if last == nil || text != "I look." || last.GetOutputText() != text || arguments != `{"path":"x"}` || last.Usage == nil || last.Usage.TotalTokens == 0 {
		t.Fatalf("text %q, arguments %q, response %+v", text, arguments, last)
	}
	input := []any{sdk.ResponseInputMessage{Role: "user", Content: "look"}}
	for i := range last.Output {
		input = append(input, &last.Output[i])
	}
	input = append(input, sdk.ResponseFunctionCallOutput{Type: "function_call_output", CallID: "call_1", Output: "nothing"})
	req.Input = input
	whole, err := other.CreateResponse(deadline(t), req)
	if err != nil || whole.GetOutputText() != "echo: look [4 items]" {
		t.Errorf("%+v, %v", whole, err)
	}
	s.Enqueue(responses.ContextOverflow())
	_, err = other.CreateResponse(deadline(t), req)
	if e, ok := errors.AsType[*sdk.APIError](err); !ok || e.Code != "context_length_exceeded" {
		t.Errorf("error %v", err)
	}
}
