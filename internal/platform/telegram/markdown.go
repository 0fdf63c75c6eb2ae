package telegram

import (
	"html"
	"net"
	"net/url"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
)

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
