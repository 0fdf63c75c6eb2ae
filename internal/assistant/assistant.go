// Package assistant defines what an AI backend must be able to do: run one turn
// of a conversation and report what happens as it happens.
//
// One subpackage implements Assistant for each kind of backend. Model APIs get
// the whole message array with every turn; external agents keep their own
// session and get its id.
package assistant

import (
	"context"
	"iter"

	"remote-agent/internal/messages"
)

// Name names an assistant, such as "openai". It is stored with conversations
// and sessions as ai_assistant_type, at most 20 bytes.
type Name string

// Assistant answers turns.
type Assistant interface {
	// Name does no I/O and never changes.
	Name() Name

	// Model returns the model it asks by default, for people and for the
	// record; empty where there is none.
	Model() string

	// Run runs one turn and yields its events in order. The last event of a
	// successful turn is Finished. A failed turn yields one error, classified
	// with package fault, and then stops:
	//
	//   RateLimited, Unavailable   try the turn again later (RetryAfter)
	//   Exhausted                  the array does not fit the model (Overflow is
	//                              true) or a quota is used up
	//   Unauthorized               the key was refused; an operator must act
	//
	// An answer that was cut off is an error, never a Finished. When ctx is
	// done, or the caller stops ranging, Run stops the work, releases all it
	// started, and returns within a second.
	//
	// The sequence can be ranged over once. Different turns may run at once.
	Run(ctx context.Context, turn Turn) iter.Seq2[Event, error]
}

// Turn is one request to an assistant.
type Turn struct {
	// Conversation and Run identify the turn, for logs and for the provider's
	// abuse reports. They hold no personal data.
	Conversation string
	Run          string

	System string             // the system prompt; may be empty
	Array  []messages.Message // repaired and windowed; the last is the new user message

	// Resume is the assistant's own session id from an earlier Resumable, or
	// empty for a fresh start.
	Resume string

	Model string // overrides Assistant.Model if not empty

	// Dir is where the assistant may read and write files; empty for a
	// conversation without a codebase.
	Dir string
}

// Event is something that happened during a turn. The set is closed, and
// gochecksumtype checks that switches over it are complete.
//
//sumtype:decl
type Event interface{ event() }

type (
	// Resumable says how to continue this conversation. It is stored as soon as
	// it arrives, so that a crash later in the turn loses nothing.
	Resumable struct{ Session string }

	// TextDelta is a piece of the answer.
	TextDelta struct{ Text string }

	// ToolStarted and ToolFinished bracket a tool call that the person may see.
	ToolStarted struct {
		ID      string
		Name    string
		Summary string // one line, safe to show
	}

	// ToolFinished is sent once for every ToolStarted of a successful turn.
	ToolFinished struct {
		ID string
		OK bool
	}

	// MessageDone carries a complete message of the turn, to be stored: an
	// assistant message (with its tool calls, if any) or a tool message (with
	// results). It is yielded as soon as the message is complete.
	MessageDone struct{ Message messages.Message }

	// Finished is the last event of a successful turn. The answer is the text of
	// the last assistant MessageDone.
	Finished struct {
		Usage Usage
		Model string // the model that answered, as the provider names it
	}
)

func (Resumable) event()    {}
func (TextDelta) event()    {}
func (ToolStarted) event()  {}
func (ToolFinished) event() {}
func (MessageDone) event()  {}
func (Finished) event()     {}

// Usage is what a turn cost, in tokens. Zero means unknown.
type Usage struct {
	InputTokens  int64 `json:"input_tokens,omitempty"`
	OutputTokens int64 `json:"output_tokens,omitempty"`
	CachedTokens int64 `json:"cached_tokens,omitempty"` // part of InputTokens
}

// OverflowError is in the chain of an Exhausted error when the message array
// did not fit the model's context window: a smaller window may work.
type OverflowError struct {
	Limit int // tokens, or zero if the provider did not say
	Err   error
}

// Error returns the provider's text, for the operator.
func (e *OverflowError) Error() string { return "context window exceeded: " + e.Err.Error() }

// Unwrap returns the provider's error.
func (e *OverflowError) Unwrap() error { return e.Err }
