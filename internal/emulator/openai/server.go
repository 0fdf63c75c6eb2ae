package openai

import (
	"fmt"
	"net/http"
	"strconv"

	"remote-agent/internal/emulator/modelapi"
)

type (
	// Options configure a Server. The zero value is usable.
	Options = modelapi.Options[Request]

	// Server is an emulated chat completions API. It is safe for concurrent use.
	Server = modelapi.Server[Request]

	// Outcome says how a request ended.
	Outcome = modelapi.Outcome

	// Script decides what the model answers. It may be called concurrently.
	Script = func(Request) Response

	// Stats count requests to the model.
	Stats = modelapi.Stats

	// Response is what the model answers to one request. The zero value answers
	// with an empty text.
	Response = modelapi.Response

	// Step is one thing that happens while an answer is sent.
	Step = modelapi.Step

	// Call is a tool call that the model makes.
	Call = modelapi.Call

	// APIError is an error in the API's own form.
	APIError = modelapi.Error
)

// New returns a server that is not listening yet. It answers with Echo.
func New(opts Options) *Server {
	return modelapi.New(opts, modelapi.API[Request]{
		Name: "OpenAI", Path: "/v1", Endpoint: "POST /v1/chat/completions",
		Echo: Echo, Parse: parse, Tokens: (*Request).tokens, Voice: voice,
		Received:   func(r *Request) *modelapi.Received { return &r.Received },
		Model:      func(r *Request) string { return r.Model },
		WriteError: modelapi.WriteOpenAIError, NotFound: modelapi.NoEndpoint,
		NoKey: modelapi.Unauthorized("", "You didn't provide an API key. You need to provide your API key in an Authorization header "+
			"using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."),
		WrongKey: Unauthorized().Fail,
		NoModel: func(name string) *APIError {
			return &APIError{
				Status: http.StatusNotFound, Type: "invalid_request_error", Code: "model_not_found",
				Message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", name),
			}
		},
		Overflow: func(got, limit int) *APIError { return ContextOverflow(limit, got).Fail },
	})
}

// Echo is the script of a new server. It answers "echo: TEXT [N messages]" with
// the text of the last user message and the number of messages in the request,
// besides those of the system.
func Echo(r Request) Response {
	n := len(r.Messages)
	for _, role := range r.Roles() {
		if role == "system" || role == "developer" {
			n--
		}
	}
	return Text("echo: ", r.LastUserText(), " ["+strconv.Itoa(n)+" messages]")
}

// The answers and steps that all model APIs have.
var (
	Text           = modelapi.Text
	Pieces         = modelapi.Pieces
	Reply          = modelapi.Reply
	Delta          = modelapi.Delta
	Pause          = modelapi.Pause
	Gate           = modelapi.Gate
	KeepAlive      = modelapi.KeepAlive
	Raw            = modelapi.Raw
	Cut            = modelapi.Cut
	Reset          = modelapi.Reset
	Fail           = modelapi.Fail
	ServerError    = modelapi.ServerError
	Unauthorized   = modelapi.WrongKey
	RateLimited    = modelapi.RateLimited
	QuotaExhausted = modelapi.QuotaExhausted
	Page           = modelapi.Page
)

// Calls answers with tool calls and no text.
func Calls(calls ...Call) Response { return Reply(CallSteps(calls...)...) }

// CallSteps returns the steps of parallel tool calls. The pieces of their
// arguments are mixed, one of each call in turn, as the API may do.
func CallSteps(calls ...Call) []Step {
	var steps []Step
	rest := make([][]string, len(calls))
	for i, c := range calls {
		steps = append(steps, Step{Kind: modelapi.KindCall, N: i, Call: Call{ID: c.ID, Name: c.Name}})
		rest[i] = c.Deltas()
	}
	for more := true; more; {
		more = false
		for i := range rest {
			if len(rest[i]) == 0 {
				continue
			}
			steps = append(steps, Step{Kind: modelapi.KindCall, N: i, Call: Call{Arguments: rest[i][0]}})
			rest[i], more = rest[i][1:], true
		}
	}
	return steps
}

// StreamError sends an error object after the answer began and ends it.
func StreamError(kind, message string) Step { return modelapi.StreamError(kind, "", message) }

// Overloaded answers 529.
func Overloaded() Response { return Fail(529, "overloaded_error", "", "Overloaded") }

// ContextOverflow answers that the prompt has more tokens than the model takes.
func ContextOverflow(limit, got int) Response {
	r := Fail(http.StatusBadRequest, "invalid_request_error", "context_length_exceeded",
		"This model's maximum context length is "+strconv.Itoa(limit)+" tokens. However, your messages resulted in "+
			strconv.Itoa(got)+" tokens. Please reduce the length of the messages.")
	r.Fail.Param = "messages"
	return r
}
