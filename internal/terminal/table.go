package terminal

import (
	"strings"

	extast "github.com/yuin/goldmark/extension/ast"
)

const tableGap = 2 // columns between those of a table

// table lays a table out in columns if it fits, else each row as lines of
// "heading: value".
func (w *writer) table(n *extast.Table, columns int) [][]cell {
	var rows [][][]cell
	var widths []int
	for r := n.FirstChild(); r != nil; r = r.NextSibling() {
		look := plain
		if len(rows) == 0 {
			look = bold
		}
		var line [][]cell
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			if len(line) == len(widths) {
				widths = append(widths, 1)
			}
			cells := w.inline(c, look)
			widths[len(line)] = max(widths[len(line)], paint(cells, false).columns)
			line = append(line, cells)
		}
		rows = append(rows, line)
	}
	total := -tableGap
	for _, width := range widths {
		total += width + tableGap
	}
	if total > columns {
		return listRows(rows, columns)
	}
	var lines [][]cell
	for i, line := range rows {
		lines = append(lines, padded(line, widths, n.Alignments))
		if i == 0 {
			lines = append(lines, cellsOf(strings.Repeat("─", total), dim))
		}
	}
	return lines
}

func padded(line [][]cell, widths []int, align []extast.Alignment) []cell {
	var out []cell
	for j, cells := range line {
		if j > 0 {
			out = append(out, blanks(tableGap)...)
		}
		pad, left := widths[j]-paint(cells, false).columns, 0
		if j < len(align) {
			switch align[j] {
			case extast.AlignRight:
				left = pad
			case extast.AlignCenter:
				left = pad / 2
			default:
			}
		}
		out = append(append(append(out, blanks(left)...), cells...), blanks(pad-left)...)
	}
	return trimRight(out)
}

func blanks(n int) []cell { return cellsOf(strings.Repeat(" ", n), plain) }

// listRows shows a table that is too wide row by row.
func listRows(rows [][][]cell, columns int) [][]cell {
	var lines [][]cell
	for i, line := range rows[1:] {
		if i > 0 {
			lines = append(lines, nil)
		}
		for j, cells := range line {
			var named []cell
			if j < len(rows[0]) && len(rows[0][j]) > 0 {
				named = append(append(named, rows[0][j]...), cellsOf(": ", plain)...)
			}
			lines = append(lines, prefix(wrap(append(named, cells...), max(columns-2, minColumns)), nil, blanks(2))...)
		}
	}
	return lines
}
