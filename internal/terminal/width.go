package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

const (
	zeroWidthJoiner = '\u200d'
	emojiSelector   = '\ufe0f' // asks for the colored form, which is two columns wide
)

// next splits the first character off s, as a person sees one: a letter with its
// accents, an emoji of several parts. columns is how much room it takes, which is
// what most terminals do; they differ for the rarer emoji.
func next(s string) (cluster string, columns int) {
	if s == "" {
		return "", 0
	}
	if s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return s[:1], runeColumns(rune(s[0]))
	}
	first, end := utf8.DecodeRuneInString(s)
	columns = runeColumns(first)
	if isFlag(first) {
		if second, size := utf8.DecodeRuneInString(s[end:]); isFlag(second) {
			return s[:end+size], 2
		}
	}
	joined := false
	for end < len(s) {
		r, size := utf8.DecodeRuneInString(s[end:])
		switch {
		case r == emojiSelector && first >= 0x203c:
			columns = 2
		case joined && runeColumns(r) > 0:
			columns = 2
		case r < utf8.RuneSelf || runeColumns(r) > 0 && !isSkinTone(r):
			return s[:end], columns
		}
		joined = r == zeroWidthJoiner
		end += size
	}
	return s, columns
}

func isFlag(r rune) bool     { return r >= 0x1f1e6 && r <= 0x1f1ff }
func isSkinTone(r rune) bool { return r >= 0x1f3fb && r <= 0x1f3ff }

// runeColumns returns how many columns a rune takes by itself (Unicode, UAX 11).
func runeColumns(r rune) int {
	switch {
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return 0
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) || r >= 0x1160 && r <= 0x11ff:
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// columnsOf returns how many columns a text without line breaks takes.
func columnsOf(s string) int {
	sum := 0
	for s != "" {
		cluster, n := next(s)
		sum += n
		s = s[len(cluster):]
	}
	return sum
}

// fit cuts a text to a number of columns; what was cut is marked.
func fit(s string, columns int) string {
	if columnsOf(s) <= columns {
		return s
	}
	var b strings.Builder
	for left := columns - 1; s != ""; {
		cluster, n := next(s)
		if left -= n; left < 0 {
			break
		}
		b.WriteString(cluster)
		s = s[len(cluster):]
	}
	return b.String() + "…"
}

// Clean removes what could move the cursor, change colors or reorder text: models
// repeat what they read.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ' || (r >= 0x7f && r <= 0x9f):
			return -1
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // bidirectional overrides
			return -1
		}
		return r
	}, text)
}
