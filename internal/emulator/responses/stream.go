package responses

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/modelapi"
)

// play carries out a response. It returns an error if the client, or the
// server, went away before the end.
func (s *Server) play(ctx context.Context, w http.ResponseWriter, req Request, r Response) error {
	maps.Copy(w.Header(), r.header)
	if r.fail != nil {
		playError(w, r)
		return nil
	}
	out := &answer{id: fmt.Sprintf("resp_emulated%d", req.N), req: req, response: r, w: w}
	if !req.Stream {
		return out.whole(ctx)
	}
	modelapi.BeginStream(w)
	return out.stream(ctx)
}

func playError(w http.ResponseWriter, r Response) {
	if r.body != "" {
		modelapi.WritePage(w, r.fail.Status, r.body)
		return
	}
	writeError(w, r.fail)
}

// answer is one answer on its way.
type answer struct {
	id       string
	req      Request
	response Response
	w        http.ResponseWriter
	buf      bytes.Buffer
	sequence int
	output   []map[string]any // items that are done
	open     *openItem
	size     int // bytes of output
	thought  int // bytes of reasoning
}

// openItem is an item that is being streamed in pieces.
type openItem struct {
	kind stepKind
	id   string
	text strings.Builder
}

func (a *answer) stream(ctx context.Context) error {
	for _, kind := range []string{"response.created", "response.in_progress"} {
		if err := a.event(kind, map[string]any{"response": a.object("in_progress")}); err != nil {
			return err
		}
	}
	for _, step := range a.response.steps {
		ended, err := a.step(ctx, step)
		if ended || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if err := a.end(); err != nil {
		return err
	}
	status := a.status()
	return a.event("response."+status, map[string]any{"response": a.object(status)})
}

func (a *answer) status() string {
	if a.response.incomplete != "" {
		return "incomplete"
	}
	return "completed"
}

// step carries out one step of an answer and reports whether the answer ends
// with it.
func (a *answer) step(ctx context.Context, step Step) (ended bool, err error) {
	switch step.kind {
	case stepText, stepRefusal, stepThought:
		return false, a.piece(step)
	case stepFunction, stepCustom, stepShell:
		return false, a.call(step)
	case stepPause:
		return false, emulator.Sleep(ctx, step.wait)
	case stepGate:
		return false, step.gate.Pass(ctx)
	case stepKeepAlive, stepRaw:
		if !a.req.Stream {
			return false, nil
		}
		a.buf.WriteString(strings.Repeat(": keep-alive\n\n", step.n) + step.text)
		return false, a.flush()
	case stepFailed, stepError:
		return true, a.fail(step)
	case stepReset:
		emulator.Reset(a.w)
	case stepCut:
		if !a.req.Stream {
			panic(http.ErrAbortHandler)
		}
	}
	return true, nil
}

func (a *answer) fail(step Step) error {
	if !a.req.Stream {
		writeError(a.w, step.fail)
		return nil
	}
	if step.kind == stepError {
		return a.event("error", map[string]any{"code": orNull(step.fail.Code), "message": step.fail.Message, "param": nil})
	}
	object := a.object("failed")
	object["error"] = map[string]any{"code": step.fail.Code, "message": step.fail.Message}
	return a.event("response.failed", map[string]any{"response": object})
}

// form says how an item in pieces is streamed.
type form struct {
	id    string // prefix of its id
	delta string // event of a piece
	part  string // events of the part that holds the pieces
	index string // name of the number of that part
}

var forms = map[stepKind]form{
	stepText:    {"msg", "response.output_text", "response.content_part", "content_index"},
	stepRefusal: {"msg", "response.refusal", "response.content_part", "content_index"},
	stepThought: {"rs", "response.reasoning_summary_text", "response.reasoning_summary_part", "summary_index"},
}

// piece streams a piece of a message or of reasoning, and begins an item for it if
// none of its kind is open.
func (a *answer) piece(step Step) error {
	f := forms[step.kind]
	if a.open == nil || a.open.kind != step.kind {
		if err := a.end(); err != nil {
			return err
		}
		a.open = &openItem{kind: step.kind, id: a.itemID(f.id)}
		if err := a.event("response.output_item.added", map[string]any{"item": a.item("in_progress")}); err != nil {
			return err
		}
		if err := a.event(f.part+".added", a.place(f, "part", a.part())); err != nil {
			return err
		}
	}
	a.size += len(step.text)
	if step.kind == stepThought {
		a.thought += len(step.text)
	}
	a.open.text.WriteString(step.text)
	return a.event(f.delta+".delta", a.place(f, "delta", step.text))
}

// place names the part of the open item that an event is about.
func (a *answer) place(f form, key string, value any) map[string]any {
	return map[string]any{"item_id": a.open.id, f.index: 0, key: value}
}

func (a *answer) itemID(kind string) string {
	return fmt.Sprintf("%s_emulated%d_%d", kind, a.req.N, len(a.output))
}

// part is what the open item holds.
func (a *answer) part() map[string]any {
	text := a.open.text.String()
	if a.open.kind == stepRefusal {
		return map[string]any{"type": "refusal", "refusal": text}
	}
	if a.open.kind == stepThought {
		return map[string]any{"type": "summary_text", "text": text}
	}
	return map[string]any{"type": "output_text", "text": text, "annotations": []any{}}
}

// item is the open item as it is now.
func (a *answer) item(status string) map[string]any {
	parts := []any{}
	if status == "completed" {
		parts = append(parts, a.part())
	}
	if a.open.kind != stepThought {
		return map[string]any{"id": a.open.id, "type": "message", "role": "assistant", "status": status, "content": parts}
	}
	item := map[string]any{"id": a.open.id, "type": "reasoning", "summary": parts}
	if status == "completed" && slices.Contains(a.req.Include, "reasoning.encrypted_content") {
		item["encrypted_content"] = seal(a.req.Model, a.open.id, a.open.text.String())
	}
	return item
}

// end ends the open item, if there is one.
func (a *answer) end() error {
	if a.open == nil {
		return nil
	}
	f := forms[a.open.kind]
	key := "text"
	if a.open.kind == stepRefusal {
		key = "refusal"
	}
	if err := a.event(f.delta+".done", a.place(f, key, a.open.text.String())); err != nil {
		return err
	}
	if err := a.event(f.part+".done", a.place(f, "part", a.part())); err != nil {
		return err
	}
	item := a.item("completed")
	a.open = nil
	return a.done(item)
}

func (a *answer) done(item map[string]any) error {
	err := a.event("response.output_item.done", map[string]any{"item": item})
	a.output = append(a.output, item)
	return err
}

// call streams a call.
func (a *answer) call(step Step) error {
	if err := a.end(); err != nil {
		return err
	}
	c := step.call
	a.size += len(c.Arguments) + len(step.text)
	item := map[string]any{"call_id": c.ID, "status": "in_progress"}
	key, event := "arguments", "response.function_call_arguments"
	switch step.kind {
	case stepShell:
		item["id"], item["type"] = a.itemID("lsh"), "local_shell_call"
		item["action"] = map[string]any{"type": "exec", "command": strings.Split(step.text, "\x00"), "env": map[string]string{}}
		key = ""
	case stepCustom:
		item["id"], item["type"], item["name"] = a.itemID("ctc"), "custom_tool_call", c.Name
		key, event = "input", "response.custom_tool_call_input"
	default:
		item["id"], item["type"], item["name"] = a.itemID("fc"), "function_call", c.Name
	}
	if c.Namespace != "" {
		item["namespace"] = c.Namespace
	}
	if key != "" {
		item[key] = ""
	}
	if err := a.event("response.output_item.added", map[string]any{"item": item}); err != nil {
		return err
	}
	if key != "" {
		for _, piece := range modelapi.Split(c.Arguments, max(c.Pieces, 2)) {
			if err := a.event(event+".delta", map[string]any{"item_id": item["id"], "delta": piece}); err != nil {
				return err
			}
		}
		item[key] = c.Arguments
		if err := a.event(event+".done", map[string]any{"item_id": item["id"], key: c.Arguments}); err != nil {
			return err
		}
	}
	item["status"] = "completed"
	return a.done(item)
}

// event streams one event. An answer in one piece has none.
func (a *answer) event(kind string, fields map[string]any) error {
	if !a.req.Stream {
		return nil
	}
	fields["type"], fields["sequence_number"] = kind, a.sequence
	if _, response := fields["response"]; !response && kind != "error" {
		fields["output_index"] = len(a.output)
	}
	a.sequence++
	data, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	a.buf.WriteString("event: " + kind + "\ndata: " + string(data) + "\n\n")
	return a.flush()
}

func (a *answer) flush() error { return modelapi.Flush(a.w, &a.buf) }

// object is the response as it is now.
func (a *answer) object(status string) map[string]any {
	output := a.output
	if output == nil {
		output = []map[string]any{}
	}
	o := map[string]any{
		"id": a.id, "object": "response", "created_at": a.req.At.Unix(), "status": status, "error": nil, "incomplete_details": nil,
		"model": a.req.Model, "output": output, "parallel_tool_calls": true, "store": false, "usage": nil,
		"instructions": orNull(a.req.Instructions), "previous_response_id": nil, "metadata": map[string]string{},
	}
	switch status {
	case "incomplete":
		o["incomplete_details"] = map[string]string{"reason": a.response.incomplete}
		o["usage"] = a.usage()
	case "completed":
		o["usage"] = a.usage()
	}
	return o
}

func (a *answer) usage() map[string]any {
	input, cached, output, reasoning := a.req.Tokens, a.req.Cached, 1+a.size/4, a.thought/4
	if u := a.response.usage; u != nil {
		input, cached, output, reasoning = u[0], 0, u[1], 0
	}
	return map[string]any{
		"input_tokens": input, "input_tokens_details": map[string]int{"cached_tokens": cached},
		"output_tokens": output, "output_tokens_details": map[string]int{"reasoning_tokens": reasoning},
		"total_tokens": input + output,
	}
}

// whole answers in one piece.
func (a *answer) whole(ctx context.Context) error {
	for _, step := range a.response.steps {
		ended, err := a.step(ctx, step)
		if ended || err != nil {
			return err
		}
	}
	if err := a.end(); err != nil {
		return err
	}
	modelapi.WriteJSON(a.w, http.StatusOK, a.object(a.status()))
	return nil
}
