package html

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tableast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	markdownhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"

	"remote-agent/internal/markup"
)

// MaxMarkdown is how long a text may be to be rendered, in bytes. A longer one is shown
// as it is: the parser takes time that grows faster than some texts do.
const MaxMarkdown = 32 << 10

// Renderer renders Markdown. It is safe for concurrent use.
type Renderer struct {
	markdown goldmark.Markdown
	policy   *bluemonday.Policy
}

// NewRenderer returns a Renderer.
func NewRenderer() *Renderer {
	return newRenderer(linkRenderer{below: 2}, policy(), markdownhtml.WithHardWraps())
}

// NewManual returns a Renderer for texts of this program's own: headings have their own
// levels and ids, as fragments of links name them, and to says where a link leads that
// has no host: to a path of this server, a fragment, or nowhere, which is empty.
func NewManual(to func(link string) string) *Renderer {
	p := policy()
	p.AllowElements("h1", "h2")
	p.AllowAttrs("id").Matching(regexp.MustCompile(`^[a-z0-9_-]{1,100}$`)).OnElements("h1", "h2", "h3", "h4", "h5", "h6")
	p.AllowRelativeURLs(true)
	return newRenderer(linkRenderer{to: to}, p)
}

func newRenderer(links linkRenderer, p *bluemonday.Policy, options ...renderer.Option) *Renderer {
	options = append(options, renderer.WithNodeRenderers(util.Prioritized(links, 100)))
	return &Renderer{markdown: goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough), goldmark.WithRendererOptions(options...)), policy: p}
}

