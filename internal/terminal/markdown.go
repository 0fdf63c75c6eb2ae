package terminal

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"remote-agent/internal/markup"
)

const (
	maxMarkdown = 64 << 10 // bytes of the longest text that is parsed
	minColumns  = 10       // what is left for a text, however deep in lists it is
	maxIndent   = 20       // columns before a text that is within others
)

// markdown lays CommonMark, with the tables, strikethrough and task lists of GitHub,
// out for a terminal. It is safe for concurrent use.
type markdown struct {
	parser goldmark.Markdown
	styled bool // bold, colors and the like may be used
}

func newMarkdown(styled bool) *markdown {
	return &markdown{
		parser: goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList)),
		styled: styled,
	}
}

// rows lays a text out in lines of at most so many columns. What is too long to be
// parsed is shown as it is written.
func (m *markdown) rows(source string, columns int) []row {
	columns = max(columns, minColumns)
	source = strings.TrimRight(Clean(source), " \n\t")
	var lines [][]cell
	if len(source) > maxMarkdown {
		lines = wrap(cellsOf(source, plain), columns)
	} else {
		w := &writer{source: []byte(markup.Bounded(source)), styled: m.styled, least: max(minColumns, columns-maxIndent)}
		lines = w.blocks(m.parser.Parser().Parse(text.NewReader(w.source)), columns)
	}
	rows := make([]row, 0, len(lines))
	for _, line := range lines {
		rows = append(rows, wrapped(line, columns, m.styled)...) // what did not fit between the prefixes
	}
	return rows
}

// writer lays out the tree of one text.
type writer struct {
	source []byte
	styled bool
	least  int   // columns: what is within others is not indented any more then
	look   style // of the text that is written now
	cells  []cell
}

// blocks lays out the blocks in n with an empty line between them.
func (w *writer) blocks(n ast.Node, columns int) [][]cell {
	var lines [][]cell
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if before := c.PreviousSibling(); before != nil && !tight(n, before) {
			lines = append(lines, nil)
		}
		lines = append(lines, w.block(c, columns)...)
	}
	return lines
}

// tight reports whether no empty line belongs behind a block.
func tight(parent, before ast.Node) bool {
	_, item := parent.(*ast.ListItem)
	_, text := before.(*ast.TextBlock)
	return item && text
}

func (w *writer) block(n ast.Node, columns int) [][]cell {
	switch n := n.(type) {
	case *ast.Heading:
		return w.heading(n, columns)
	case *ast.ThematicBreak:
		return [][]cell{cellsOf(strings.Repeat("─", min(columns, 40)), dim)}
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		return w.code(n, columns)
	case *ast.HTMLBlock:
		s := string(n.Lines().Value(w.source))
		if n.HasClosure() {
			s += string(n.ClosureLine.Value(w.source))
		}
		return wrap(cellsOf(strings.TrimRight(s, "\n"), plain), columns)
	case *ast.Blockquote:
		bar := cellsOf("│ ", dim)
		if columns-len(bar) < w.least {
			return w.blocks(n, columns)
		}
		return prefix(w.blocks(n, columns-len(bar)), bar, bar)
	case *ast.List:
		return w.list(n, columns)
	case *extast.Table:
		return w.table(n, columns)
	default:
		if first := n.FirstChild(); first != nil && first.Type() == ast.TypeBlock {
			return w.blocks(n, columns)
		}
		return wrap(w.inline(n, plain), columns)
	}
}

// heading is bold. Without styles a line below tells the higher ones from text.
func (w *writer) heading(n *ast.Heading, columns int) [][]cell {
	look := bold
	if n.Level == 1 {
		look |= underlined
	}
	lines := wrap(w.inline(n, look), columns)
	if !w.styled && n.Level <= 2 && len(lines) > 0 {
		lines = append(lines, cellsOf(strings.Repeat("─", min(paint(lines[len(lines)-1], false).columns, columns)), plain))
	}
	return lines
}

// code is indented and never wrapped between words: people copy it.
func (w *writer) code(n ast.Node, columns int) [][]cell {
	var lines [][]cell
	for line := range strings.Lines(string(n.Lines().Value(w.source))) {
		cells := cellsOf(strings.TrimRight(line, "\n"), colored)
		for used, i := 0, 0; i < len(cells); i++ {
			if used += cells[i].columns; used > max(columns-2, minColumns) && i > 0 {
				lines = append(lines, cells[:i])
				cells, used, i = cells[i:], cells[i].columns, 0
			}
		}
		lines = append(lines, cells)
	}
	indent := cellsOf("  ", plain)
	return prefix(lines, indent, indent)
}

