package telegram

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-telegram/bot/models"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"remote-agent/internal/markup"
	"remote-agent/internal/order"
	"remote-agent/internal/platform"
)

// Limits of what is sent (Bot API, "Formatting options").
const (
	maxEntities = 100
	maxURL      = 2048
	emptyText   = "(empty)"

	maxSource = 32 << 10 // bytes of Markdown of one message
)

// rendered is a text as Telegram shows it.
type rendered struct {
	text     string
	entities []models.MessageEntity
	length   int // of text, in UTF-16 units
}

// renderer turns CommonMark, with the tables, strikethrough and task lists of
// GitHub, into text and entities. It is safe for concurrent use.
type renderer struct{ md goldmark.Markdown }

func newRenderer() *renderer {
	return &renderer{md: goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList))}
}

// measure returns the length of the rendered text in UTF-16 units. Of a text
// that is too long in any case it is the length as it is written: for some
// texts the parser's cost grows with the square of the length.
func (r *renderer) measure(markdown string) int {
	if len(markdown) > maxSource {
		return platform.UTF16Len(markdown)
	}
	return r.render(markdown).length
}

// render never fails: what is not understood is shown as it is written. The
// text is never empty.
func (r *renderer) render(markdown string) rendered {
	source := []byte(markup.Bounded(sanitize(markdown)))
	p := &painter{source: source}
	p.blocks(r.md.Parser().Parse(text.NewReader(source)))
	return p.finish()
}

// span is an entity while it is painted. Offsets are bytes of painter.out.
type span struct {
	kind       models.MessageEntityType
	start, end int
	url, lang  string
}

// needed reports whether more than the look of the text is lost without s: where a link
// leads, or that a block is code.
func (s span) needed() bool { return s.url != "" || s.kind == models.MessageEntityTypePre }

// painter walks the tree of one text.
type painter struct {
	source []byte
	out    strings.Builder
	spans  []span // finished
	open   []span // outermost first
	indent string // of lines after the first in a list item
	quoted bool   // inside a block quote, which cannot hold another
	linked bool   // inside a link, which cannot hold code
	bold   bool   // inside bold text: more of it changes nothing
	kept   int    // spans without which more than the look is lost
}

func (p *painter) raw(s string) { p.out.WriteString(s) }

// inline writes s with the indentation of the list it is in.
func (p *painter) inline(s string) {
	if p.indent != "" {
		s = strings.ReplaceAll(s, "\n", "\n"+p.indent)
	}
	p.raw(strings.ReplaceAll(s, "\t", " "))
}

// within paints inner as an entity.
func (p *painter) within(s span, inner func()) {
	s.start = p.out.Len()
	p.open = append(p.open, s)
	inner()
	s = p.open[len(p.open)-1]
	p.open = p.open[:len(p.open)-1]
	p.close(s)
}

func (p *painter) close(s span) {
	s.end = p.out.Len()
	if s.end > s.start {
		p.spans = append(p.spans, s)
		if s.needed() {
			p.kept++
		}
	}
}

// alone paints inner as an entity that can neither hold others nor, quotes
// aside, be held: the ones around it are ended before and begun anew behind.
func (p *painter) alone(s span, inner func()) {
	for _, o := range slices.Backward(p.open) {
		if o.kind != models.MessageEntityTypeBlockquote {
			p.close(o)
		}
	}
	s.start = p.out.Len()
	inner()
	p.close(s)
	for i := range p.open {
		if p.open[i].kind != models.MessageEntityTypeBlockquote {
			p.open[i].start = p.out.Len()
		}
	}
}

// blocks paints the blocks in n with a blank line between them.
func (p *painter) blocks(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c.PreviousSibling() != nil {
			gap := "\n\n"
			if isTight(n, c) {
				gap = "\n"
			}
			if !isCode(c) { // code is not indented: people copy it
				gap += p.indent
			}
			p.raw(gap)
		}
		p.block(c)
	}
}

// isTight reports whether no blank line belongs between c and what is before.
func isTight(parent, c ast.Node) bool {
	if _, text := c.(*ast.TextBlock); text {
		return true
	}
	_, item := parent.(*ast.ListItem)
	_, after := c.PreviousSibling().(*ast.TextBlock)
	return item && after
}

