package loop

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"remote-agent/internal/messages"
)

const (
	// maxArguments is more than any model writes in one answer. Longer ones come
	// from a broken server; they would fill the context with every request.
	maxArguments = 1 << 20
	keptOfCut    = 1000 // bytes that are kept of them

	maxCalls  = 128 // in one answer
	maxListed = 40  // names in a text
)

// Texts that the model reads.
const (
	textNoTools  = "not run: there are no tools here"
	textRepeated = "not run: this call had the same result twice in a row. Running it again will not help. " +
		"Do something else, or say what stands in the way."
	textEnded   = "not run: the turn was ended because the same call was made again and again"
	textRefused = "not run: this is not allowed here"
)

// admit puts the calls of a message into the form in which they are stored and
// run.
func (r *run) admit(m messages.Message) messages.Message {
	m.Role = messages.RoleAssistant
	blocks := make([]messages.Block, len(m.Blocks))
	for i, b := range m.Blocks {
		if c, ok := b.(messages.ToolCall); ok {
			b = r.admitCall(c)
		}
		blocks[i] = b
	}
	m.Blocks = blocks
	return m
}

func (r *run) admitCall(c messages.ToolCall) messages.ToolCall {
	if c.ID != "" {
		c.ID = messages.SafeID(c.ID)
	}
	if c.ID == "" || r.ids[c.ID] {
		c.ID = "call_" + rand.Text()
	}
	r.ids[c.ID] = true

	name := messages.SafeName(c.Name)
	if name != c.Name && r.known[name] {
		// It is not the tool that the model named, and must not become it.
		name = messages.SafeName("unknown_" + name)
	}
	c.Name = name

	if n := len(c.Arguments); n > maxArguments {
		if r.cut == nil {
			r.cut = make(map[string]int)
		}
		r.cut[c.ID] = n
		// No JSON, so that it is never run, also not after a restart.
		c.Arguments = clean(c.Arguments[:keptOfCut]) + "… (cut)"
		return c
	}
	c.Arguments = clean(c.Arguments)
	if blank := strings.TrimSpace(c.Arguments); blank == "" || blank == "null" {
		c.Arguments = "{}"
	}
	return c
}

// clean returns text as it is read back from a store: without NUL and bytes that
// are not UTF-8.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// problem says why a call cannot be run at all, or nothing. at is its place in
// the answer.
func (r *run) problem(at int, c messages.ToolCall) string {
	switch {
	case at >= maxCalls:
		return fmt.Sprintf("not run: at most %d calls in one answer", maxCalls)
	case len(r.tools) == 0:
		return textNoTools
	case !r.known[c.Name]:
		return fmt.Sprintf("not run: there is no tool %q. The tools are: %s.", c.Name, r.listTools())
	case r.cut[c.ID] > 0:
		return fmt.Sprintf("not run: the arguments are %d bytes long, the limit is %d. Split the work into smaller calls.",
			r.cut[c.ID], maxArguments)
	}
	var object map[string]json.RawMessage
	err := json.Unmarshal([]byte(c.Arguments), &object)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("not run: the arguments are not valid JSON (%v, at byte %d). Send the call again with a JSON object.",
			syntax, syntax.Offset)
	}
	if err != nil || object == nil {
		return "not run: the arguments are not a JSON object. Send the call again with one."
	}
	return ""
}

func (r *run) listTools() string {
	var names []string
	for _, t := range r.tools {
		if len(names) == maxListed {
			names = append(names, "...")
			break
		}
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

// canonical returns JSON in one form, whatever its spaces and the order of its
// keys. What is not JSON is returned as it is.
func canonical(raw string) []byte {
	decoder := json.NewDecoder(strings.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil || decoder.More() {
		return []byte(raw)
	}
	var b bytes.Buffer
	if json.NewEncoder(&b).Encode(value) != nil {
		return []byte(raw)
	}
	return b.Bytes()
}
