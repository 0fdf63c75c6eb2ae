package responses

import (
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/emulator/modelapi"
)

// answer is one answer on its way.
type answer struct {
	id       string
	req      Request
	response Response
	out      *modelapi.Out
	sequence int
	output   []map[string]any // items that are done
	open     *openItem
	size     int // bytes of output
	thought  int // bytes of reasoning
}

func voice(req Request, r Response, out *modelapi.Out) modelapi.Voice {
	out.Stream = req.Stream
	return &answer{id: fmt.Sprintf("resp_emulated%d", req.N), req: req, response: r, out: out}
}

// openItem is an item that is being streamed in pieces.
type openItem struct {
	kind modelapi.Kind
	id   string
	text strings.Builder
}

// Begin says that there will be a response.
func (a *answer) Begin() error {
	for _, kind := range []string{"response.created", "response.in_progress"} {
		if err := a.event(kind, map[string]any{"response": a.object("in_progress")}); err != nil {
			return err
		}
	}
	return nil
}

// End ends the item that is open, and the response.
func (a *answer) End() (any, error) {
	if err := a.end(); err != nil {
		return nil, err
	}
	status := "completed"
	if a.response.Stop != "" {
		status = "incomplete"
	}
	whole := a.object(status)
	return whole, a.event("response."+status, map[string]any{"response": whole})
}

// Say adds to the open item, or is an item of its own.
func (a *answer) Say(step Step) error {
	if _, pieces := forms[step.Kind]; pieces {
		return a.piece(step)
	}
	return a.call(step)
}

// Fail streams the error of a step.
func (a *answer) Fail(step Step) error {
	if step.Text == "" {
		return a.event("error", map[string]any{"code": modelapi.OrNull(step.Fail.Code), "message": step.Fail.Message, "param": nil})
	}
	object := a.object("failed")
	object["error"] = map[string]any{"code": step.Fail.Code, "message": step.Fail.Message}
	return a.event(step.Text, map[string]any{"response": object})
}

// form says how an item in pieces is streamed.
type form struct {
	id    string // prefix of its id
	delta string // event of a piece
	part  string // events of the part that holds the pieces
	index string // name of the number of that part
}

var forms = map[modelapi.Kind]form{
	modelapi.KindText:    {"msg", "response.output_text", "response.content_part", "content_index"},
	kindRefusal:          {"msg", "response.refusal", "response.content_part", "content_index"},
	modelapi.KindThought: {"rs", "response.reasoning_summary_text", "response.reasoning_summary_part", "summary_index"},
}

// piece streams a piece of a message or of reasoning, and begins an item for it if
// none of its kind is open.
func (a *answer) piece(step Step) error {
	f := forms[step.Kind]
	if a.open == nil || a.open.kind != step.Kind {
		if err := a.end(); err != nil {
			return err
		}
		a.open = &openItem{kind: step.Kind, id: a.itemID(f.id)}
		if err := a.event("response.output_item.added", map[string]any{"item": a.item("in_progress")}); err != nil {
			return err
		}
		if err := a.event(f.part+".added", a.place(f, "part", a.part())); err != nil {
			return err
		}
	}
	a.size += len(step.Text)
	if step.Kind == modelapi.KindThought {
		a.thought += len(step.Text)
	}
	a.open.text.WriteString(step.Text)
	return a.event(f.delta+".delta", a.place(f, "delta", step.Text))
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
	if a.open.kind == kindRefusal {
		return map[string]any{"type": "refusal", "refusal": text}
	}
	if a.open.kind == modelapi.KindThought {
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
	if a.open.kind != modelapi.KindThought {
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
	if a.open.kind == kindRefusal {
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
	c := step.Call
	a.size += len(c.Arguments) + len(step.Text)
	item := map[string]any{"call_id": c.ID, "status": "in_progress"}
	key, event := "arguments", "response.function_call_arguments"
	switch step.Kind {
	case kindShell:
		item["id"], item["type"] = a.itemID("lsh"), "local_shell_call"
		item["action"] = map[string]any{"type": "exec", "command": strings.Split(step.Text, "\x00"), "env": map[string]string{}}
		key = ""
	case kindCustom:
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
		for _, piece := range c.Deltas() {
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
	return a.out.Event(kind, fields)
}

// object is the response as it is now.
func (a *answer) object(status string) map[string]any {
	output := a.output
	if output == nil {
		output = []map[string]any{}
	}
	o := map[string]any{
		"id": a.id, "object": "response", "created_at": a.req.At.Unix(), "status": status, "error": nil, "incomplete_details": nil,
		"model": a.req.Model, "output": output, "parallel_tool_calls": true, "store": false, "usage": nil,
		"instructions": modelapi.OrNull(a.req.Instructions), "previous_response_id": nil, "metadata": map[string]string{},
	}
	switch status {
	case "incomplete":
		o["incomplete_details"] = map[string]string{"reason": a.response.Stop}
		o["usage"] = a.usage()
	case "completed":
		o["usage"] = a.usage()
	}
	return o
}

func (a *answer) usage() map[string]any {
	input, cached, output, reasoning := a.req.Tokens, a.req.Cached, 1+a.size/4, a.thought/4
	if u := a.response.Usage; u != nil {
		input, cached, output, reasoning = u[0], 0, u[1], 0
	}
	return map[string]any{
		"input_tokens": input, "input_tokens_details": map[string]int{"cached_tokens": cached},
		"output_tokens": output, "output_tokens_details": map[string]int{"reasoning_tokens": reasoning},
		"total_tokens": input + output,
	}
}
