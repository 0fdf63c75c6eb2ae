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

	"remote-agent/internal/fault"
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
	//   Unauthorized, Unsupported  the key was refused, or the model or its address
	//                              cannot be used so; an operator must act
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
	Array  []messages.Message // repaired and windowed; the last is the new user message, or what a turn that goes on has done

	// Said is the message that the turn answers, as the person wrote it: without what
	// Array has besides, such as quotes, memories and the text of a command.
	Said string

	// Resume is the assistant's own session id from an earlier Resumable, or
	// empty for a fresh start.
	Resume string

	// ResumeCostUSD is what the last Resumable said that the session had cost.
	ResumeCostUSD float64

	Model string // overrides Assistant.Model if not empty

	// Mode is how much the turn may do without asking: ask, edit, auto, or plan
	// for a turn that makes a plan only. Agents with modes of their own go by it;
	// what counts are the answers of Host, and what ReadsOnly says of the worktree.
	Mode string

	// Dir is where the assistant may read and write files; empty for a
	// conversation without a codebase.
	Dir string

	// Tree is the top of the worktree that Dir is in, and GitData the folder with
	// git's data of its repository, which programs may read; empty: there is none.
	// Both are what the program knows, and nothing that was read in the worktree.
	Tree, GitData string

	// Host has the tools of the turn and the people who decide. It may be nil:
	// then there are none.
	Host Host
}

// ReadsOnly reports whether nothing may change the worktree in the turn.
func (t Turn) ReadsOnly() bool { return t.Tree != "" && (t.Mode == "ask" || t.Mode == "plan") }

// ToolUser is implemented by assistants that run the program's tools and can go
// on with a turn that was put aside: the last message of Turn.Array may then
// have calls that are not answered yet (messages.OpenCalls).
type ToolUser interface {
	Assistant
	UsesTools()
}

// Agent is implemented by assistants with a loop, tools and sessions of their
// own. They get the whole array like the others, and use of it what their own
// session does not know yet.
type Agent interface {
	Assistant

	// Release ends what is kept running for a conversation, if anything.
	Release(conversation string)

	// Close ends all of it and waits.
	Close() error
}

// Checker is an Assistant that may be unavailable.
type Checker interface {
	Assistant

	// Check reports whether it could answer now, without starting anything. The
	// error's public text says what is missing and what to do. It is quick.
	Check() error
}

// Event is something that happened during a turn. The set is closed, and
// gochecksumtype checks that switches over it are complete.
//
//sumtype:decl
type Event interface{ event() }

