package redact

import (
	"encoding/base64"
	"strings"
)

const (
	maxBlock = 64 << 10 // bytes of a text that the block of a key may take
	maxLabel = 80       // bytes of what its first line says
)

// blocks returns the rules for keys of several lines: PEM (RFC 7468), OpenPGP
// (RFC 9580), SSH2 (RFC 4716) and PuTTY, and PEM that was encoded once more.
func blocks() []rule {
	const pem, ssh2 = "-----BEGIN ", "---- BEGIN "
	return []rule{
		{anchor: pem, find: func(s string, at int, whole bool) match { return block(s, at, whole, pem) }},
		{anchor: ssh2, find: func(s string, at int, whole bool) match { return block(s, at, whole, ssh2) }},
		{anchor: "Private-Lines: ", find: puttyKey},
		{anchor: "LS0tLS1CRUdJTi", find: encodedBlock}, // base64 of "-----BEGIN"
	}
}

// block finds the block whose first line begins with the anchor. Certificates and
// public keys are no secrets.
func block(s string, at int, whole bool, anchor string) match {
	open := match{span: span{start: at}, open: true}
	from := at + len(anchor)
	label, _, closed := strings.Cut(s[from:min(len(s), from+maxLabel)], "----")
	if !closed {
		open.open = !whole && len(s) < from+maxLabel && !strings.Contains(label, "\n")
		return open
	}
	if !secretLabel(label) {
		return match{}
	}
	from += len(label)
	from += runOf(s[from:], '-')
	n, ended := blockBody(s[from:min(len(s), from+maxBlock)], whole)
	switch {
	case !ended && !whole && from+n == len(s):
		return open
	case n == 0:
		return match{} // somebody speaks of keys
	}
	return match{span: span{at, from + n}}
}

func secretLabel(label string) bool {
	return strings.Contains(label, "PRIVATE KEY") || strings.Contains(label, "PGP MESSAGE")
}

// blockBody returns how long the rest of a block is after its first line. A block
// that is cut off ends where its lines do. If s is not whole, its last line may
// still become anything.
func blockBody(s string, whole bool) (n int, ended bool) {
	for rest := s; rest != ""; {
		line, width := nextLine(rest)
		text := strings.Trim(line, " \t\"'`+>|,\\#*/")
		if strings.Contains(text, "END ") && strings.Contains(text, "----") {
			end := len(s) - len(rest) + strings.Index(line, "END ")
			tail, _ := nextLine(s[end:])
			closing := strings.Index(tail, "----")
			if closing < 0 {
				return len(s), false
			}
			return end + closing + runOf(tail[closing:], '-'), true
		}
		if !whole && width == len(line) {
			break
		}
		if !blockLine(text) && !strings.HasPrefix(text, "----") {
			return n, true
		}
		rest = rest[width:]
		if text != "" {
			n = len(s) - len(rest)
			if width > len(line) && rest != "" {
				n -= width - len(line) // the break stays
			}
		}
	}
	return len(s), false
}

// blockLine reports whether a line may stand in a block: base64, or a header such
// as "Proc-Type: 4,ENCRYPTED".
func blockLine(line string) bool {
	if strings.Contains(line, ": ") {
		name, _, _ := strings.Cut(line, ": ")
		return name != "" && run(name, tokenByte) == len(name) && len(name) <= 32 && strings.ToUpper(name[:1]) == name[:1]
	}
	if i := strings.IndexByte(line, '\t'); i >= 0 && run(line[:i], digitByte) == i { // a numbered line
		line = line[i+1:]
	}
	return run(line, looseByte) == len(line)
}

// nextLine returns the first line of s, which an escaped break ends too, and its
// length with what ends it.
func nextLine(s string) (line string, width int) {
	for i := range len(s) {
		switch {
		case s[i] == '\n' || s[i] == '\r':
			return s[:i], i + 1
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == 'n' || s[i+1] == 'r'):
			return s[:i], i + 2
		}
	}
	return s, len(s)
}

func runOf(s string, b byte) int { return len(s) - len(strings.TrimLeft(s, string(b))) }

// puttyKey finds the private lines of a key file of PuTTY: their number is at the
// anchor.
func puttyKey(s string, at int, whole bool) match {
	from := at + len("Private-Lines: ")
	from += run(s[from:], digitByte)
	n, ended := blockBody(s[from:min(len(s), from+maxBlock)], whole)
	if !ended && !whole {
		return match{span: span{start: at}, open: true}
	}
	if n == 0 {
		return match{}
	}
	return match{span: span{from, from + n}}
}

// encodedBlock finds base64 of a whole key file, as in a Secret of Kubernetes.
func encodedBlock(s string, at int, whole bool) match {
	n := run(s[at:], stdByte)
	if n < 80 && at+n == len(s) && !whole {
		return match{span: span{start: at}, open: true}
	}
	head, err := base64.StdEncoding.DecodeString(s[at : at+min(n, 80)/4*4])
	if err != nil || !secretLabel(string(head)) {
		return match{}
	}
	return match{span: span{at, at + n + min(2, run(s[at+n:], equalsByte))}}
}
