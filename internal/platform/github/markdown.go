package github

import (
	"html"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extensionast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"remote-agent/internal/order"
	"remote-agent/internal/pattern"
)

// class says what a byte of a Markdown text is part of.
type class uint8

const (
	isText  class = 1 << iota // words that are shown
	isCode                    // a code span or block, also its info string
	isQuote                   // a block quote
	isHTML                    // an HTML block or a tag
	isBlock                   // of HTML: a block, in which Markdown means nothing
	isLink                    // the text of a link or an image
	isMute                    // what an HTML element shows in which GitHub mentions nobody
)

// quietTag finds the tags of elements in which GitHub mentions nobody, as in what Markdown
// makes of code, quotes and links, and the ends of comments, whose tags are none.
var quietTag = pattern.Lazy(`(?i)<!--|-->|<(/?)(pre|code|tt|a|blockquote|style|script)(?:[\s/][^<>]*)?>`)

// page is a Markdown text with what its bytes are.
type page struct {
	source string
	class  []class
	links  []link
	refs   []definition
	spans  map[int]bool // where the marks are that begin and end code spans
	infos  []span       // what stands behind the marks that open code blocks
	excess []span       // of rows of tables: what is behind their last column
}

// definition gives a label its address: "[label]: address". It is not shown.
type definition struct {
	from, to    int
	label       string
	destination string
	title       string
}

// link is a link or image of a page.
type link struct {
	at          int // where its "[" or "![" is
	image       bool
	destination string
}

// grammar reads Markdown as GitHub does, but that bare addresses are no links
// yet: they are found as words.
func grammar() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(
		extension.Table, extension.Strikethrough, extension.TaskList, extension.Footnote,
	)).Parser()
}

// read parses a text, which must be bounded.
func read(source string) page {
	p := page{source: source, class: make([]class, len(source)), spans: make(map[int]bool)}
	raw := []byte(source)
	root := grammar().Parse(text.NewReader(raw))
	p.walk(root, 0)
	p.mute()
	return p
}

// mute marks what such elements contain that are closed.
func (p *page) mute() {
	if !strings.Contains(p.source, "</") {
		return // most
	}
	opened, comment := make(map[string][]int), false
	for _, m := range quietTag.FindAllStringSubmatchIndex(p.source, -1) {
		if !p.is(m[0], isHTML) {
			continue
		}
		if m[2] < 0 {
			comment = p.source[m[0]] == '<'
		}
		if comment || m[2] < 0 {
			continue
		}
		name := strings.ToLower(p.source[m[4]:m[5]])
		last := len(opened[name]) - 1
		switch closes := m[3] > m[2]; {
		case closes && last >= 0:
			p.mark(text.NewSegment(opened[name][last], m[0]), isMute)
			opened[name] = opened[name][:last]
		case !closes:
			opened[name] = append(opened[name], m[1])
		}
	}
}

func (p *page) mark(s text.Segment, c class) {
	for i := max(s.Start, 0); i < s.Stop && i < len(p.class); i++ {
		p.class[i] |= c
	}
}

func (p *page) markLines(n ast.Node, c class) {
	for i := range n.Lines().Len() {
		p.mark(n.Lines().At(i), c)
	}
}

// walk marks what n and its children are. In is what they are within.
func (p *page) walk(n ast.Node, in class) {
	switch n := n.(type) {
	case *ast.Blockquote:
		in |= isQuote
	case *ast.CodeBlock:
		p.markLines(n, isCode)
	case *ast.FencedCodeBlock:
		p.markLines(n, isCode)
		if n.Info != nil {
			p.mark(n.Info.Segment, isCode)
			p.infos = append(p.infos, span{n.Info.Segment.Start, n.Info.Segment.Stop})
		}
	case *ast.CodeSpan:
		in |= isCode
		p.delimit(n)
	case *ast.HTMLBlock:
		p.markLines(n, isHTML|isBlock)
		if n.HasClosure() {
			p.mark(n.ClosureLine, isHTML|isBlock)
		}
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			p.mark(n.Segments.At(i), isHTML)
		}
	case *ast.Link:
		p.links = append(p.links, link{at: n.Pos(), destination: string(n.Destination)})
		in |= isLink
	case *ast.Image:
		p.links = append(p.links, link{at: n.Pos(), image: true, destination: string(n.Destination)})
		in |= isLink
	case *ast.LinkReferenceDefinition:
		if l := n.Lines(); l.Len() > 0 {
			p.refs = append(p.refs, definition{
				from: l.At(0).Start, to: l.At(l.Len() - 1).Stop,
				label: string(n.Label), destination: string(n.Destination), title: string(n.Title),
			})
		}
	case *extensionast.TableRow:
		p.overflow(n)
	case *ast.Text:
		p.mark(n.Segment, isText|in)
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		p.walk(c, in)
	}
}

