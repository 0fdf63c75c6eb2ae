package terminal

import (
	"fmt"
	"strings"
	"time"
)

// search looks for a text in the history while it is typed, as Ctrl-R does in a shell.
type search struct {
	on     bool
	text   string
	place  int  // of what was found, from the end of the history; 0 is nothing yet
	failed bool // nothing older has the text
	before line // what was typed until then
}

// searched gives a key to the search. It reports false if the key does what it always
// does: no search is on, or it has ended with what was found.
func (t *Terminal) searched(e event) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.search
	switch {
	case e.do == searchOlder && !s.on:
		*s = search{on: true, before: t.line}
	case !s.on:
		return false
	case e.do == searchOlder && s.text != "":
		t.find(s.place + 1)
	case e.do == searchOlder:
	case e.do == insert || e.do == paste && !strings.ContainsAny(e.text, "\n\t"):
		s.text += e.text
		t.find(max(s.place, 1))
	case e.do == backspace:
		l := line{text: s.text, at: len(s.text)}
		l.edit(backspace)
		s.text = l.text
		t.find(1)
	case e.do == leaveSearch:
		t.restore(s.before)
		*s = search{}
	default:
		if t.place == 0 {
			t.draft = s.before
		}
		t.place = s.place
		*s = search{}
		return false
	}
	t.interrupted = time.Time{}
	_ = t.repaint(nil) // as in handle
	return true
}

// find shows the newest text of the history from a place on that has what is looked for.
func (t *Terminal) find(from int) {
	s, entries := &t.search, t.config.History.entries
	s.failed = false
	if s.text == "" {
		s.place = 0
		t.restore(s.before)
		return
	}
	for place := from; place <= len(entries); place++ {
		if text := entries[len(entries)-place]; strings.Contains(text, s.text) {
			s.place = place
			t.line.set(text)
			return
		}
	}
	s.failed = true
}

// prompt returns what stands before the typed text.
func (t *Terminal) prompt(columns int) string {
	if !t.search.on {
		return t.config.Prompt
	}
	what := "search"
	if t.search.failed {
		what = "not found"
	}
	return fit(fmt.Sprintf("%s: %s", what, t.search.text), columns/2) + "> "
}
