package anthropic

import (
	"encoding/json"
	"strings"

	"remote-agent/internal/emulator/modelapi"
)

func (s *memory) voice(req Request, r Response, out *modelapi.Out) modelapi.Voice {
	out.Stream = req.Stream
	out.Header("Request-Id", s.newID("req_emulated"))
	return &answer{memory: s, id: s.newID("msg_emulated"), req: req, response: r, out: out, open: -1, thoughts: countThoughts(r.Steps)}
}

// countThoughts returns how many thinking blocks an answer will have: their
// signatures say so.
func countThoughts(steps []Step) int {
	n, inside := 0, false
	for _, step := range steps {
		switch step.Kind {
		case modelapi.KindThought:
			if !inside {
				n++
			}
			inside = true
		case kindRedacted:
			n++
			inside = false
		case modelapi.KindText, modelapi.KindCall, kindBlock, kindEnd:
			inside = false
		default: // says nothing
		}
	}
	return n
}

// block is a content block of an answer.
type block struct {
	kind      string
	text      strings.Builder // or thinking, or arguments
	call      Call
	signature string // or redacted data
	raw       json.RawMessage
}

// answer is one answer on its way.
type answer struct {
	memory   *memory
	id       string
	req      Request
	response Response
	out      *modelapi.Out
	blocks   []*block
	open     int // index of the block that is being streamed, or -1
	thoughts int // thinking blocks in all
	thought  int // thinking blocks so far
	size     int // bytes of content
}

// Begin says that there will be a message.
func (a *answer) Begin() error {
	start := a.message([]any{}, nil)
	start["usage"] = a.usage(1)
	if err := a.event("message_start", map[string]any{"message": start}); err != nil {
		return err
	}
	return a.event("ping", map[string]any{})
}

// End ends the block that is open, and the message.
func (a *answer) End() (any, error) {
	if err := a.end(); err != nil {
		return nil, err
	}
	a.remember()
	if !a.req.Stream {
		m := a.message(a.content(), a.stopReason())
		m["usage"] = a.usage(a.outputTokens())
		return m, nil
	}
	delta := map[string]any{"stop_reason": a.stopReason(), "stop_sequence": nil, "stop_details": a.response.Details}
	if err := a.event("message_delta", map[string]any{"delta": delta, "usage": a.deltaUsage()}); err != nil {
		return nil, err
	}
	return nil, a.event("message_stop", map[string]any{})
}

// Fail streams an error event.
func (a *answer) Fail(step Step) error {
	return a.event("error", map[string]any{"error": errorObject(step.Fail), "request_id": "req_" + a.id})
}

// Say adds to the open block, or is a block of its own.
func (a *answer) Say(step Step) error {
	switch step.Kind {
	case modelapi.KindText:
		return a.piece("text", step.Text)
	case modelapi.KindThought:
		return a.piece("thinking", step.Text)
	case modelapi.KindCall:
		return a.toolUse(step.Call)
	case kindEnd:
		return a.end()
	case kindPing:
		for range step.N {
			if err := a.event("ping", map[string]any{}); err != nil {
				return err
			}
		}
		return nil
	default:
		return a.ready(step)
	}
}

// piece streams a piece of text or thinking, and begins a block for it if none
// of its kind is open.
func (a *answer) piece(kind, text string) error {
	if a.open < 0 || a.blocks[a.open].kind != kind {
		start := map[string]any{"type": kind, kind: ""}
		if kind == "thinking" {
			start["signature"] = ""
		}
		if err := a.begin(&block{kind: kind}, start); err != nil {
			return err
		}
	}
	a.size += len(text)
	a.blocks[a.open].text.WriteString(text)
	return a.delta(map[string]any{"type": kind + "_delta", kind: text})
}

// ready sends a block that has no pieces.
func (a *answer) ready(step Step) error {
	// What is open is signed first: signatures are numbered.
	if err := a.end(); err != nil {
		return err
	}
	b := &block{kind: "raw", raw: []byte(step.Text)}
	if step.Kind == kindRedacted {
		data := sign(a.nextStamp(), "redacted_thinking", a.req.Model, "")
		raw, err := json.Marshal(map[string]string{"type": "redacted_thinking", "data": data})
		if err != nil {
			return err
		}
		b.raw = raw
	}
	a.size += len(b.raw)
	if err := a.begin(b, b.raw); err != nil {
		return err
	}
	return a.end()
}

