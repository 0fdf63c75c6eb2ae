package calls

import (
	"slices"
	"sync"
)

// Log keeps calls in the order in which they were answered. It is safe for
// concurrent use.
type Log[Call any] struct {
	keep int

	mu     sync.Mutex // guards all that follows
	calls  []Call
	counts map[string]int
}

// NewLog returns a log of the last so many calls; zero keeps all, a negative
// number none. Calls are counted in any case.
func NewLog[Call any](keep int) *Log[Call] {
	return &Log[Call]{keep: keep, counts: map[string]int{}}
}

// Add adds a call under the name of what was called.
func (l *Log[Call]) Add(name string, c Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[name]++
	if l.keep < 0 {
		return
	}
	l.calls = append(l.calls, c)
	if l.keep > 0 && len(l.calls) > l.keep {
		var none Call
		l.calls[0] = none
		l.calls = l.calls[1:]
	}
}

// Named returns the calls that are kept whose name is one of the given, or all if
// none is given. name returns that of a call.
func (l *Log[Call]) Named(names []string, name func(Call) string) []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(names) == 0 {
		return slices.Clone(l.calls)
	}
	var out []Call
	for _, c := range l.calls {
		if slices.Contains(names, name(c)) {
			out = append(out, c)
		}
	}
	return out
}

// Count returns how often a name was called, also those calls that are not kept.
func (l *Log[Call]) Count(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[name]
}
