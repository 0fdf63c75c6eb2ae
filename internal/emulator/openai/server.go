package openai

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"remote-agent/internal/emulator"
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

// Text answers with a text in the given pieces.
func Text(pieces ...string) Response { return modelapi.Text(pieces...) }

// Pieces answers with a text in pieces of at most size bytes.
func Pieces(text string, size int) Response { return modelapi.Pieces(text, size) }

// Reply answers with the given steps.
func Reply(steps ...Step) Response { return modelapi.Reply(steps...) }

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

// Delta streams a piece of text.
func Delta(text string) Step { return modelapi.Delta(text) }

// Pause waits before the next step.
func Pause(d time.Duration) Step { return modelapi.Pause(d) }

// Gate stops until the gate is opened or the client is gone; see modelapi.Gate.
func Gate(gate *emulator.Gate) Step { return modelapi.Gate(gate) }

// KeepAlive sends n comment lines, which a client must skip.
func KeepAlive(n int) Step { return modelapi.KeepAlive(n) }

// Raw sends a text as it is into the stream.
func Raw(text string) Step { return modelapi.Raw(text) }

// Cut ends the answer cleanly in the middle: no finish_reason, no [DONE].
func Cut() Step { return modelapi.Cut() }

// Reset breaks the connection.
func Reset() Step { return modelapi.Reset() }

// StreamError sends an error object after the answer began and ends it.
func StreamError(kind, message string) Step { return modelapi.StreamError(kind, "", message) }

// Fail answers with an HTTP error.
func Fail(status int, kind, code, message string) Response {
	return modelapi.Fail(status, kind, code, message)
}

// ServerError answers 500, 503 or another 5xx.
func ServerError(status int) Response { return modelapi.ServerError(status) }

// Overloaded answers 529.
func Overloaded() Response { return Fail(529, "overloaded_error", "", "Overloaded") }

// Unauthorized answers 401.
func Unauthorized() Response { return modelapi.WrongKey() }

// RateLimited answers 429. With a whole number of seconds it sends Retry-After,
// else retry-after-ms; with zero neither.
func RateLimited(after time.Duration) Response { return modelapi.RateLimited(after) }

// QuotaExhausted answers 429 for which waiting does not help.
func QuotaExhausted() Response { return modelapi.QuotaExhausted() }

// ContextOverflow answers that the prompt has more tokens than the model takes.
func ContextOverflow(limit, got int) Response {
	r := Fail(http.StatusBadRequest, "invalid_request_error", "context_length_exceeded",
		"This model's maximum context length is "+strconv.Itoa(limit)+" tokens. However, your messages resulted in "+
			strconv.Itoa(got)+" tokens. Please reduce the length of the messages.")
	r.Fail.Param = "messages"
	return r
}

// Page answers with a status and a body that is not the API's, as a proxy in
// between does.
func Page(status int, body string) Response { return modelapi.Page(status, body) }
