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
		n += int32(width16(r)) //nolint:gosec // 1 or 2
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
