package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/tool"
)

const (
	maxName        = 128  // bytes of a tool's own name
	maxDescription = 2000 // bytes
	maxResult      = 64 << 10
)

// offer is a tool as a server describes it, checked.
type offer struct {
	name        string // as the server knows it
	description string
	schema      json.RawMessage
	renamed     map[string]string // names of arguments to those that the server knows
}

func newOffer(t *sdk.Tool) (offer, error) {
	if t.Name == "" || len(t.Name) > maxName {
		return offer{}, fmt.Errorf("its name is empty or longer than %d bytes", maxName)
	}
	schema, renamed, err := checkSchema(t.InputSchema)
	if err != nil {
		return offer{}, err
	}
	return offer{name: t.Name, description: tool.Clip(tool.Visible(t.Description), maxDescription), schema: schema, renamed: renamed}, nil
}

// remote is a tool of a server.
type remote struct {
	conn    *connection
	name    string // as the server knows it
	spec    messages.ToolSpec
	renamed map[string]string // as in offer
}

// newTool names a tool so that its name is not taken.
func newTool(c *connection, f offer, taken map[string]bool) tool.Tool {
	full := "mcp__" + c.server.Name + "__" + f.name
	name := messages.SafeName(full)
	if taken[name] { // two names that differ only in characters that providers do not take
		name = another(name, full)
	}
	taken[name] = true
	return &remote{conn: c, name: f.name, renamed: f.renamed, spec: messages.ToolSpec{
		Name:        name,
		Description: strings.TrimSpace(fmt.Sprintf("[MCP server %s] %s", c.server.Name, f.description)),
		Schema:      f.schema,
	}}
}

// another returns a name for what would be name, if that were not taken.
func another(name, full string) string {
	sum := sha256.Sum256([]byte(full))
	tail := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), 64-len(tail))] + tail
}

// Spec implements tool.Tool.
func (t *remote) Spec() messages.ToolSpec { return t.spec }

// Effect implements tool.Tool. What a server says about the effects of its tools
// is not believed.
func (t *remote) Effect(_ context.Context, args json.RawMessage) (tool.Effect, error) {
	e := tool.Effect{
		Kind:    assistant.KindOther,
		Summary: fmt.Sprintf("%s: %s", t.conn.server.Name, tool.Line(t.name, 80)),
		Rule:    t.spec.Name,
	}
	var b bytes.Buffer
	if err := json.Indent(&b, t.original(args), "", "  "); err != nil {
		return e, fault.Wrap(err, fault.Invalid, "show the arguments")
	}
	e.Detail = fmt.Sprintf("Calls the tool `%s` of the MCP server `%s` with\n\n%s", strings.ReplaceAll(tool.Line(t.name, maxName), "`", "'"), t.conn.server.Name, tool.Exact("json", b.String()))
	return e, nil
}

// original returns arguments under the names that the server knows.
func (t *remote) original(args json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	if len(t.renamed) == 0 || json.Unmarshal(args, &object) != nil {
		return args
	}
	for name, known := range t.renamed {
		if value, ok := object[name]; ok {
			delete(object, name)
			object[known] = value
		}
	}
	if named, err := json.Marshal(object); err == nil {
		return named
	}
	return args
}

// Run implements tool.Tool.
func (t *remote) Run(ctx context.Context, args json.RawMessage) (tool.Result, error) {
	limit := t.conn.timeout
	call, cancel := context.WithTimeout(ctx, longestCall*limit)
	defer cancel()
	quiet := time.AfterFunc(limit, cancel)
	answer, err := t.conn.call(call, &sdk.CallToolParams{Name: t.name, Arguments: t.original(args)}, quiet)
	quiet.Stop()
	switch {
	case err != nil && ctx.Err() != nil:
		return tool.Result{}, ctx.Err()
	case err != nil && call.Err() != nil:
		if errors.Is(call.Err(), context.DeadlineExceeded) {
			limit *= longestCall
		}
		return tool.Result{}, t.failed(fault.Unavailable, fmt.Sprintf("did not answer within %s; the call may have had an effect", limit), true, err)
	case err != nil:
		if refusal, ok := errors.AsType[*jsonrpc.Error](err); ok { // the text is the server's
			return tool.Result{Content: "The call failed. " + t.label(tool.Clip(tool.Visible(refusal.Message), maxDescription)), IsError: true, Note: "failed"}, nil
		}
		t.conn.lose()
		return tool.Result{}, t.failed(fault.Unavailable, "is gone, or answers what cannot be read; the call may have had an effect", true, err)
	case answer.NeedsInput():
		return tool.Result{}, t.failed(fault.Unsupported, "asks for something in the middle of the call, which is not possible here", true, nil)
	}
	note := "done"
	if answer.IsError {
		note = "failed"
	}
	return tool.Result{Content: t.label(tool.Clip(text(answer), maxResult)), IsError: answer.IsError, Note: note, Shown: tool.Shown{Pictures: pictures(answer)}}, nil
}