func isCode(n ast.Node) bool {
	switch n.(type) {
	case *ast.CodeBlock, *ast.FencedCodeBlock, *extast.Table:
		return true
	}
	return false
}

func (p *painter) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		p.strong(n)
	case *ast.ThematicBreak:
		p.raw("———")
	case *ast.CodeBlock:
		p.code(blockSource(n, p.source), "")
	case *ast.FencedCodeBlock:
		p.code(blockSource(n, p.source), language(n.Language(p.source)))
	case *ast.HTMLBlock:
		s := string(blockSource(n, p.source))
		if n.HasClosure() {
			s += string(n.ClosureLine.Value(p.source))
		}
		p.inline(strings.TrimRight(s, "\n"))
	case *ast.Blockquote:
		p.quote(n)
	case *ast.List:
		p.list(n)
	case *extast.Table:
		p.table(n)
	default:
		if n.Type() == ast.TypeBlock && n.FirstChild() != nil && n.FirstChild().Type() == ast.TypeBlock {
			p.blocks(n)
			return
		}
		p.inlines(n)
	}
}

func (p *painter) quote(n ast.Node) {
	if p.quoted {
		p.raw("> ")
		p.blocks(n)
		return
	}
	p.quoted = true
	p.within(span{kind: models.MessageEntityTypeBlockquote}, func() { p.blocks(n) })
	p.quoted = false
}

func (p *painter) list(n *ast.List) {
	outer := p.indent
	number := n.Start
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c.PreviousSibling() != nil {
			gap := "\n"
			if !n.IsTight {
				gap = "\n\n"
			}
			p.raw(gap + outer)
		}
		marker := "• "
		switch {
		case n.IsOrdered():
			marker = strconv.Itoa(number) + ". "
			number++
		case isTask(c):
			marker = ""
		}
		p.raw(marker)
		p.indent = outer + strings.Repeat(" ", max(utf8.RuneCountInString(marker), 2))
		p.blocks(c)
		p.indent = outer
	}
}

func isTask(item ast.Node) bool {
	first := item.FirstChild()
	if first == nil || first.FirstChild() == nil {
		return false
	}
	_, ok := first.FirstChild().(*extast.TaskCheckBox)
	return ok
}

// code paints a block of code. Telegram would make one space of a tab.
func (p *painter) code(code []byte, lang string) {
	s := strings.ReplaceAll(strings.TrimRight(string(code), "\n"), "\t", "    ")
	p.alone(span{kind: models.MessageEntityTypePre, lang: lang}, func() { p.raw(s) })
}

// language returns a name that is safe to pass on, or nothing.
func language(info []byte) string {
	for _, c := range info {
		if !isNameByte(c) && !strings.ContainsRune("+-#.", rune(c)) {
			return ""
		}
	}
	return cutRunes(string(info), 32)
}

func (p *painter) strong(n ast.Node) {
	if p.bold {
		p.inlines(n)
		return
	}
	p.bold = true
	p.within(span{kind: models.MessageEntityTypeBold}, func() { p.inlines(n) })
	p.bold = false
}

func (p *painter) inlines(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		p.inlineNode(c)
	}
}

func (p *painter) inlineNode(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		s := string(n.Segment.Value(p.source))
		if !n.IsRaw() {
			s = unescape(s)
		}
		if n.SoftLineBreak() || n.HardLineBreak() {
			s += "\n"
		}
		p.inline(s)
	case *ast.String:
		p.inline(string(n.Value))
	case *ast.CodeSpan:
		s := strings.ReplaceAll(plain(n, p.source), "\n", " ")
		if p.linked {
			p.inline(s)
			return
		}
		p.alone(span{kind: models.MessageEntityTypeCode}, func() { p.inline(s) })
	case *ast.Emphasis:
		if n.Level == 2 {
			p.strong(n)
			return
		}
		p.nest(span{kind: models.MessageEntityTypeItalic}, n)
	case *extast.Strikethrough:
		p.nest(span{kind: models.MessageEntityTypeStrikethrough}, n)
	case *ast.Link:
		p.link(n, unescape(string(n.Destination)))
	case *ast.AutoLink:
		p.inline(string(n.Label(p.source)))
	case *ast.Image:
		p.inlines(n)
		p.target(unescape(string(n.Destination)))
	case *ast.RawHTML:
		p.inline(string(n.Segments.Value(p.source)))
	case *extast.TaskCheckBox:
		if n.IsChecked {
			p.raw("☑ ")
		} else {
			p.raw("☐ ")
		}
	default:
		p.inlines(n)
	}
}

