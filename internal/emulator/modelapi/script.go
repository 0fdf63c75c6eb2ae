package modelapi

import (
	"net/http"
	"slices"
	"time"

	"remote-agent/internal/emulator"
)

// Error is an error of an API. How it is worded as JSON is the API's affair.
type Error struct {
	Status  int    `json:"-"`
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   string `json:"param"`
	Code    string `json:"code"`
}

// Response is what the model answers to one request. The zero value answers with
// no content. Scripts use the constructors, and chain the methods that return a
// changed copy; the fields are for the packages of the APIs.
type Response struct {
	Steps   []Step
	Stop    string  // why the answer ends, instead of the reason it has
	Details any     // of that reason
	Usage   *[2]int // tokens of input and output, instead of an estimate
	Fail    *Error  // instead of an answer
	Page    string  // instead of the error object
	Header  http.Header
	CRLF    bool // lines of the stream end with CR and LF
	Tight   bool // no space after "data:"
	Bare    bool // no first chunk with the role
}

// Step is one thing that happens while an answer is sent. An answer that is not
// streamed goes through the same steps before it is sent.
type Step struct {
	Kind Kind
	Text string
	Call Call
	N    int
	Fail *Error

	wait time.Duration
	gate *emulator.Gate
}

// Kind says what a step does.
type Kind int

// The kinds of what is said. An API counts its own from KindOwn on. The kinds
// that are not exported are the same for every API.
const (
	KindText Kind = iota
	KindThought
	KindCall
	KindError // ends the answer
	kindPause
	kindGate
	kindKeepAlive
	kindRaw
	kindCut
	kindReset
	KindOwn
)

// Call is a tool call that the model makes.
type Call struct {
	ID        string
	Name      string
	Arguments string // JSON text, valid or not; free text for a custom tool
	Namespace string // of the tool, if it has one
	Pieces    int    // how many deltas the arguments are cut into; default 2
}

// Deltas returns the arguments in pieces.
func (c Call) Deltas() []string { return Split(c.Arguments, max(c.Pieces, 2)) }

// Text answers with a text in the given pieces.
func Text(pieces ...string) Response {
	var r Response
	for _, p := range pieces {
		r.Steps = append(r.Steps, Delta(p))
	}
	return r
}

// Pieces answers with a text cut into pieces of at most size bytes, without
// cutting a character.
func Pieces(text string, size int) Response { return Text(cut(text, size)...) }

// Reply answers with the given steps.
func Reply(steps ...Step) Response { return Response{Steps: steps} }

// Delta streams a piece of text.
func Delta(text string) Step { return Step{Kind: KindText, Text: text} }

// Pause waits before the next step.
func Pause(d time.Duration) Step { return Step{Kind: kindPause, wait: d} }

// Gate stops until the gate is opened or the client is gone. What came before is
// sent when the gate says that it is reached. A gate that is never opened is an
// idle stall.
func Gate(gate *emulator.Gate) Step { return Step{Kind: kindGate, gate: gate} }

// KeepAlive sends n comment lines, which a client must skip.
func KeepAlive(n int) Step { return Step{Kind: kindKeepAlive, N: n} }

// Raw sends a text as it is into the stream: an event that clients do not know,
// or something that is none.
func Raw(text string) Step { return Step{Kind: kindRaw, Text: text} }

// Cut ends the answer cleanly in the middle, before anything that says so.
func Cut() Step { return Step{Kind: kindCut} }

// Reset breaks the connection.
func Reset() Step { return Step{Kind: kindReset} }

// StreamError sends an error after the answer began and ends it. The HTTP status
// stays 200.
func StreamError(kind, code, message string) Step {
	return Step{Kind: KindError, Fail: &Error{Status: http.StatusInternalServerError, Type: kind, Code: code, Message: message}}
}

// Fail answers with an HTTP error.
func Fail(status int, kind, code, message string) Response {
	return Response{Fail: &Error{Status: status, Type: kind, Code: code, Message: message}}
}

// Page answers with a status and a body that is not the API's, as a proxy in
// between does.
func Page(status int, body string) Response {
	return Response{Fail: &Error{Status: status}, Page: body}
}

// WithHeader adds a header.
func (r Response) WithHeader(name, value string) Response {
	if r.Header = r.Header.Clone(); r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set(name, value)
	return r
}

// WithStop replaces the reason for which an answer ends.
func (r Response) WithStop(reason string) Response { r.Stop = reason; return r }

// WithUsage replaces the estimated usage; none of the input is then cached.
func (r Response) WithUsage(input, output int) Response { r.Usage = &[2]int{input, output}; return r }

// WithCRLF ends the lines of the stream with CR and LF.
func (r Response) WithCRLF() Response { r.CRLF = true; return r }

// WithoutSpace leaves out the space after "data:".
func (r Response) WithoutSpace() Response { r.Tight = true; return r }

// WithoutRole leaves out the first chunk, where that has only the role.
func (r Response) WithoutRole() Response { r.Bare = true; return r }

// Then returns r with more steps at its end.
func (r Response) Then(steps ...Step) Response {
	r.Steps = append(slices.Clip(r.Steps), steps...)
	return r
}