func (w *writer) list(n *ast.List, columns int) [][]cell {
	var lines [][]cell
	number := n.Start
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c.PreviousSibling() != nil && !n.IsTight {
			lines = append(lines, nil)
		}
		marker := "• "
		switch {
		case n.IsOrdered():
			marker = strconv.Itoa(number) + ". "
			number++
		case isTask(c):
			marker = ""
		}
		indent := max(columnsOf(marker), 2)
		first, rest := cellsOf(marker, plain), cellsOf(strings.Repeat(" ", indent), plain)
		if columns-indent < w.least {
			indent, rest = 0, nil
		}
		item := w.blocks(c, columns-indent)
		if len(item) == 0 {
			item = [][]cell{nil}
		}
		lines = append(lines, prefix(item, first, rest)...)
	}
	return lines
}

func isTask(item ast.Node) bool {
	first := item.FirstChild()
	if first == nil || first.FirstChild() == nil {
		return false
	}
	_, ok := first.FirstChild().(*extast.TaskCheckBox)
	return ok
}

// prefix puts cells before each line.
func prefix(lines [][]cell, first, rest []cell) [][]cell {
	out := make([][]cell, len(lines))
	for i, line := range lines {
		before := rest
		if i == 0 {
			before = first
		}
		if len(before) == 0 {
			out[i] = line
			continue
		}
		out[i] = append(append(make([]cell, 0, len(before)+len(line)), before...), line...)
	}
	return out
}

// inline returns what the children of n say.
func (w *writer) inline(n ast.Node, look style) []cell {
	before, was := w.cells, w.look
	w.cells, w.look = nil, look
	w.children(n)
	cells := w.cells
	w.cells, w.look = before, was
	return cells
}

func (w *writer) children(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		w.node(c)
	}
}

func (w *writer) say(s string) { w.cells = append(w.cells, cellsOf(s, w.look)...) }

// with writes the children of n with a look besides that of the text around.
func (w *writer) with(look style, n ast.Node) {
	was := w.look
	w.look |= look
	w.children(n)
	w.look = was
}

func (w *writer) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		s := n.Segment.Value(w.source)
		if !n.IsRaw() {
			s = unescape(s)
		}
		w.say(Clean(string(s)))
		if n.SoftLineBreak() || n.HardLineBreak() {
			w.say("\n")
		}
	case *ast.String:
		w.say(Clean(string(n.Value)))
	case *ast.CodeSpan:
		w.codeSpan(n)
	case *ast.Emphasis:
		if n.Level == 2 {
			w.with(bold, n)
		} else {
			w.with(italic, n)
		}
	case *extast.Strikethrough:
		w.with(struck, n)
	case *ast.Link:
		w.link(n, string(n.Destination))
	case *ast.Image:
		w.link(n, string(n.Destination))
	case *ast.AutoLink:
		w.say(string(n.Label(w.source)))
	case *ast.RawHTML:
		w.say(string(n.Segments.Value(w.source)))
	case *extast.TaskCheckBox:
		if n.IsChecked {
			w.say("☑ ")
		} else {
			w.say("☐ ")
		}
	default:
		w.children(n)
	}
}

// codeSpan is colored; without colors it keeps the marks that tell it from words.
func (w *writer) codeSpan(n ast.Node) {
	mark := "`"
	if w.styled {
		mark = ""
	}
	was := w.look
	w.look |= colored
	w.say(mark)
	at := len(w.cells)
	w.children(n)
	for i := range w.cells[at:] {
		if w.cells[at+i].text == "\n" {
			w.cells[at+i] = cell{" ", 1, w.look}
		}
	}
	w.say(mark)
	w.look = was
}

// link shows where a link leads unless its text says so.
func (w *writer) link(n ast.Node, target string) {
	at := len(w.cells)
	w.with(underlined, n)
	target = Clean(string(unescape([]byte(target))))
	if target != "" && (len(w.cells)-at > len(target) || paint(w.cells[at:], false).text != target) {
		w.say(" (" + target + ")")
	}
}

// unescape resolves backslashes and entities.
func unescape(s []byte) []byte {
	return util.UnescapePunctuations(util.ResolveEntityNames(util.ResolveNumericReferences(s)))
}
