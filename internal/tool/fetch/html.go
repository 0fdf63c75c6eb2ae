package fetch

import (
	"html"
	"strings"
)

// Text reduces an HTML page to the text that a person would read: a line for
// each block, a dash before items of lists, the address behind each link. It is
// no parser: on broken HTML it gives some text, and it never fails.
func Text(page string) string {
	r := &reducer{}
	for page != "" {
		before, rest, found := strings.Cut(page, "<")
		r.text(before)
		if !found {
			break
		}
		page = r.markup(rest)
	}
	return strings.TrimSpace(r.out.String())
}

type reducer struct {
	out   strings.Builder
	pre   int    // inside this many <pre>
	href  string // of the open link
	space bool   // a space is due before the next word
	lines int    // so many line ends stand at the end
}

// unread have content that is not text for people.
var unread = map[string]bool{
	"script": true, "style": true, "noscript": true, "template": true, "svg": true, "iframe": true, "object": true, "math": true, "select": true,
}

// blocks begin and end on a line of their own; the number is how many line ends
// stand before and after.
var blocks = map[string]int{
	"p": 2, "h1": 2, "h2": 2, "h3": 2, "h4": 2, "h5": 2, "h6": 2, "pre": 2, "blockquote": 2, "table": 2, "ul": 2, "ol": 2, "dl": 2, "title": 2,
	"article": 2, "section": 2, "header": 2, "footer": 2, "nav": 2, "main": 2, "aside": 2, "form": 2, "figure": 2,
	"div": 1, "li": 1, "tr": 1, "dt": 1, "dd": 1, "br": 1, "hr": 1, "address": 1, "option": 1, "body": 1, "head": 1,
}

// markup takes what follows a "<" and returns what is after the tag.
func (r *reducer) markup(s string) (rest string) {
	switch {
	case strings.HasPrefix(s, "!--"):
		_, rest, _ = strings.Cut(s[3:], "-->")
		return rest
	case strings.HasPrefix(s, "!"), strings.HasPrefix(s, "?"):
		_, rest, _ = strings.Cut(s, ">")
		return rest
	}
	name, closing := tagName(s)
	if name == "" { // a "<" in the text
		r.text("<")
		return s
	}
	tag, rest := cutTag(s)
	if closing {
		r.close(name)
		return rest
	}
	r.open(name, tag)
	if unread[name] && !strings.HasSuffix(tag, "/") {
		return after(rest, name)
	}
	return rest
}

func tagName(s string) (name string, closing bool) {
	s, closing = strings.CutPrefix(s, "/")
	end := 0
	for end < len(s) && end < 20 && (isLetter(s[end]) || end > 0 && s[end] >= '0' && s[end] <= '9') {
		end++
	}
	return strings.ToLower(s[:end]), closing
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// maxTag is how far the end of a tag is searched for, in bytes. It bounds the
// work for a page of quotes without end.
const maxTag = 1024

// cutTag splits behind the end of a tag, which a ">" in quotes is not.
func cutTag(s string) (tag, rest string) {
	quote := byte(0)
	for i := range min(len(s), maxTag) {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && i > 0 && s[i-1] == '=':
			quote = c
		case c == '>':
			return s[:i], s[i+1:]
		}
	}
	tag, rest, _ = strings.Cut(s, ">") // a quote has no end
	return tag, rest
}

// after skips the content of an element that is not read.
func after(s, name string) string {
	for {
		i := strings.Index(s, "</")
		if i < 0 {
			return ""
		}
		s = s[i+1:]
		if found, closing := tagName(s); closing && found == name {
			_, rest := cutTag(s)
			return rest
		}
	}
}

func (r *reducer) open(name, tag string) {
	r.breakLine(blocks[name])
	switch name {
	case "pre":
		r.pre++
	case "li":
		r.text("- ")
	case "td", "th":
		if r.lines == 0 && r.out.Len() > 0 {
			r.text(" | ")
		}
	case "a":
		r.href = attribute(tag, "href")
	case "img":
		if alt := attribute(tag, "alt"); alt != "" {
			r.text(" [image: " + alt + "] ")
		}
	}
}

func (r *reducer) close(name string) {
	switch name {
	case "a":
		if strings.HasPrefix(r.href, "http://") || strings.HasPrefix(r.href, "https://") {
			r.text(" (" + r.href + ")")
		}
		r.href = ""
	case "pre":
		r.pre = max(0, r.pre-1)
	}
	r.breakLine(blocks[name])
}

func (r *reducer) breakLine(count int) {
	if count > 0 {
		r.space = false
	}
	for r.out.Len() > 0 && r.lines < count {
		r.out.WriteByte('\n')
		r.lines++
	}
}

// text adds text; outside of <pre> a run of spaces is one.
func (r *reducer) text(s string) {
	if s == "" {
		return
	}
	s = html.UnescapeString(s)
	if r.pre > 0 {
		r.out.WriteString(s)
		r.lines = len(s) - len(strings.TrimRight(s, "\n"))
		return
	}
	words := strings.Fields(s)
	if len(words) == 0 {
		r.space = true
		return
	}
	if (r.space || startsWithSpace(s)) && r.lines == 0 && r.out.Len() > 0 {
		r.out.WriteByte(' ')
	}
	r.out.WriteString(strings.Join(words, " "))
	r.space = strings.TrimRight(s, " \t\r\n\f\u00a0") != s
	r.lines = 0
}

func startsWithSpace(s string) bool { return strings.TrimLeft(s, " \t\r\n\f\u00a0") != s }

// attribute returns the value of an attribute of a tag.
func attribute(tag, name string) string {
	lower := strings.Map(func(r rune) rune { // of the same length, unlike ToLower
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, tag)
	for from := 0; ; {
		i := strings.Index(lower[from:], name)
		if i < 0 {
			return ""
		}
		i += from
		from = i + len(name)
		value, ok := strings.CutPrefix(strings.TrimLeft(tag[min(from, len(tag)):], " \t\r\n"), "=")
		if !ok || i == 0 || !strings.ContainsRune(" \t\r\n\"'/", rune(tag[i-1])) {
			continue
		}
		value = strings.TrimLeft(value, " \t\r\n")
		if value == "" {
			return ""
		}
		if q := value[0]; q == '"' || q == '\'' {
			value, _, _ = strings.Cut(value[1:], string(q))
		} else {
			value, _, _ = strings.Cut(value, " ")
		}
		return strings.Join(strings.Fields(html.UnescapeString(value)), " ")
	}
}
