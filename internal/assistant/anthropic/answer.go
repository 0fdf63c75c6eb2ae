package anthropic

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
)

// redactedPrefix marks a messages.Thinking.Signature that is the data of a
// redacted_thinking block. A signature of the API is base64 and has no colon.
const redactedPrefix = "redacted:"

const (
	maxCalls  = 128  // in one answer
	maxBlocks = 4096 // in one answer
)

var errMalformed = errors.New("the API sent an event that does not fit the ones before it")

// answer is what has come of an answer. Its blocks are those of all the requests
// that it took.
type answer struct {
	id      string
	model   string
	blocks  []*block // nil where the API skipped a number
	first   int      // of the current request
	stop    stopReason
	stopped bool // message_stop came
	refusal string
	usage   assistant.Usage // of the current request
	before  assistant.Usage // of those before it
}

// block is a content block.
type block struct {
	kind      string
	start     string          // the block as it began, in JSON
	text      strings.Builder // text, thinking, or the arguments of a call
	signature strings.Builder
	data      string // redacted thinking
	id, name  string // of a call
	input     string // of a call that came in one piece
	pieces    bool   // text has pieces that came after start
	done      bool
}

// begin prepares for the stream of another request.
func (a *answer) begin() {
	a.before = a.total()
	a.usage = assistant.Usage{}
	a.first = len(a.blocks)
	a.stop, a.stopped, a.refusal = "", false, ""
}

func (a *answer) total() assistant.Usage { return a.before.Add(a.usage) }

// used returns what the answer to r used. The API says at its beginning how long the prompt
// was, and at its end how much it wrote: until then, that is an estimate.
func (a *answer) used(r assistant.Request) assistant.Usage {
	if a.stop != "" {
		return a.total()
	}
	written := 0
	for _, b := range a.blocks[a.first:] {
		if b != nil {
			written += len(b.arguments()) // of a text, the text
		}
	}
	return a.before.Add(a.usage.Unfinished(r, written))
}

// add takes an event in and returns the text and the thinking that it brought.
// Events and blocks that are not known are skipped.
func (a *answer) add(e streamEvent) (text, thought string, err error) {
	switch e.Type {
	case "message_start":
		m := read[startedMessage](e.Message)
		a.id, a.model = m.ID, m.Model
		a.count(read[usage](m.Usage))
	case "content_block_start":
		return a.start(e)
	case "content_block_delta":
		return a.delta(e)
	case "content_block_stop":
		if b := a.at(e.Index); b != nil {
			b.done = true
		}
	case "message_delta":
		d := read[messageDelta](e.Delta)
		if d.StopReason != "" {
			a.stop = d.StopReason
		}
		why := read[stopDetails](d.StopDetails)
		a.refusal = strings.TrimSpace(why.Category + " " + why.Explanation)
		a.count(read[usage](e.Usage))
	case "message_stop":
		a.stopped = true
	}
	return "", "", nil
}

// count takes the counts of the current request in, which are totals: those at
// the end of a stream replace those at its beginning. What is left out keeps its
// value, and so does what some servers and gateways say 0 of at the end.
func (a *answer) count(u usage) {
	input := a.usage.InputTokens - a.usage.WrittenTokens - a.usage.CachedTokens
	for _, c := range []struct{ from, to *int64 }{
		{u.Input, &input}, {u.Written, &a.usage.WrittenTokens}, {u.Read, &a.usage.CachedTokens}, {u.Output, &a.usage.OutputTokens},
	} {
		if c.from != nil && *c.from != 0 {
			*c.to = *c.from
		}
	}
	a.usage.InputTokens = input + a.usage.WrittenTokens + a.usage.CachedTokens
}

// at returns the block of a number of the current request, or nil.
func (a *answer) at(index int64) *block {
	if index < 0 || index >= int64(len(a.blocks)-a.first) {
		return nil
	}
	return a.blocks[a.first+int(index)]
}

func (a *answer) start(e streamEvent) (text, thought string, err error) {
	if e.Index < 0 || int64(a.first)+e.Index >= maxBlocks || a.at(e.Index) != nil {
		return "", "", errMalformed
	}
	for int64(len(a.blocks)-a.first) <= e.Index {
		a.blocks = append(a.blocks, nil)
	}
	c := read[startedBlock](e.ContentBlock)
	b := &block{kind: c.Type, start: string(e.ContentBlock), data: c.Data, id: c.ID, name: c.Name}
	a.blocks[a.first+int(e.Index)] = b
	switch b.kind {
	case "text":
		text = c.Text
		_, _ = b.text.WriteString(text) // a builder takes everything
	case "thinking":
		thought = c.Thinking
		_, _ = b.text.WriteString(thought)
		_, _ = b.signature.WriteString(c.Signature)
	case "tool_use":
		b.input = string(c.Input)
	}
	return text, thought, nil
}