type (
	// Resumable says how to continue this conversation. It is stored as soon as
	// it arrives, so that a crash later in the turn loses nothing. An empty one
	// forgets a session that the agent does not know any more.
	Resumable struct {
		Session string

		// CostUSD is what the agent says that the session has cost so far, if no
		// message of the turn will say it; zero if it does not.
		CostUSD float64
	}

	// TextDelta is a piece of the answer.
	TextDelta struct{ Text string }

	// ThoughtDelta is a piece of the model's reasoning. It is shown to people
	// who want details, and is no part of the answer.
	ThoughtDelta struct{ Text string }

	// PlanUpdated replaces the list of steps that an agent works on.
	PlanUpdated struct{ Steps []Step }

	// Notice is something that the person should know and that is no part of
	// the answer, such as that an agent's context was lost.
	Notice struct {
		Text string
		Once bool // whoever has read it in this session need not read it again
	}

	// FileMade is a file that the assistant has for the person, such as a picture. It is shown
	// at once; its name stands in what is said. See Gallery.
	FileMade struct {
		Name string // no other file of the turn has it
		Data []byte
	}

	// ToolStarted and ToolFinished bracket a tool call that the person may see.
	ToolStarted struct {
		ID      string
		Name    string
		Summary string         // one line, safe to show
		Kind    PermissionKind // empty if unknown
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

	// UsageUpdated says what the run has used so far, so that it is on record
	// also if the turn ends early. Usage is a sum, not a difference.
	UsageUpdated struct {
		Usage Usage
		Model string
	}

	// Finished is the last event of a successful turn. The answer is the text of
	// the last assistant MessageDone.
	Finished struct {
		Usage Usage
		Model string // the model that answered, as the provider names it
	}
)

func (Resumable) event()    {}
func (TextDelta) event()    {}
func (ThoughtDelta) event() {}
func (PlanUpdated) event()  {}
func (Notice) event()       {}
func (FileMade) event()     {}
func (UsageUpdated) event() {}
func (ToolStarted) event()  {}
func (ToolFinished) event() {}
func (MessageDone) event()  {}
func (Finished) event()     {}

// Usage is what a turn cost, in tokens. Zero means unknown.
type Usage struct {
	InputTokens   int64 `json:"input_tokens,omitempty"`
	OutputTokens  int64 `json:"output_tokens,omitempty"`
	CachedTokens  int64 `json:"cached_tokens,omitempty"`  // part of InputTokens, read from the provider's cache
	WrittenTokens int64 `json:"written_tokens,omitempty"` // part of InputTokens, written to the provider's cache

	// CostUSD is what the agent, or the API, says that the turn cost; zero if it does not.
	CostUSD float64 `json:"cost_usd,omitempty"`

	// ContextUsed and ContextSize are the agent's own window, in tokens.
	ContextUsed int64 `json:"context_used,omitempty"`
	ContextSize int64 `json:"context_size,omitempty"`
}

// Count is a number of tokens as it was reported, which is believed from none to a
// billion: sums must not overflow, because a session that has one could not be read.
func Count(reported int64) int64 { return min(max(reported, 0), 1e9) }

// Add returns the sum of u and of what was reported; the context is that of v.
func (u Usage) Add(v Usage) Usage {
	u.InputTokens += Count(v.InputTokens)
	u.OutputTokens += Count(v.OutputTokens)
	u.CachedTokens += Count(v.CachedTokens)
	u.WrittenTokens += Count(v.WrittenTokens)
	u.CostUSD += v.CostUSD
	u.ContextUsed, u.ContextSize = v.ContextUsed, v.ContextSize
	return u
}

// Unfinished returns u, as an API reported it, for an answer to r that was stopped or broke
// off after so many bytes: what the API would have said at the end is estimated. Else
// nobody would pay for it, and /stop just before the end would evade every budget.
func (u Usage) Unfinished(r Request, written int) Usage {
	if written == 0 {
		return u
	}
	if u.InputTokens == 0 {
		prompt := messages.EstimateAll(r.Array) + messages.EstimateText(len(r.System))
		for _, t := range r.Tools {
			prompt += messages.EstimateText(len(t.Name) + len(t.Description) + len(t.Schema))
		}
		u.InputTokens = int64(prompt)
	}
	u.OutputTokens = max(u.OutputTokens, int64(messages.EstimateText(written)))
	return u
}

// Step is an entry of an agent's plan.
type Step struct {
	Text string
	Done bool
	Now  bool // being worked on
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

// Overflow returns the Exhausted error for a message array that does not fit the
// model. limit is in tokens, zero if it is not known.
func Overflow(limit int, err error) error {
	return &fault.Error{
		Kind: fault.Exhausted, Public: "This conversation is too long for the model.",
		Err: &OverflowError{Limit: limit, Err: err},
	}
}

// BlindError is in the chain of an error that says that the model does not take the
// pictures or documents in the array: without their data it may answer.
type BlindError struct {
	Err   error
	These bool // it takes others, but not all of these: one is damaged, or there are too many
}

// Error returns the provider's text, for the operator.
func (e *BlindError) Error() string {
	if e.These {
		return "the model does not take a picture or document: " + e.Err.Error()
	}
	return "the model takes no pictures or documents: " + e.Err.Error()
}

// Unwrap returns the provider's error.
func (e *BlindError) Unwrap() error { return e.Err }

// Blind returns the Unsupported error for a model that does not take pictures or
// documents.
func Blind(err error) error {
	return &fault.Error{Kind: fault.Unsupported, Public: "This model cannot look at pictures or documents.", Err: &BlindError{Err: err}}
}

// Unreadable returns the Invalid error for a picture or document that the model does not
// take, although it takes others.
func Unreadable(err error) error {
	return &fault.Error{Kind: fault.Invalid, Public: "The model could not read a picture or document.", Err: &BlindError{Err: err, These: true}}
}