// policy is what is left of rendered Markdown, whatever the renderer makes of it.
func policy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "em", "strong", "del", "code", "pre", "blockquote", "ul", "ol", "li", "h3", "h4", "h5", "h6",
		"table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^host$`)).OnElements("span")
	p.AllowAttrs("start").Matching(regexp.MustCompile(`^[0-9]{1,9}$`)).OnElements("ol")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^table$`)).OnElements("div")
	p.AllowAttrs("role").Matching(regexp.MustCompile(`^group$`)).OnElements("div")
	p.AllowAttrs("tabindex").Matching(regexp.MustCompile(`^0$`)).OnElements("pre", "div")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https")
	p.AllowRelativeURLs(false)
	p.RequireParseableURLs(true)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
	return p
}

// Markdown returns a text in Markdown as a node. Raw HTML in it is shown as it was
// written, pictures are links, and behind each link is the host that it leads to. A text
// that is too long is shown as it was written. What it leaves out are the marks
// themselves and definitions of links: show what somebody decides on with Exact.
func (r *Renderer) Markdown(text string) Node {
	if len(text) > MaxMarkdown {
		return El("pre", Attr("tabindex", "0"), Text(text))
	}
	var out bytes.Buffer
	if err := r.markdown.Convert([]byte(markup.Bounded(visible(text))), &out); err != nil {
		return El("pre", Attr("tabindex", "0"), Text(text))
	}
	// The parser decodes what entities stand for, so that only now all of it is visible.
	return cleaned(visible(string(r.policy.SanitizeBytes(out.Bytes()))))
}

// Exact returns a text letter by letter, in lines that wrap.
func Exact(text string) Node {
	return El("pre", Class("wrap"), Attr("tabindex", "0"), Text(visible(text)))
}

// cleaned is HTML that the sanitizer let through. It is made above and nowhere else.
type cleaned []byte

func (c cleaned) render(b *strings.Builder) { b.Write(c) }

// visible shows what cannot be seen but changes what is, as Text does.
func visible(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	bad := func(r rune) bool { return Hidden(r) || unicode.IsControl(r) && r != '\n' && r != '\t' }
	if !strings.ContainsFunc(text, bad) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if bad(r) {
			fmt.Fprintf(&b, "\u27E8U+%04X\u27E9", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// linkRenderer renders what leads somewhere, headings, and HTML as the text that it is.
type linkRenderer struct {
	below int                      // how many levels headings are below those of the text
	to    func(link string) string // see NewManual; nil: what has no host leads nowhere, and headings have no ids
}

// RegisterFuncs implements renderer.NodeRenderer.
func (l linkRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindLink, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		to := string(n.(*ast.Link).Destination) //nolint:forcetypeassert // it is registered for no other
		if l.to != nil {
			if local := l.to(to); local != "" {
				return localLink(w, local, entering)
			}
		}
		return link(w, to, entering)
	})
	r.Register(ast.KindImage, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		i := n.(*ast.Image) //nolint:forcetypeassert // as above
		if entering {
			_, _ = w.WriteString("\U0001F5BC ")
		}
		return link(w, string(i.Destination), entering)
	})
	if l.to == nil { // those of the manual are as narrow as the page
		r.Register(tableast.KindTable, func(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
			part := "</table></div>\n"
			if entering { // it scrolls sideways by itself, and not with the page
				part = `<div class="table" tabindex="0" role="group"><table>`
			}
			_, _ = w.WriteString(part)
			return ast.WalkContinue, nil
		})
	}
	r.Register(ast.KindHeading, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		level := min(n.(*ast.Heading).Level+l.below, 6) //nolint:forcetypeassert // as above
		if entering {
			id := ""
			if l.to != nil {
				id = ` id="` + Fragment(string(n.Lines().Value(source))) + `"`
			}
			_, err := fmt.Fprintf(w, "<h%d%s>", level, id)
			return ast.WalkContinue, err //nolint:wrapcheck // it is a buffer's
		}
		_, err := fmt.Fprintf(w, "</h%d>\n", level)
		return ast.WalkContinue, err //nolint:wrapcheck // as above
	})
	code := func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var b strings.Builder
		b.WriteString(`<pre tabindex="0"><code>`)
		for i := range n.Lines().Len() {
			line := n.Lines().At(i)
			escape(&b, string(line.Value(source)))
		}
		b.WriteString("</code></pre>\n")
		_, err := w.WriteString(b.String())
		return ast.WalkSkipChildren, err //nolint:wrapcheck // as above
	}
	r.Register(ast.KindFencedCodeBlock, code)
	r.Register(ast.KindCodeBlock, code)
	registerWritten(r)
}

// registerWritten renders what stands for itself.
func registerWritten(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindAutoLink, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		l := n.(*ast.AutoLink) //nolint:forcetypeassert // as above
		to := string(l.URL(source))
		if _, err := link(w, to, true); err != nil {
			return ast.WalkStop, err
		}
		if err := written(w, l.Label(source)); err != nil {
			return ast.WalkStop, err
		}
		return link(w, to, false)
	})
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		raw := n.(*ast.RawHTML) //nolint:forcetypeassert // as above
		return ast.WalkSkipChildren, written(w, raw.Segments.Value(source))
	})
	r.Register(ast.KindHTMLBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		block := n.(*ast.HTMLBlock) //nolint:forcetypeassert // as above
		raw := block.Lines().Value(source)
		if block.HasClosure() {
			raw = append(raw, block.ClosureLine.Value(source)...)
		}
		_, _ = w.WriteString(`<pre tabindex="0">`)
		err := written(w, raw)
		_, _ = w.WriteString("</pre>\n")
		return ast.WalkSkipChildren, err
	})
}

// Fragment returns how links name a heading.
func Fragment(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return -1
	}, strings.ToLower(heading))
}

// localLink renders the beginning or the end of a link to this server.
func localLink(w util.BufWriter, to string, entering bool) (ast.WalkStatus, error) {
	text := "</a>"
	if entering {
		var b strings.Builder
		escape(&b, to)
		text = `<a href="` + b.String() + `">`
	}
	_, err := w.WriteString(text)
	return ast.WalkContinue, err //nolint:wrapcheck // it is a buffer's
}

// written renders what was written, letter by letter.
func written(w util.BufWriter, text []byte) error {
	var b strings.Builder
	escape(&b, string(text))
	_, err := w.WriteString(b.String())
	return err //nolint:wrapcheck // it is a buffer's
}

// link renders the beginning or the end of a link; a place that is not on the web is
// shown and leads nowhere.
func link(w util.BufWriter, to string, entering bool) (ast.WalkStatus, error) {
	u, err := url.Parse(to)
	web := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	var b strings.Builder
	switch {
	case entering && web:
		b.WriteString(`<a href="`)
		escape(&b, u.String())
		b.WriteString(`">`)
	case web:
		b.WriteString(`</a> <span class="host">(`)
		escape(&b, u.Hostname())
		b.WriteString(`)</span>`)
	case !entering:
		b.WriteString(` <span class="host">(`)
		escape(&b, to)
		b.WriteString(`)</span>`)
	}
	_, err = w.WriteString(b.String())
	return ast.WalkContinue, err //nolint:wrapcheck // it is a buffer's
}
