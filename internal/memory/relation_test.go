package memory_test

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"remote-agent/internal/memory"
)

// pair is a line of testdata/pairs.tsv.
type pair struct {
	before, after string
	relation      memory.Relation
	set           string // "tuned" or "heldout"
}

func pairs(tb testing.TB) (all []pair) {
	tb.Helper()
	file, err := os.Open("testdata/pairs.tsv")
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // only read
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		f := strings.Split(lines.Text(), "\t")
		relation, ok := memory.ParseRelation(f[2])
		if len(f) != 4 || !ok {
			tb.Fatalf("not a pair: %q", lines.Text())
		}
		all = append(all, pair{before: f[0], after: f[1], relation: relation, set: f[3]})
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	return all
}

// TestErrorRates holds Relate to what docs/assistants.md says of it. The pairs
// "heldout" were written before the tables and never looked at for them. A change of
// the rules that makes the figures better or worse has to change the page, and none
// may make a paraphrase lower the confidence.
func TestErrorRates(t *testing.T) {
	t.Parallel()
	type key struct {
		set       string
		want, got memory.Relation
	}
	count, of := map[key]int{}, map[key]int{}
	wrong, all := map[string]int{}, map[string]int{}
	for _, p := range pairs(t) {
		got := memory.Relate(p.before, p.after)
		count[key{p.set, p.relation, got}]++
		of[key{set: p.set, want: p.relation}]++
		all[p.set]++
		if got != p.relation {
			wrong[p.set]++
		}
	}
	if len(pairs(t)) != 200 || all["tuned"] != 100 {
		t.Errorf("%d pairs, %v", len(pairs(t)), all)
	}
	var table strings.Builder
	table.WriteString("| of 200 pairs | tuned | held out |\n|---|---|---|\n")
	cell := func(set string, want, got memory.Relation) string {
		return fmt.Sprintf("%d of %d", count[key{set, want, got}], of[key{set: set, want: want}])
	}
	for _, row := range []struct {
		what      string
		want, got memory.Relation
	}{
		{"the same text is taken for another", memory.Same, memory.Rephrased},
		{"a paraphrase makes it less sure", memory.Rephrased, memory.Opposite},
		{"a paraphrase makes it no surer", memory.Rephrased, memory.Different},
		{"an opposite makes it surer", memory.Opposite, memory.Rephrased},
		{"an opposite leaves it as sure as it was", memory.Opposite, memory.Different},
		{"something else makes it surer", memory.Different, memory.Rephrased},
		{"something else makes it less sure", memory.Different, memory.Opposite},
	} {
		fmt.Fprintf(&table, "| %s | %s | %s |\n", row.what, cell("tuned", row.want, row.got), cell("heldout", row.want, row.got))
	}
	fmt.Fprintf(&table, "| any of these | %d of 100 | %d of 100 |\n", wrong["tuned"], wrong["heldout"])
	for _, set := range []string{"tuned", "heldout"} {
		if n := count[key{set, memory.Rephrased, memory.Opposite}]; n > 0 {
			t.Errorf("%d paraphrases (%s) lower the confidence", n, set)
		}
	}
	page, err := os.ReadFile("../../docs/assistants.md")
	if err != nil || !strings.Contains(string(page), table.String()) {
		t.Errorf("docs/assistants.md does not have these figures (%v):\n%s", err, table.String())
	}
}

// A synonym makes the bot surer, whatever the word is: also one that is in no table.
func TestASynonymNeverLowersConfidence(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"Prefers brief answers", "Prefers concise answers", "Prefers succinct answers", "Prefers terse answers", "Prefers compact answers",
		"Prefers crisp answers", "Prefers laconic answers", "Prefers curt answers", "Likes short answers", "Wants short answers",
		"Favors short answers", "Enjoys short answers", "Prefers short replies", "Prefers short responses", "Prefers brief replies",
		"prefers pithy answers", "Prefers Snappy Answers", "I prefer short answers", "Short answers preferred",
	} {
		old := fact(t, "Prefers short answers").NewMemory()
		old.Confidence = 0.8
		out := fact(t, text).Update(memory.Candidate{Memory: old, Similarity: 0.9})
		if out.Contradicted || out.Memory.Confidence != 0.9 || out.Memory.History[0].Why != "rephrased" {
			t.Errorf("%q: %s, confidence %g, %+v", text, memory.Relate(old.Text, text), out.Memory.Confidence, out.Memory.History)
		}
	}
}