// overflow notes what a row has behind its last column. Pages leave it out (GitHub
// Flavored Markdown, Tables).
func (p *page) overflow(row *extensionast.TableRow) {
	last := row.LastChild()
	if last == nil || last.Lines().Len() == 0 {
		return // the row is short
	}
	from := last.Lines().At(0).Stop
	end := len(p.source)
	if n := strings.IndexByte(p.source[from:], '\n'); n >= 0 {
		end = from + n
	}
	if bar := strings.IndexByte(p.source[from:end], '|'); bar >= 0 {
		if from += bar + 1; strings.TrimSpace(p.source[from:end]) != "" {
			p.excess = append(p.excess, span{from, end})
		}
	}
}

// delimit notes where the marks of a code span are.
func (p *page) delimit(n *ast.CodeSpan) {
	first, ok := n.FirstChild().(*ast.Text)
	last, also := n.LastChild().(*ast.Text)
	if !ok || !also {
		return
	}
	from, to := first.Segment.Start, last.Segment.Stop
	for from > 0 && (p.source[from-1] == ' ' || p.source[from-1] == '\n') {
		from--
	}
	for from > 0 && p.source[from-1] == '`' {
		from--
	}
	for to < len(p.source) && (p.source[to] == ' ' || p.source[to] == '\n') {
		to++
	}
	p.spans[from], p.spans[to] = true, true
}

// is reports whether byte i has any of c.
func (p page) is(i int, c class) bool { return i >= 0 && i < len(p.class) && p.class[i]&c != 0 }

// edit replaces a part of a text.
type edit struct {
	from, to int
	with     string
}

// edits are made together.
type edits []edit

// put adds an edit. It is called in many places, so it is not copied into each.
//
//go:noinline
func (es *edits) put(from, to int, with string) { *es = append(*es, edit{from, to, with}) }

// apply makes the edits; those that overlap an earlier one are left out.
func (es edits) apply(source string) string {
	if len(es) == 0 {
		return source
	}
	order.By(es, func(a, b edit) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for _, e := range es {
		if e.from < at {
			continue
		}
		b.WriteString(source[at:e.from])
		b.WriteString(e.with)
		at = e.to
	}
	b.WriteString(source[at:])
	return b.String()
}

// normal returns a text with one kind of line end and without what is not
// Unicode.
func normal(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if strings.ContainsAny(s, "\r\x00") {
		s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "").Replace(s)
	}
	return s
}

var entity = pattern.Lazy(`&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,7}|[A-Za-z][A-Za-z0-9]{1,40});`)

// decoded returns what a character reference stands for: a letter, a digit or
// one of the characters in also, or nothing if all that it stands for is
// invisible. It reports false for what is to stay as it is.
func decoded(ref, also string) (string, bool) {
	s := html.UnescapeString(ref)
	if s == ref {
		return "", false
	}
	if strings.TrimFunc(s, invisible) == "" {
		return "", true
	}
	r := []rune(s)
	if len(r) == 1 && (unicode.IsLetter(r[0]) || unicode.IsDigit(r[0]) || strings.ContainsRune(also, r[0])) {
		return s, true
	}
	return "", false
}

func splitLines(s string) []string { return strings.Split(strings.TrimRight(s, "\n "), "\n") }
