package anthropic

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/modelapi"
)

// Response is what the model answers to one request. The zero value answers
// without content, which the API does at times. Use the constructors, and chain
// the methods that return a changed copy.
type Response struct {
	steps   []Step
	stop    string
	details *StopDetails
	usage   *[2]int // input and output
	fail    *APIError
	header  http.Header
	body    string // instead of the error object
	crlf    bool
}

// StopDetails say why the model refused.
type StopDetails struct {
	Type        string `json:"type"`
	Category    string `json:"category,omitempty"`
	Explanation string `json:"explanation,omitempty"`
}

// Step is one thing that happens while an answer is sent. An answer that is not
// streamed goes through the same steps before it is sent.
type Step struct {
	kind stepKind
	text string
	call Call
	raw  json.RawMessage
	wait time.Duration
	gate *emulator.Gate
	n    int
	fail *APIError
}

type stepKind int

const (
	stepText stepKind = iota
	stepThought
	stepRedacted
	stepCall
	stepBlock
	stepEnd
	stepPause
	stepGate
	stepPing
	stepRaw
	stepCut
	stepReset
	stepError
)

// Text answers with a text in the given pieces.
func Text(pieces ...string) Response {
	var r Response
	for _, p := range pieces {
		r.steps = append(r.steps, Delta(p))
	}
	return r
}

// Pieces answers with a text cut into pieces of at most size bytes, without
// cutting a character.
func Pieces(text string, size int) Response { return Text(modelapi.Pieces(text, size)...) }

// Reply answers with the given steps.
func Reply(steps ...Step) Response { return Response{steps: steps} }

// Calls answers with tool calls and no text.
func Calls(calls ...Call) Response {
	var r Response
	for _, c := range calls {
		r.steps = append(r.steps, ToolUse(c))
	}
	return r
}

// Call is a tool call that the model makes.
type Call struct {
	ID        string
	Name      string
	Arguments string // JSON text, valid or not
	Pieces    int    // how many deltas the arguments are cut into; default 2
}

// Delta streams a piece of text. Pieces without anything between them are one
// block.
func Delta(text string) Step { return Step{kind: stepText, text: text} }

// Thought streams a piece of thinking. Pieces without anything between them are
// one block, which is signed when it ends.
func Thought(text string) Step { return Step{kind: stepThought, text: text} }

// Redacted sends thinking that nobody may read.
func Redacted() Step { return Step{kind: stepRedacted} }

// ToolUse streams a tool call as a block of its own.
func ToolUse(c Call) Step { return Step{kind: stepCall, call: c} }

// Block sends a content block as it is, in one piece: a tool that runs at the
// provider, its result, or something that clients do not know yet.
func Block(json string) Step { return Step{kind: stepBlock, raw: []byte(json)} }

// EndBlock ends the block that was streamed last, so that more of the same kind
// is a new one.
func EndBlock() Step { return Step{kind: stepEnd} }

// Pause waits before the next step.
func Pause(d time.Duration) Step { return Step{kind: stepPause, wait: d} }

// Gate stops until the gate is opened or the client is gone. What came before is
// sent when the gate says that it is reached. A gate that is never opened is an
// idle stall.
func Gate(gate *emulator.Gate) Step { return Step{kind: stepGate, gate: gate} }

// Ping sends n ping events, which a client must skip.
func Ping(n int) Step { return Step{kind: stepPing, n: n} }

// Raw sends a text as it is into the stream: an event that clients do not know,
// or something that is none.
func Raw(text string) Step { return Step{kind: stepRaw, text: text} }

// Cut ends the answer cleanly in the middle: no stop_reason, no message_stop.
func Cut() Step { return Step{kind: stepCut} }

// Reset breaks the connection.
func Reset() Step { return Step{kind: stepReset} }

// StreamError sends an error event after the answer began and ends it. The HTTP
// status stays 200.
func StreamError(kind, message string) Step {
	return Step{kind: stepError, fail: &APIError{Status: http.StatusInternalServerError, Type: kind, Message: message}}
}

// Fail answers with an HTTP error.
func Fail(status int, kind, message string) Response {
	return Response{fail: &APIError{Status: status, Type: kind, Message: message}}
}

// ServerError answers 500, 503 or another 5xx.
func ServerError(status int) Response { return Fail(status, "api_error", "Internal server error") }

// Overloaded answers 529.
func Overloaded() Response { return Fail(529, "overloaded_error", "Overloaded") }

// Unauthorized answers 401.
func Unauthorized() Response {
	return Fail(http.StatusUnauthorized, "authentication_error", "invalid x-api-key")
}

// RateLimited answers 429. With a whole number of seconds it sends Retry-After,
// else retry-after-ms; with zero neither.
func RateLimited(after time.Duration) Response {
	r := Fail(http.StatusTooManyRequests, "rate_limit_error",
		"This request would exceed your organization's rate limit of 40,000 input tokens per minute.")
	r.header = modelapi.WithRetryAfter(r.header, after)
	return r
}

// SpendLimit answers 429 without Retry-After because the organization may spend
// no more. Waiting does not help.
func SpendLimit() Response {
	return Fail(http.StatusTooManyRequests, "enforced_spend_limit_reached",
		"You have reached your specified API usage limits. You will regain access when an administrator raises them.").
		WithHeader("X-Should-Retry", "false")
}

// NoCredit answers 400 because the account has no credit left.
func NoCredit() Response {
	return Fail(http.StatusBadRequest, "invalid_request_error",
		"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.")
}

// PromptTooLong answers that the prompt has more tokens than the model takes.
func PromptTooLong(got, limit int) Response { return Response{fail: promptTooLong(got, limit)} }

func promptTooLong(got, limit int) *APIError {
	return invalid("prompt is too long: %d tokens > %d maximum", got, limit)
}

// TooLarge answers 413, as for a body of more than 32 MB.
func TooLarge() Response { return Response{fail: tooLarge()} }

func tooLarge() *APIError {
	return &APIError{
		Status: http.StatusRequestEntityTooLarge, Type: "request_too_large",
		Message: "Request exceeds the maximum size",
	}
}

// Refuse answers with the given pieces of text and then that the model refuses
// to go on.
func Refuse(pieces ...string) Response {
	r := Text(pieces...).WithStop("refusal")
	r.details = &StopDetails{Type: "refusal", Category: "cyber", Explanation: "The request is against the usage policy."}
	return r
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

// WithStop replaces the stop_reason, which is "tool_use" if there are calls and
// otherwise "end_turn". With "pause_turn" the server takes the answer back as the
// last message of a later request.
func (r Response) WithStop(reason string) Response { r.stop = reason; return r }

// WithUsage replaces the estimated usage; none of the input is then cached.
func (r Response) WithUsage(input, output int) Response { r.usage = &[2]int{input, output}; return r }

// WithCRLF ends the lines of the stream with CR and LF.
func (r Response) WithCRLF() Response { r.crlf = true; return r }

// Then returns r with more steps at its end.
func (r Response) Then(steps ...Step) Response {
	r.steps = append(slices.Clip(r.steps), steps...)
	return r
}
