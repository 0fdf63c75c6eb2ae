package redact

import (
	"strings"
	"unicode/utf8"
)

// view is a text as the rules see it: without the characters that nobody sees,
// which would otherwise divide a token.
type view struct {
	source string
	text   string
	at     []int // where in source each byte of text is, and the end; nil if nothing was left out
}

// see returns the view of s.
func see(s string) view {
	i := firstHidden(s)
	if i < 0 {
		return view{source: s, text: s}
	}
	v := view{source: s, at: make([]int, 0, len(s)+1)}
	var b strings.Builder
	b.Grow(len(s))
	for at := 0; at < len(s); {
		r, size := utf8.DecodeRuneInString(s[at:])
		if at < i || !hidden(r) {
			for k := range size {
				v.at = append(v.at, at+k)
			}
			b.WriteString(s[at : at+size])
		}
		at += size
	}
	v.at = append(v.at, len(s))
	v.text = b.String()
	return v
}

// origin is where in the source a place of the text is.
func (v view) origin(at int) int {
	if v.at == nil {
		return at
	}
	return v.at[at]
}

// through is where in the source the text before a place ends, without hidden
// characters after it.
func (v view) through(at int) int {
	if v.at == nil || at == 0 {
		return at
	}
	return v.at[at-1] + 1
}

// replace returns the source up to a place, with the mask instead of what was
// found. What is not visible inside of a credential goes with it.
func (v view) replace(found []span, upTo int) string {
	if len(found) == 0 {
		return v.source[:upTo]
	}
	var b strings.Builder
	from := 0
	for _, f := range found {
		start := v.origin(f.start)
		if start >= upTo {
			break
		}
		b.WriteString(v.source[from:start])
		b.WriteString(Mask)
		from = v.through(f.end)
	}
	if from < upTo {
		b.WriteString(v.source[from:upTo])
	}
	return b.String()
}

// firstHidden returns where the first hidden character of s is, or -1.
func firstHidden(s string) int {
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if hidden(r) {
			return i
		}
		i += size
	}
	return -1
}

// hidden reports whether a character shows nothing: Unicode's
// Default_Ignorable_Code_Point, and the marks of direction.
func hidden(r rune) bool {
	switch {
	case r < 0xAD:
		return false
	case r == 0xAD, r == 0x34F, r == 0x61C, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5,
		r >= 0x180B && r <= 0x180F, r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E,
		r >= 0x2060 && r <= 0x206F, r == 0x3164, r >= 0xFE00 && r <= 0xFE0F, r == 0xFEFF, r == 0xFFA0,
		r >= 0xE0000 && r <= 0xE0FFF:
		return true
	}
	return false
}

// unfinishedRune is how many bytes at the end of s begin a character whose rest
// has not come yet.
func unfinishedRune(s string) int {
	for n := 1; n <= min(len(s), utf8.UTFMax-1); n++ {
		if b := s[len(s)-n]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRuneInString(s[len(s)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
