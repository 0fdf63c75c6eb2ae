// Package html makes HTML of values. What comes from outside is text: there is no
// way to put it into a page but escaped, as a text, as the value of an attribute, or as
// Markdown that was rendered and cleaned here.
//
// html/template is not used on purpose: it calls methods by name, for which the linker
// keeps every exported method of the program.
package html

import (
	"fmt"
	"io"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Node is a part of a page: an element, an attribute of one, a text. A nil Node is
// nothing. The set is closed.
type Node interface {
	render(b *strings.Builder)
}

// void are the elements that have no end.
const void = " br hr img input link meta "

// The makers of nodes are not inlined: pages are made of thousands of calls of them, and
// each would be several times as long.

// El returns an element. Attributes among the parts are its own, wherever they stand.
//
//go:noinline
func El(name string, parts ...Node) Node { return element{name, parts} }

// Tag returns an element that is a text.
//
//go:noinline
func Tag(name, text string) Node { return El(name, Text(text)) }

// Styled returns an element of a class that is a text.
//
//go:noinline
func Styled(name, class, text string) Node { return El(name, Class(class), Text(text)) }

// Link returns a link with a text.
//
//go:noinline
func Link(address, text string) Node { return El("a", Href(address), Text(text)) }

type element struct {
	name  string
	parts []Node
}

func (e element) render(b *strings.Builder) {
	b.WriteString("<" + e.name)
	eachPart(e.parts, func(n Node) {
		if a, ok := n.(attribute); ok {
			a.render(b)
		}
	})
	b.WriteByte('>')
	if e.name == "textarea" {
		b.WriteByte('\n') // browsers leave out the first line break
	}
	if strings.Contains(void, " "+e.name+" ") {
		return
	}
	eachPart(e.parts, func(n Node) {
		if _, ok := n.(attribute); !ok {
			n.render(b)
		}
	})
	b.WriteString("</" + e.name + ">")
}

// eachPart visits parts, those of groups among them in their places.
func eachPart(parts []Node, visit func(Node)) {
	for _, n := range parts {
		switch n := n.(type) {
		case nil:
		case Group:
			eachPart(n, visit)
		default:
			visit(n)
		}
	}
}

// Group is several nodes in the place of one.
type Group []Node

func (g Group) render(b *strings.Builder) { eachPart(g, func(n Node) { n.render(b) }) }

// If returns n, or nothing.
//
//go:noinline
func If(condition bool, n Node) Node {
	if condition {
		return n
	}
	return nil
}

// Map returns a node for each value.
func Map[T any](list []T, node func(T) Node) Group {
	g := make(Group, len(list))
	for i, v := range list {
		g[i] = node(v)
	}
	return g
}

// Text is a text. What is no UTF-8 and what cannot be seen but changes what is seen
// (control characters, changes of the direction of writing) is shown as such.
type Text string

func (t Text) render(b *strings.Builder) { escape(b, string(t)) }

// Textf formats a text.
//
//go:noinline
func Textf(format string, args ...any) Text { return Text(fmt.Sprintf(format, args...)) }

// Attr returns an attribute. One that holds an address is left out unless the address is
// a path of this server, a fragment, or http(s).
//
//go:noinline
func Attr(name, value string) Node { return attribute{name, value} }

type attribute struct{ name, value string }

func (a attribute) render(b *strings.Builder) {
	switch a.name {
	case "href", "src", "action", "formaction":
		if !safeAddress(a.value) {
			return
		}
	case "style", "srcdoc": // neither is ever needed; the policy of the pages refuses both
		return
	}
	if strings.HasPrefix(a.name, "on") {
		return
	}
	b.WriteString(" " + a.name + `="`)
	escape(b, a.value)
	b.WriteByte('"')
}

// safeAddress reports whether an address may be followed.
func safeAddress(address string) bool {
	u, err := url.Parse(address)
	if err != nil || strings.HasPrefix(address, "//") || strings.HasPrefix(address, `/\`) {
		return false
	}
	return u.Scheme == "" && u.Host == "" && u.Opaque == "" || (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// Class returns the attribute of that name.
//
//go:noinline
func Class(names string) Node { return Attr("class", names) }

// ID returns the attribute of that name.
//
//go:noinline
func ID(id string) Node { return Attr("id", id) }

// Href returns the attribute of that name.
//
//go:noinline
func Href(address string) Node { return Attr("href", address) }

// On returns an attribute without a value, such as disabled, if it is to be there.
//
//go:noinline
func On(name string, there bool) Node {
	if !there {
		return nil
	}
	return attribute{name: name}
}

// Write writes a page.
func Write(w io.Writer, n Node) error {
	var b strings.Builder
	b.WriteString("<!doctype html>\n")
	n.render(&b)
	_, err := io.WriteString(w, b.String())
	if err != nil {
		return fmt.Errorf("write a page: %w", err)
	}
	return nil
}

// String returns a node as HTML.
func String(n Node) string {
	var b strings.Builder
	if n != nil {
		n.render(&b)
	}
	return b.String()
}

// escape writes a text so that it is one in HTML, in an element as in an attribute.
func escape(b *strings.Builder, text string) {
	from := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if to, is := escaped(r, size); is {
			b.WriteString(text[from:i])
			b.WriteString(to)
			from = i + size
		}
		i += size
	}
	b.WriteString(text[from:])
}

func escaped(r rune, size int) (to string, is bool) {
	switch r {
	case '&':
		return "&amp;", true
	case '<':
		return "&lt;", true
	case '>':
		return "&gt;", true
	case '"':
		return "&#34;", true
	case '\'':
		return "&#39;", true
	case '\n', '\t':
		return "", false
	case '\r':
		return "", true
	case utf8.RuneError:
		return "\uFFFD", size == 1
	}
	if unicode.IsControl(r) || Hidden(r) {
		return fmt.Sprintf("\u27E8U+%04X\u27E9", r), true
	}
	return "", false
}

// Hidden reports whether a character cannot be seen and changes how others are: marks
// that change the direction of writing, and tags.
func Hidden(r rune) bool {
	return r == '\u061C' || r == '\u200E' || r == '\u200F' || r >= '\u202A' && r <= '\u202E' || r >= '\u2066' && r <= '\u2069' ||
		r == '\uFEFF' || r >= 0xE0000 && r <= 0xE007F
}
