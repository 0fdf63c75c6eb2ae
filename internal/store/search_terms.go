package store

import (
	"iter"
	"slices"
	"strings"
	"unicode"
)

const (
	maxWords     = 16      // of a search: more only make it slower
	indexedChars = 100_000 // of a message, see migration 00013
)

// searchTerm is a word of a search, or the beginning of words.
type searchTerm struct {
	word   string
	begins bool
}

// wholeWords returns the terms that are no beginnings.
func wholeWords(terms []searchTerm) []searchTerm {
	return slices.DeleteFunc(slices.Clone(terms), func(t searchTerm) bool { return t.begins })
}

func matchSQLite(terms []searchTerm) string {
	list := make([]string, len(terms))
	for i, t := range terms {
		if list[i] = `"` + t.word + `"`; t.begins {
			list[i] += "*"
		}
	}
	return strings.Join(list, " AND ")
}

func matchPostgres(terms []searchTerm) string {
	list := make([]string, len(terms))
	for i, t := range terms {
		if list[i] = t.word; t.begins {
			list[i] += ":*"
		}
	}
	return strings.Join(list, " & ")
}

// searchTerms reads what a person typed. Words hold letters, marks and digits
// only, so that nothing in them means anything in the language of a database.
func searchTerms(typed string) []searchTerm {
	var terms []searchTerm
	for word, next := range wordsOf(typed) {
		if terms = append(terms, searchTerm{word, next == '*'}); len(terms) == maxWords {
			break
		}
	}
	return terms
}

// wordsOf yields the words of what somebody looks for, each with what follows it; 0
// is nothing.
func wordsOf(typed string) iter.Seq2[string, rune] {
	return split(typed, func(r rune, _ bool) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) })
}

// inToken reports whether a letter is part of a word for the index of SQLite
// (unicode61), within a word or at its beginning. It takes most marks for blanks.
func inToken(r rune, within bool) bool {
	const joining = 0x000361F8<<32 | 0x08029FDF // of the marks from U+0300 on
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Co, r) ||
		within && r >= 0x300 && r < 0x300+64 && uint64(joining)>>(r-0x300)&1 == 1
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

// folded is one letter for all that differ by case only, as the index of SQLite
// takes them.
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
	return unicode.ToLower(least)
}

// hasTerms reports whether what is indexed of a text has all terms. It finds what the
// index of SQLite finds, which takes a term of several words for a phrase.
func hasTerms(text string, terms []searchTerm) bool {
	if len(text) > indexedChars {
		n := 0
		for i := range text {
			if n == indexedChars {
				text = text[:i]
				break
			}
			n++
		}
	}
	text = strings.Map(folded, text)
	phrases := make([][]string, len(terms))
	for i, term := range terms {
		phrases[i] = tokens(strings.Map(folded, term.word))
		for _, word := range phrases[i] {
			if !strings.Contains(text, word) {
				return false // as most do not; taking them apart takes longer
			}
		}
	}
	all := tokens(text)
	for i, term := range terms {
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

// Words returns the words of a search, for showing where they are in a text.
func Words(typed string) []string {
	var words []string
	for _, t := range searchTerms(typed) {
		words = append(words, t.word)
	}
	return words
}
