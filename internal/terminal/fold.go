package terminal

import (
	"strings"
	"unicode/utf8"
)

// narrowest is how many columns a text is folded for at least.
const narrowest = 20

// fold breaks lines that are longer than a terminal is wide between words, with what
// follows below where the text of the line begins. A word that is too long, such as a
// link, stays whole: the terminal still copies and opens it as one.
func fold(text string, columns int) string {
	if columns < narrowest {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		foldLine(&b, line, columns)
	}
	return b.String()
}

func foldLine(b *strings.Builder, line string, columns int) {
	text := strings.TrimRight(line, " \n")
	if utf8.RuneCountInString(text) < columns {
		b.WriteString(line)
		return
	}
	indent := textColumn(text)
	if indent > columns/2 {
		indent = 2
	}
	used, gap := 0, ""
	for _, part := range strings.SplitAfter(text, " ") {
		word := strings.TrimRight(part, " ")
		if n := utf8.RuneCountInString(word); n > 0 && used > indent && used+len(gap)+n >= columns {
			b.WriteString("\n" + strings.Repeat(" ", indent))
			used, gap = indent, ""
		}
		if word == "" {
			gap += part
			continue
		}
		b.WriteString(gap + word)
		used += len(gap) + utf8.RuneCountInString(word)
		gap = part[len(word):]
	}
	b.WriteString(line[len(text):])
}

// textColumn is where the text of a line begins, behind its indent, its number or sign,
// and names in a column of their own.
func textColumn(line string) int {
	if i := strings.LastIndex(line, "  "); i > 0 && strings.TrimSpace(line[:i]) != "" {
		return utf8.RuneCountInString(line[:i+2])
	}
	rest := strings.TrimLeft(line, " ")
	at := len(line) - len(rest)
	if first, _, ok := strings.Cut(rest, " "); ok && utf8.RuneCountInString(first) <= 2 && strings.TrimRight(first, ".✔✖⚠0123456789") == "" {
		at += utf8.RuneCountInString(first) + 1
	}
	return at
}
