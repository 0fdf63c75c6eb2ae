package redact

import "math"

// bytes is a set of bytes.
type bytes [256]bool

// setOf returns the bytes of a list such as "A-Za-z0-9_-"; a dash at the end is
// itself.
func setOf(list string) *bytes {
	var set bytes
	for i := 0; i < len(list); i++ {
		if i+2 < len(list) && list[i+1] == '-' {
			for b := int(list[i]); b <= int(list[i+2]); b++ {
				set[b] = true
			}
			i += 2
			continue
		}
		set[list[i]] = true
	}
	return &set
}

// Lists of bytes that several formats and rules have.
const (
	hexList    = "0-9a-fA-F"
	alnumList  = "A-Za-z0-9"
	upnumList  = "A-Z0-9"
	nameList   = "A-Za-z0-9_"
	dashedList = "A-Za-z0-9_-"
	dottedList = "A-Za-z0-9._-"
	paddedList = "A-Za-z0-9+/=_-"
	looseList  = "A-Za-z0-9._~+/=-"
)

var (
	lowerByte  = setOf("a-z")
	upperByte  = setOf("A-Z")
	digitByte  = setOf("0-9")
	hexByte    = setOf(hexList)
	alnumByte  = setOf(alnumList)
	nameByte   = setOf(nameList)
	tokenByte  = setOf(dashedList)
	dottedByte = setOf(dottedList)
	stdByte    = setOf("A-Za-z0-9+/")
	base64Byte = setOf("A-Za-z0-9+/_-")
	paddedByte = setOf(paddedList)
	looseByte  = setOf(looseList)
	equalsByte = setOf("=")
	arrowByte  = setOf("=>")
	stringByte = setOf("'\"")
	entraByte  = setOf("A-Za-z0-9_~.-")
	joinByte   = setOf("._-~%@")
	blankByte  = setOf(" \t")

	// wordByte is what a credential may consist of where no rule has begun yet.
	wordByte = setOf("A-Za-z0-9._~+/=:@%-")
)

// run returns how many bytes at the beginning of s are of set.
func run(s string, set *bytes) int {
	for i := range len(s) {
		if !set[s[i]] {
			return i
		}
	}
	return len(s)
}

// runBack returns how many bytes at the end of s are of set, at most limit.
func runBack(s string, set *bytes, limit int) int {
	n := 0
	for n < len(s) && n < limit && set[s[len(s)-1-n]] {
		n++
	}
	return n
}

// count returns how many bytes of s are of set.
func count(s string, set *bytes) int {
	n := 0
	for i := range len(s) {
		if set[s[i]] {
			n++
		}
	}
	return n
}

// has reports whether a byte of s is of set.
func has(s string, set *bytes) bool {
	for i := range len(s) {
		if set[s[i]] {
			return true
		}
	}
	return false
}

// entropy is Shannon's, in bits for each byte of s.
func entropy(s string) float64 {
	var seen [256]int
	for i := range len(s) {
		seen[s[i]]++
	}
	bits := 0.0
	for _, n := range seen {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// begins reports whether a word begins at s[at:]: after what is no letter or
// digit, or after an escape such as \n, \u000a or %20.
func begins(s string, at int) bool {
	if at == 0 || !alnumByte[s[at-1]] {
		return true
	}
	before := s[max(0, at-6):at]
	n := len(before)
	return n >= 2 && before[n-2] == '\\' ||
		n >= 3 && before[n-3] == '%' && hexByte[before[n-2]] && hexByte[before[n-1]] ||
		n == 6 && before[0] == '\\' && (before[1] == 'u' || before[1] == 'U')
}
