package platform

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPrefix is the longest run of block quote marks, in bytes, that is repeated
// in a part that goes on with the quote.
const maxPrefix = 16

// fence is a fenced code block of the text.
type fence struct {
	prefix string // block quote marks that stand before each of its lines
	indent int    // columns between prefix and mark
	mark   string // the run of backticks or tildes
	info   string // what follows mark on the first line
	inline int    // content column of the list marker on the same line, or 0
}

func (f *fence) reopen() string { return f.prefix + f.mark + f.info + "\n" }

// closeIndent is how far the closing mark is indented: as far as the block,
// unless the part continues the block and was moved to the left margin.
func (f *fence) closeIndent(continued bool) int {
	if continued {
		return 0
	}
	return f.indent
}

// line is one line of the text with its line feed.
type line struct {
	start, end int
	block      bool   // a block starts here: cutting before it is best
	list       bool   // belongs to a list, so its indentation is not code
	in         *fence // the code block that the line is part of, marks included
	opens      bool   // is the first line of in
	closes     bool   // is the last line of in
	head       string // the head of the table that the line is a row of, with line feeds
	titles     bool   // is part of a table's head
}

func (l line) text(s string) string { return s[l.start:l.end] }
func (l line) blank(s string) bool  { return strings.TrimSpace(s[l.start:l.end]) == "" }

// scanLines cuts text into lines and finds out which blocks they belong to. It
// is a scanner of lines and not a CommonMark parser: where the two differ, a
// cut is less pretty but nothing is lost. A code block whose first line is
// longer than maxOpen bytes cannot be reopened and counts as plain text.
func scanLines(text string, maxOpen int) []line {
	lines := make([]line, 0, strings.Count(text, "\n")+1)
	var open *fence
	after := true  // the line before was blank or ended a block
	title := false // the last line with text was a heading
	list := false
	for start := 0; start < len(text); {
		end := len(text)
		if i := strings.IndexByte(text[start:], '\n'); i >= 0 {
			end = start + i + 1
		}
		l := line{start: start, end: end}
		t := strings.TrimRight(text[start:end], "\r\n")
		blank := strings.TrimSpace(t) == ""
		if open != nil && open.endsBefore(t, blank) {
			open, after = nil, true
		}
		switch {
		case open != nil:
			l.in, l.list = open, list
			if open.closedBy(t) {
				l.closes, open, after = true, nil, true
			}
		case blank:
			l.list, after = list, true
		default:
			indent := indentOf(t)
			marker := listMarker(t) > 0
			list = marker || list && (indent > 0 || !after)
			l.list = list
			heading := headingMark(t)
			l.block = heading || after && !title && (!list || indent == 0 || !marker)
			title, after = heading, false
			if f := parseFence(t, list); f != nil && len(t) <= maxOpen {
				l.in, l.opens, l.block, open = f, true, true, f
			}
		}
		lines = append(lines, l)
		start = end
	}
	scanTables(text, lines, maxOpen/2)
	return lines
}

// scanTables marks the rows of tables outside of lists, quotes and code: a line
// with columns, a line of dashes below it, and all lines up to the next block. A
// head of more than maxHead bytes is not worth repeating.
func scanTables(text string, lines []line, maxHead int) {
	for i := 0; i+1 < len(lines); i++ {
		titles, dashes := lines[i], lines[i+1]
		if titles.in != nil || titles.list || titles.blank(text) || dashes.in != nil || dashes.end-titles.start > maxHead ||
			!isDashes(dashes.text(text)) || columns(titles.text(text)) != columns(dashes.text(text)) || quotePrefix(titles.text(text)) != "" {
			continue
		}
		lines[i].titles, lines[i+1].titles = true, true
		head := text[titles.start:dashes.end]
		for i += 2; i < len(lines) && lines[i].in == nil && !lines[i].block && !lines[i].list && !lines[i].blank(text); i++ {
			lines[i].head = head
		}
		i--
	}
}

