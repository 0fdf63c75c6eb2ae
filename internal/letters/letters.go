// Package letters makes alike what is one word for whoever types it, in whatever case, with
// or without accents, and composed or not.
package letters

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Fold returns a text with one letter for all that differ by case, by how they are composed
// and, in Latin, by accents only. Letters of Latin that have no accent to lose, such as ł,
// are in their usual ASCII spelling.
func Fold(text string) string { return FoldComposed(norm.NFC.String(text)) }

// FoldComposed is Fold of a text whose letters are composed already, or that is not to be.
func FoldComposed(text string) string { return Spell(strings.Map(folded, text)) }

// Plain is Fold, and leaves the case of most letters as it is.
func Plain(text string) string { return Spell(strings.Map(plain, norm.NFC.String(text))) }

// Spell returns a text with the usual ASCII spelling of the letters of Latin that are no
// letter with an accent. The schema does the same; see migration 00045.
func Spell(text string) string {
	at := strings.IndexFunc(text, isSpelled)
	if at < 0 {
		return text
	}
	var b strings.Builder
	b.WriteString(text[:at])
	for _, r := range text[at:] {
		if as := spelling(r); as != "" {
			b.WriteString(as)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isSpelled(r rune) bool { return spelling(r) != "" }

// spelling is what Spell writes for a letter; empty is the letter itself.
func spelling(r rune) string {
	if r <= unicode.MaxASCII {
		return ""
	}
	switch r {
	case 'ł', 'Ł':
		return "l"
	case 'ø', 'Ø', 'ǿ', 'Ǿ':
		return "o"
	case 'đ', 'Đ', 'ð', 'Ð':
		return "d"
	case 'ı':
		return "i"
	case 'ß', 'ẞ':
		return "ss"
	case 'æ', 'Æ', 'ǽ', 'Ǽ':
		return "ae"
	case 'œ', 'Œ':
		return "oe"
	case 'þ', 'Þ':
		return "th"
	}
	return ""
}

// folded is one letter for all that differ by case and, in Latin, by accents only, as the
// index of SQLite takes them.
func folded(r rune) rune {
	switch {
	case 'A' <= r && r <= 'Z':
		return r + 'a' - 'A'
	case r <= unicode.MaxASCII:
		return r
	}
	least := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		least = min(least, other)
	}
	return plain(unicode.ToLower(least))
}

// plain is a letter of Latin without its accents; one by itself is nothing, -1.
func plain(r rune) rune {
	switch {
	case r <= unicode.MaxASCII:
		return r
	case Joins(r):
		return -1
	}
	parts := norm.NFD.PropertiesString(string(r)).Decomposition()
	if len(parts) > 0 && parts[0] <= unicode.MaxASCII && unicode.IsLetter(rune(parts[0])) {
		return rune(parts[0])
	}
	return r
}

// Joins reports whether an accent is part of the word that it is in, for the index of SQLite.
func Joins(r rune) bool {
	const joining = 0x000361F8<<32 | 0x08029FDF // of the marks from U+0300 on
	return r >= 0x300 && r < 0x300+64 && uint64(joining)>>(r-0x300)&1 == 1
}

// unspaced are Thai, Lao, Burmese, Khmer, Japanese and Chinese. Migration 00043 has them, too.
var unspaced = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x0E01, 0x0EFF, 1}, {0x1000, 0x109F, 1}, {0x1780, 0x17FF, 1}, {0x3005, 0x3007, 1}, {0x3041, 0x30FA, 1},
		{0x30FC, 0x30FF, 1}, {0x31F0, 0x31FF, 1}, {0x3400, 0x4DBF, 1}, {0x4E00, 0x9FFF, 1}, {0xF900, 0xFAFF, 1}, {0xFF66, 0xFF9F, 1},
	},
	R32: []unicode.Range32{{0x20000, 0x3FFFF, 1}},
}

// Unspaced reports whether a letter is of a script that has no spaces between words.
func Unspaced(r rune) bool { return unicode.Is(unspaced, r) }
