package responses

import (
	"strings"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/modelapi"
)

type (
	// Response is what the model answers to one request. The zero value answers
	// without output.
	Response = modelapi.Response

	// Step is one thing that happens while an answer is sent.
	Step = modelapi.Step

	// Call is a tool call that the model makes.
	Call = modelapi.Call
)

// The kinds of steps that only this API has.
const (
	kindRefusal = modelapi.KindOwn + iota
	kindCustom
	kindShell
)

// Text answers with a message in the given pieces.
func Text(pieces ...string) Response { return modelapi.Text(pieces...) }

// Pieces answers with a message in pieces of at most size bytes.
func Pieces(text string, size int) Response { return modelapi.Pieces(text, size) }

// Reply answers with the given steps.
func Reply(steps ...Step) Response { return modelapi.Reply(steps...) }

// Delta streams a piece of a message. Pieces without anything between them are
// one message.
func Delta(text string) Step { return modelapi.Delta(text) }

// Refuse streams a piece of a refusal, which is a message of its own kind.
func Refuse(text string) Step { return Step{Kind: kindRefusal, Text: text} }

// Thought streams a piece of the summary of the model's reasoning. Pieces without
// anything between them are one item, with encrypted content if the request
// includes that.
func Thought(text string) Step { return Step{Kind: modelapi.KindThought, Text: text} }

// Function streams a function call.
func Function(c Call) Step { return Step{Kind: modelapi.KindCall, Call: c} }

// Custom streams a call of a custom tool, whose input is free text.
func Custom(c Call) Step { return Step{Kind: kindCustom, Call: c} }

// Shell calls the local shell with a command in the form of a list.
func Shell(id string, command ...string) Step {
	return Step{Kind: kindShell, Call: Call{ID: id}, Text: strings.Join(command, "\x00")}
}

// Pause waits before the next step.
func Pause(d time.Duration) Step { return modelapi.Pause(d) }

// Gate stops until the gate is opened or the client is gone; see modelapi.Gate.
func Gate(gate *emulator.Gate) Step { return modelapi.Gate(gate) }

// KeepAlive sends n comment lines, which a client must skip.
func KeepAlive(n int) Step { return modelapi.KeepAlive(n) }

// Raw sends a text as it is into the stream.
func Raw(text string) Step { return modelapi.Raw(text) }

// Cut ends the answer cleanly in the middle: no response.completed.
func Cut() Step { return modelapi.Cut() }

// Reset breaks the connection.
func Reset() Step { return modelapi.Reset() }

// Failed ends the answer with response.failed, which is how the API reports a
// full context window, a rate limit or an overload once the stream has begun.
func Failed(code, message string) Step {
	step := StreamError(code, message)
	step.Text = "response.failed"
	return step
}

// StreamError ends the answer with an error event.
func StreamError(code, message string) Step {
	return modelapi.StreamError("server_error", code, message)
}

// ServerError answers 500, 503 or another 5xx.
func ServerError(status int) Response { return modelapi.ServerError(status) }

// Overloaded answers 503.
func Overloaded() Response {
	return modelapi.Fail(503, "server_error", "server_is_overloaded", "Our servers are currently overloaded. Please try again later.")
}

// Unauthorized answers 401.
func Unauthorized() Response { return modelapi.WrongKey() }

// RateLimited answers 429. With a whole number of seconds it sends Retry-After,
// else retry-after-ms; with zero neither.
func RateLimited(after time.Duration) Response { return modelapi.RateLimited(after) }

// QuotaExhausted answers 429 for which waiting does not help.
func QuotaExhausted() Response { return modelapi.QuotaExhausted() }

// ContextOverflow answers that the input has more tokens than the model takes.
func ContextOverflow() Response {
	e := invalid("input", "Your input exceeds the context window of this model. Please adjust your input and try again.")
	e.Code = "context_length_exceeded"
	return Response{Fail: e}
}

// Page answers with a status and a body that is not the API's, as a proxy in
// between does.
func Page(status int, body string) Response { return modelapi.Page(status, body) }
