package terminal

import "strings"

// style is how a stretch of text looks.
type style uint8

// The styles, which can be combined.
const (
	bold style = 1 << iota
	dim
	italic
	underlined
	struck
	colored // code

	plain style = 0
)

// codes are the parameters of SGR (ECMA-48, 8.3.117) for each style.
var codes = []struct {
	of   style
	code string
}{{bold, "1"}, {dim, "2"}, {italic, "3"}, {underlined, "4"}, {struck, "9"}, {colored, "36"}}

// begin returns the sequence that turns to a style from no style.
func (s style) begin() string {
	var on []string
	for _, c := range codes {
		if s&c.of != 0 {
			on = append(on, c.code)
		}
	}
	return "\x1b[" + strings.Join(on, ";") + "m"
}

const endStyle = "\x1b[0m"

// cell is a character with its look.
type cell struct {
	text    string
	columns int
	style   style
}

// cellsOf splits a text into cells. Tabs become spaces.
func cellsOf(s string, look style) []cell {
	cells := make([]cell, 0, len(s))
	for s != "" {
		cluster, n := next(s)
		s = s[len(cluster):]
		switch {
		case cluster == "\t":
			for range 4 {
				cells = append(cells, cell{" ", 1, look})
			}
		case n > 0 || cluster == "\n":
			cells = append(cells, cell{cluster, n, look})
		case len(cells) > 0 && cells[len(cells)-1].text != "\n":
			cells[len(cells)-1].text += cluster
		}
	}
	return cells
}

// row is a finished line of the screen.
type row struct {
	text    string // with its styles
	columns int
}

// paint makes a row of cells. Without styles it is plain text.
func paint(cells []cell, styled bool) row {
	var b strings.Builder
	r := row{}
	current := plain
	for _, c := range cells {
		if styled && c.style != current {
			if current != plain {
				b.WriteString(endStyle)
			}
			if c.style != plain {
				b.WriteString(c.style.begin())
			}
			current = c.style
		}
		b.WriteString(c.text)
		r.columns += c.columns
	}
	if styled && current != plain {
		b.WriteString(endStyle)
	}
	r.text = b.String()
	return r
}

// wrap breaks cells into lines of at most so many columns: between words where it
// can, within one where it has to, at "\n" in any case. At least one character is on
// each line, however narrow. A URL is on one line, which may be too long: the terminal
// itself breaks it then, and still copies and opens it as one.
func wrap(cells []cell, columns int) [][]cell {
	var lines [][]cell
	for {
		end := 0
		for end < len(cells) && cells[end].text != "\n" {
			end++
		}
		lines = append(lines, wrapLine(cells[:end], columns)...)
		if end == len(cells) {
			return lines
		}
		cells = cells[end+1:]
	}
}

// wrapped paints what wrap returns.
func wrapped(cells []cell, columns int, styled bool) (rows []row) {
	for _, line := range wrap(cells, columns) {
		rows = append(rows, paint(line, styled))
	}
	return rows
}

// wrapLine wraps cells without line breaks.
func wrapLine(cells []cell, columns int) [][]cell {
	var lines [][]cell
	for {
		used, end, breakAt := 0, 0, 0
		for end < len(cells) && used+cells[end].columns <= columns {
			if used += cells[end].columns; end > 0 && breaks(cells[end-1], cells[end]) {
				breakAt = end
			}
			end++
		}
		if end == len(cells) {
			return append(lines, trimRight(cells))
		}
		if cells[end].text == " " || end > 0 && breaks(cells[end-1], cells[end]) {
			breakAt = end
		}
		if breakAt == 0 {
			breakAt = max(end, 1, urlEnd(cells))
		}
		lines = append(lines, trimRight(cells[:breakAt]))
		for cells = cells[breakAt:]; len(cells) > 0 && cells[0].text == " "; {
			cells = cells[1:]
		}
		if len(cells) == 0 {
			return lines
		}
	}
}

// maxURL is how many characters of a URL are kept on one line.
const maxURL = 500

// urlEnd returns where the word ends that cells begin with, if it has a URL in it, else 0.
func urlEnd(cells []cell) int {
	var word strings.Builder
	for i, c := range cells {
		if c.text == " " || i == maxURL {
			break
		}
		word.WriteString(c.text)
	}
	if s := word.String(); strings.Contains(s, "://") {
		return len(cellsOf(s, plain))
	}
	return 0
}

// breaks reports whether a line may end between two characters: behind a space, and
// on either side of what is written without spaces.
func breaks(before, after cell) bool {
	return after.text != " " && (before.text == " " || wide(before) || wide(after))
}

func wide(c cell) bool { return c.columns == 2 }

func trimRight(cells []cell) []cell {
	for len(cells) > 0 && cells[len(cells)-1].text == " " {
		cells = cells[:len(cells)-1]
	}
	return cells
}