// nest paints n as an entity, unless it is inside one of the same kind.
func (p *painter) nest(s span, n ast.Node) {
	for _, o := range p.open {
		if o.kind == s.kind {
			p.inlines(n)
			return
		}
	}
	p.within(s, func() { p.inlines(n) })
}

func (p *painter) link(n ast.Node, target string) {
	if p.linked || p.kept >= maxEntities || !linkable(target) {
		start := p.out.Len()
		p.inlines(n)
		if label := p.out.String()[start:]; label != target && "mailto:"+label != target {
			p.target(target)
		}
		return
	}
	p.linked = true
	p.within(span{kind: models.MessageEntityTypeTextLink, url: target}, func() {
		start := p.out.Len()
		p.inlines(n)
		if strings.TrimSpace(p.out.String()[start:]) == "" {
			p.inline(target)
		}
	})
	p.linked = false
}

// target shows where a link or a picture points that is not made clickable. An
// address that Telegram would act on is shown as code, which it leaves alone.
func (p *painter) target(target string) {
	if target == "" {
		return
	}
	p.raw(" (")
	lower := strings.ToLower(target)
	switch {
	case strings.HasPrefix(lower, "http://"), strings.HasPrefix(lower, "https://"):
		p.inline(target)
	case strings.HasPrefix(lower, "mailto:"):
		p.inline(target[len("mailto:"):])
	case p.linked:
		p.inline(target)
	default:
		p.alone(span{kind: models.MessageEntityTypeCode}, func() { p.inline(target) })
	}
	p.raw(")")
}

// finish trims the text as Telegram does and converts offsets.
func (p *painter) finish() rendered {
	s := p.out.String()
	end := len(strings.TrimRightFunc(s, unicode.IsSpace))
	first := end
	for _, sp := range p.spans {
		if sp.kind == models.MessageEntityTypePre && strings.TrimSpace(s[sp.start:sp.end]) != "" {
			first = min(first, sp.start) // code keeps the indentation of its first line
		}
	}
	start := len(s[:first]) - len(strings.TrimLeftFunc(s[:first], unicode.IsSpace))
	if strings.TrimSpace(s) == "" || strings.TrimFunc(s, invisible) == "" {
		return rendered{text: emptyText, length: len(emptyText)}
	}
	r := rendered{text: s[start:end]}
	units := make([]int, len(r.text)+1) // that are before each character, and before the end
	for i, c := range r.text {
		units[i] = r.length
		r.length += utf16.RuneLen(c)
	}
	units[len(r.text)] = r.length
	slices.Reverse(p.spans) // of two with the same range the outer was finished later
	order.By(p.spans, func(a, b span) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return b.end - a.end
	})
	others := maxEntities - p.kept
	for _, sp := range p.spans {
		from, to := max(sp.start-start, 0), min(sp.end-start, len(r.text))
		if from < to {
			inner := r.text[from:to]
			if sp.kind != models.MessageEntityTypePre && sp.kind != models.MessageEntityTypeBlockquote {
				from += len(inner) - len(strings.TrimLeftFunc(inner, unicode.IsSpace))
			}
			to -= len(inner) - len(strings.TrimRightFunc(inner, unicode.IsSpace))
		}
		if from >= to || len(r.entities) == maxEntities || !sp.needed() && others <= 0 {
			continue
		}
		if !sp.needed() {
			others--
		}
		offset := units[from]
		r.entities = append(r.entities, models.MessageEntity{
			Type: sp.kind, Offset: offset, Length: units[to] - offset, URL: sp.url, Language: sp.lang,
		})
	}
	return r
}

// invisible reports whether Telegram may treat r as nothing to show.
func invisible(r rune) bool {
	return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Mn, r) || r == '\u3164' || r == '\u2800'
}
