// Package markup keeps what strangers write from costing more to parse than what
// people write does.
package markup

import (
	"strings"
)

// What a text may have. A parser's cost grows with the square of most of these; rows of
// tables, which are padded to the width of the first, and addresses that are used again
// and again make much of a short text.
const (
	maxNesting     = 32      // quotes, lists and footnotes within each other
	maxDefinitions = 1000    // addresses and footnotes that are defined
	maxAddresses   = 1 << 20 // bytes of defined addresses, where they are used
	maxCells       = 20_000  // of tables
	maxBars        = 1000    // with a backslash, which tables look for within code
	maxLinks       = 200     // of a line
	maxOpen        = 500     // brackets within each other
	maxPairs       = 5 << 20 // of what may open and what may close an emphasis, in the same block
)

const space = " \t\n\r" // what goldmark takes for it

// Bounded returns a text in CommonMark, with the tables and footnotes of GitHub, that
// goldmark parses in time and memory in proportion to its length. A text that people write
// it returns as it is. In others backslashes make plain what goes beyond that, so that it
// is shown as it is written; within code they can be seen. Doing so again changes nothing.
func Bounded(source string) string {
	for {
		next := source
		for _, excess := range []func(string) []int{definitions, links, brackets, emphasis, tables, nesting} {
			next = escaped(next, excess(next))
		}
		if len(next) == len(source) {
			return source
		}
		source = next
	}
}

