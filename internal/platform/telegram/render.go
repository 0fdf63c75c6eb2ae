package telegram

import (
	"html"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-telegram/bot/models"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// Limits of what is sent (Bot API, "Formatting options").
const (
	maxEntities = 100
	maxURL      = 2048
	emptyText   = "(empty)"
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

// measure returns the length of the rendered text in UTF-16 units.
func (r *renderer) measure(markdown string) int { return r.render(markdown).length }

// render never fails: what is not understood is shown as it is written. The
// text is never empty.
func (r *renderer) render(markdown string) rendered {
	source := []byte(shallow(sanitize(markdown)))
	p := &painter{source: source}
	p.blocks(r.md.Parser().Parse(text.NewReader(source)))
	return p.finish()
}

// sanitize replaces what Telegram would drop or change (tdlib,
// clean_input_string), so that offsets mean the same to both sides. Directional
// overrides, which can make a link look like another, go too.
func sanitize(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	clean := func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r >= '\u2028' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
	}
	if strings.IndexFunc(s, clean) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case !clean(r):
			return r
		case r == '\r' || r >= '\u2028':
			return -1
		default:
			return ' '
		}
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}

// maxMarkers is how many block quotes and lists one line may open or continue.
// The parser's cost grows with the square of it.
const maxMarkers = 32

// shallow makes plain text of the markers of a line that go deeper.
func shallow(s string) string {
	if longestMarkers(s) <= maxMarkers {
		return s
	}
	var b strings.Builder
	for l := range strings.Lines(s) {
		if n, at := markers(l, maxMarkers); n == maxMarkers && at < len(l) && isPunct(l[at]) {
			l = l[:at] + `\` + l[at:]
		}
		b.WriteString(l)
	}
	return b.String()
}

func longestMarkers(s string) int {
	most := 0
	for l := range strings.Lines(s) {
		n, _ := markers(l, maxMarkers+1)
		most = max(most, n)
	}
	return most
}

// markers counts the markers at the start of a line, up to limit, and returns
// where the next one would be.
func markers(l string, limit int) (n, at int) {
	for n < limit {
		rest := strings.TrimLeft(l[at:], " \t")
		skip := len(l) - at - len(rest)
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		switch {
		case rest == "":
			return n, at
		case rest[0] == '>':
			at += skip + 1
		case digits < len(rest) && digits > 0 && digits < 10 && strings.IndexByte(".)", rest[digits]) >= 0,
			digits == 0 && strings.IndexByte("-*+", rest[0]) >= 0 && len(rest) > 1 && rest[1] == ' ':
			at += skip + digits + 1
		default:
			return n, at
		}
		n++
	}
	return n, at + len(l[at:]) - len(strings.TrimLeft(l[at:], " \t"))
}

// span is an entity while it is painted. Offsets are bytes of painter.out.
type span struct {
	kind       models.MessageEntityType
	start, end int
	url, lang  string
}

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
		p.code([]byte(tableText(n, p.source)), "")
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
	if p.linked || !linkable(target) {
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

// linkable reports whether target may become a link. Telegram refuses a message
// with a link that it does not like, and a tg: link could mention people. Mail
// addresses are shown as text, which it makes clickable itself.
func linkable(target string) bool {
	if len(target) > maxURL || strings.ContainsFunc(target, func(r rune) bool { return r <= ' ' || unicode.IsControl(r) }) {
		return false
	}
	u, err := url.Parse(target)
	if err != nil || u.User != nil {
		return false
	}
	if s := strings.ToLower(u.Scheme); s != "http" && s != "https" {
		return false
	}
	host := u.Hostname()
	return strings.Contains(strings.Trim(host, "."), ".") || net.ParseIP(host) != nil
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
	units := newCounter(r.text)
	slices.Reverse(p.spans) // of two with the same range the outer was finished later
	slices.SortStableFunc(p.spans, func(a, b span) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return b.end - a.end
	})
	for _, sp := range p.spans {
		from, to := max(sp.start-start, 0), min(sp.end-start, len(r.text))
		if from < to {
			inner := r.text[from:to]
			if sp.kind != models.MessageEntityTypePre && sp.kind != models.MessageEntityTypeBlockquote {
				from += len(inner) - len(strings.TrimLeftFunc(inner, unicode.IsSpace))
			}
			to -= len(inner) - len(strings.TrimRightFunc(inner, unicode.IsSpace))
		}
		if from >= to || len(r.entities) == maxEntities {
			continue
		}
		offset := units.at(from)
		r.entities = append(r.entities, models.MessageEntity{
			Type: sp.kind, Offset: offset, Length: units.at(to) - offset, URL: sp.url, Language: sp.lang,
		})
	}
	r.length = units.at(len(r.text))
	return r
}

// invisible reports whether Telegram may treat r as nothing to show.
func invisible(r rune) bool {
	return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Mn, r) || r == '\u3164' || r == '\u2800'
}

// counter converts byte offsets of a text to UTF-16 offsets.
type counter struct {
	units []int32 // at every 64th byte's rune start, the units before it
	text  string
}

func newCounter(s string) *counter {
	c := &counter{text: s, units: make([]int32, 0, len(s)/64+1)}
	n := int32(0)
	next := 0
	for i, r := range s {
		for next <= i {
			if next == i {
				c.units = append(c.units, n)
			} else {
				c.units = append(c.units, -1)
			}
			next += 64
		}
		n += int32(width16(r))
	}
	return c
}

func width16(r rune) int {
	if r >= 0x10000 {
		return 2
	}
	return 1
}

// at returns the UTF-16 units before byte i.
func (c *counter) at(i int) int {
	block := min(i/64, len(c.units)-1)
	for block > 0 && c.units[block] < 0 {
		block--
	}
	from, n := 0, 0
	if block >= 0 {
		from, n = block*64, int(c.units[block])
	}
	for _, r := range c.text[from:i] {
		n += width16(r)
	}
	return n
}

// plain returns the literal text in n.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(source))
			if t.SoftLineBreak() {
				b.WriteByte('\n')
			}
		} else {
			b.WriteString(plain(c, source))
		}
	}
	return b.String()
}

func blockSource(n ast.Node, source []byte) []byte {
	if n.Type() != ast.TypeBlock {
		return nil
	}
	return n.Lines().Value(source)
}

// unescape resolves backslash escapes and character references in one pass, so
// that an escaped reference stays as it is written.
func unescape(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && isPunct(s[i+1]):
			i++
			b.WriteByte(s[i])
		case s[i] == '&':
			end := i + 1
			for end < len(s) && (s[end] == '#' || isNameByte(s[end])) {
				end++
			}
			if end == len(s) || s[end] != ';' {
				b.WriteByte('&')
				continue
			}
			b.WriteString(sanitize(html.UnescapeString(s[i : end+1])))
			i = end
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func isPunct(c byte) bool {
	return c >= '!' && c <= '/' || c >= ':' && c <= '@' || c >= '[' && c <= '`' || c >= '{' && c <= '~'
}
