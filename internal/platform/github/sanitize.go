package github

import (
	"regexp"
	"strings"
	"unicode"

	"remote-agent/internal/markup"
	"remote-agent/internal/pattern"
)

// maxRounds bounds how often a text is gone over: what is taken out can make
// something new of what stood around it.
const maxRounds = 8

// Sanitize returns a Markdown text that somebody wrote, reduced to what a reader
// of the page sees: without comments and other hidden HTML, characters that have
// no shape, texts of images, titles of links, attributes of tags, addresses and
// footnotes that nothing refers to, what stands behind the language of a code
// block, and what a row of a table has too much (contract C12). What is in code
// stays, but for characters without shape. Sanitizing the result again changes
// nothing.
func Sanitize(markdown string) string {
	s := markup.Bounded(visible(normal(markdown)))
	for range maxRounds {
		next := markup.Bounded(visible(unhide(s)))
		if next == s {
			return s
		}
		s = next
	}
	// Somebody tries hard: nothing is left that could be markup.
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("<>[]&!", r) {
			return ' '
		}
		return r
	}, s)
}

// invisible reports whether a character has no shape: controls, formats of
// direction, joiners and tags, selectors of variants, fillers.
func invisible(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r >= ' ' && r < 0x7F:
		return false
	case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true
	case unicode.Is(unicode.Cf, r):
		return !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
	}
	return r == 0x2800 || r >= 0xE0000 && r <= 0xE0FFF
}

// visible drops what has no shape.
func visible(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return invisible(r) || r == '\u2028' || r == '\u2029' }) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u2028' || r == '\u2029':
			return '\n'
		case invisible(r):
			return -1
		}
		return r
	}, s)
}

var (
	// hiddenHTML are comments, processing instructions, declarations and CDATA.
	hiddenHTML = pattern.Lazy(`(?s)<!-->|<!--->|<!--.*?-->|<\?.*?\?>|<!\[CDATA\[.*?\]\]>|<![A-Za-z][^>]*>`)

	tag = pattern.Lazy(`(?s)<([A-Za-z][A-Za-z0-9-]*)((?:\s+[A-Za-z_:@#.*\[(][^\s"'=<>` + "`" + `/]*(?:\s*=\s*(?:[^\s"'=<>` + "`" + `]+|'[^']*'|"[^"]*"))?)+)\s*(/?)>`)

	address = pattern.Lazy(`(?is)\s(href|src)\s*=\s*("[^"]*"|'[^']*'|[^\s"'=<>` + "`" + `]+)`)

	linkTitle = pattern.Lazy(`(?s)\]\([ \t\n]*(<[^<>\n]*>|[^\s()<>]*(?:\([^\s()]*\)[^\s()]*)*)[ \t\n]+(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\((?:[^()\\]|\\.)*\))[ \t\n]*\)`)

	footnote = pattern.Lazy(`(?m)^[ >\t]{0,12}\[(\^[^\]\s]{1,100})\]:`)
)

// unhide takes out once what a page does not show.
func unhide(s string) string {
	if !strings.ContainsAny(s, "<&[|`~") {
		return s
	}
	p := read(s)
	var es edits
	shown := func(i int) bool { return !p.is(i, isCode) }
	replace := func(re *regexp.Regexp, with func(m []int) (string, bool)) {
		for _, m := range re.FindAllStringSubmatchIndex(s, -1) {
			if !shown(m[0]) {
				continue
			}
			if text, ok := with(m); ok && text != s[m[0]:m[1]] {
				es.put(m[0], m[1], text)
			}
		}
	}
	replace(hiddenHTML.Regexp(), func([]int) (string, bool) { return "", true })
	ended := strings.LastIndex(s, "-->")
	for i := max(0, ended-3); i+4 <= len(s); i++ { // what is left open hides the rest of a block
		if s[i] == '<' && shown(i) && s[i:i+4] == "<!--" {
			es = append(es, p.openComment(i))
			break
		}
	}
	replace(tag.Regexp(), func(m []int) (string, bool) { return bareTag(s, m), true })
	replace(entity.Regexp(), func(m []int) (string, bool) { return decoded(s[m[0]:m[1]], " .,:;?/-") })
	replace(linkTitle.Regexp(), func(m []int) (string, bool) { return "](" + s[m[2]:m[3]] + ")", true })
	for _, l := range p.links {
		if from, to := p.label(l); l.image && to > from {
			es.put(from, to, "")
		}
	}
	for _, i := range p.infos {
		if kept := languageOf(s[i.from:i.to]); kept != s[i.from:i.to] {
			es.put(i.from, i.to, kept)
		}
	}
	for _, x := range p.excess {
		es.put(x.from, x.to, "")
	}
	p.unused(&es)
	p.unusedNotes(&es)
	return es.apply(s)
}

