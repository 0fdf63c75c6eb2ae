package responses

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/modelapi"
)

// Response is what the model answers to one request. The zero value answers
// without output. Use the constructors, and chain the methods that return a
// changed copy.
type Response struct {
	steps      []Step
	incomplete string
	usage      *[2]int // input and output
	fail       *APIError
	header     http.Header
	body       string // instead of the error object
}

// Step is one thing that happens while an answer is sent. An answer that is not
// streamed goes through the same steps before it is sent.
type Step struct {
	kind stepKind
	text string
	call Call
	wait time.Duration
	gate *emulator.Gate
	n    int
	fail *APIError
}

type stepKind int

const (
	stepText stepKind = iota
	stepRefusal
	stepThought
	stepFunction
	stepCustom
	stepShell
	stepPause
	stepGate
	stepKeepAlive
	stepRaw
	stepCut
	stepReset
	stepFailed
	stepError
)

// Text answers with a message in the given pieces.
func Text(pieces ...string) Response {
	var r Response
	for _, p := range pieces {
		r.steps = append(r.steps, Delta(p))
	}
	return r
}

// Pieces answers with a message cut into pieces of at most size bytes, without
// cutting a character.
func Pieces(text string, size int) Response { return Text(modelapi.Pieces(text, size)...) }

// Reply answers with the given steps.
func Reply(steps ...Step) Response { return Response{steps: steps} }

// Calls answers with function calls and no text.
func Calls(calls ...Call) Response {
	var r Response
	for _, c := range calls {
		r.steps = append(r.steps, Function(c))
	}
	return r
}

// Call is a tool call that the model makes.
type Call struct {
	ID        string
	Name      string
	Arguments string // JSON text, valid or not; free text for a custom tool
	Namespace string // of the tool, if it has one
	Pieces    int    // how many deltas the arguments are cut into; default 2
}

// Delta streams a piece of a message. Pieces without anything between them are
// one message.
func Delta(text string) Step { return Step{kind: stepText, text: text} }

// Refuse streams a piece of a refusal, which is a message of its own kind.
func Refuse(text string) Step { return Step{kind: stepRefusal, text: text} }

// Thought streams a piece of the summary of the model's reasoning. Pieces without
// anything between them are one item, with encrypted content if the request
// includes that.
func Thought(text string) Step { return Step{kind: stepThought, text: text} }

// Function streams a function call.
func Function(c Call) Step { return Step{kind: stepFunction, call: c} }

// Custom streams a call of a custom tool, whose input is free text.
func Custom(c Call) Step { return Step{kind: stepCustom, call: c} }

// Shell calls the local shell with a command in the form of a list.
func Shell(id string, command ...string) Step {
	return Step{kind: stepShell, call: Call{ID: id}, text: strings.Join(command, "\x00")}
}

// Pause waits before the next step.
func Pause(d time.Duration) Step { return Step{kind: stepPause, wait: d} }

// Gate stops until the gate is opened or the client is gone. What came before is
// sent when the gate says that it is reached. A gate that is never opened is an
// idle stall.
func Gate(gate *emulator.Gate) Step { return Step{kind: stepGate, gate: gate} }

// KeepAlive sends n comment lines, which a client must skip.
func KeepAlive(n int) Step { return Step{kind: stepKeepAlive, n: n} }

// Raw sends a text as it is into the stream.
func Raw(text string) Step { return Step{kind: stepRaw, text: text} }

// Cut ends the answer cleanly in the middle: no response.completed.
func Cut() Step { return Step{kind: stepCut} }

// Reset breaks the connection.
func Reset() Step { return Step{kind: stepReset} }

// Failed ends the answer with response.failed, which is how the API reports a
// full context window, a rate limit or an overload once the stream has begun.
func Failed(code, message string) Step {
	return Step{kind: stepFailed, fail: &APIError{Status: http.StatusInternalServerError, Type: "server_error", Code: code, Message: message}}
}

// StreamError ends the answer with an error event.
func StreamError(code, message string) Step {
	return Step{kind: stepError, fail: &APIError{Status: http.StatusInternalServerError, Type: "server_error", Code: code, Message: message}}
}

// Fail answers with an HTTP error.
func Fail(status int, kind, code, message string) Response {
	return Response{fail: &APIError{Status: status, Type: kind, Code: code, Message: message}}
}

// ServerError answers 500, 503 or another 5xx.
func ServerError(status int) Response {
	return Fail(status, "server_error", "", "The server had an error while processing your request. Sorry about that!")
}

// Overloaded answers 503.
func Overloaded() Response {
	return Fail(http.StatusServiceUnavailable, "server_error", "server_is_overloaded", "Our servers are currently overloaded. Please try again later.")
}

// Unauthorized answers 401.
func Unauthorized() Response {
	return Fail(http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", "Incorrect API key provided.")
}

// RateLimited answers 429. With a whole number of seconds it sends Retry-After,
// else retry-after-ms; with zero neither.
func RateLimited(after time.Duration) Response {
	r := Fail(http.StatusTooManyRequests, "requests", "rate_limit_exceeded", "Rate limit reached for requests.")
	r.header = modelapi.WithRetryAfter(r.header, after)
	return r
}

// QuotaExhausted answers 429 for which waiting does not help.
func QuotaExhausted() Response {
	return Fail(http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota",
		"You exceeded your current quota, please check your plan and billing details.")
}

// ContextOverflow answers that the input has more tokens than the model takes.
func ContextOverflow() Response { return Response{fail: contextOverflow()} }

func contextOverflow() *APIError {
	e := invalid("input", "Your input exceeds the context window of this model. Please adjust your input and try again.")
	e.Code = "context_length_exceeded"
	return e
}

// Page answers with a status and a body that is not the API's, as a proxy in
// between does.
func Page(status int, body string) Response {
	return Response{fail: &APIError{Status: status}, body: body}
}

// WithHeader adds a header.
func (r Response) WithHeader(name, value string) Response {
	r.header = modelapi.WithHeader(r.header, name, value)
	return r
}

// WithIncomplete ends the answer early for a reason: "max_output_tokens" or
// "content_filter".
func (r Response) WithIncomplete(reason string) Response { r.incomplete = reason; return r }

// WithUsage replaces the estimated usage; none of the input is then cached.
func (r Response) WithUsage(input, output int) Response { r.usage = &[2]int{input, output}; return r }

// Then returns r with more steps at its end.
func (r Response) Then(steps ...Step) Response {
	r.steps = append(slices.Clip(r.steps), steps...)
	return r
}
