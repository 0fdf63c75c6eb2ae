package memory_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/memory/memorytest"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func fact(tb testing.TB, text string) memory.Fact {
	tb.Helper()
	f, err := memory.Fact{Scope: memory.Scope{Person: "test/42"}, RunID: "r", Text: text, Now: noon}.Prepare()
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

func episode(tb testing.TB, text string) memory.Episode {
	tb.Helper()
	e, err := memory.Episode{Scope: memory.Scope{Person: "test/42"}, RunID: "r", Text: text, Now: noon}.Prepare()
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func TestConfidenceOfAFactThatIsLearnedAgain(t *testing.T) {
	t.Parallel()
	m := fact(t, "Prefers tabs").NewMemory()
	got := []float64{m.Confidence}
	for range 6 {
		out := fact(t, "Prefers tabs").Update(memory.Candidate{Memory: m, Similarity: 1})
		if out.Operation != memory.UpdateSimilar || out.Matched != "Prefers tabs" {
			t.Fatalf("outcome %+v", out)
		}
		m = out.Memory
		got = append(got, m.Confidence)
	}
	if diff := cmp.Diff([]float64{0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 0.99}, got); diff != "" {
		t.Errorf("confidence (-want +got):\n%s", diff)
	}
	if m.AccessCount != 7 || len(m.History) != 0 {
		t.Errorf("learned 7 times: %+v", m)
	}
}

func TestConfidenceOfAnEpisodeThatIsConfirmed(t *testing.T) {
	t.Parallel()
	m := episode(t, "Deployed on Friday").NewMemory()
	if m.Confidence != 1 || m.ExpiresAt.Sub(m.CreatedAt) != memory.EpisodeLife || m.AccessCount != 0 {
		t.Errorf("new: %+v", m)
	}
	for range 30 {
		before := m
		out := episode(t, "deployed on friday!").Confirm(memory.Candidate{Memory: m, Similarity: 0.99})
		m = out.Memory
		if out.Operation != memory.SkipDuplicate || m.Text != before.Text || m.ExpiresAt != before.ExpiresAt || !slices.Equal(m.Sources, before.Sources) {
			t.Fatalf("outcome %+v", out)
		}
	}
	if m.Confidence != 10 || m.AccessCount != 30 {
		t.Errorf("confirmed 30 times: confidence %g, count %d", m.Confidence, m.AccessCount)
	}
}

func TestPeopleSeeOneScale(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind memory.Kind
		in   float64
		want float64
	}{
		{memory.Semantic, 0.5, 0.5}, {memory.Semantic, 0.99, 0.99},
		{memory.Episodic, 1, 0.5}, {memory.Episodic, 10, 0.91},
	} {
		if got := (memory.Memory{Kind: tt.kind, Confidence: tt.in}).Certainty(); got != tt.want {
			t.Errorf("%s %g is shown as %g, want %g", tt.kind, tt.in, got, tt.want)
		}
	}
}

// Fault 5: 0.85 is similar enough to overwrite, and the naive rule raised the
// confidence of what had just been denied.
func TestAContradictionMakesNobodySurer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		before, after string
		want          bool
	}{
		{"likes green tea", "does not like green tea", true},
		{"likes green tea", "dislikes green tea", true},
		{"I use tabs", "I don't use tabs", true},
		{"prefers tabs over spaces", "prefers spaces over tabs", true},
		{"builds with Go 1.25", "builds with Go 1.26", true},
		{"lives in Paris with two cats", "lives in Berlin with two cats", true},
		{"always squash commits", "never squash commits", true},
		{"trinkt Kaffee", "trinkt keinen Kaffee", true},
		{"喜欢绿茶的味道", "喜欢红茶的味道", false}, // more than one pair differs: a phrase, not one word
		{"likes green tea", "likes green tea.", false},
		{"likes green tea", "Likes  GREEN tea", false},
		{"likes green tea", "loves green tea", false},
		{"prefers short answers", "prefers short answers in chat", false},
		{"uses dark mode", "is using the dark mode", false},
		{"never not tested", "tested", false},
	} {
		if got := memory.Relate(tt.before, tt.after) == memory.Opposite; got != tt.want {
			t.Errorf("%q, then %q: contradiction %v, want %v", tt.before, tt.after, got, tt.want)
		}
	}
	old := fact(t, "likes green tea").NewMemory()
	old.Confidence = 0.9
	out := fact(t, "does not like green tea").Update(memory.Candidate{Memory: old, Similarity: 0.9})
	want := []memory.Earlier{{Text: "likes green tea", Confidence: 0.9, Until: noon, Why: "contradicted"}}
	if diff := cmp.Diff(want, out.Memory.History); diff != "" || !out.Contradicted || out.Memory.Confidence > 0.5 {
		t.Errorf("confidence %g, contradicted %v, history (-want +got):\n%s", out.Memory.Confidence, out.Contradicted, diff)
	}
	corrected := fact(t, "likes green tea a lot")
	corrected.Correct = true
	if out := corrected.Update(memory.Candidate{Memory: old, Similarity: 0.9}); out.Memory.Confidence > 0.9 || out.Memory.History[0].Why != "corrected" {
		t.Errorf("corrected: %+v", out.Memory)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	m := fact(t, "version 0 of the text").NewMemory()
	before := m
	for i := range 3 * memory.MaxHistory {
		before, m = m, fact(t, strings.Repeat("again ", i+1)+"a text").Update(memory.Candidate{Memory: m, Similarity: 1}).Memory
	}
	if n := len(m.History); n != memory.MaxHistory || m.History[n-1].Text != before.Text {
		t.Errorf("%d earlier texts, want the newest %d", n, memory.MaxHistory)
	}
}