// escaped returns a text with backslashes at the given places, which are in order.
func escaped(source string, places []int) string {
	if len(places) == 0 {
		return source
	}
	var b strings.Builder
	from := 0
	for _, at := range places {
		b.WriteString(source[from:at] + `\`)
		from = at
	}
	return b.String() + source[from:]
}

// definitions finds what makes addresses and footnotes of labels, from the limit on, and
// of addresses that are too long for the number of places that may use them.
func definitions(source string) (excess []int) {
	uses, n := strings.Count(source, "]"), 0
	for at := range places(source, "]:") {
		if n++; n > maxDefinitions || uses*address(source[at+2:]) > maxAddresses {
			excess = append(excess, at+1)
		}
	}
	return excess
}

// address returns how long an address is that is defined.
func address(source string) int {
	source = strings.TrimLeft(source, space+">") // it may be in the next line of a quote
	end := space
	if strings.HasPrefix(source, "<") {
		end = "\n"
	}
	if n := strings.IndexAny(source, end); n >= 0 {
		return n
	}
	return len(source)
}

// links finds what makes links of brackets, from the limit of a line on: the end of each
// address is looked for up to the end of the line.
func links(source string) (excess []int) {
	n, from := 0, 0
	for at := range places(source, "](") {
		if strings.IndexByte(source[from:at], '\n') >= 0 {
			n = 0
		}
		if n++; n > maxLinks {
			excess = append(excess, at+1)
		}
		from = at
	}
	return excess
}

// places returns where mark is in a text.
func places(source, mark string) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for at := 0; ; {
			i := strings.Index(source[at:], mark)
			if i < 0 || !yield(at+i) {
				return
			}
			at += i + len(mark)
		}
	}
}

// brackets finds those that close others which are too deep in others.
func brackets(source string) (excess []int) {
	at, open := 0, 0
	for line := range strings.Lines(source) {
		if strings.Trim(line, space) == "" {
			open = 0
		}
		for i := 0; i < len(line); i++ {
			switch c := line[i]; {
			case c == '\\':
				i++
			case c == '[':
				open++
			case c == ']' && open > maxOpen:
				excess = append(excess, at+i)
			case c == ']' && open > 0:
				open--
			}
		}
		at += len(line)
	}
	return excess
}

// emphasis finds what may close one when too much stands before it that may open one: all
// of that is looked at each time.
func emphasis(source string) (excess []int) {
	at, open, pairs := 0, 0, 0
	for line := range strings.Lines(source) {
		if strings.Trim(line, space) == "" {
			open = 0
		}
		for i := 0; i < len(line); i++ {
			switch line[i] {
			case '\\':
				i++
			case '*', '_', '~':
				end := len(line) - len(strings.TrimLeft(line[i:], line[i:i+1]))
				opens, closes := flanks(line, i, end)
				if closes {
					pairs += open
				}
				switch {
				case closes && pairs > maxPairs:
					for ; i < end; i++ {
						excess = append(excess, at+i)
					}
				case opens:
					open++
				}
				i = end - 1
			}
		}
		at += len(line)
	}
	return excess
}

// flanks reports whether the marks at i may open and may close an emphasis. It says so too
// often rather than too seldom.
func flanks(line string, i, end int) (opens, closes bool) {
	before, after := byte(' '), byte(' ')
	if i > 0 {
		before = line[i-1]
	}
	if end < len(line) {
		after = line[end]
	}
	if line[i] == '_' && isWord(before) && isWord(after) {
		return false, false // as in snake_case
	}
	return strings.IndexByte(space, after) < 0, strings.IndexByte(space, before) < 0
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// tables finds the rows that make tables of the lines around them, if all could have too
// many cells.
func tables(source string) (excess []int) {
	at, cells, columns, rows := 0, 0, 0, 0
	for line := range strings.Lines(source) {
		switch {
		case strings.Trim(line, space) == "": // ends a table
			cells += columns * rows
			columns, rows = 0, 0
		default:
			rows++
			if strings.Trim(line, space+">-:|") == "" && strings.Contains(line, "|") {
				columns = max(columns, strings.Count(strings.Trim(line, space+">|"), "|")+1)
				excess = append(excess, at+strings.IndexAny(line, "-:|"))
			}
		}
		at += len(line)
	}
	if cells+columns*rows <= maxCells && strings.Count(source, `\|`) <= maxBars {
		return nil
	}
	return excess
}

// nesting finds the marks of quotes, lists and footnotes that are too deep. What is within
// others stands at least two columns further right, or behind the mark of a quote.
func nesting(source string) (excess []int) {
	at := 0
	for line := range strings.Lines(source) {
		if i := tooDeep(line); i >= 0 {
			excess = append(excess, at+i)
		}
		at += len(line)
	}
	return excess
}

// tooDeep returns where a line has a mark that is too deep, or -1.
func tooDeep(line string) int {
	for i, columns := 0, 0; i < len(line); {
		n := 1
		switch line[i] {
		case ' ':
			columns++
		case '\t':
			columns += 4
		default:
			if n = mark(line[i:]); n == 0 {
				return -1
			}
			if columns += max(n, 2); columns > 2*maxNesting {
				return i + strings.LastIndexAny(line[i:i+n], ">-*+.):")
			}
		}
		i += n
	}
	return -1
}

// mark returns how long the mark of a quote, list or footnote is that a line begins with,
// with the space behind it.
func mark(line string) int {
	n := len(line) - len(strings.TrimLeft(line, "0123456789"))
	switch c := line[0]; {
	case c == '>':
		n = 1
	case c == '[':
		if n = footnote(line); n == 0 {
			return 0
		}
	case n == 0 && strings.IndexByte("-*+", c) >= 0, n > 0 && n < min(10, len(line)) && strings.IndexByte(".)", line[n]) >= 0:
		n++
		rule := (c == '-' || c == '*') && strings.Trim(line, string(c)+space) == ""
		if rule || n < len(line) && strings.IndexByte(space, line[n]) < 0 {
			return 0
		}
	default:
		return 0
	}
	if n < len(line) && line[n] == ' ' {
		n++
	}
	return n
}

// footnote returns how long the mark of a footnote is that a line begins with.
func footnote(line string) int {
	if !strings.HasPrefix(line, "[^") {
		return 0
	}
	for i := len("[^"); i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '[':
			return 0
		case ']':
			if strings.HasPrefix(line[i:], "]:") {
				return i + len("]:")
			}
			return 0
		}
	}
	return 0
}
