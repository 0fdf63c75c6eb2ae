// Package redact removes credentials from text that leaves the program: log
// lines, error texts, chat messages, stored tool output.
//
// It knows the configured secrets, as they are and in the encodings they are
// met in, the formats of well-known tokens (formats.go, with the source of
// each), and values that a name calls a secret (named.go). Characters that
// nobody sees do not hide a token.
//
// There is one mechanism: every rule begins at an anchor, a short text that each
// of its matches has. One pass over the text looks for anchors by their first
// two bytes, and a rule is asked only where its anchor stands. It is a leaf and
// imports only the standard library.
package redact

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"remote-agent/internal/order"
)

// Mask is what stands in the place of a credential.
const Mask = "[redacted]"

// MinLength is the shortest secret, in bytes, that is searched for word for
// word. Shorter ones occur in ordinary text too often.
const MinLength = 6

// Redactor replaces credentials. It is safe for concurrent use; a nil Redactor
// knows no configured secrets.
type Redactor struct {
	index atomic.Pointer[index] // nil: of no configured secrets

	mu      sync.Mutex // guards secrets
	secrets []string
}

// formatsOnly is what a Redactor without configured secrets looks for.
var formatsOnly = sync.OnceValue(func() *index { return newIndex(rules()) })

// New returns a Redactor that also knows secrets: word for word, in hex, in
// base64 wherever in the encoded data they stand, and escaped for addresses,
// JSON and HTML. Of a secret of several lines each line is known. Secrets
// shorter than MinLength are left out.
func New(secrets ...string) *Redactor {
	r := new(Redactor)
	r.Learn(secrets...)
	return r
}

// Learn has r know secrets from now on, as New does. What Partial returns of a text that is being
// written meanwhile may become less.
func (r *Redactor) Learn(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.secrets)
	for _, s := range secrets {
		if !slices.Contains(r.secrets, s) {
			r.secrets = append(r.secrets, s)
		}
	}
	if len(r.secrets) == before {
		return
	}
	if known := knownForms(r.secrets); len(known) > 0 {
		r.index.Store(newIndex(append(rules(), known...)))
	}
}

// String returns s without credentials. Redacting twice changes nothing more.
func (r *Redactor) String(s string) string {
	v := see(s)
	found, _ := r.find(v.text, true)
	return v.replace(found, len(s))
}

// Partial returns what may be shown of a text that is still being written:
// without credentials, and without an end that more text could turn into one.
// What it returns for a longer text begins with what it returned before, wherever
// the pieces of a stream divide a credential. There is one exception: the last
// word is shown as long as it is an ordinary one, and is taken back if it goes on
// as a credential.
func (r *Redactor) Partial(s string) string {
	v := see(s[:len(s)-unfinishedRune(s)])
	found, settled := r.find(v.text, false)
	return v.replace(found, v.through(settled))
}

func (r *Redactor) find(s string, whole bool) (found []span, settled int) {
	if r != nil {
		if x := r.index.Load(); x != nil {
			return x.find(s, whole)
		}
	}
	return formatsOnly().find(s, whole)
}

// span is a part of a text, in bytes.
type span struct{ start, end int }

// match is what a rule found at its anchor. The zero match is none.
type match struct {
	span

	// open means that more text decides: nothing from start on may be shown yet.
	// Rules say so only of a text that is not whole.
	open bool
}

// rule finds one kind of credential.
type rule struct {
	anchor string
	known  bool // the anchor is a piece of a secret itself

	// find looks at the anchor, which stands at s[at:]. The credential may begin
	// before or after it. whole means that s is not being written any more.
	find func(s string, at int, whole bool) match
}

// index finds the rules that may match at a place by the two bytes there.
type index struct {
	first [1 << 16]uint16 // two bytes -> place in rules; 0 means that there is none
	rules [][]rule
}

func newIndex(rules []rule) *index {
	x := &index{rules: make([][]rule, 1)}
	add := func(pair int, r rule) {
		if x.first[pair] == 0 {
			x.first[pair] = uint16(len(x.rules)) //nolint:gosec // far fewer than 65536 pairs
			x.rules = append(x.rules, nil)
		}
		x.rules[x.first[pair]] = append(x.rules[x.first[pair]], r)
	}
	for _, r := range rules {
		if len(r.anchor) > 1 {
			add(int(r.anchor[0])<<8|int(r.anchor[1]), r)
			continue
		}
		for second := range 256 { // whatever follows, and the end of the text
			add(int(r.anchor[0])<<8|second, r)
		}
	}
	return x
}

// find returns the credentials of s in order, and how much of s is settled: all
// of it, or less if s is not whole.
func (x *index) find(s string, whole bool) (found []span, settled int) {
	settled = len(s)
	if !whole {
		settled -= unfinishedWord(s)
	}
	through := 0 // the end of what was found; in it only a secret itself begins, which may go on behind it
	for i := range len(s) {
		pair := int(s[i]) << 8
		if i+1 < len(s) {
			pair |= int(s[i+1])
		}
		n := x.first[pair]
		if n == 0 {
			continue
		}
		best := match{span: span{i, i}}
		for k := range x.rules[n] {
			if i < through && !x.rules[n][k].known {
				continue
			}
			if m := x.rules[n][k].look(s, i, whole); m.open {
				best = m
				break
			} else if m.end > best.end {
				best = m
			}
		}
		if best.open {
			settled = min(settled, best.start)
			break
		}
		if best.end > max(i, through) {
			found = append(found, best.span)
			through = best.end
		}
	}
	return inOrder(append(found, bareKeys(s)...)), settled
}

func (r *rule) look(s string, at int, whole bool) match {
	rest := s[at:]
	switch {
	case strings.HasPrefix(rest, r.anchor):
		return r.find(s, at, whole)
	case !whole && len(rest) < len(r.anchor) && strings.HasPrefix(r.anchor, rest) && (r.known && len(rest) >= 4 || run(rest, alnumByte) < len(rest)):
		if rest[0] == ' ' { // is of no credential, and what nobody sees in front of it was shown with it
			at++
		}
		return match{span: span{start: at}, open: true}
	}
	return match{}
}

// inOrder sorts spans and joins those that overlap.
func inOrder(found []span) []span {
	order.By(found, func(a, b span) int { return a.start - b.start })
	joined := found[:0]
	for _, f := range found {
		if n := len(joined); n > 0 && f.start <= joined[n-1].end {
			joined[n-1].end = max(joined[n-1].end, f.end)
			continue
		}
		joined = append(joined, f)
	}
	return joined
}

// Of a text that is being written the last word is held back if it could become a
// credential that nothing announces: a bare key of 40 bytes, or a token whose
// anchor is in its middle. Ordinary words are not held back, or a stream that
// pauses would lose its end.
const (
	longestHidden = 64 // bytes before the end of a text that such a rule reaches back to
	shortestHeld  = 6  // bytes of a word that tell something of a credential
	longestPlain  = 14 // letters of a word that no random text begins with
)

// unfinishedWord is the length of the last word of s if it has to be held back,
// or 0.
func unfinishedWord(s string) int {
	n := runBack(s, wordByte, longestHidden)
	letters := runBack(s, alnumByte, longestHidden)
	if word := s[len(s)-letters:]; n < shortestHeld || n == letters && letters <= longestPlain && isWord(word) {
		return 0
	}
	return n
}
