package transcript

import (
	"strings"
	"unicode"
)

// Around returns a part of a text around a place in it, on one line; see Line.
func Around(text string, at, width int) string {
	before := []rune(strings.ToValidUTF8(text[:at], ""))
	part := string(before[max(0, len(before)-width/3):]) + strings.ToValidUTF8(text[at:min(len(text), at+4*width)], "")
	if len(before) > width/3 {
		part = "…" + part
	}
	return Line(part, width)
}

// Line returns the beginning of a text on one line, at most width letters of it.
// Control characters are left out: what somebody wrote in a chat must not move
// the cursor of the terminal that shows it, nor turn the direction of a line.
func Line(text string, width int) string {
	cut := strings.ToValidUTF8(text[:min(len(text), 8*width)], "")
	clean := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, cut)
	runes := []rune(strings.Join(strings.Fields(clean), " "))
	if len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return string(runes)
}
