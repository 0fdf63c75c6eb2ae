package openai

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/modelapi"
)

// Response is what the model answers to one request. The zero value answers
// with an empty text. Use the constructors, and chain the methods that return a
// changed copy.
type Response struct {
	steps  []Step
	finish string
	usage  *Usage
	fail   *APIError
	header http.Header
	body   string // instead of the error object
	crlf   bool
	tight  bool
	noRole bool // no first chunk with the role
}

// Usage is what a request cost, in tokens.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// Step is one thing that happens while an answer is streamed. An answer that is
// not streamed goes through the same steps before it is sent.
type Step struct {
	kind stepKind
	text string
	call toolCallDelta
	wait time.Duration
	gate *emulator.Gate
	n    int
	fail *APIError
}

type stepKind int

const (
	stepText stepKind = iota
	stepCall
	stepPause
	stepGate
	stepKeepAlive
	stepRaw
	stepCut
	stepReset
	stepError
)

type toolCallDelta struct {
	Index    int    `json:"index"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

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
func Calls(calls ...Call) Response { return Reply(CallSteps(calls...)...) }

// Call is a tool call that the model makes.
type Call struct {
	ID        string
	Name      string
	Arguments string // JSON text, valid or not
	Pieces    int    // how many deltas the arguments are cut into; default 2
}

// CallSteps returns the steps of parallel tool calls. The pieces of their
// arguments are mixed, one of each call in turn, as the API may do.
func CallSteps(calls ...Call) []Step {
	var steps []Step
	rest := make([][]string, len(calls))
	for i, c := range calls {
		d := toolCallDelta{Index: i, ID: c.ID, Type: "function"}
		d.Function.Name = c.Name
		steps = append(steps, Step{kind: stepCall, call: d})
		rest[i] = modelapi.Split(c.Arguments, max(c.Pieces, 2))
	}
	for more := true; more; {
		more = false
		for i := range rest {
			if len(rest[i]) == 0 {
				continue
			}
			d := toolCallDelta{Index: i}
			d.Function.Arguments, rest[i] = rest[i][0], rest[i][1:]
			steps = append(steps, Step{kind: stepCall, call: d})
			more = true
		}
	}
	return steps
}

// Delta streams a piece of text.
func Delta(text string) Step { return Step{kind: stepText, text: text} }

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

// Cut ends the answer cleanly in the middle: no finish_reason, no [DONE].
func Cut() Step { return Step{kind: stepCut} }

// Reset breaks the connection.
func Reset() Step { return Step{kind: stepReset} }

// StreamError sends an error object after the answer began and ends it.
func StreamError(kind, message string) Step {
	return Step{kind: stepError, fail: &APIError{Status: http.StatusInternalServerError, Type: kind, Message: message}}
}

// Fail answers with an HTTP error.
func Fail(status int, kind, code, message string) Response {
	return Response{fail: &APIError{Status: status, Type: kind, Code: code, Message: message}}
}

// ServerError answers 500, 503 or another 5xx.
func ServerError(status int) Response {
	return Fail(status, "server_error", "", "The server had an error while processing your request. Sorry about that!")
}

// Overloaded answers 529.
func Overloaded() Response { return Fail(529, "overloaded_error", "", "Overloaded") }

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

// ContextOverflow answers that the prompt has more tokens than the model takes.
func ContextOverflow(limit, got int) Response {
	r := Fail(http.StatusBadRequest, "invalid_request_error", "context_length_exceeded",
		"This model's maximum context length is "+strconv.Itoa(limit)+" tokens. However, your messages resulted in "+
			strconv.Itoa(got)+" tokens. Please reduce the length of the messages.")
	r.fail.Param = "messages"
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

// WithFinish replaces the finish_reason, which is "tool_calls" if there are
// calls and otherwise "stop".
func (r Response) WithFinish(reason string) Response { r.finish = reason; return r }

// WithUsage replaces the estimated usage.
func (r Response) WithUsage(prompt, completion int) Response {
	r.usage = &Usage{prompt, completion, prompt + completion}
	return r
}

// WithCRLF ends the lines of the stream with CR and LF.
func (r Response) WithCRLF() Response { r.crlf = true; return r }

// WithoutSpace leaves out the space after "data:".
func (r Response) WithoutSpace() Response { r.tight = true; return r }

// WithoutRole leaves out the first chunk, which has only the role.
func (r Response) WithoutRole() Response { r.noRole = true; return r }

// Then returns r with more steps at its end.
func (r Response) Then(steps ...Step) Response {
	r.steps = append(slices.Clip(r.steps), steps...)
	return r
}
