package store

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"remote-agent/internal/letters"
)

const (
	maxWords     = 16      // of a search: more only make it slower
	indexedChars = 100_000 // of a message, see migration 00013
)

// searchTerm is a word of a search, or the beginning of words. In a script without
// spaces it is what is looked for anywhere.
type searchTerm struct {
	typed  string
	word   string // as the indexes have it: typed, or its pairs
	said   string // with its accents, if it has any
	apart  string // its letters and their accents one by one, if the indexes of SQLite and of bytes have it so, too
	begins bool
}

// unspaced reports whether the term is in a script without spaces.
func (t searchTerm) unspaced() bool { return t.word != t.typed }

// wholeWords returns the terms that are no beginnings.
func wholeWords(terms []searchTerm) []searchTerm {
	return slices.DeleteFunc(slices.Clone(terms), func(t searchTerm) bool { return t.begins })
}

func matchSQLite(terms []searchTerm) string {
	list := make([]string, len(terms))
	for i, t := range terms {
		end := ""
		if t.begins {
			end = "*"
		}
		list[i] = `"` + t.word + `"` + end
		if t.apart != "" {
			pairs, begins := paired(t.apart)
			if end = ""; begins || !t.unspaced() && t.begins {
				end = "*"
			}
			list[i] = "(" + list[i] + ` OR "` + pairs + `"` + end + ")"
		}
	}
	return strings.Join(list, " AND ")
}

func matchPostgres(terms []searchTerm) string {
	list := make([]string, len(terms))
	for i, t := range terms {
		end := ""
		if t.begins {
			end = ":*"
		}
		list[i] = strings.ReplaceAll(t.word, " ", " & ") + end
		if t.said != "" { // with the encoding SQL_ASCII, the index has the accents
			list[i] = "(" + list[i] + " | " + t.said + end + ")"
		}
	}
	return strings.Join(list, " & ")
}

// searchTerms reads what a person typed. Words hold letters, marks and digits
// only, so that nothing in them means anything in the language of a database.
func searchTerms(typed string) []searchTerm {
	var terms []searchTerm
	for said, next := range wordsOf(norm.NFC.String(typed)) {
		word := letters.Plain(said)
		for part, more := range scripts(word) {
			term := searchTerm{typed: part, word: part, begins: next == '*' && !more}
			if r, _ := utf8.DecodeRuneInString(part); letters.Unspaced(r) {
				term.word, term.begins = paired(part)
			} else if part == word && word != said {
				term.said = said
			}
			if folded := letters.Fold(part); norm.NFD.String(folded) != folded {
				term.apart = norm.NFD.String(part)
			}
			if terms = append(terms, term); len(terms) == maxWords {
				return terms
			}
		}
	}
	return terms
}

// paired returns what the indexes have of a part in a script without spaces, and whether that
// is only the beginning of a word there. Another part is as it is.
func paired(part string) (words string, begins bool) {
	r, size := utf8.DecodeRuneInString(part)
	if !letters.Unspaced(r) {
		return part, false
	}
	pairs := strings.Fields(spread(part))
	return strings.Join(pairs[:max(1, len(pairs)-1)], " "), size == len(part) // something may follow the last letter
}

// scripts yields the parts of a word with and without scripts that have no spaces, each
// with whether there is more. Marks by themselves are left out.
func scripts(word string) iter.Seq2[string, bool] {
	return func(yield func(part string, more bool) bool) {
		for more := word != ""; more; {
			first, _ := utf8.DecodeRuneInString(word)
			end := strings.IndexFunc(word, func(r rune) bool { return letters.Unspaced(r) != letters.Unspaced(first) })
			if more = end > 0; !more {
				end = len(word)
			}
			if strings.ContainsFunc(word[:end], func(r rune) bool { return !unicode.IsMark(r) }) && !yield(word[:end], more) {
				return
			}
			word = word[end:]
		}
	}
}

// spread returns a text as the indexes of words have it: each letter of a script without
// spaces is a word together with the one that follows it. Two are found as one such word,
// more by words that follow each other, and one by the beginning of words. The schema
// does the same; see migration 00043.
func spread(text string) string {
	if strings.IndexFunc(text, letters.Unspaced) < 0 {
		return text
	}
	var b strings.Builder
	pair := false // a first letter was written
	for _, r := range text {
		is := letters.Unspaced(r)
		switch {
		case pair && is:
			fmt.Fprintf(&b, "%x ", r)
		case pair:
			b.WriteByte(' ')
		}
		if pair = is; is {
			fmt.Fprintf(&b, " u%xx", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// wordsOf yields the words of what somebody looks for, each with what follows it; 0
// is nothing.
func wordsOf(typed string) iter.Seq2[string, rune] {
	return split(typed, func(r rune, _ bool) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) })
}

// inToken reports whether a letter is part of a word for the index of SQLite
// (unicode61), within a word or at its beginning. It takes most marks for blanks.
func inToken(r rune, within bool) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Co, r) || within && letters.Joins(r)
}

