package terminal

import (
	"slices"
	"strings"
	"unicode"
)

// MaxText is the longest text that can be typed or pasted, in bytes.
const MaxText = 1 << 20

// line is the text that is being typed. It may have several lines.
type line struct {
	text         string
	at           int     // where the cursor is, in bytes
	pasted       []Range // what of text was pasted, not typed
	killed       string
	killedPasted bool // some of killed was pasted
}

// Range is a stretch of a text, in bytes.
type Range struct{ From, To int }

// set replaces the text. One of several lines counts as pasted: it comes from the
// history, which does not know how it was entered.
func (l *line) set(text string) {
	l.text, l.at, l.pasted = text, len(text), nil
	if strings.Contains(text, "\n") {
		l.pasted = []Range{{0, len(text)}}
	}
}

// insert puts a text before the cursor. It reports false, and changes nothing, if
// that would be too long.
func (l *line) insert(s string) bool { return l.put(s, false) }

// put is insert for a text that may have been pasted.
func (l *line) put(s string, pasted bool) bool {
	if len(l.text)+len(s) > MaxText {
		return false
	}
	var shifted []Range
	for _, r := range l.pasted {
		switch {
		case r.To <= l.at:
			shifted = append(shifted, r)
		case r.From >= l.at:
			shifted = append(shifted, Range{r.From + len(s), r.To + len(s)})
		default:
			shifted = append(shifted, Range{r.From, l.at}, Range{l.at + len(s), r.To + len(s)})
		}
	}
	if pasted && s != "" {
		shifted = append(shifted, Range{l.at, l.at + len(s)})
	}
	l.pasted = shifted
	l.text = l.text[:l.at] + s + l.text[l.at:]
	l.at += len(s)
	return true
}

// before returns where the character before the cursor begins.
func (l *line) before() int {
	start := strings.LastIndexByte(l.text[:l.at], '\n') + 1
	if start == l.at {
		return max(l.at-1, 0)
	}
	for at := start; ; {
		cluster, _ := next(l.text[at:])
		if at+len(cluster) >= l.at {
			return at
		}
		at += len(cluster)
	}
}

// after returns where the character behind the cursor ends.
func (l *line) after() int {
	cluster, _ := next(l.text[l.at:])
	return l.at + len(cluster)
}

// wordBefore and wordAfter return the far end of the next word.
func (l *line) wordBefore() int {
	at := len(strings.TrimRightFunc(l.text[:l.at], unicode.IsSpace))
	return strings.LastIndexFunc(l.text[:at], unicode.IsSpace) + 1
}

func (l *line) wordAfter() int {
	rest := l.text[l.at:]
	skip := len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace))
	if n := strings.IndexFunc(rest[skip:], unicode.IsSpace); n >= 0 {
		return l.at + skip + n
	}
	return len(l.text)
}

// lineStart and lineEnd return the ends of the line that the cursor is in.
func (l *line) lineStart() int { return strings.LastIndexByte(l.text[:l.at], '\n') + 1 }

func (l *line) lineEnd() int {
	if n := strings.IndexByte(l.text[l.at:], '\n'); n >= 0 {
		return l.at + n
	}
	return len(l.text)
}

// kill removes a stretch and keeps it for yank.
func (l *line) kill(from, to int) {
	l.killed, l.killedPasted = l.text[from:to], overlaps(l.pasted, from, to)
	l.remove(from, to)
}

func (l *line) remove(from, to int) {
	moved := func(at int) int { return min(at, from) + max(at-to, 0) }
	var left []Range
	for _, r := range l.pasted {
		if r = (Range{moved(r.From), moved(r.To)}); r.From < r.To {
			left = append(left, r)
		}
	}
	l.pasted = left
	l.text, l.at = l.text[:from]+l.text[to:], from
}

// overlaps reports whether a stretch has some of the ranges in it.
func overlaps(ranges []Range, from, to int) bool {
	return slices.ContainsFunc(ranges, func(r Range) bool { return r.From < to && from < r.To })
}

// vertical moves the cursor to the line above or below, in the same column. It
// reports false if there is none.
func (l *line) vertical(down bool) bool {
	start, stop := l.lineStart(), l.lineEnd()
	column := columnsOf(l.text[start:l.at])
	switch {
	case down && stop < len(l.text):
		l.at = stop + 1
	case !down && start > 0:
		l.at = start - 1
		l.at = l.lineStart()
	default:
		return false
	}
	for limit := l.lineEnd(); l.at < limit; {
		cluster, n := next(l.text[l.at:])
		if column -= n; column < 0 {
			break
		}
		l.at += len(cluster)
	}
	return true
}

// edit does what a key does to the text. It reports false for what is not its part.
func (l *line) edit(do action) bool {
	switch do {
	case backspace:
		l.remove(l.before(), l.at)
	case deleteNext:
		l.remove(l.at, l.after())
	case left:
		l.at = l.before()
	case right:
		l.at = l.after()
	case home:
		l.at = l.lineStart()
	case end:
		l.at = l.lineEnd()
	case wordLeft:
		l.at = l.wordBefore()
	case wordRight:
		l.at = l.wordAfter()
	case killWord:
		l.kill(l.wordBefore(), l.at)
	case killNextWord:
		at := l.at
		l.kill(at, l.wordAfter())
	case killToEnd:
		stop := l.lineEnd()
		if stop == l.at { // at the end of a line: the line break
			stop = min(stop+1, len(l.text))
		}
		l.kill(l.at, stop)
	case killToStart:
		l.kill(l.lineStart(), l.at)
	case yank:
		return l.put(l.killed, l.killedPasted)
	default:
		return false
	}
	return true
}

// layout is what the text looks like on the screen.
type layout struct {
	rows        []row
	row, column int // of the cursor
}

// layOut breaks the text into rows behind a prompt; further rows are indented as
// far. At most limit rows are shown, those around the cursor.
func (l *line) layOut(prompt row, columns, limit int) layout {
	indent := strings.Repeat(" ", prompt.columns)
	out := layout{}
	b := strings.Builder{}
	b.WriteString(prompt.text)
	used := prompt.columns
	flush := func() {
		out.rows = append(out.rows, row{b.String(), used})
		b.Reset()
		b.WriteString(indent)
		used = prompt.columns
	}
	for at := 0; ; {
		cluster, n := next(l.text[at:])
		shown := cluster
		if cluster == "\t" {
			shown, n = " ", 1
		}
		if used+n > columns {
			flush()
		}
		if at == l.at {
			out.row, out.column = len(out.rows), used
		}
		if at >= len(l.text) {
			break
		}
		at += len(cluster)
		if cluster == "\n" {
			flush()
			continue
		}
		b.WriteString(shown)
		used += n
	}
	if used >= columns && l.at == len(l.text) { // the cursor needs room
		flush()
		out.row, out.column = len(out.rows), used
	}
	flush()
	if limit = max(limit, 1); len(out.rows) > limit {
		first := min(max(out.row-limit/2, 0), len(out.rows)-limit)
		out.rows, out.row = out.rows[first:first+limit], out.row-first
	}
	return out
}

// wantsMore reports whether the line before the cursor ends with a backslash that
// asks for another line.
func (l *line) wantsMore() bool {
	if l.at != len(l.text) {
		return false
	}
	slashes := len(l.text) - len(strings.TrimRight(l.text, `\`))
	return slashes%2 == 1
}