var languageForm = pattern.Lazy(`^[A-Za-z0-9+#._-]{1,20}$`)

// languageOf returns the language of a code block. What else stands behind the
// marks that open the block is not shown.
func languageOf(info string) string {
	words := strings.Fields(info)
	if len(words) == 0 || !languageForm.MatchString(words[0]) {
		return ""
	}
	return words[0]
}

// openComment takes out a comment that begins at i and does not end.
func (p page) openComment(i int) edit {
	if p.is(i, isBlock) {
		return edit{i, len(p.source), ""}
	}
	return edit{i, i + 1, "&lt;"}
}

// bareTag returns a tag with no attributes but addresses.
func bareTag(s string, m []int) string {
	kept := []string{"<" + s[m[2]:m[3]]}
	for _, a := range address.FindAllStringSubmatch(s[m[4]:m[5]], -1) {
		kept = append(kept, strings.ToLower(a[1])+"="+a[2])
	}
	end := ">"
	if m[6] < m[7] {
		end = " />"
	}
	return strings.Join(kept, " ") + end
}

// label returns where the text of a link is, between its brackets.
func (p page) label(l link) (from, to int) {
	from = strings.IndexByte(p.source[max(l.at, 0):], '[') + max(l.at, 0) + 1
	depth := 0
	for i := from; i < len(p.source); i++ {
		switch c := p.source[i]; {
		case p.is(i, isCode):
		case c == '\\':
			i++
		case c == '[':
			depth++
		case c == ']' && depth == 0:
			return from, i
		case c == ']':
			depth--
		}
	}
	return from, from
}

// unused takes out addresses whose label nothing refers to, and the titles of
// the others. It is the usual way to write what nobody sees: "[//]: # (words)".
func (p page) unused(es *edits) {
	refers := references(strings.ToLower(p.source))
	for _, d := range p.refs {
		switch used := refers("[" + strings.ToLower(d.label) + "]"); {
		case !used:
			es.put(d.from, d.to, "")
		case d.title != "":
			line := "[" + d.label + "]: <" + strings.Map(bracketless, d.destination) + ">"
			if strings.HasSuffix(p.source[d.from:d.to], "\n") {
				line += "\n"
			}
			es.put(d.from, d.to, line)
		}
	}
}

// references returns a function that reports whether a text has a mark that is
// not the definition of it.
func references(source string) func(mark string) bool {
	known := make(map[string]bool)
	return func(mark string) bool {
		used, ok := known[mark]
		if !ok {
			used = strings.Count(source, mark) > strings.Count(source, mark+":")
			known[mark] = used
		}
		return used
	}
}

func bracketless(r rune) rune {
	if r == '<' || r == '>' || r == '\n' {
		return -1
	}
	return r
}

// unusedNotes takes out footnotes that nothing refers to: they are not shown.
func (p page) unusedNotes(es *edits) {
	refers := references(p.source)
	for _, m := range footnote.FindAllStringSubmatchIndex(p.source, -1) {
		mark := "[" + p.source[m[2]:m[3]] + "]"
		if p.is(m[2], isCode) || refers(mark) {
			continue
		}
		es.put(m[0], p.endOfNote(m[1]), "")
	}
}

// endOfNote returns where a footnote ends: before the next line that follows a
// blank one and is not indented.
func (p page) endOfNote(from int) int {
	blank := false
	at := from
	for line := range strings.Lines(p.source[from:]) {
		if at > from && blank && strings.TrimLeft(line, " \t") == line && strings.TrimSpace(line) != "" {
			return at
		}
		blank = strings.TrimSpace(line) == ""
		at += len(line)
	}
	return len(p.source)
}