// isDashes reports whether t is the line below the titles of a table.
func isDashes(t string) bool {
	t = strings.TrimSpace(t)
	return strings.Contains(t, "-") && strings.Contains(t, "|") && strings.Trim(t, "|:- \t") == "" && !strings.Contains(t, "||")
}

// columns counts the columns of a table's row.
func columns(t string) int {
	t = strings.TrimSpace(t)
	n := strings.Count(t, "|") - strings.Count(t, `\|`) + 1
	if strings.HasPrefix(t, "|") {
		n--
	}
	if strings.HasSuffix(t, "|") && !strings.HasSuffix(t, `\|`) {
		n--
	}
	return n
}

// parseFence returns the code block that t opens, or nil.
func parseFence(t string, list bool) *fence {
	prefix := quotePrefix(t)
	rest := t[len(prefix):]
	f := &fence{prefix: prefix}
	if n := listMarker(rest); n > 0 {
		f.inline = n
		rest = strings.Repeat(" ", n) + rest[n:]
	}
	body := strings.TrimLeft(rest, " \t")
	f.indent = indentOf(rest)
	if f.indent > 3 && f.inline == 0 && !list {
		return nil // indented code
	}
	n := markLen(body)
	if n < 3 || len(prefix) > maxPrefix {
		return nil
	}
	f.mark, f.info = body[:n], strings.TrimSpace(body[n:])
	if f.mark[0] == '`' && strings.Contains(f.info, "`") {
		return nil // inline code
	}
	return f
}

// endsBefore reports whether the block has ended without a closing mark because
// t is outside of the quote or list that it is in.
func (f *fence) endsBefore(t string, blank bool) bool {
	if f.prefix != "" && quotePrefix(t) == "" {
		return true
	}
	return f.inline > 0 && !blank && indentOf(t[len(commonPrefix(t, f.prefix)):]) < f.inline
}

// closedBy reports whether t is the closing line.
func (f *fence) closedBy(t string) bool {
	t = strings.TrimSpace(t[len(commonPrefix(t, f.prefix)):])
	n := markLen(t)
	return n >= len(f.mark) && n == len(t) && t[0] == f.mark[0]
}

// markLen returns the length of the run of backticks or tildes t starts with.
func markLen(t string) int {
	if t == "" || t[0] != '`' && t[0] != '~' {
		return 0
	}
	return len(t) - len(strings.TrimLeft(t, t[:1]))
}

// quotePrefix returns the block quote marks at the start of t.
func quotePrefix(t string) string {
	t = t[:min(len(t), 4*maxPrefix)] // one that is longer is not used
	end, spaces := 0, 0
	for i := range len(t) {
		switch t[i] {
		case '>':
			end, spaces = i+1, 0
			if i+1 < len(t) && t[i+1] == ' ' {
				end = i + 2
			}
		case ' ':
			if spaces++; spaces > 4 {
				return t[:end]
			}
		default:
			return t[:end]
		}
	}
	return t[:end]
}

// commonPrefix returns as much of prefix as t starts with, with or without the
// space after the last mark.
func commonPrefix(t, prefix string) string {
	if strings.HasPrefix(t, prefix) {
		return prefix
	}
	if p := strings.TrimRight(prefix, " "); strings.HasPrefix(t, p) {
		return p
	}
	return ""
}

// listMarker returns the length of the list marker at the start of t, with the
// white space around it, or 0.
func listMarker(t string) int {
	i := len(t) - len(strings.TrimLeft(t, " \t"))
	start := i
	for i < len(t) && i-start < 9 && t[i] >= '0' && t[i] <= '9' {
		i++
	}
	if i < len(t) && (i > start && (t[i] == '.' || t[i] == ')') || i == start && strings.IndexByte("-*+", t[i]) >= 0) {
		if i+1 < len(t) && t[i+1] == ' ' {
			return i + 2
		}
	}
	return 0
}

func headingMark(t string) bool {
	n := len(t) - len(strings.TrimLeft(t, "#"))
	return n > 0 && n <= 6 && (n == len(t) || t[n] == ' ')
}

