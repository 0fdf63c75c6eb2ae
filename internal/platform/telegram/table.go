package telegram

import (
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// maxColumn is the widest that a column of a table is padded to: one long cell
// must not make every row long.
const maxColumn = 40

// table paints a table as text of fixed width. That cannot hold links, so they follow it.
func (p *painter) table(n *extast.Table) {
	p.code([]byte(tableText(n, p.source)), "")
	gap := "\n" + p.indent
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, ok := n.(*ast.Link); ok && entering {
			if target := unescape(string(link.Destination)); linkable(target) {
				p.raw(gap)
				p.link(link, target)
				gap = " · "
			}
		}
		return ast.WalkContinue, nil
	})
}

// tableText lays a table out for a font of fixed width.
func tableText(table *extast.Table, source []byte) string {
	var rows [][]string
	for r := table.FirstChild(); r != nil; r = r.NextSibling() {
		var row []string
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			row = append(row, cellText(c, source))
		}
		rows = append(rows, row)
	}
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 1)
			}
			widths[i] = min(max(widths[i], columns(cell)), maxColumn)
		}
	}
	var b strings.Builder
	for i, row := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		line := padded(row, widths, table.Alignments)
		b.WriteString(strings.TrimRight(line, " "))
		if i == 0 {
			b.WriteByte('\n')
			for j, w := range widths {
				if j > 0 {
					b.WriteString("-+-")
				}
				b.WriteString(strings.Repeat("-", w))
			}
		}
	}
	return b.String()
}

func padded(row []string, widths []int, align []extast.Alignment) string {
	var b strings.Builder
	for j, cell := range row {
		if j > 0 {
			b.WriteString(" | ")
		}
		pad := max(widths[j]-columns(cell), 0)
		left := 0
		if j < len(align) {
			switch align[j] {
			case extast.AlignRight:
				left = pad
			case extast.AlignCenter:
				left = pad / 2
			default:
			}
		}
		b.WriteString(strings.Repeat(" ", left) + cell + strings.Repeat(" ", pad-left))
	}
	return b.String()
}

// cellText returns the words of a cell on one line.
func cellText(cell ast.Node, source []byte) string {
	p := &painter{source: source}
	p.inlines(cell)
	return strings.Join(strings.Fields(p.out.String()), " ")
}

// columns returns how many columns s takes in a font of fixed width.
func columns(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case r >= 0x1F300 && r <= 0x1FAFF, unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana), r >= 0xFF01 && r <= 0xFF60:
			n += 2
		default:
			n++
		}
	}
	return n
}