func (a *answer) toolUse(c Call) error {
	err := a.begin(&block{kind: "tool_use", call: c}, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": map[string]any{}})
	if err != nil {
		return err
	}
	a.size += len(c.Arguments)
	// The first piece is empty, as that of the API.
	for _, piece := range append([]string{""}, c.Deltas()...) {
		a.blocks[a.open].text.WriteString(piece)
		if err := a.delta(map[string]any{"type": "input_json_delta", "partial_json": piece}); err != nil {
			return err
		}
	}
	return a.end()
}

func (a *answer) nextStamp() stamp {
	s := stamp{Response: a.id, Index: a.thought, Count: a.thoughts}
	a.thought++
	return s
}

func (a *answer) begin(b *block, start any) error {
	if err := a.end(); err != nil {
		return err
	}
	a.open = len(a.blocks)
	a.blocks = append(a.blocks, b)
	return a.event("content_block_start", map[string]any{"index": a.open, "content_block": start})
}

func (a *answer) delta(delta map[string]any) error {
	return a.event("content_block_delta", map[string]any{"index": a.open, "delta": delta})
}

// end ends the open block, if there is one, and signs it if it is thinking.
func (a *answer) end() error {
	if a.open < 0 {
		return nil
	}
	index, b := a.open, a.blocks[a.open]
	if b.kind == "thinking" {
		b.signature = sign(a.nextStamp(), b.kind, a.req.Model, b.text.String())
		if err := a.delta(map[string]any{"type": "signature_delta", "signature": b.signature}); err != nil {
			return err
		}
	}
	a.open = -1
	return a.event("content_block_stop", map[string]any{"index": index})
}

// event streams one event. An answer in one piece has none.
func (a *answer) event(kind string, fields map[string]any) error {
	if !a.req.Stream {
		return nil
	}
	fields["type"] = kind
	return a.out.Event(kind, fields)
}

func (a *answer) stopReason() string {
	if a.response.Stop != "" {
		return a.response.Stop
	}
	for _, b := range a.blocks {
		if b.kind == "tool_use" {
			return "tool_use"
		}
	}
	return "end_turn"
}

// message is the form that both ways of answering share.
func (a *answer) message(content []any, stop any) map[string]any {
	return map[string]any{
		"id": a.id, "type": "message", "role": "assistant", "model": a.req.Model,
		"content": content, "stop_reason": stop, "stop_sequence": nil, "stop_details": a.response.Details,
	}
}

// usage is what the request cost with so many tokens of output.
func (a *answer) usage(output int) map[string]any {
	u := a.req.Usage
	if a.response.Usage != nil {
		u = Usage{Input: a.response.Usage[0]}
	}
	return map[string]any{
		"input_tokens": u.Input, "cache_creation_input_tokens": u.CacheWrite, "cache_read_input_tokens": u.CacheRead,
		"cache_creation": map[string]int{"ephemeral_5m_input_tokens": u.CacheWrite, "ephemeral_1h_input_tokens": 0},
		"output_tokens":  output, "service_tier": "standard",
	}
}

// deltaUsage is the total at the end of a stream.
func (a *answer) deltaUsage() map[string]any {
	u := a.usage(a.outputTokens())
	delete(u, "cache_creation")
	delete(u, "service_tier")
	return u
}

func (a *answer) outputTokens() int {
	if a.response.Usage != nil {
		return a.response.Usage[1]
	}
	return 1 + a.size/4
}

// content returns the blocks as an answer in one piece has them.
func (a *answer) content() []any {
	content := []any{}
	for _, b := range a.blocks {
		switch b.kind {
		case "text":
			content = append(content, map[string]any{"type": "text", "text": b.text.String(), "citations": nil})
		case "thinking":
			content = append(content, map[string]any{"type": "thinking", "thinking": b.text.String(), "signature": b.signature})
		case "tool_use":
			input := json.RawMessage(b.text.String())
			if !json.Valid(input) {
				input = json.RawMessage("{}")
			}
			content = append(content, map[string]any{"type": "tool_use", "id": b.call.ID, "name": b.call.Name, "input": input})
		default:
			content = append(content, b.raw)
		}
	}
	return content
}

// remember keeps a paused answer, with what it continued, so that it may come
// back as the end of a request.
func (a *answer) remember() {
	if a.stopReason() != "pause_turn" {
		return
	}
	var content []ContentBlock
	if last := a.req.Messages[len(a.req.Messages)-1]; last.Role == "assistant" {
		content = append(content, last.Blocks...)
	}
	raw, err := json.Marshal(a.content())
	if err != nil {
		return
	}
	said, _ := blocks(raw)
	a.memory.pause(append(content, said...))
}