// indentOf returns the columns of white space that t starts with.
func indentOf(t string) int {
	_, columns := indentation(t, len(t)*tab)
	return columns
}

// stripIndent takes up to n columns of white space from the start of t.
func stripIndent(t string, n int) string {
	width, _ := indentation(t, n)
	return t[width:]
}

// tab is how many columns a tab takes at most.
const tab = 4

// indentation returns the white space that t starts with, up to so many columns: how many
// bytes and columns it has.
func indentation(t string, limit int) (width, columns int) {
	for ; width < len(t) && columns < limit; width++ {
		switch t[width] {
		case ' ':
			columns++
		case '\t':
			columns += tab - columns%tab
		default:
			return width, columns
		}
	}
	return width, columns
}

// lastBreak returns the best end for a part within text[from:to]: after the
// last sentence, else after the last word, if that is not too far back, else at
// the last boundary between user-perceived characters.
func lastBreak(text string, from, to int) int {
	window := text[from:to]
	half := len(window) / 2
	for i := len(window) - 1; i > half; i-- {
		if window[i] == ' ' && strings.IndexByte(".!?", window[i-1]) >= 0 {
			return from + i + 1
		}
	}
	if to < len(text) && (text[to] == ' ' || text[to] == '\n') {
		return to
	}
	if i := strings.LastIndexAny(window, " \t"); i > half {
		return from + i + 1
	}
	return clusterStart(text, from, to)
}

// runeStart returns the start of the rune that position i is in, which is i
// itself among bytes that are not UTF-8.
func runeStart(text string, i int) int {
	for j := i; j >= 0 && i-j < utf8.UTFMax; j-- {
		if i < len(text) && utf8.RuneStart(text[j]) {
			if _, size := utf8.DecodeRuneInString(text[j:]); j+size > i {
				return j
			}
			break
		}
	}
	return i
}

// clusterStart returns the last position at or before to, and after from, that
// is between two user-perceived characters. A character of more than 64 code
// points is cut where it is.
func clusterStart(text string, from, to int) int {
	pos := to
	for range 64 {
		if pos <= from {
			return to
		}
		if !joined(text, from, pos) {
			return pos
		}
		_, size := utf8.DecodeLastRuneInString(text[from:pos])
		pos -= size
	}
	return to
}

const (
	zwj          = '\u200d'
	nonJoiner    = '\u200c'
	riA, riZ     = '\U0001F1E6', '\U0001F1FF' // regional indicators: a pair is a flag
	skinA, skinZ = '\U0001F3FB', '\U0001F3FF'
	tagA, tagZ   = '\U000E0020', '\U000E007F'
)

// joined reports whether the code points before and after pos belong to one
// character. It is the part of Unicode's rules (UAX 29) that chat text needs:
// combining marks, emoji sequences, flags, Hangul and line ends.
func joined(text string, from, pos int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[from:pos])
	after, size := utf8.DecodeRuneInString(text[pos:])
	if size == 0 {
		return false
	}
	switch {
	case before == '\r' && after == '\n':
		return true
	case before == '\n':
		return false
	case before == zwj, after == zwj, after == nonJoiner, unicode.Is(unicode.M, after),
		after >= skinA && after <= skinZ, after >= tagA && after <= tagZ:
		return true
	case isHangul(before) && after >= 0x1160 && after <= 0x11FF, before >= 0x1100 && before <= 0x115F && isHangul(after):
		return true
	case isRegional(before) && isRegional(after):
		n := 0
		for p := pos; p > from; n++ {
			r, size := utf8.DecodeLastRuneInString(text[from:p])
			if !isRegional(r) {
				break
			}
			p -= size
		}
		return n%2 == 1
	}
	return false
}

func isRegional(r rune) bool { return r >= riA && r <= riZ }

func isHangul(r rune) bool { return r >= 0x1100 && r <= 0x11FF || r >= 0xAC00 && r <= 0xD7A3 }
