package command

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Call is a command as it was typed.
type Call struct {
	Name string   // canonical: lower case, "_" for "-", without a bot's name
	Rest string   // the text after the name, trimmed
	Args []string // Rest split as a shell splits words
}

// maxName is the longest name that is taken for a command. Telegram allows 32
// characters; a longer "/word" is more likely a path.
const maxName = 40

// Parse reads text as a command. ok is false if it is not one: it does not begin
// with a slash (leading space is ignored), or what follows cannot be a name,
// such as a path ("/etc/passwd") or a comment ("//").
func Parse(text string) (call Call, ok bool) {
	text = strings.TrimLeftFunc(text, unicode.IsSpace)
	if !strings.HasPrefix(text, "/") {
		return Call{}, false
	}
	text = text[1:]
	end := strings.IndexFunc(text, unicode.IsSpace)
	if end < 0 {
		end = len(text)
	}
	name, _, _ := strings.Cut(text[:end], "@") // "/help@acme_bot"
	name, ok = Canonical(name)
	if !ok {
		return Call{}, false
	}
	call = Call{Name: name, Rest: strings.TrimSpace(text[end:])}
	call.Args = Words(call.Rest)
	return call, true
}

// Canonical returns the form in which names are compared: lower case, with "_"
// for "-". ok is false for what cannot be a name.
func Canonical(name string) (canonical string, ok bool) {
	if name == "" || len(name) > maxName {
		return "", false
	}
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			b.WriteRune(r)
		case r >= 'A' && r <= 'Z':
			b.WriteRune(r + 'a' - 'A')
		case r == '-':
			b.WriteByte('_')
		default:
			return "", false
		}
	}
	return b.String(), true
}

// Words splits text as a POSIX shell splits words: single quotes keep all,
// double quotes keep all but a backslash before \ or ", and a backslash outside
// quotes keeps the next character. Nothing is expanded. Typographic double
// quotes, which phones put in by themselves, count as double quotes. Behind a quote
// that is never closed, the rest of the text is the last word.
func Words(text string) (words []string) {
	for {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if text == "" {
			return words
		}
		var word string
		word, text = firstWord(text)
		words = append(words, word)
	}
}

// firstWord returns the word that a text begins with, and what is behind it.
func firstWord(text string) (first, rest string) {
	var (
		word  strings.Builder
		quote rune
	)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		raw := text[i : i+size] // keeps invalid UTF-8 as it is
		if quote == 0 && unicode.IsSpace(r) {
			return word.String(), text[i:]
		}
		i += size
		if r == '“' || r == '”' || r == '„' {
			r = '"'
		}
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote != 0 && r == quote:
			quote = 0
		case r == '\\' && quote != '\'' && i < len(text):
			next, n := utf8.DecodeRuneInString(text[i:])
			if quote == '"' && next != '"' && next != '\\' {
				word.WriteString(raw)
				break
			}
			word.WriteString(text[i : i+n])
			i += n
		default:
			word.WriteString(raw)
		}
	}
	return word.String(), ""
}

// Nearest returns the candidate that is closest to name by edit distance, if
// one is close enough to be what was meant. Among equals it is the first, unless another
// one of the length of name ends as name does: people seldom get a last letter wrong.
func Nearest(name string, candidates []string) (string, bool) {
	best, distance := "", len(name)/2+1
	for _, c := range candidates {
		d := editDistance(name, c)
		if strings.HasPrefix(c, name) && len(name) >= 2 {
			d = min(d, 1)
		}
		if d < distance || d == distance && len(c) == len(name) && endsAs(c, name) && !endsAs(best, name) {
			best, distance = c, d
		}
	}
	return best, best != ""
}

// endsAs reports whether two words have the same last byte.
func endsAs(a, b string) bool { return a != "" && b != "" && a[len(a)-1] == b[len(b)-1] }

// editDistance counts insertions, deletions, replacements and swaps of
// neighbors (optimal string alignment) between two names in bytes.
func editDistance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