func TestRelate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		before, after string
		want          memory.Relation
	}{
		{"Prefers tabs over spaces", "Does not prefer tabs over spaces", memory.Opposite},
		{"Prefers tabs over spaces", "Over spaces, prefers tabs", memory.Rephrased},
		{"Runs tests before commits", "Runs commits after tests", memory.Rephrased},
		{"Does not like meetings", "Dislikes meetings", memory.Rephrased},
		{"Ne mange pas de viande", "mange de la viande", memory.Opposite},
		{"Ne mange pas de viande", "Ne mange jamais de viande", memory.Rephrased},
		{"Mag kurze Antworten", "Mag kurze Erwiderungen", memory.Rephrased},
		{"Works with JS all day", "Works with JavaScript all day", memory.Rephrased},
		{"Wants answers in two parts", "Wants answers in 2 parts", memory.Rephrased},
		{"Is available on weekends", "Is unavailable on weekends", memory.Opposite},
		{"", "x", memory.Different},
		{"喜欢绿茶", "喜欢绿茶。", memory.Same},
		{"喜欢喝咖啡", "不喜欢喝咖啡", memory.Opposite},
		{"喜欢喝好咖啡", "喜欢喝不错的咖啡", memory.Rephrased},
		{"肉を食べます", "肉を食べません", memory.Opposite},
		{"ชอบกาแฟ", "ไม่ชอบกาแฟ", memory.Opposite},
		{"커피를 좋아함", "커피를 안 좋아함", memory.Opposite},
		{"커피를 좋아함", "커피를 안좋아함", memory.Opposite},
		{"sabah kahve seviyor", "sabah kahve sevmiyor", memory.Opposite},
		{"يحب القهوة", "مش يحب القهوة", memory.Opposite},
		{"любит кофе", "не любит кофе", memory.Opposite},
		{"gosta de café", "não gosta de café", memory.Opposite},
		{"ama il caffè", "non ama il caffè", memory.Opposite},
		{"drinkt koffie", "drinkt geen koffie", memory.Opposite},
	} {
		if got := memory.Relate(tt.before, tt.after); got != tt.want {
			t.Errorf("%q, then %q: %s, want %s", tt.before, tt.after, got, tt.want)
		}
	}
}

// What was judged counts instead of the rules, for the text that it was about.
func TestAJudgmentDecides(t *testing.T) {
	t.Parallel()
	old := fact(t, "Prefers short answers").NewMemory()
	old.Confidence = 0.8
	for _, tt := range []struct {
		judged   memory.Judgment
		want     float64
		separate bool
	}{
		{memory.Judgment{Of: old.Hash, Relation: memory.Opposite}, 0.5, false},
		{memory.Judgment{Of: old.Hash, Relation: memory.Rephrased}, 0.9, false},
		{memory.Judgment{Of: old.Hash, Relation: memory.Different}, 0.8, true},
		{memory.Judgment{Of: "another text", Relation: memory.Opposite}, 0.9, false},
		{memory.Judgment{}, 0.9, false},
	} {
		f := fact(t, "Prefers brief answers")
		f.Judged = tt.judged
		out := f.Update(memory.Candidate{Memory: old, Similarity: 0.9})
		if out.Memory.Confidence != tt.want || f.Separate(old) != tt.separate || out.Contradicted != (tt.want == 0.5) {
			t.Errorf("%+v: %g, separate %v", tt.judged, out.Memory.Confidence, f.Separate(old))
		}
	}
}

func TestParseRelation(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]memory.Relation{"Opposite.\n": memory.Opposite, "\"same\"": memory.Same, "**different**": memory.Different, "rephrased": memory.Rephrased} {
		if got, ok := memory.ParseRelation(text); got != want || !ok {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "opposite, I think", "no"} {
		if got, ok := memory.ParseRelation(text); ok {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// Texts that say the opposite are about the same, so that one takes the other's
// place where there are only words to go by.
func TestWordsOfOneMeaningAreOneTopic(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"Prefers short answers", "Prefers brief answers", true},
		{"Prefers short answers", "Likes long replies", true},
		{"likes coffee", "hates coffee", true},
		{"likes coffee", "likes tea", false},
		{"uses vim", "uses emacs", false},
	} {
		if got := memory.TermSimilarity(memory.Terms(tt.a), memory.Terms(tt.b)); got >= memory.FactThreshold != tt.want {
			t.Errorf("%q, %q: %g", tt.a, tt.b, got)
		}
	}
	if akin := memory.Akin([]string{"hat", "coffe"}); !slices.Contains(akin, "lik") || slices.Contains(akin, "hat") {
		t.Errorf("akin: %q", akin)
	}
}
