package anthropic

import (
	"net/http"
	"time"

	"remote-agent/internal/emulator/modelapi"
)

type (
	// Response is what the model answers to one request. The zero value answers
	// without content, which the API does at times.
	Response = modelapi.Response

	// Step is one thing that happens while an answer is sent.
	Step = modelapi.Step

	// Call is a tool call that the model makes.
	Call = modelapi.Call
)

// The kinds of steps that only this API has.
const (
	kindRedacted = modelapi.KindOwn + iota
	kindBlock
	kindEnd
	kindPing
)

// StopDetails say why the model refused.
type StopDetails struct {
	Type        string `json:"type"`
	Category    string `json:"category,omitempty"`
	Explanation string `json:"explanation,omitempty"`
}

// The answers and steps that all model APIs have. Pieces of text without anything between
// them are one block.
var (
	Text   = modelapi.Text
	Pieces = modelapi.Pieces
	Reply  = modelapi.Reply
	Delta  = modelapi.Delta
	Pause  = modelapi.Pause
	Gate   = modelapi.Gate
	Raw    = modelapi.Raw
	Cut    = modelapi.Cut
	Reset  = modelapi.Reset
	Page   = modelapi.Page
)

// Calls answers with tool calls and no text.
func Calls(calls ...Call) Response {
	var r Response
	for _, c := range calls {
		r.Steps = append(r.Steps, ToolUse(c))
	}
	return r
}

// Thought streams a piece of thinking. Pieces without anything between them are
// one block, which is signed when it ends.
func Thought(text string) Step { return Step{Kind: modelapi.KindThought, Text: text} }

// Redacted sends thinking that nobody may read.
func Redacted() Step { return Step{Kind: kindRedacted} }

// ToolUse streams a tool call as a block of its own.
func ToolUse(c Call) Step { return Step{Kind: modelapi.KindCall, Call: c} }

// Block sends a content block as it is, in one piece: a tool that runs at the
// provider, its result, or something that clients do not know yet.
func Block(json string) Step { return Step{Kind: kindBlock, Text: json} }

// EndBlock ends the block that was streamed last, so that more of the same kind
// is a new one.
func EndBlock() Step { return Step{Kind: kindEnd} }

// Ping sends n ping events, which a client must skip.
func Ping(n int) Step { return Step{Kind: kindPing, N: n} }

// StreamError sends an error event after the answer began and ends it. The HTTP
// status stays 200.
func StreamError(kind, message string) Step {
	return modelapi.StreamError(kind, "", message)
}

// Fail answers with an HTTP error.
func Fail(status int, kind, message string) Response {
	return modelapi.Fail(status, kind, "", message)
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
	return Fail(http.StatusTooManyRequests, "rate_limit_error",
		"This request would exceed your organization's rate limit of 40,000 input tokens per minute.").WithRetryAfter(after)
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
func PromptTooLong(got, limit int) Response {
	return Response{Fail: invalid("prompt is too long: %d tokens > %d maximum", got, limit)}
}

// TooLarge answers 413, as for a body of more than 32 MB.
func TooLarge() Response {
	return Fail(http.StatusRequestEntityTooLarge, "request_too_large", "Request exceeds the maximum size")
}

// Refuse answers with the given pieces of text and then that the model refuses
// to go on.
func Refuse(pieces ...string) Response {
	r := Text(pieces...).WithStop("refusal")
	r.Details = &StopDetails{Type: "refusal", Category: "cyber", Explanation: "The request is against the usage policy."}
	return r
}
