package memory

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"remote-agent/internal/letters"
	"remote-agent/internal/pattern"
)

// Relation is how a text relates to one that is much like it.
type Relation string

// The relations.
const (
	Same      Relation = "same"      // but for capitals, spaces and the mark at its end
	Rephrased Relation = "rephrased" // the same in other words, or with a detail more or less
	Opposite  Relation = "opposite"  // both cannot be true
	Different Relation = "different" // it is about something else
)

// ParseRelation returns the relation of a name; ok is false for any other text.
func ParseRelation(name string) (r Relation, ok bool) {
	switch r = Relation(strings.ToLower(strings.Trim(name, " \t\r\n.\"'`*"))); r {
	case Same, Rephrased, Opposite, Different:
		return r, true
	}
	return "", false
}

// Relate compares two texts by rules and tables of words, for where no model can be
// asked. It says Opposite only for what is clearly so: one denies what the other
// says, a word has become its opposite, what is compared has changed places, or a
// number, a name or another single value has become another one. A word that it does
// not know is taken for a paraphrase, so that nobody is unlearned by a synonym.
//
// memory_relation of pgvector.sql is the same in SQL.
func Relate(before, after string) Relation {
	if Hash(before) == Hash(after) {
		return Same
	}
	a, b := read(before), read(after)
	gone, come := a.without(b), b.without(a)
	turns := (a.denials + b.denials) % 2
	if a.exchanges(b) {
		turns++
	}
	var turned int
	gone, come, turned = pairOff(gone, come)
	turns += turned
	gone, valued := values(gone, come)
	near := 2*(a.size()-len(gone)) > max(a.size(), b.size())
	switch {
	case valued && near, turns%2 == 1 && (near || turned > 0):
		return Opposite
	case near:
		return Rephrased
	}
	return Different
}

// Denies reports whether a text denies what it would say without its words for "not": an
// odd number of them does.
func Denies(text string) bool { return read(text).denials%2 == 1 }

// word is a word that carries meaning.
type word struct {
	concept string // what stands for it and for all words that mean the same
	name    bool   // written as a name
	letters string // as it was typed
}

// reading is a text as Relate looks at it.
type reading struct {
	words   []word
	denials int
	behind  []string // concepts that come directly behind a comparison such as "over"
}

var typedWord = pattern.Lazy(`[\p{L}\p{M}\p{N}]+(?:['’][\p{L}\p{M}\p{N}]+)*`)

// read takes a text apart.
func read(text string) (r reading) {
	text = phrases.Replace(" " + strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "’", "'") + " ")
	named := namesCount(text)
	pending, french := false, false
	for i, typed := range split(text) {
		low := strings.ToLower(typed)
		switch {
		case low == "ne":
			french = true
		case negations[low] || strings.HasSuffix(low, "n't"):
			r.denials++
			pending = pending || comparisons[low]
			continue
		case comparisons[low]:
			pending = true
		}
		if silent[low] || unsaid[low] || comparisons[low] && !turnedBy[low] || low == "ne" {
			continue
		}
		if before, rest, ok := strings.Cut(low, "'"); ok { // "ann's", "l'eau", "n'aime"
			if low = before; utf8.RuneCountInString(before) <= 2 && utf8.RuneCountInString(rest) > 2 {
				low, french = rest, french || before == "n"
			}
		}
		w := word{concept: concept(reduce(low)), letters: typed, name: named && written(typed, i)}
		if w.concept == "" || slices.ContainsFunc(r.words, func(known word) bool { return known.concept == w.concept }) && !pending {
			continue
		}
		if pending && !turnedBy[low] {
			r.behind, pending = append(r.behind, w.concept), false
		}
		if !slices.ContainsFunc(r.words, func(known word) bool { return known.concept == w.concept }) {
			r.words = append(r.words, w)
		}
	}
	if french && r.denials == 0 {
		r.denials = 1
	}
	return r
}

// split is words with the capitals as they were typed. Scripts without spaces give
// pairs of characters.
func split(text string) (all []string) {
	for _, typed := range typedWord.FindAllString(text, -1) {
		if strings.ContainsFunc(typed, letters.Unspaced) {
			all = append(all, words(typed)...)
		} else {
			all = append(all, typed)
		}
	}
	return all
}

// written reports whether a word is written as a name: with a capital where a
// sentence needs none, or with one inside.
func written(typed string, at int) bool {
	first, size := utf8.DecodeRuneInString(typed)
	return strings.ContainsFunc(typed[size:], unicode.IsUpper) || at > 0 && unicode.IsUpper(first)
}

