package assistant

import (
	"context"
	"errors"

	"remote-agent/internal/messages"
)

// ErrWaiting ends a turn that can only go on when a person has decided
// something. What was done so far is stored; the turn runs again later, with
// the calls that are still open at the end of its array. It is not a failure.
var ErrWaiting = errors.New("waiting for a person")

// Host is what the program offers to a running turn: tools, and the people who
// decide about them. It is safe for concurrent use within the turn.
type Host interface {
	// Tools lists what the model may call, always in the same order and with the
	// same text within a session, so that the provider's cache holds.
	Tools() []messages.ToolSpec

	// Permit decides whether a call may run. A call that is refused gets
	// Verdict.Reason as its result. An error that wraps ErrWaiting means that a
	// person is asked: the turn ends with it and asks again when it runs again. For
	// an Agent, which cannot be put aside, it waits as Ask does.
	Permit(ctx context.Context, call messages.ToolCall) (Verdict, error)

	// Parallel reports whether a call may run beside other such calls: it
	// changes nothing.
	Parallel(call messages.ToolCall) bool

	// Describe returns one line that says what a call does, safe to show.
	Describe(call messages.ToolCall) string

	// RunTool runs a call that Permit allowed. Whatever goes wrong is the result,
	// with IsError set, for the model to react to. The files that the tool shows are kept, and
	// have their Data, or a Note that says why the model cannot be given them. It returns
	// within seconds of the end of ctx, with nothing left running.
	RunTool(ctx context.Context, call messages.ToolCall) (messages.ToolResult, []messages.Attachment)

	// Ask asks a person about something that an agent with tools of its own
	// wants to do, and waits for the answer, ctx or the expiry. No answer is no.
	Ask(ctx context.Context, p Permission) (Verdict, error)

	// Round is called before each request to the model after the first of a
	// turn's run, with the number of requests and the usage of the run so far.
	// It returns what people said meanwhile, which goes to the model after the
	// results, and an error if the turn may not go on: one that wraps ErrWaiting
	// if a person is asked whether it may.
	Round(ctx context.Context, requests int, used Usage) ([]messages.Message, error)
}

// Verdict is a decision on a call.
type Verdict struct {
	Allow  bool
	Always bool   // a person allowed this and the like of it from now on
	Reason string // for the model, when it is refused
}

// Permission is what an agent with tools of its own asks for.
type Permission struct {
	Call   messages.ToolCall // id, name and arguments as the agent gave them
	Kind   PermissionKind
	Title  string // one line
	Detail string // the exact effect: the command, the diff; CommonMark. Empty if it is too long to be shown: then nobody can allow it
	Always bool   // the agent can be told to allow the like of it from now on

	// OnlyAlways is set if the agent takes no yes for once. Where nobody can say yes for
	// always, nobody is asked: that is fault.Unsupported.
	OnlyAlways bool
}

// PermissionKind says what a call does, as far as it is known.
type PermissionKind string

// The kinds of effects.
const (
	KindRead    PermissionKind = "read"    // changes nothing
	KindWrite   PermissionKind = "write"   // changes files of the worktree
	KindExecute PermissionKind = "execute" // runs a program
	KindNetwork PermissionKind = "network" // reaches out
	KindOther   PermissionKind = "other"

	// KindQuestion is the choice between several answers: no mode and no rule takes one.
	KindQuestion PermissionKind = "question"
)