// readable reports whether each term is one word for the index of SQLite.
func readable(terms []searchTerm) bool {
	for _, t := range terms {
		within := false
		for _, r := range t.word {
			if !inToken(r, within) {
				return false
			}
			within = true
		}
	}
	return true
}

// split yields the parts of a text whose letters are all in, each with what follows.
func split(text string, in func(r rune, within bool) bool) iter.Seq2[string, rune] {
	return func(yield func(word string, next rune) bool) {
		start := -1
		for i, r := range text {
			switch is := in(r, start >= 0); {
			case is && start < 0:
				start = i
			case !is && start >= 0:
				if !yield(text[start:i], r) {
					return
				}
				start = -1
			}
		}
		if start >= 0 {
			yield(text[start:], 0)
		}
	}
}

// accented is a pattern of PostgreSQL for what a word of ASCII may be written like, or more,
// in letters or in bytes. Two letters may be one, such as ß.
func accented(word string) string {
	var b strings.Builder
	for word = strings.ToLower(word[:min(len(word), 20)]); word != ""; {
		n := 1
		switch word[:min(len(word), 2)] {
		case "ss", "ae", "oe", "th":
			n = 2
		}
		fmt.Fprintf(&b, `[%s\u0080-\u024F\u1E00-\u1EFF\u212A\u212B\u0300-\u036F]+`, word[:n])
		word = word[n:]
	}
	return b.String()
}

// indexed is what the indexes have of a text.
func indexed(text string) string {
	if len(text) > indexedChars {
		n := 0
		for i := range text {
			if n == indexedChars {
				return text[:i]
			}
			n++
		}
	}
	return text
}

// hasTerms reports whether what is indexed of a text has all terms. It finds what the
// index of SQLite finds, which takes a term of several words for a phrase, and which
// composes nothing: what is looked for in both ways has to be in the composed text.
func hasTerms(text string, terms []searchTerm) bool {
	text = indexed(text)
	var apart []searchTerm
	as := make([]searchTerm, 0, len(terms))
	for _, term := range terms {
		if term.apart != "" {
			apart = append(apart, term)
		} else {
			as = append(as, term)
		}
	}
	return hasFolded(letters.FoldComposed(text), as) && (len(apart) == 0 || hasFolded(letters.Fold(text), apart))
}

// composedOf returns the terms of which the index of SQLite finds too much.
func composedOf(terms []searchTerm) []searchTerm {
	return slices.DeleteFunc(slices.Clone(terms), func(t searchTerm) bool { return t.apart == "" })
}

// hasFolded is hasTerms for a text that is folded already.
func hasFolded(text string, terms []searchTerm) bool {
	var spaced []searchTerm
	var phrases [][]string
	for _, term := range terms {
		words := []string{term.typed}
		if !term.unspaced() {
			words = tokens(letters.FoldComposed(term.word))
			spaced, phrases = append(spaced, term), append(phrases, words)
		}
		for _, word := range words {
			if !strings.Contains(text, word) {
				return false // as most do not; taking them apart takes longer
			}
		}
	}
	if len(spaced) == 0 {
		return true
	}
	all := tokens(spread(text))
	for i, term := range spaced {
		if !hasPhrase(all, phrases[i], term.begins) {
			return false
		}
	}
	return true
}

// tokens are the words of a text for the index of SQLite.
func tokens(text string) (words []string) {
	for word := range split(text, inToken) {
		words = append(words, word)
	}
	return words
}

// hasPhrase reports whether words follow each other in all, of which the last may be
// only begun.
func hasPhrase(all, phrase []string, begins bool) bool {
	last := len(phrase) - 1
	if last < 0 {
		return false
	}
	for i := range len(all) - last {
		end := all[i+last]
		if (end == phrase[last] || begins && strings.HasPrefix(end, phrase[last])) && slices.Equal(all[i:i+last], phrase[:last]) {
			return true
		}
	}
	return false
}

// HasWords reports whether something can be searched by what was typed.
func HasWords(typed string) bool { return len(searchTerms(typed)) > 0 }

// Place returns where in a text the first of the words of a search is that is in it, for
// showing it there; 0 if none is.
func Place(text, typed string) int {
	var b strings.Builder
	var places []int // of each byte of what is looked through
	var each norm.Iter
	for each.InitString(norm.NFC, text); !each.Done(); {
		at := each.Pos()
		folded := letters.Fold(string(each.Next()))
		b.WriteString(folded)
		for range len(folded) {
			places = append(places, at)
		}
	}
	for _, term := range searchTerms(typed) {
		if i := strings.Index(b.String(), letters.Fold(term.typed)); i >= 0 {
			return places[i]
		}
	}
	return 0
}
