// Package tool defines what the program's own tools are and holds a set of them
// for one turn. The tools themselves are in subpackages.
//
// A tool decides nothing about permissions: it says what a call would do
// (Effect), and somebody else decides before Run.
package tool

import (
	"context"
	"encoding/json"
	"io"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
)

// Tool is one tool, bound to the directory or database that it works on. It is
// safe for concurrent use.
type Tool interface {
	// Spec does no I/O and never changes.
	Spec() messages.ToolSpec

	// Effect says what a call would do, without doing any of it. args is a valid
	// JSON object. fault.Invalid means that the arguments are wrong; its public
	// text tells the model how to do better.
	Effect(ctx context.Context, args json.RawMessage) (Effect, error)

	// Run runs a call. An error is told to the model by its public text; a
	// result that the model should read as a failure (an exit code) is a Result
	// with IsError. It ends within seconds of ctx and leaves nothing running.
	Run(ctx context.Context, args json.RawMessage) (Result, error)
}

// Effect is what a call would do.
type Effect struct {
	Kind assistant.PermissionKind

	// Summary is one line for people, such as "Edit server.go" or "go test ./...".
	Summary string

	// Detail is the exact effect in CommonMark, for the person who decides: the
	// whole command, the diff. Nothing of it is left out.
	Detail string

	// Rule is what "always allow" would allow, to be compared byte by byte with
	// later calls of the same tool; empty if that must not be offered.
	Rule string
}

// Result is the outcome of a call.
type Result struct {
	Content string // for the model; valid UTF-8, capped by the tool
	IsError bool

	// Note is the outcome in a few words for people, such as "+12 −3" or
	// "exit 1"; may be empty.
	Note string

	Shown
}

// Shown is what a call shows besides its text.
type Shown struct {
	// Pictures are for people and for the model: whatever is among them that is none is
	// left out.
	Pictures [][]byte

	// File is a picture or a document that people have already, for the model only; nil: none.
	File *File
}

// File is a file that a tool found.
type File struct {
	Name      string
	MediaType string // by its content

	// Open returns the content. It is called before the tool is closed, and again if
	// reading fails.
	Open func(ctx context.Context) (io.ReadCloser, error)
}
