package messages

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

const (
	maxCallID   = 40
	maxToolName = 64
)

// Interrupted is the content of the result that Repair gives to a call that has
// none: the process died, or a person stopped it, while the tool ran.
const Interrupted = "interrupted: no result was recorded, the tool may have run or not"

// Repair returns msgs in a form that every supported model API takes, whatever
// happened to them before: a crash between a call and its result, a cut
// history, ids of another provider. It holds for the result that
//
//   - it begins with a user message, ends with a user or tool message, and
//     neighbors have different roles: same-role neighbors are merged, except
//     that an assistant that speaks after an unanswered call begins a new message;
//   - no text is blank and no message is empty;
//   - in an assistant message calls come last; each is answered by exactly one
//     result in the tool message directly after it, in the order of the calls,
//     with its files right behind it (see FilesOf); a missing result becomes the
//     error Interrupted; results without a call, second results, and anything else
//     in a tool message are dropped;
//   - call ids are unique and, like tool names, fit SafeID and SafeName.
//
// Repair invents no words of a person. What stands before the first user
// message is dropped, because an API wants a user first; so is an unanswered
// assistant text at the end, because an API would take it as the beginning of
// its own answer. Hence an array without a user message becomes empty.
//
// Repair is deterministic and idempotent, and does not change msgs. The result
// may share blocks with msgs, so neither may be changed afterward.
func Repair(msgs []Message) []Message {
	if plain(msgs) {
		return msgs
	}
	r := repairer{
		turns:   make([]repairedTurn, 0, len(msgs)),
		pending: make(map[string][]pendingCall),
		used:    make(map[string]bool),
	}
	for _, m := range msgs {
		switch m.Role {
		case RoleUser:
			r.user(m)
		case RoleAssistant:
			r.assistant(m)
		case RoleTool:
			r.results(m)
		}
	}
	return r.finish()
}

// plain reports whether msgs is a talk without tools that needs no repair: user
// and assistant take turns, one text each. Most arrays are, and long ones are
// sent with every turn.
func plain(msgs []Message) bool {
	for i, m := range msgs {
		role := RoleUser
		if i%2 == 1 {
			role = RoleAssistant
		}
		if m.Role != role || len(m.Blocks) != 1 {
			return false
		}
		if t, ok := m.Blocks[0].(Text); !ok || blank(t.Text) {
			return false
		}
	}
	return len(msgs)%2 == 1
}

// repairedTurn is a message of the result with the results of its calls.
type repairedTurn struct {
	msg     Message
	owned   bool // msg.Blocks is ours and may be appended to
	calls   int  // trailing blocks of msg that are calls
	results [][]Block
	closed  bool // a result arrived: later calls are a new message
	source  Message
	sourced int // index of the first call whose result is known, plus one
}

// pendingCall is a call that waits for its result.
type pendingCall struct{ turn, call int }

type repairer struct {
	turns   []repairedTurn
	pending map[string][]pendingCall // by the id as it came in
	used    map[string]bool          // ids given out
}

func (r *repairer) last() *repairedTurn {
	if len(r.turns) == 0 {
		return nil
	}
	return &r.turns[len(r.turns)-1]
}

func (r *repairer) user(m Message) {
	r.results(m)
	blocks := keep(m.Blocks, func(b Block) bool {
		switch b := b.(type) {
		case Text:
			return !blank(b.Text)
		case Attachment:
			return true
		case ToolCall, ToolResult, Thinking:
		}
		return false
	})
	if len(blocks) == 0 {
		return
	}
	r.dropSilent()
	if last := r.last(); last != nil && last.msg.Role == RoleUser {
		last.merge(m, blocks)
		return
	}
	m.Blocks = blocks
	r.turns = append(r.turns, repairedTurn{msg: m})
}

func (r *repairer) assistant(m Message) {
	r.results(m)
	said := keep(m.Blocks, func(b Block) bool {
		switch b := b.(type) {
		case Text:
			return !blank(b.Text)
		case Thinking, Attachment:
			return true
		case ToolCall, ToolResult:
		}
		return false
	})
	calls := keep(m.Blocks, func(b Block) bool { _, ok := b.(ToolCall); return ok })
	if len(said) == 0 && len(calls) == 0 {
		return
	}
	last := r.last()
	switch {
	case last == nil, last.msg.Role != RoleAssistant, last.closed, last.calls > 0 && len(said) > 0:
		m.Blocks = said
		r.turns = append(r.turns, repairedTurn{msg: m})
	default:
		last.merge(m, said)
	}
	r.addCalls(calls)
}

// addCalls appends calls to the last turn under ids of our own.
func (r *repairer) addCalls(calls []Block) {
	turn := r.last()
	for _, b := range calls {
		c, ok := b.(ToolCall)
		if !ok {
			continue
		}
		from := c.ID
		c.ID = r.newID(from)
		c.Name = SafeName(c.Name)
		r.pending[from] = append(r.pending[from], pendingCall{turn: len(r.turns) - 1, call: turn.calls})
		turn.append(c)
		turn.calls++
		turn.results = append(turn.results, []Block{ToolResult{CallID: c.ID, Name: c.Name, Content: Interrupted, IsError: true}})
	}
}

