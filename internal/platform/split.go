package platform

import (
	"strings"
	"unicode/utf8"

	"remote-agent/internal/lists"
)

// MinSplit is the smallest limit that Split works with: below it the marks of
// a reopened code block would leave no room for text.
const MinSplit = 64

// Split cuts a CommonMark text into parts that measure at most limit each. Nil
// measure counts code points; a limit below MinSplit counts as MinSplit.
//
// It cuts between blocks if it can, else between lines, sentences, words and,
// as the last resort, user-perceived characters. A block that would fit into
// one part is not cut. A code block that must be cut is closed at the end of
// one part and reopened with its info string in the next, and a table that is
// cut between two rows has its head again. Apart from those added lines and the
// white space at cuts (and the indentation of what is continued from a list)
// nothing is added or lost. No part is blank; a blank text has no parts.
//
// A part exceeds limit only if measure finds a single character longer than
// it. The cost grows linearly with the text as long as that of measure does.
func Split(markdown string, limit int, measure func(string) int) []string {
	pieces := splitPieces(markdown, limit, measure)
	if len(pieces) == 0 {
		return nil
	}
	return lists.Map(pieces, func(p piece) string { return p.open + p.body + p.close })
}

// Fits reports whether one message holds a CommonMark text.
func (c Capabilities) Fits(markdown string) bool {
	return c.MaxText <= 0 || len(Split(markdown, c.MaxText, c.Measure)) <= 1
}

// piece is a part with what was added to it.
type piece struct {
	open  string // reopens the block that the part continues
	body  string // the words of the text
	close string // closes the code block that the part leaves open
}

func (p piece) blank() bool { return strings.TrimSpace(p.body) == "" }

// splitter holds one call's state. Positions are byte offsets of text.
type splitter struct {
	text    string
	lines   []line
	limit   int
	measure func(string) int
}

func splitPieces(markdown string, limit int, measure func(string) int) []piece {
	if measure == nil {
		measure = utf8.RuneCountInString
	}
	s := &splitter{text: markdown, limit: max(limit, MinSplit), measure: measure}
	s.lines = scanLines(markdown, s.limit/2)

	var pieces []piece
	pos, at := 0, 0 // at is the line that pos is in
	for pos < len(s.text) {
		end := s.cut(pos, at)
		if p := s.piece(pos, end, at); !p.blank() && !s.onlyCloses(pos, end, at) {
			pieces = append(pieces, p)
		}
		pos = end
		for at < len(s.lines) && s.lines[at].end <= pos {
			at++
		}
	}
	return pieces
}

// onlyCloses reports whether text[pos:end] is no more than the end of a code
// block that the part before has closed already.
func (s *splitter) onlyCloses(pos, end, at int) bool {
	l := s.lines[at]
	return l.closes && pos == l.start && strings.TrimSpace(s.text[l.end:max(end, l.end)]) == ""
}

// fits reports whether text[pos:end], with what has to be added to it, is
// within the limit. Something far longer than the limit is refused without
// being measured, which keeps the cost linear.
func (s *splitter) fits(pos, end, at int) bool {
	if end-pos > 4*s.limit+1024 {
		return false
	}
	p := s.piece(pos, end, at)
	return p.blank() || s.measure(p.open+p.body+p.close) <= s.limit
}

// cut returns where the part that starts at pos, in line at, ends. It is always
// greater than pos.
func (s *splitter) cut(pos, at int) int {
	if s.fits(pos, len(s.text), at) {
		return len(s.text)
	}
	n := s.fullLines(pos, at)
	if n > 0 {
		if b := s.blockCut(pos, at, n); b > 0 {
			return b
		}
	}
	// Nothing is gained by ending a part with the first line of a code block or
	// with the head of a table.
	for n > 0 && (s.lines[at+n-1].opens || s.lines[at+n-1].titles || !s.fits(pos, s.lines[at+n-1].end, at)) {
		n--
	}
	next := at + n
	if n > 0 {
		end := s.lines[next-1].end
		long := !s.fits(s.lines[next].start, s.lines[next].end, next)
		if !long || 2*(end-pos) >= s.limit {
			return end
		}
	} else if s.lines[at].opens && at+1 < len(s.lines) && s.fits(pos, s.lines[at].end, at) {
		next = at + 1
	}
	return s.cutInside(pos, at, next)
}

// fullLines returns how many whole lines from pos on fit.
func (s *splitter) fullLines(pos, at int) int {
	rest := len(s.lines) - at
	end := func(n int) int { return s.lines[at+n-1].end }
	good, step := 0, 1
	for good+step <= rest && end(good+step)-pos < s.limit {
		step *= 2 // no need to measure the first guesses one by one
	}
	for step = max(step/2, 1); good+step <= rest && s.fits(pos, end(good+step), at); step *= 2 {
		good += step
	}
	for bad := min(good+step, rest+1); bad-good > 1; {
		mid := (good + bad) / 2
		if s.fits(pos, end(mid), at) {
			good = mid
		} else {
			bad = mid
		}
	}
	return good
}

