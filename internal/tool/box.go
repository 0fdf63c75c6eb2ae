package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
)

// MaxContent is the longest result that reaches a model, in bytes. Tools cap
// their own output below it; this holds for all of them.
const MaxContent = 256 << 10

// maxArguments is the longest argument text that is looked at, in bytes.
const maxArguments = 4 << 20

// Box holds the tools of one turn. It is safe for concurrent use.
type Box struct {
	tools []Tool
	specs []messages.ToolSpec
	named map[string]Tool
	close []func() error
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

// Add puts another tool into the box, before it is used.
func (b *Box) Add(t Tool) error {
	spec := t.Spec()
	if _, twice := b.named[spec.Name]; twice {
		return fault.Newf(fault.Invalid, "Two tools have the name %q.", spec.Name)
	}
	b.tools, b.specs = append(b.tools, t), append(b.specs, spec)
	b.named[spec.Name] = t
	return nil
}

// OnClose has f called by Close.
func (b *Box) OnClose(f func() error) { b.close = append(b.close, f) }

// Close releases what the tools hold. It waits for no call.
func (b *Box) Close() error {
	var all error
	for _, f := range b.close {
		all = errors.Join(all, f())
	}
	b.close = nil
	return all
}

// Specs returns the descriptions of all tools, in order.
func (b *Box) Specs() []messages.ToolSpec { return b.specs }

// Effect says what a call would do. fault.NotFound is an unknown tool and
// fault.Invalid wrong arguments; their public texts are for the model.
func (b *Box) Effect(ctx context.Context, call messages.ToolCall) (Effect, error) {
	t, args, err := b.find(call)
	if err != nil {
		return Effect{Kind: assistant.KindOther, Summary: messages.SafeName(call.Name)}, err
	}
	return t.Effect(ctx, args)
}

// Run runs a call. Whatever goes wrong, a panic included, is a result with
// IsError. note is for people.
func (b *Box) Run(ctx context.Context, call messages.ToolCall) (result messages.ToolResult, note string) {
	result = messages.ToolResult{CallID: call.ID, Name: call.Name}
	defer func() {
		if p := recover(); p != nil {
			result.IsError, note = true, "failed"
			result.Content = fmt.Sprintf("the tool failed: %v", p)
		}
	}()
	t, args, err := b.find(call)
	if err == nil {
		var r Result
		if r, err = t.Run(ctx, args); err == nil {
			result.Content, result.IsError = clean(r.Content), r.IsError
			return result, r.Note
		}
	}
	result.Content, result.IsError = clean(text(ctx, err)), true
	return result, "failed"
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
		names := make([]string, len(b.specs))
		for i, s := range b.specs {
			names[i] = s.Name
		}
		return nil, nil, fault.Newf(fault.NotFound, "There is no tool %q. The tools are: %s.", messages.SafeName(call.Name), strings.Join(names, ", "))
	}
	if len(call.Arguments) > maxArguments {
		return nil, nil, fault.Newf(fault.Invalid, "The arguments are %d bytes long; at most %d are taken.", len(call.Arguments), maxArguments)
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

// clean makes text valid and short enough for a model.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= MaxContent {
		return s
	}
	half := MaxContent / 2
	head, tail := strings.ToValidUTF8(s[:half], ""), strings.ToValidUTF8(s[len(s)-half:], "")
	return fmt.Sprintf("%s\n… %d bytes left out …\n%s", head, len(s)-len(head)-len(tail), tail)
}

// Decode reads the arguments of a call into v. Unknown members are
// fault.Invalid, because a misspelled option that is ignored does harm.
func Decode(args json.RawMessage, v any) error {
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return &fault.Error{Kind: fault.Invalid, Public: "The arguments do not fit the tool: " + err.Error() + ".", Err: err}
	}
	return nil
}