func TestTheSameKeyDoesNothingTwice(t *testing.T) {
	t.Parallel()
	f := fact(t, "prefers tabs")
	f.Key = "turn-1"
	m := f.NewMemory()
	if out := f.Update(memory.Candidate{Memory: m, Similarity: 1}); !out.Repeated || out.Operation != memory.InsertNew || out.Memory.Confidence != 0.5 {
		t.Errorf("repeated: %+v", out)
	}
	f.Key = "turn-2"
	if out := f.Update(memory.Candidate{Memory: m, Similarity: 1}); out.Repeated || out.Memory.Confidence != 0.6 {
		t.Errorf("again: %+v", out)
	}
}

// Fault 2: the similarity to a zero vector is not a number, and PostgreSQL takes
// that for more than any threshold.
func TestVectorsThatCannotBeCompared(t *testing.T) {
	t.Parallel()
	good := memorytest.Vector("green tea")
	bad := map[string]memory.Vector{"short": good[:383], "long": append(slices.Clone(good), 1), "zero": make(memory.Vector, 384)}
	for name, x := range map[string]float64{"NaN": math.NaN(), "infinite": math.Inf(-1)} {
		v := slices.Clone(good)
		v[7] = float32(x)
		bad[name] = v
	}
	for name, v := range bad {
		if err := v.Check(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: error %v, want fault.Invalid", name, err)
		}
		if memory.Comparable(v.Encode()) || !memory.Comparable(good.Encode()) {
			t.Errorf("%s: Comparable and Check disagree", name)
		}
		for _, got := range []float64{cosine(good, v), cosine(v, good), cosine(v, v)} {
			if got != -1 {
				t.Errorf("%s: similarity %g, want -1", name, got)
			}
		}
		f := memory.Fact{Scope: memory.Scope{Person: "p"}, RunID: "r", Text: "x", Embedding: memory.Embedding{Vector: v, Model: "m"}}
		if _, err := f.Prepare(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: a fact with it: %v", name, err)
		}
		q := memory.Query{Scope: memory.Scope{Person: "p"}, Embedding: memory.Embedding{Vector: v, Model: "m"}}
		if _, err := q.Prepare(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: a query with it: %v", name, err)
		}
	}
	if _, ok := memory.Nearest([]memory.Candidate{{Similarity: math.NaN()}}, 0.1); ok {
		t.Error("a similarity that is no number reached a threshold")
	}
}

func TestCosineAgreesWithItsDefinition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) memory.Vector {
			return rapid.SliceOfN(rapid.Float32Range(-2, 2), memory.Dimensions, memory.Dimensions).Draw(t, name)
		}
		a, b := draw("a"), draw("b")
		if a.Check() != nil || b.Check() != nil {
			return
		}
		var ab, aa, bb float64
		for i := range a {
			ab += float64(a[i]) * float64(b[i])
			aa += float64(a[i]) * float64(a[i])
			bb += float64(b[i]) * float64(b[i])
		}
		if aa < 1e-30 || bb < 1e-30 {
			return // squares of such numbers are too small for a float32
		}
		if want, got := ab/math.Sqrt(aa*bb), cosine(a, b); math.Abs(want-got) > 1e-4 {
			t.Fatalf("similarity %g, want %g", got, want)
		}
		back, err := memory.Decode(a.Encode())
		if err != nil || !slices.Equal(back, a) {
			t.Fatalf("decoded: %v", err)
		}
	})
}

