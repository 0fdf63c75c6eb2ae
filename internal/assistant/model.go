package assistant

import (
	"context"
	"iter"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// Model is a model API: it completes a message array, once for each call. Package
// loop makes an Assistant of it. It is safe for concurrent use.
type Model interface {
	// Name is the assistant's name, such as "anthropic". It does no I/O.
	Name() Name

	// Model returns the model it asks by default.
	Model() string

	// Complete asks the API once and yields TextDelta and ThoughtDelta as they
	// come, then MessageDone with the whole assistant message (text, thinking,
	// calls) and Finished. A failed request yields one error, classified as
	// Assistant.Run says, and nothing after it; UsageUpdated comes before it if the
	// API said what was used, for that is billed all the same. A stream that ends without a
	// finish reason is an error: none of its calls may run. The model does not
	// retry; that is decided elsewhere.
	//
	// A message that ends in calls is a success: Finished follows and the caller
	// runs them.
	Complete(ctx context.Context, r Request) iter.Seq2[Event, error]
}

// Lister is a Model, or an Assistant, that can be asked for its models.
type Lister interface {
	// Models returns the names of the models. An API is asked once, and may take names
	// that its list lacks, such as aliases. Of an agent, these are all that Turn.Model
	// takes: none until a session has begun in this process, or if there is no choice.
	// The list is the caller's. Errors have no text for people.
	Models(ctx context.Context) ([]string, error)
}

// Request is one request to a Model.
type Request struct {
	Conversation string // for the provider's abuse reports; no personal data
	Run          string

	System string
	Array  []messages.Message // repaired: every call is answered
	Tools  []messages.ToolSpec
	Model  string // overrides Model.Model if not empty
}

// ErrEmpty is the error of an answer without text and calls.
var ErrEmpty = fault.New(fault.Unavailable, "The model returned an empty answer.")