func (a *answer) delta(e streamEvent) (text, thought string, err error) {
	b := a.at(e.Index)
	if b == nil {
		return "", "", errMalformed
	}
	d := read[blockDelta](e.Delta)
	switch {
	case d.Type == "text_delta" && b.kind == "text":
		text = d.Text
		b.write(text)
	case d.Type == "thinking_delta" && b.kind == "thinking":
		thought = d.Thinking
		b.write(thought)
	case d.Type == "signature_delta" && b.kind == "thinking":
		_, _ = b.signature.WriteString(d.Signature)
	case d.Type == "input_json_delta" && b.isCall():
		b.write(d.PartialJSON)
	}
	return text, thought, nil
}

// isCall reports whether b calls a tool, be it ours or one of the provider.
func (b *block) isCall() bool { return strings.HasSuffix(b.kind, "tool_use") }

func (b *block) write(piece string) {
	if piece != "" {
		b.pieces = true
		_, _ = b.text.WriteString(piece)
	}
}

// arguments returns those of a call, as the model wrote them.
func (b *block) arguments() string {
	if b.pieces || b.input == "" || b.input == "null" {
		return b.text.String()
	}
	return b.input
}

// text returns all that was said.
func (a *answer) text() string {
	var text strings.Builder
	for _, b := range a.blocks {
		if b != nil && b.kind == "text" {
			_, _ = text.WriteString(b.text.String())
		}
	}
	return text.String()
}

func (a *answer) calls() int {
	n := 0
	for _, b := range a.blocks {
		if b != nil && b.kind == "tool_use" {
			n++
		}
	}
	return n
}

// unfinished reports whether a call was cut although the answer says that it is
// complete. One that the output limit cut is no surprise.
func (a *answer) unfinished() bool {
	for _, b := range a.blocks {
		if b != nil && b.kind == "tool_use" && !b.done {
			return a.stop != stopMaxTokens
		}
	}
	return false
}

// cut leaves the calls out and adds a note at the end.
func (a *answer) cut(note string) {
	last := &block{kind: "text", done: true}
	_, _ = last.text.WriteString(note)
	for i, b := range a.blocks {
		if b != nil && b.kind == "tool_use" {
			a.blocks[i] = nil
		}
	}
	a.blocks = append(a.blocks, last)
}

// message returns the whole answer, asked of the model of that name. Thinking
// keeps its signature only if the message is all of what the API sent, in its
// order: with a block left out, the API would not take the rest back.
func (a *answer) message(model string) messages.Message {
	m := messages.Message{Role: messages.RoleAssistant}
	whole := a.whole()
	calls := 0
	for _, b := range a.blocks {
		if b == nil {
			continue
		}
		switch b.kind {
		case "text":
			m.Blocks = appendText(m.Blocks, b.text.String())
		case "thinking", "redacted_thinking":
			if t, ok := b.thinking(whole); ok {
				t.Provider, t.Model = string(Name), model
				m.Blocks = append(m.Blocks, t)
			}
		case "tool_use":
			if calls++; calls > maxCalls {
				continue
			}
			c := messages.ToolCall{ID: b.id, Name: b.name, Arguments: b.arguments()}
			if c.ID == "" {
				c.ID = "call_" + rand.Text()
			}
			m.Blocks = append(m.Blocks, c)
		}
	}
	metadata, err := json.Marshal(struct {
		ID         string `json:"id,omitempty"`
		Model      string `json:"model,omitempty"`
		StopReason string `json:"stop_reason,omitempty"`
	}{a.id, a.model, string(a.stop)})
	if err == nil {
		m.ProviderMetadata = metadata
	}
	return m
}

// whole reports whether message can hold all of the answer as it came. The
// canonical array has no place for tools of the provider, and its calls come
// last.
func (a *answer) whole() bool {
	called := false
	for _, b := range a.blocks {
		switch {
		case b == nil:
			return false
		case b.kind == "tool_use":
			called = true
		case b.kind == "text":
		case b.kind != "thinking" && b.kind != "redacted_thinking", called:
			return false
		}
	}
	return true
}

func (b *block) thinking(signed bool) (t messages.Thinking, ok bool) {
	t.Text = b.text.String()
	switch {
	case signed && b.kind == "redacted_thinking" && b.data != "":
		t.Signature = redactedPrefix + b.data
	case signed && b.kind == "thinking":
		t.Signature = b.signature.String()
	}
	return t, t.Text != "" || t.Signature != ""
}

// appendText adds a text, to the last block if that is a text too.
func appendText(blocks []messages.Block, text string) []messages.Block {
	if n := len(blocks); n > 0 {
		if last, ok := blocks[n-1].(messages.Text); ok {
			blocks[n-1] = messages.Text{Text: last.Text + text}
			return blocks
		}
	}
	if text == "" {
		return blocks
	}
	return append(blocks, messages.Text{Text: text})
}
