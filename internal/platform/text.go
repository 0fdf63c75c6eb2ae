package platform

import "unicode/utf16"

// Cut returns the beginning of a text, at most n bytes of whole characters.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// UTF16Len returns the length of a text in UTF-16 units, which is at least the number of
// its characters. A byte that is not UTF-8 counts as one.
func UTF16Len(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// CutUTF16 returns the beginning of a text, at most n UTF-16 units of whole characters.
func CutUTF16(s string, n int) string {
	for i, r := range s {
		if n -= utf16.RuneLen(r); n < 0 {
			return s[:i]
		}
	}
	return s
}
