package loop

import (
	"hash/maphash"

	"remote-agent/internal/messages"
)

// maxSame is how often a call may have the same result in a row.
const maxSame = 2

// repeats finds calls that lead nowhere: the same tool with the same arguments
// and the same result, in the same answer or in answers directly after each
// other, with no other call between that may have changed something.
type repeats struct {
	hash  maphash.Seed
	calls map[callKey]*repeated
	round int // the answer that is worked on
}

// callKey stands for a tool and its arguments.
type callKey uint64

// repeated is what is known of a call.
type repeated struct {
	count   int
	result  uint64
	round   int // of the last one
	refused int // the round in which it was not run for that reason, or zero
}

// measure says what to do with a call that may have come before.
type measure int

const (
	runIt    measure = iota
	refuseIt         // answer it with textRepeated
	endTurn          // the model was told so and does it all the same
)

func (p *repeats) key(c messages.ToolCall) callKey {
	p.init()
	var h maphash.Hash
	h.SetSeed(p.hash)
	_, _ = h.WriteString(c.Name) // never fails
	_ = h.WriteByte(0)
	_, _ = h.Write(canonical(c.Arguments))
	return callKey(h.Sum64())
}

func (p *repeats) init() {
	if p.calls == nil {
		p.hash, p.calls = maphash.MakeSeed(), make(map[callKey]*repeated)
	}
}

// check says what to do with a call.
func (p *repeats) check(key callKey) measure {
	c := p.calls[key]
	switch {
	case c == nil, c.round < p.round-1:
		return runIt
	case c.refused > 0 && c.refused < p.round:
		return endTurn
	case c.refused > 0, c.count >= maxSame:
		return refuseIt
	}
	return runIt
}

// note records the result of a call, and the files that it came with. changes reports
// that it ran and may have changed something: then all other calls may have other
// results now.
func (p *repeats) note(key callKey, result messages.ToolResult, files []messages.Attachment, changes bool) {
	if changes {
		for k := range p.calls {
			if k != key {
				delete(p.calls, k)
			}
		}
	}
	if result.IsError && result.Content == textRepeated {
		p.calls[key] = &repeated{round: p.round, refused: p.round}
		return
	}
	var h maphash.Hash
	h.SetSeed(p.hash)
	_, _ = h.WriteString(result.Content) // never fails
	for _, a := range files {
		_, _ = h.WriteString("\x00" + a.File)
	}
	sum := h.Sum64()
	c := p.calls[key]
	if c == nil || c.round < p.round-1 || c.result != sum || c.refused > 0 {
		c = &repeated{result: sum}
		p.calls[key] = c
	}
	c.count++
	c.round = p.round
}

// forget begins anew.
func (p *repeats) forget() { clear(p.calls) }

// seed takes in what the turn did before it was put aside: the messages after
// the last one of a person.
func (p *repeats) seed(array []messages.Message, changes func(messages.ToolCall) bool) {
	begin := len(array)
	for begin > 0 && array[begin-1].Role != messages.RoleUser {
		begin--
	}
	calls := make(map[string]messages.ToolCall)
	for _, m := range array[begin:] {
		for at, b := range m.Blocks {
			switch b := b.(type) {
			case messages.ToolCall:
				calls[b.ID] = b
			case messages.ToolResult:
				if c, ok := calls[b.CallID]; ok {
					p.note(p.key(c), b, messages.FilesOf(m, at), changes(c))
				}
			case messages.Text, messages.Thinking, messages.Attachment:
			}
		}
		if m.Role == messages.RoleAssistant {
			p.round++
		}
	}
}
