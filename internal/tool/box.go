package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"unicode/utf8"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/messages"
)

// MaxContent is the longest result that reaches a model, in bytes. Tools cap
// their own output below it; this holds for all of them.
const MaxContent = 256 << 10

// maxArguments is the longest argument text that is looked at, in bytes.
const maxArguments = 4 << 20

// MaxSummary is the longest summary and note that people see, in runes.
const MaxSummary = 200

// Box holds the tools of one turn. Once it is filled, it is safe for concurrent
// use.
type Box struct {
	specs []messages.ToolSpec
	named map[string]Tool
	close []func() error
	panic func(name string, value any, stack []byte)
}

// NewBox returns a box of tools, in that order. Two tools of one name are
// fault.Invalid.
func NewBox(tools ...Tool) (*Box, error) {
	b := &Box{named: make(map[string]Tool, len(tools))}
	for _, t := range tools {
		if err := b.Add(t); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Add puts another tool into the box, before it is used. A name that providers
// do not take, or that is taken, is fault.Invalid.
func (b *Box) Add(t Tool) error {
	spec := t.Spec()
	if spec.Name == "" || messages.SafeName(spec.Name) != spec.Name {
		return fault.Newf(fault.Invalid, "A tool cannot have the name %q.", spec.Name)
	}
	if _, twice := b.named[spec.Name]; twice {
		return fault.Newf(fault.Invalid, "Two tools have the name %q.", spec.Name)
	}
	b.specs = append(b.specs, spec)
	b.named[spec.Name] = t
	return nil
}

// OnClose has f called by Close, before the functions that were given earlier.
func (b *Box) OnClose(f func() error) { b.close = append(b.close, f) }

// OnPanic has f called when a tool panics, for the log of the operator. The
// model only reads that the tool broke.
func (b *Box) OnPanic(f func(name string, value any, stack []byte)) { b.panic = f }

// Close releases what the tools hold. It waits for no call and may be called
// twice.
func (b *Box) Close() error {
	var all error
	for _, f := range slices.Backward(b.close) {
		all = errors.Join(all, f())
	}
	b.close = nil
	return all
}

// Specs returns the descriptions of all tools, in order.
func (b *Box) Specs() []messages.ToolSpec { return b.specs }

// Effect says what a call would do. fault.NotFound is an unknown tool and
// fault.Invalid wrong arguments; their public texts are for the model. The
// effect has a summary of one line also with an error.
func (b *Box) Effect(ctx context.Context, call messages.ToolCall) (e Effect, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = b.broke(call, p)
		}
		e.Kind = cmp.Or(e.Kind, assistant.KindOther)
		e.Detail = strings.ToValidUTF8(e.Detail, "\uFFFD")
		if e.Summary = Line(e.Summary, MaxSummary); e.Summary == "" {
			e.Summary = messages.SafeName(call.Name)
		}
	}()
	t, args, err := b.find(call)
	if err != nil {
		return Effect{}, err
	}
	return t.Effect(ctx, args)
}

// Run runs a call. Whatever goes wrong, a panic included, is a result with
// IsError. Its content is valid UTF-8 of at most about MaxContent bytes. note is
// one line for people.
func (b *Box) Run(ctx context.Context, call messages.ToolCall) (result messages.ToolResult, note string, shown Shown) {
	r, err := b.run(ctx, call)
	if err != nil {
		r = Result{Content: text(ctx, err), IsError: true, Note: "failed"}
	}
	result = messages.ToolResult{CallID: call.ID, Name: call.Name, Content: Clip(r.Content, MaxContent), IsError: r.IsError}
	return result, Line(r.Note, MaxSummary), r.Shown
}

func (b *Box) run(ctx context.Context, call messages.ToolCall) (r Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = b.broke(call, p)
		}
	}()
	t, args, err := b.find(call)
	if err != nil {
		return Result{}, err
	}
	return t.Run(ctx, args)
}

// broke makes an error of a panic. What was done before it is not known.
func (b *Box) broke(call messages.ToolCall, value any) error {
	if b.panic != nil {
		b.panic(call.Name, value, debug.Stack())
	}
	return &fault.Error{
		Kind:      fault.Internal,
		Public:    fmt.Sprintf("The tool %s crashed, which is a bug in the tool. Part of the call may have been done. Check before you continue, and do not repeat the same call.", call.Name),
		Uncertain: true,
		Err:       fmt.Errorf("tool %s panicked: %v", call.Name, value),
	}
}

// text is what a model reads of an error.
func text(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return "stopped: " + context.Cause(ctx).Error()
	}
	return fault.Public(err)
}

func (b *Box) find(call messages.ToolCall) (Tool, json.RawMessage, error) {
	t, ok := b.named[call.Name]
	if !ok {
		names := lists.Map(b.specs, func(s messages.ToolSpec) string { return s.Name })
		return nil, nil, fault.Newf(fault.NotFound, "There is no tool %q. The tools are: %s.", messages.SafeName(call.Name), strings.Join(names, ", "))
	}
	if len(call.Arguments) > maxArguments {
		return nil, nil, fault.Newf(fault.Invalid, "The arguments are %d bytes long; the limit is %d.", len(call.Arguments), maxArguments)
	}
	if !utf8.ValidString(call.Arguments) {
		return nil, nil, fault.New(fault.Invalid, "The arguments are not valid UTF-8. Nothing was run; call the tool again with valid JSON.")
	}
	args := bytes.TrimSpace([]byte(call.Arguments))
	if len(args) == 0 {
		args = []byte("{}")
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(args, &object); err != nil || object == nil {
		return nil, nil, fault.Newf(fault.Invalid, "The arguments are not a JSON object: %v. Nothing was run; call the tool again with valid JSON.", reason(err))
	}
	return t, args, nil
}

func reason(err error) string {
	if err == nil {
		return "null"
	}
	return err.Error()
}

// Decode reads the arguments of a call into v. Unknown members are
// fault.Invalid, because a misspelled option that is ignored does harm.
func Decode(args json.RawMessage, v any) error {
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		return nil
	}
	why := strings.TrimPrefix(err.Error(), "json: ")
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		why = fmt.Sprintf("%q cannot be a %s", wrong.Field, wrong.Value)
	}
	return &fault.Error{Kind: fault.Invalid, Public: "The arguments do not fit the tool: " + why + ".", Err: err}
}
