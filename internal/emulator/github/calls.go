package github

import (
	"encoding/json"
	"net/url"
	"slices"
	"time"
)

// Call is one call of the API by the bot.
type Call struct {
	Operation string // as in GitHub's OpenAPI description, or "unknown"
	Method    string
	Path      string
	Query     url.Values
	Body      map[string]json.RawMessage // as sent
	As        string                     // who called; empty if the credential is no good
	At        time.Time                  // when it came in

	Status int    // of the answer, if it had arrived; zero if nothing was done
	Error  string // GitHub's message; empty if the call was carried out
	Faulty bool   // a fault was injected
}

// Text returns an argument of the body that is a string.
func (c Call) Text(name string) string {
	var text string
	_ = json.Unmarshal(c.Body[name], &text)
	return text
}

// callLog keeps calls, guarded by the server.
type callLog struct {
	keep   int
	calls  []Call
	counts map[string]int
}

func (s *Server) log(c Call) {
	s.mu.Lock()
	l := &s.calls
	l.counts[c.Operation]++
	if l.keep >= 0 {
		l.calls = append(l.calls, c)
		if l.keep > 0 && len(l.calls) > l.keep {
			l.calls[0] = Call{}
			l.calls = l.calls[1:]
		}
	}
	s.mu.Unlock()
	s.changed.Notify()
}

// Calls returns the calls of the given operations, or all, in the order in which
// they were answered. Refused calls and those with faults are included.
func (s *Server) Calls(operations ...string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(operations) == 0 {
		return slices.Clone(s.calls.calls)
	}
	var out []Call
	for _, c := range s.calls.calls {
		if slices.Contains(operations, c.Operation) {
			out = append(out, c)
		}
	}
	return out
}

// CallCount returns how often an operation was called, also those calls that are
// not kept.
func (s *Server) CallCount(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls.counts[operation]
}
