package messages

import (
	"bytes"
	"slices"
)

// Array is a provider-agnostic message array: what a model has read and said in
// one session, oldest first. The zero value is empty and ready. It must not be
// used by several goroutines at once.
type Array struct{ msgs []Message }

// NewArray returns an array of msgs, which it takes over.
func NewArray(msgs ...Message) *Array { return &Array{msgs: slices.Clip(msgs)} }

// Append adds msgs at the end and takes them over: the caller must not change
// their blocks afterward. It is amortized O(1) per message.
func (a *Array) Append(msgs ...Message) { a.msgs = append(a.msgs, msgs...) }

// Clear removes every message and releases the memory.
func (a *Array) Clear() { a.msgs = nil }

// Len returns the number of messages.
func (a *Array) Len() int { return len(a.msgs) }

// Messages returns the messages, oldest first. The slice belongs to the array:
// do not change it, and do not use it after the next call of Append or Clear.
func (a *Array) Messages() []Message { return slices.Clip(a.msgs) }

// Clone returns a deep copy: nothing done to either array shows in the other.
func (a *Array) Clone() *Array { return a.Fork(len(a.msgs)) }

// Fork returns a deep copy of the first n messages, so that two conversations
// can go on from the same point. n outside the array is moved to its nearest
// end. A fork that cuts a tool call from its result is made whole by Repair.
func (a *Array) Fork(n int) *Array {
	n = min(max(n, 0), len(a.msgs))
	if n == 0 {
		return &Array{}
	}
	msgs := make([]Message, n)
	for i, m := range a.msgs[:n] {
		msgs[i] = m.clone()
	}
	return &Array{msgs: msgs}
}

func (m Message) clone() Message {
	m.Blocks = slices.Clone(m.Blocks)
	m.ProviderMetadata = bytes.Clone(m.ProviderMetadata)
	return m
}
