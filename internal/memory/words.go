package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"remote-agent/internal/letters"
	"remote-agent/internal/lists"
)

// Hash identifies a text but for capitals, spaces and the mark at its end.
func Hash(text string) string {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	sum := sha256.Sum256([]byte(strings.TrimRight(text, ".!。！ ")))
	return hex.EncodeToString(sum[:])
}

// maxTerms bounds the terms of one text.
const maxTerms = 400

// Terms returns what a text is searched by: its distinct words in order of
// appearance, folded (see letters.Fold) and without endings, without words that say nothing
// and without negations. Scripts that have no spaces give pairs of characters.
// It is the same for both databases, which only store and compare terms.
func Terms(text string) []string {
	var terms []string
	for _, word := range contentWords(text) {
		if !slices.Contains(terms, word) && len(terms) < maxTerms {
			terms = append(terms, word)
		}
	}
	return terms
}

// PersonTerm is the term that stands for a person in an index of terms.
func PersonTerm(person string) string {
	sum := sha256.Sum256([]byte(person))
	return "person" + hex.EncodeToString(sum[:12])
}

// words splits a text at what is neither letter nor digit. An apostrophe inside a
// word stays, and so does a point or comma inside a number.
func words(text string) []string {
	runes := []rune(strings.ToLower(norm.NFC.String(text)))
	var all []string
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			all = append(all, b.String())
			b.Reset()
		}
	}
	for i, r := range runes {
		switch {
		case letters.Unspaced(r):
			flush()
			if i+1 < len(runes) && letters.Unspaced(runes[i+1]) {
				all = append(all, string(runes[i:i+2]))
			} else if i == 0 || !letters.Unspaced(runes[i-1]) {
				all = append(all, string(r))
			}
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			b.WriteRune(r)
		case (r == '\'' || r == '’') && b.Len() > 0 && i+1 < len(runes) && unicode.IsLetter(runes[i+1]):
			b.WriteRune('\'')
		default:
			flush()
		}
	}
	flush()
	return all
}

// contentWords returns the words that carry meaning, reduced, in order and with
// repetitions.
func contentWords(text string) []string {
	var out []string
	for _, w := range words(text) {
		if negations[w] || silent[w] {
			continue
		}
		w, _, _ = strings.Cut(w, "'") // "ann's"
		if w = reduce(letters.Fold(w)); w != "" && !silent[w] {
			out = append(out, w)
		}
	}
	return out
}

// reduce takes the commonest endings off an English word. It only has to treat
// all forms of a word alike.
func reduce(w string) string {
	switch w {
	case "use", "uses", "used", "using":
		return "use" // too short for the rules below
	}
	if len(w) < 4 || strings.IndexFunc(w, func(r rune) bool { return r < 'a' || r > 'z' }) >= 0 {
		return w
	}
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "xes"), strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "shes"):
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		w = w[:len(w)-1]
	}
	for _, end := range []string{"ing", "ed"} {
		if rest, ok := strings.CutSuffix(w, end); ok && len(rest) >= 3 && strings.ContainsAny(rest, "aeiouy") {
			w = rest
			if n := len(w); w[n-1] == w[n-2] && !strings.ContainsRune("lsz", rune(w[n-1])) {
				w = w[:n-1] // "planned", "running"
			}
			break
		}
	}
	if rest, ok := strings.CutSuffix(w, "e"); ok && len(rest) >= 3 {
		w = rest // so that "write", "writes" and "writing" meet
	}
	return w
}

// TermSimilarity compares two texts without embeddings, by their terms: the cosine
// of the sets of what they are about, from 0 to 1. Words that mean the same count as
// one, and so do words that say the opposite: both are about the same.
func TermSimilarity(a, b []string) float64 {
	a, b = topics(a), topics(b)
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	known := make(map[string]bool, len(a))
	for _, t := range a {
		known[t] = true
	}
	shared := 0
	for _, t := range b {
		if known[t] {
			shared++
		}
	}
	return float64(shared) / math.Sqrt(float64(len(a))*float64(len(b)))
}

// Negations and silent words are looked up before a word is reduced.
var (
	negations = lists.Words("not no never neither nor without cannot can't don't doesn't didn't won't isn't aren't wasn't weren't " +
		"shouldn't wouldn't couldn't hasn't haven't hadn't nicht kein keine keinen nie niemals pas jamais aucun ne nunca " +
		"non não nao geen niet nooit inte aldrig ikke ingen nem değil не нет δεν לא لا لم ليس ليست لست لن ما مش مو नहीं 안 못 không tidak bukan")

	silent = lists.Words("a an the and or but of to in on at by for from with as is are was were be been being am do does did " +
		"has have had i me my mine we us our you your yours he him his she her hers it its they them their this that these " +
		"those there here than then so if when while what which who whom how why all any some each can could will would " +
		"should shall may might must please user person also just very about into over der die das ein eine und oder ich " +
		"du er sie es wir ihr ist sind le la les un une et ou je tu il elle nous vous el los las y o yo que")
)