func (t *remote) label(s string) string {
	return tool.Untrusted(fmt.Sprintf("the MCP server %q", t.conn.server.Name), s)
}

func (t *remote) failed(kind fault.Kind, what string, uncertain bool, err error) error {
	return &fault.Error{
		Kind:      kind,
		Public:    fmt.Sprintf("The MCP server %q %s.", t.conn.server.Name, what),
		Uncertain: uncertain,
		Err:       err,
	}
}

// call calls a tool. Whenever the server says that it works on that, quiet begins anew.
func (c *connection) call(ctx context.Context, params *sdk.CallToolParams, quiet *time.Timer) (result *sdk.CallToolResult, err error) {
	token := rand.Text()
	params.Meta = sdk.Meta{"progressToken": token}
	c.calls.Store(token, quiet)
	answered := result
	err = c.exchange(ctx, func(ctx context.Context) (err error) {
		answered, err = c.session.CallTool(ctx, params)
		return err
	})
	c.calls.Delete(token)
	if err == nil {
		result = answered
	}
	return result, err
}

// exchange asks the server something. It returns soon after the end of ctx also if the
// server does not read what is sent to it: then the server is ended, because nothing can be
// sent any more. What ask has found is there only without an error.
func (c *connection) exchange(ctx context.Context, ask func(ctx context.Context) error) error {
	c.line.begin()
	defer c.line.end()
	done, answer := make(chan struct{}), error(nil)
	go func() {
		defer close(done)
		defer caught(&answer)
		answer = ask(ctx)
	}()
	select {
	case <-done:
		return answer
	case <-ctx.Done():
	}
	select {
	case <-done:
		return ctx.Err()
	case <-time.After(patience):
	}
	err := c.line.stop()
	c.lose()
	select {
	case <-done:
	case <-time.After(patience):
	}
	return errors.Join(ctx.Err(), err)
}

// caught makes an error of a panic over what a server sent, of the SDK as much as of ours:
// no server ends the program.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("a panic: %v", p)
	}
}

// text makes text of a result. What is not text is named.
func text(r *sdk.CallToolResult) string {
	var parts []string
	for _, c := range r.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			parts = append(parts, c.Text)
		case *sdk.ImageContent:
			parts = append(parts, fmt.Sprintf("[image, %s, %d bytes]", tool.Line(c.MIMEType, 80), len(c.Data)))
		case *sdk.AudioContent:
			parts = append(parts, fmt.Sprintf("[audio, %s, %d bytes]", tool.Line(c.MIMEType, 80), len(c.Data)))
		case *sdk.ResourceLink:
			parts = append(parts, fmt.Sprintf("[resource %s: %s]", tool.Line(c.Name, 200), tool.Line(c.URI, 500)))
		case *sdk.EmbeddedResource:
			parts = append(parts, resource(c.Resource))
		default:
			parts = append(parts, fmt.Sprintf("[content of type %T]", c))
		}
	}
	if len(parts) == 0 && r.StructuredContent != nil {
		if raw, err := json.Marshal(r.StructuredContent); err == nil {
			parts = append(parts, string(raw))
		}
	}
	if len(parts) == 0 {
		return "(no content)"
	}
	return strings.Join(parts, "\n")
}

// pictures returns those of a result, and what may be some.
func pictures(r *sdk.CallToolResult) (all [][]byte) {
	for _, c := range r.Content {
		switch c := c.(type) {
		case *sdk.ImageContent:
			all = append(all, c.Data)
		case *sdk.EmbeddedResource:
			if c.Resource != nil && len(c.Resource.Blob) > 0 {
				all = append(all, c.Resource.Blob)
			}
		}
	}
	return all
}

func resource(r *sdk.ResourceContents) string {
	switch {
	case r == nil:
		return "[empty resource]"
	case r.Text != "":
		return r.Text
	}
	return fmt.Sprintf("[resource %s, %s, %d bytes]", tool.Line(r.URI, 500), tool.Line(r.MIMEType, 80), len(r.Blob))
}