// namesCount reports whether capitals tell names in a text: not where every word
// has one, and not in German, where all nouns do.
func namesCount(text string) bool {
	capitals, small := 0, 0
	for i, typed := range split(text) {
		low := strings.ToLower(typed)
		if german[low] || strings.ContainsAny(low, "äöüß") {
			return false
		}
		switch first, _ := utf8.DecodeRuneInString(typed); {
		case i == 0:
		case unicode.IsUpper(first):
			capitals++
		default:
			small++
		}
	}
	return capitals <= 1 || small > 0
}

func (r reading) size() int { return len(r.words) }

// without returns the words whose concepts the other text does not have.
func (r reading) without(other reading) (out []word) {
	for _, w := range r.words {
		if !slices.ContainsFunc(other.words, func(o word) bool { return o.concept == w.concept || alike(o, w) }) {
			out = append(out, w)
		}
	}
	return out
}

// exchanges reports whether two texts compare the same things and have exchanged
// them: what stands behind "over" in one stands elsewhere in the other.
func (r reading) exchanges(other reading) bool {
	if len(r.behind) == 0 || len(other.behind) == 0 {
		return false
	}
	has := func(in reading, concept string) bool {
		return slices.ContainsFunc(in.words, func(w word) bool { return w.concept == concept })
	}
	mine, theirs := r.behind[len(r.behind)-1], other.behind[len(other.behind)-1]
	return mine != theirs && has(other, mine) && has(r, theirs)
}

// pairOff takes out words that are each other's opposites, and says how many.
func pairOff(gone, come []word) (restGone, restCome []word, turned int) {
	restCome = slices.Clone(come)
	for _, g := range gone {
		at := slices.IndexFunc(restCome, func(c word) bool { return opposed(g.concept, c.concept) })
		if at < 0 {
			restGone = append(restGone, g)
			continue
		}
		restCome = slices.Delete(restCome, at, at+1)
		turned++
	}
	return restGone, restCome, turned
}

// values takes out of what is gone the values of something that has another one
// now, and reports whether there are any: a number that became another number, a
// color that became another color, one name that became another name.
func values(gone, come []word) (rest []word, some bool) {
	if len(gone) == 1 && len(come) == 1 && gone[0].name && come[0].name {
		return nil, true
	}
	for _, g := range gone {
		if slices.ContainsFunc(come, func(c word) bool {
			return isNumber(g.concept) && isNumber(c.concept) || rivals(g.concept, c.concept)
		}) {
			some = true
		} else {
			rest = append(rest, g)
		}
	}
	return rest, some
}

func isNumber(w string) bool {
	return strings.IndexFunc(w, unicode.IsDigit) >= 0
}

// alike reports whether two words are one, in a longer and a shorter form: the
// beginning of the other, or its initials.
func alike(a, b word) bool {
	long, short := a, b
	if len(long.concept) < len(short.concept) {
		long, short = short, long
	}
	if isNumber(long.concept) || isNumber(short.concept) {
		return false
	}
	if len(short.concept) >= 3 && strings.HasPrefix(long.concept, short.concept) && !opposed(long.concept, short.concept) {
		return true
	}
	var initials strings.Builder
	for _, c := range long.letters {
		if unicode.IsUpper(c) {
			initials.WriteRune(unicode.ToLower(c))
		}
	}
	return len(short.concept) >= 2 && initials.String() == short.concept
}

// opposed reports whether two concepts are opposites: by the table, or because one
// is the other with a syllable that denies.
func opposed(a, b string) bool {
	if slices.ContainsFunc(opposites, func(pair [2]string) bool {
		return pair[0] == a && pair[1] == b || pair[0] == b && pair[1] == a
	}) {
		return true
	}
	long, short := a, b
	if len(long) < len(short) {
		long, short = short, long
	}
	rest, ok := strings.CutSuffix(long, short)
	return ok && len(short) >= 4 && denying[rest]
}

func rivals(a, b string) bool {
	return a != b && slices.ContainsFunc(alternatives, func(set map[string]bool) bool { return set[a] && set[b] })
}

// topics are the distinct concepts of terms, where opposites are one.
func topics(terms []string) []string {
	out := make([]string, 0, len(terms))
	for _, term := range terms {
		topic := concept(term)
		for _, pair := range opposites {
			if pair[1] == topic {
				topic = pair[0]
				break
			}
		}
		if !slices.Contains(out, topic) {
			out = append(out, topic)
		}
	}
	return out
}

// Akin returns the terms that mean the same as one of the given or its opposite,
// without those: what else to look for where texts are compared by their words.
func Akin(terms []string) []string {
	var out []string
	wanted := topics(terms)
	for _, set := range meanings {
		if len(topics(set[:1])) == 0 || !slices.Contains(wanted, topics(set[:1])[0]) {
			continue
		}
		for _, w := range set {
			if !slices.Contains(terms, w) && !slices.Contains(out, w) {
				out = append(out, w)
			}
		}
	}
	return out
}
