package platformapi

import (
	"slices"
	"sync"
)

// log keeps calls in the order in which they were answered.
type log[Call any] struct {
	mu     sync.Mutex // guards all that follows
	calls  []Call
	counts map[string]int
}

// Log adds a call to the record. Calls are counted, and the last so many as
// Config.KeepCalls says are kept.
func (c *Core[Call, E]) Log(call Call) {
	c.log.add(c.config.Canonical(c.config.NameOf(call)), call, c.config.KeepCalls)
	c.changed.Notify()
}

func (l *log[Call]) add(name string, call Call, keep int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	l.counts[name]++
	if keep < 0 {
		return
	}
	l.calls = append(l.calls, call)
	if keep > 0 && len(l.calls) > keep {
		var none Call
		l.calls[0] = none
		l.calls = l.calls[1:]
	}
}

// Calls returns the calls of the given names, or all, in the order in which they
// were answered. Refused calls and those with faults are included.
func (c *Core[Call, E]) Calls(names ...string) []Call {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	var out []Call
	for _, call := range c.log.calls {
		name := c.config.Canonical(c.config.NameOf(call))
		if len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return c.config.Canonical(n) == name }) {
			out = append(out, call)
		}
	}
	return out
}

// Count returns how often a name was called, whatever became of it, also those
// calls that are not kept.
func (c *Core[Call, E]) Count(name string) int {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	return c.log.counts[c.config.Canonical(name)]
}
