package transcript

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible returns a writer that shows what would otherwise act on a terminal:
// escape and other control characters as their pictures (ESC as ␛), and the marks
// that turn the direction of text as their code point, <U+202E>. Line breaks and
// tabs stay. What somebody wrote in a chat can then neither move the cursor nor
// show a line as another one than it is. A write may end in the middle of a
// character. The writer is for one goroutine.
func Visible(out io.Writer) io.Writer { return &visible{out: out, mark: "<U+%04X>"} }

// VisibleJSON is Visible for JSON, whose values stay what they are: the characters
// are written as escapes.
func VisibleJSON(out io.Writer) io.Writer { return &visible{out: out, mark: `\u%04x`} }

type visible struct {
	out  io.Writer
	mark string // how a character is written that has no picture
	rest []byte // the beginning of a character
}

// Write implements io.Writer.
func (v *visible) Write(p []byte) (int, error) {
	text := slices.Concat(v.rest, p)
	whole := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if utf8.RuneStart(text[len(text)-n]) {
			if !utf8.FullRune(text[len(text)-n:]) {
				whole -= n
			}
			break
		}
	}
	v.rest = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(v.out, v.shown(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// shown returns a text as it is written.
func (v *visible) shown(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r < 0x20: // JSON has none of these
			b.WriteRune(0x2400 + r)
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			fmt.Fprintf(&b, v.mark, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
