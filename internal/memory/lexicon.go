package memory

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
)

// The tables of Relate. They are about what people say of themselves and of their
// work. A line is a set; where it has two halves they are opposites. Words are
// reduced when the tables are read, as those of a text are. The functions in SQL have
// them, too: raise pgvectorVersion of package store with every change.
var (
	meanings, opposites = readMeanings(`
		like love enjoy prefer favor favour want fond desire adore | dislike hate avoid detest loathe despise
		short brief terse concise succinct compact crisp curt laconic | long detailed detail verbose lengthy extensive elaborate thorough
		always invariably | rarely seldom
		often frequently regularly
		enable enabled activate activated on | disable disabled deactivate deactivated off
		allow permit | forbid forbidden prohibit deny ban
		accept | reject refuse decline
		start begin begun | stop end finish quit
		more | less fewer
		true | false
		before | after
		dark | light bright
		public | private
		early | late
		small tiny little | big large huge
		fast quick rapid swift speedy quickly | slow slowly sluggish
		simple easy plain straightforward | complex complicated difficult hard
		strict rigorous | lenient lax loose
		formal | informal casual
		hot warm | cold
		married | single unmarried
		cheap inexpensive | expensive costly
		good great | bad poor
		new novel | old
		open | close closed
		loud noisy | quiet silent
		polite courteous friendly | rude impolite
		inside indoors | outside outdoors
		first | last
		with | without
		increase raise grow | decrease reduce lower
		include | exclude omit
		manual manually | automatic automatically
		use work employ utilize utilise
		answer reply response
		repository repo
		documentation docs
		explain explanation
		picture image
		error bug defect
		app application program
		child children kid kids
		notebook laptop
		monitor screen display
		terminal console shell
		mail email
		boss lead manager head
		own possess owner responsible
		maintain
		deploy ship release
		code develop
		edit editor
		know understand
		expert skilled experienced
		beginner novice
		call name
		live reside based
		drink
		monthly month
		weekly week
		daily day
		go golang
		kubernetes k8s
		postgres postgresql
		javascript js
		typescript ts
		pr
		remotely
		mag bevorzugt liebt
		kurz kurze kurzen knapp knappe knappen | lang lange langen ausführlich ausführliche ausführlichen
		antwort antworten
		court courte courtes bref brève brèves | longue longues détaillé détaillée détaillées
		corto corta cortos cortas breve breves | largo larga largos largas
	`)

	concepts = readConcepts(meanings)

	// alternatives are values of which one holds at a time.
	alternatives = readSets(`
		monday tuesday wednesday thursday friday saturday sunday
		january february march april june july august september october november december
		red green blue yellow orange purple pink black white brown gray grey
		morning afternoon evening night
		vim neovim emacs vscode nano
		linux windows macos
		office home
		email phone
	`)

	// phrases are several words that are one, before anything else is looked at.
	phraseList = []string{
		" can't stand ", " dislike ", " cannot stand ", " dislike ", " Cannot stand ", " dislike ", " Can't stand ", " dislike ",
		" no longer ", " not ", " No longer ", " not ", " not any more ", " not ", " anymore ", " ",
		" stays away from ", " avoids ", " Stays away from ", " avoids ", " stay away from ", " avoid ",
		" looks after ", " maintains ", " Looks after ", " maintains ", " takes care of ", " maintains ",
		" instead of ", " over ", " rather than ", " over ", " as opposed to ", " over ",
		" command line ", " terminal ", " pull requests ", " prs ", " pull request ", " pr ",
		" every week ", " weekly ", " every day ", " daily ", " every month ", " monthly ",
		" New York ", " NewYork ", " VS Code ", " vscode ", " Visual Studio Code ", " vscode ",
		" new to ", " beginner ", " from home ", " remotely ",
		"不错", " good ", "不錯", " good ", "不过", " ", "不過", " ", "不仅", " ", "不僅", " ", "不但", " ", "不同", " other ", "差不多", " almost ",
		"不", " not ", "没", " not ", "沒", " not ", "ません", " not ", "なかった", " not ", "ない", " not ", "ไม่", " not ", "지 않", " not ",
		"지않", " not ", " 안좋", " not 좋", " 안먹", " not 먹", " 안써", " not 써",
		"mıyor", "ıyor not ", "miyor", "iyor not ", "muyor", "uyor not ", "müyor", "üyor not ", // "sevmiyorum"
	}
	phrases = strings.NewReplacer(phraseList...)

	// comparisons stand between two things whose order matters. Of them, those in
	// turnedBy have an opposite that counts, too.
	comparisons = lists.Words("over than to before after versus vs not above")
	turnedBy    = lists.Words("before after")

	// unsaid are words that change nothing here, besides the silent ones.
	unsaid = lists.Words("get gets got getting really quite rather lot much many some thing things stuff kind way now currently usually " +
		"generally still language every let's lets keep keeps make makes")

	// denying are the syllables that make a word its opposite.
	denying = lists.Words("un dis in im ir il non a mis")

	german = lists.Words("der die das den dem ein eine einen einem und oder nicht kein keine keinen mag bevorzugt nutzt benutzt arbeitet hat ist sind mit " +
		"für von auf beim zum zur im wohnt trinkt isst schreibt spricht liest will möchte gern gerne lieber immer nie sehr auch")

	numbers = []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}
)

func readSets(table string) (sets []map[string]bool) {
	for line := range strings.Lines(table) {
		if words := reducedWords(line); len(words) > 0 {
			of := make(map[string]bool)
			for _, w := range words {
				of[w] = true
			}
			sets = append(sets, of)
		}
	}
	return sets
}

// readMeanings returns sets of words that mean the same, and which of them are
// opposites, by their first words.
func readMeanings(table string) (same [][]string, against [][2]string) {
	for line := range strings.Lines(table) {
		left, right, two := strings.Cut(line, "|")
		a, b := reducedWords(left), reducedWords(right)
		if len(a) == 0 {
			continue
		}
		same = append(same, a)
		if two {
			same = append(same, b)
			against = append(against, [2]string{a[0], b[0]})
		}
	}
	return same, against
}

func reducedWords(line string) (out []string) {
	for w := range strings.FieldsSeq(line) {
		if w = reduce(w); !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

func readConcepts(sets [][]string) map[string]string {
	of := make(map[string]string)
	for _, words := range sets {
		for _, w := range words {
			of[w] = words[0]
		}
	}
	for i, w := range numbers {
		of[reduce(w)] = string(rune('0' + i%10))
		if i >= 10 {
			of[reduce(w)] = "1" + of[reduce(w)]
		}
	}
	return of
}

// concept is what stands for a reduced word and for all that mean the same.
func concept(w string) string {
	if c, ok := concepts[w]; ok {
		return c
	}
	return w
}

// Lexicon is the tables of Relate for where it is done in SQL, as JSON.
func Lexicon() ([]byte, error) {
	list := func(of map[string]bool) []string { return slices.Sorted(maps.Keys(of)) }
	sets := lists.Map(alternatives, list)
	encoded, err := json.Marshal(map[string]any{
		"concepts": concepts, "opposites": opposites, "alternatives": sets, "phrases": phraseList,
		"negations": list(negations), "unsaid": slices.Sorted(slices.Values(slices.Concat(list(silent), list(unsaid)))),
		"comparisons": list(comparisons), "turned_by": list(turnedBy), "denying": list(denying), "german": list(german),
	})
	return encoded, fault.Wrap(err, fault.Internal, "encode the lexicon")
}
