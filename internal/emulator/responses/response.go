package responses

import (
	"strings"

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

// The answers and steps that all model APIs have. Pieces of a message without anything
// between them are one message.
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
	ServerError    = modelapi.ServerError
	RateLimited    = modelapi.RateLimited
	QuotaExhausted = modelapi.QuotaExhausted
	Page           = modelapi.Page
	Unauthorized   = modelapi.WrongKey
)

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

// Overloaded answers 503.
func Overloaded() Response {
	return modelapi.Fail(503, "server_error", "server_is_overloaded", "Our servers are currently overloaded. Please try again later.")
}

// ContextOverflow answers that the input has more tokens than the model takes.
func ContextOverflow() Response {
	e := invalid("input", "Your input exceeds the context window of this model. Please adjust your input and try again.")
	e.Code = "context_length_exceeded"
	return Response{Fail: e}
}