func TestTerms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"I prefer short, terse answers!":     {"prefer", "short", "ters", "answer"},
		"He doesn't like Ann's test-files":   {"lik", "ann", "test", "fil"},
		"using used uses use":                {"use"},
		"Größe der Fußnoten":                 {"gross", "fussnoten"},
		"Cafés in Łódź":                      {"caf", "lodz"},
		"a cafe\u0301 für mich, na\u0303o":   {"caf", "fur", "mich"},
		"краи\u0306":                         {"край"},
		"我喜欢绿茶":                              {"我喜", "喜欢", "欢绿", "绿茶"},
		"茶":                                  {"茶"},
		"コーヒー":                               {"コー", "ーヒ", "ヒー"},
		"ကော်":                               {"ကေ", "ော", "ာ်"},
		"":                                   nil,
		"the of and not":                     nil,
		"' OR 1=1 -- \" ) * NEAR(a b) {x}:y": {"1", "near", "b", "x"},
	} {
		if diff := cmp.Diff(want, memory.Terms(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func FuzzTerms(f *testing.F) {
	for _, seed := range []string{"", "don't", "’’", "a\x00b", "\xff", "我 喜欢", "running sse s es ing", strings.Repeat("ab ", 900)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, term := range memory.Terms(text) {
			if term == "" || strings.ContainsAny(term, " \t\n'\"\\") {
				t.Errorf("a term %q of %q would not be found again", term, text)
			}
		}
		if memory.Relate(text, text) == memory.Opposite {
			t.Errorf("%q contradicts itself", text)
		}
	})
}

func cosine(a, b memory.Vector) float64 { return memory.NewProbe(a).Cosine(b.Encode()) }

func TestBadInput(t *testing.T) {
	t.Parallel()
	scope := memory.Scope{Person: "test/42"}
	for name, f := range map[string]memory.Fact{
		"no person":     {RunID: "r", Text: "x"},
		"no run":        {Scope: scope, Text: "x"},
		"no text":       {Scope: scope, RunID: "r", Text: " \n\x00"},
		"long text":     {Scope: scope, RunID: "r", Text: strings.Repeat("é", memory.MaxText+1)},
		"category":      {Scope: scope, RunID: "r", Text: "x", Category: "gossip"},
		"threshold":     {Scope: scope, RunID: "r", Text: "x", Threshold: math.NaN()},
		"no model":      {Scope: scope, RunID: "r", Text: "x", Embedding: memory.Embedding{Vector: memorytest.Vector("x")}},
		"a long person": {Scope: memory.Scope{Person: strings.Repeat("x", 301)}, RunID: "r", Text: "x"},
	} {
		if _, err := f.Prepare(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v, want fault.Invalid", name, err)
		}
	}
	for _, c := range []float64{-1, 10.5, math.NaN()} {
		if _, err := (memory.Episode{Scope: scope, RunID: "r", Text: "x", Confidence: c}).Prepare(); !fault.Is(err, fault.Invalid) {
			t.Errorf("confidence %g: %v, want fault.Invalid", c, err)
		}
	}
	if f := fact(t, "  two\nlines "); f.Text != "two lines" {
		t.Errorf("stored as %q", f.Text)
	}
}

func BenchmarkCosine(b *testing.B) {
	probe, raw := memory.NewProbe(memorytest.Vector("some green tea")), memorytest.Vector("black coffee").Encode()
	for b.Loop() {
		probe.Cosine(raw)
	}
}

// What people read has the origin of its words, not of words that were there
// before.
func TestOriginOfAFactThatChanges(t *testing.T) {
	t.Parallel()
	mine := fact(t, "prefers short answers")
	mine.Origin = memory.ByPerson
	old := memory.Candidate{Memory: mine.NewMemory(), Similarity: 1}
	for text, want := range map[string]memory.Origin{"Prefers short answers.": memory.ByPerson, "prefers long answers": memory.Learned} {
		learned := fact(t, text)
		learned.Origin = memory.Learned
		if got := learned.Update(old).Memory.Origin; got != want {
			t.Errorf("%q over what the person said: %s, want %s", text, got, want)
		}
	}
}

func TestMergingTwoMemoriesOfOneText(t *testing.T) {
	t.Parallel()
	a, b := fact(t, "likes tea").NewMemory(), fact(t, "Likes tea!").NewMemory()
	a.Number, b.Number, b.Confidence, b.AccessCount, b.Category, b.Events = 1, 7, 0.95, 4, memory.Preference, []int64{3}
	b.CreatedAt, b.UpdatedAt = noon.Add(-time.Hour), noon.Add(time.Hour)
	m := a.Merge(b)
	if m.Number != 1 || m.Text != "likes tea" || m.Confidence != 0.99 || m.AccessCount != 5 || m.Category != memory.Preference ||
		!slices.Equal(m.Events, []int64{3}) || m.CreatedAt != b.CreatedAt || m.UpdatedAt != b.UpdatedAt {
		t.Errorf("merged: %+v", m)
	}
}

// What a person said themself stays theirs, and what would be forgotten soon is kept as
// long as the other one.
func TestMergingKeepsWhoseWordsTheyAreAndTheLongerLife(t *testing.T) {
	t.Parallel()
	a, b := fact(t, "likes tea").NewMemory(), fact(t, "likes tea").NewMemory()
	b.Origin = memory.ByPerson
	for name, m := range map[string]memory.Memory{"into it": a.Merge(b), "out of it": b.Merge(a)} {
		if m.Origin != memory.ByPerson {
			t.Errorf("%s: origin %s", name, m.Origin)
		}
	}
	soon, late := episode(t, "Deployed").NewMemory(), episode(t, "Deployed").NewMemory()
	late.ExpiresAt = soon.ExpiresAt.Add(time.Hour)
	for name, m := range map[string]memory.Memory{"into it": soon.Merge(late), "out of it": late.Merge(soon)} {
		if m.ExpiresAt != late.ExpiresAt {
			t.Errorf("%s: expires %s, want %s", name, m.ExpiresAt, late.ExpiresAt)
		}
	}
}

func TestOfTwoThatAreAsNearTheOlderIsMeant(t *testing.T) {
	t.Parallel()
	near := func(number int64) memory.Candidate {
		return memory.Candidate{Memory: memory.Memory{Number: number}, Similarity: 0.9}
	}
	for _, list := range [][]memory.Candidate{{near(1), near(2)}, {near(2), near(1)}} {
		if best, ok := memory.Nearest(list, 0.9); !ok || best.Number != 1 {
			t.Errorf("nearest = %d, %v", best.Number, ok)
		}
	}
}

// A judge that calls one text "different" from itself does not have it remembered twice.
func TestOneTextIsNeverSeparate(t *testing.T) {
	t.Parallel()
	old := fact(t, "likes tea").NewMemory()
	f, same := fact(t, "likes green tea"), fact(t, "Likes tea.")
	f.Judged = memory.Judgment{Of: old.Hash, Relation: memory.Different}
	same.Judged = f.Judged
	if !f.Separate(old) || same.Separate(old) {
		t.Errorf("separate: another text %v, the same %v", f.Separate(old), same.Separate(old))
	}
}

func TestTheNewestSourcesAreKept(t *testing.T) {
	t.Parallel()
	f := fact(t, "likes tea")
	for i := range int64(memory.MaxSources + 5) {
		f.Events = append(f.Events, i)
	}
	events := f.NewMemory().Events
	if len(events) != memory.MaxSources || events[0] != 5 || events[len(events)-1] != memory.MaxSources+4 {
		t.Errorf("%d events: %v", len(events), events)
	}
}

// A correction never makes anybody surer than they were.
func TestACorrectionOfSomethingUnsureStaysUnsure(t *testing.T) {
	t.Parallel()
	old := fact(t, "likes tea").NewMemory()
	old.Confidence = 0.2 // as an import may have it
	f := fact(t, "likes cocoa")
	f.Correct = true
	if m := f.Update(memory.Candidate{Memory: old, Similarity: 1}).Memory; m.Confidence != 0.2 {
		t.Errorf("confidence %g", m.Confidence)
	}
}

// What is repeated after a crash says again what it did: stored, or confirmed.
func TestARepeatedEpisodeSaysWhatItDid(t *testing.T) {
	t.Parallel()
	e := episode(t, "Deployed")
	e.Key = "k"
	m := e.NewMemory()
	if out := e.Confirm(memory.Candidate{Memory: m, Similarity: 1}); !out.Repeated || out.Operation != memory.InsertNew || out.Matched != "" {
		t.Errorf("stored, and again: %+v", out)
	}
	m.AccessCount = 1
	if out := e.Confirm(memory.Candidate{Memory: m, Similarity: 1}); !out.Repeated || out.Operation != memory.SkipDuplicate || out.Matched != "Deployed" {
		t.Errorf("confirmed, and again: %+v", out)
	}
}

func TestRecallIsBounded(t *testing.T) {
	t.Parallel()
	for limit, fine := range map[int]bool{-1: false, 1000: true, 1001: false} {
		_, err := memory.Query{Scope: memory.Scope{Person: "test/42"}, Limit: limit}.Prepare()
		if fine != (err == nil) || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}