// results hands every result in m to the call it answers. Some providers use an
// id again in a later message: then the latest message with an open call of
// that id is meant, and in it the first such call.
func (r *repairer) results(m Message) {
	for at, b := range m.Blocks {
		res, ok := b.(ToolResult)
		if !ok {
			continue
		}
		open := r.pending[res.CallID]
		if len(open) == 0 {
			continue
		}
		i := len(open) - 1
		for i > 0 && open[i-1].turn == open[i].turn {
			i--
		}
		p := open[i]
		r.pending[res.CallID] = slices.Delete(open, i, i+1)
		r.turns[p.turn].answer(p.call, res, m, at)
	}
}

func (t *repairedTurn) answer(call int, res ToolResult, from Message, at int) {
	synthesized, ok := t.results[call][0].(ToolResult)
	if !ok {
		return
	}
	res.CallID, res.Name = synthesized.CallID, synthesized.Name
	t.results[call] = append([]Block{res}, filesOf(from, at)...)
	t.closed = true
	if t.sourced == 0 || call+1 < t.sourced {
		t.sourced, t.source = call+1, from
	}
}

func (t *repairedTurn) merge(m Message, blocks []Block) {
	t.append(blocks...)
	if t.msg.ProviderMetadata == nil {
		t.msg.ProviderMetadata = m.ProviderMetadata
	}
}

func (t *repairedTurn) append(blocks ...Block) {
	if len(blocks) == 0 {
		return
	}
	if !t.owned {
		t.msg.Blocks = slices.Clip(t.msg.Blocks)
		t.owned = true
	}
	t.msg.Blocks = append(t.msg.Blocks, blocks...)
}

// dropSilent removes a last assistant message that says nothing but thinking.
func (r *repairer) dropSilent() {
	last := r.last()
	if last == nil || last.msg.Role != RoleAssistant {
		return
	}
	for _, b := range last.msg.Blocks {
		if _, ok := b.(Thinking); !ok {
			return
		}
	}
	r.turns = r.turns[:len(r.turns)-1]
}

func (r *repairer) finish() []Message {
	turns := r.turns
	for len(turns) > 0 && turns[len(turns)-1].msg.Role == RoleAssistant && turns[len(turns)-1].calls == 0 {
		turns = turns[:len(turns)-1]
	}
	for len(turns) > 0 && turns[0].msg.Role != RoleUser {
		turns = turns[1:]
	}
	if len(turns) == 0 {
		return nil
	}
	out := make([]Message, 0, len(turns)+len(turns)/2)
	for i := range turns {
		t := &turns[i]
		out = append(out, t.msg)
		if t.calls > 0 {
			out = append(out, Message{
				Role: RoleTool, Blocks: slices.Concat(t.results...),
				Seq: t.source.Seq, ProviderMetadata: t.source.ProviderMetadata,
			})
		}
	}
	return out
}

// newID returns the id to use for a call that came in with id.
func (r *repairer) newID(id string) string {
	own := SafeID(id)
	for n := 2; r.used[own]; n++ {
		own = hashID(id + "#" + strconv.Itoa(n))
	}
	r.used[own] = true
	return own
}

// SafeID returns id if every provider takes it as the id of a tool call (1 to
// 40 characters of [A-Za-z0-9_-]), else a hash of it that is the same every
// time.
func SafeID(id string) string {
	if id != "" && len(id) <= maxCallID && strings.IndexFunc(id, notNameRune) < 0 {
		return id
	}
	return hashID(id)
}

func hashID(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}

// SafeName returns name with everything but [A-Za-z0-9_-] replaced by "_", cut
// to 64 characters with a hash at the end, and "tool" for an empty name.
func SafeName(name string) string {
	if name == "" {
		return "tool"
	}
	safe := name
	if strings.IndexFunc(name, notNameRune) >= 0 {
		safe = strings.Map(func(c rune) rune {
			if notNameRune(c) {
				return '_'
			}
			return c
		}, name)
	}
	if len(safe) <= maxToolName {
		return safe
	}
	sum := sha256.Sum256([]byte(name))
	tail := "_" + hex.EncodeToString(sum[:4])
	return safe[:maxToolName-len(tail)] + tail
}

func notNameRune(c rune) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		return false
	}
	return true
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// keep returns the blocks that pass, and blocks itself if all do.
func keep(blocks []Block, pass func(Block) bool) []Block {
	for i, b := range blocks {
		if pass(b) {
			continue
		}
		kept := slices.Clone(blocks[:i])
		for _, b := range blocks[i+1:] {
			if pass(b) {
				kept = append(kept, b)
			}
		}
		return kept
	}
	return blocks
}