// blockCut returns the last good end of a block within n lines, or 0.
func (s *splitter) blockCut(pos, at, n int) int {
	for k := n; k > 0; k-- {
		if at+k >= len(s.lines) || !s.lines[at+k].block {
			continue
		}
		end := s.lines[at+k].start
		if strings.TrimSpace(s.text[pos:end]) == "" || !s.fits(pos, end, at) {
			continue
		}
		// A block that is too long for any part is better begun here than
		// after a part that is nearly empty.
		if 2*(end-pos) >= s.limit || s.blockFits(at+k) {
			return end
		}
		return 0
	}
	return 0
}

// blockFits reports whether the block that starts at line first fits into one
// part.
func (s *splitter) blockFits(first int) bool {
	start, end := s.lines[first].start, s.lines[first].end
	for _, l := range s.lines[first+1:] {
		if l.block || end-start > 4*s.limit+1024 {
			break
		}
		end = l.end
	}
	return s.fits(start, end, first)
}

// cutInside returns a cut within line next, which does not fit as a whole after
// text[pos:], or which is alone too long.
func (s *splitter) cutInside(pos, at, next int) int {
	from := max(pos, s.lines[next].start)
	to := min(s.lines[next].end, pos+4*s.limit+1024)
	good, bad := from, to
	// Close enough is good enough: the last few characters are not worth the
	// measuring.
	for guess := from + s.limit; bad-good > max(s.limit/64, utf8.UTFMax); guess = (good + bad) / 2 {
		mid := runeStart(s.text, min(guess, bad-1))
		if mid <= good {
			break
		}
		if s.fits(pos, mid, at) {
			good = mid
		} else {
			bad = mid
		}
	}
	if good == from { // the search was too coarse: advance character by character
		for {
			_, size := utf8.DecodeRuneInString(s.text[good:])
			if good+size > to || (good > pos && !s.fits(pos, good+size, at)) {
				break
			}
			good += size
		}
	}
	if good <= from && from > pos {
		return from
	}
	for _, end := range []int{lastBreak(s.text, from, good), clusterStart(s.text, from, good)} {
		if end > from && (end == good || s.fits(pos, end, at)) {
			return end
		}
	}
	return good
}

// piece returns the part text[pos:end]. at is the line that pos is in.
func (s *splitter) piece(pos, end, at int) piece {
	first := s.lines[at]
	inside := first.in != nil && (!first.opens || pos != first.start)
	if first.opens && pos > first.start {
		inside = false // the rest of a first line is not worth a block
	}
	var p piece
	strip := 0
	switch {
	case inside:
		p.open = first.in.reopen()
		strip = first.in.indent
	case pos > first.start:
		if prefix := quotePrefix(first.text(s.text)); len(prefix) <= maxPrefix {
			p.open = prefix
		}
	case first.list:
		strip = indentOf(first.text(s.text))
	case first.head != "":
		p.open = first.head
	}
	p.body = s.text[pos:end]
	if strip > 0 {
		p.body = s.dedented(pos, end, at, strip, inside)
	}
	if left := s.openAt(pos, end, at); left != nil {
		p.body = strings.TrimRight(p.body, "\r\n")
		p.close = "\n" + left.prefix + strings.Repeat(" ", left.closeIndent(inside && first.in == left)) + left.mark
	} else {
		p.body = strings.TrimRight(p.body, " \t\r\n")
	}
	switch {
	case inside:
	case pos > first.start:
		p.body = strings.TrimLeft(p.body, " \t\r\n")
	default:
		p.body = trimLead(p.body)
	}
	return p
}

// openAt returns the code block that is open at end, or nil.
func (s *splitter) openAt(pos, end, at int) *fence {
	lo, hi := at, len(s.lines)
	for hi-lo > 1 { // the last line that starts before end
		if mid := (lo + hi) / 2; s.lines[mid].start < end {
			lo = mid
		} else {
			hi = mid
		}
	}
	l := s.lines[lo]
	if l.opens && end < l.end || l.opens && pos > l.start {
		return nil
	}
	if l.closes {
		return nil
	}
	return l.in
}

// dedented returns text[pos:end] with up to strip columns of indentation taken
// from its lines: from all lines of a continued code block, else from those
// that are indented at least that far, up to the first that is not.
func (s *splitter) dedented(pos, end, at, strip int, inside bool) string {
	var b strings.Builder
	b.Grow(end - pos)
	block := s.lines[at].in
	for i, active := at, true; i < len(s.lines) && s.lines[i].start < end; i++ {
		l := s.lines[i]
		from, to := max(l.start, pos), min(l.end, end)
		t := s.text[from:to]
		if inside {
			active = active && l.in == block
		} else if !l.blank(s.text) && indentOf(l.text(s.text)) < strip {
			active = false
		}
		if active && from == l.start {
			prefix := ""
			if inside {
				prefix = commonPrefix(t, block.prefix)
			}
			t = prefix + stripIndent(t[len(prefix):], strip)
		}
		b.WriteString(t)
	}
	return b.String()
}

// trimLead drops the blank lines at the start of s, but not the indentation of
// the first line with text.
func trimLead(s string) string {
	rest := strings.TrimLeft(s, " \t\r\n")
	lead := s[:len(s)-len(rest)]
	if i := strings.LastIndexByte(lead, '\n'); i >= 0 {
		return s[i+1:]
	}
	return s
}
