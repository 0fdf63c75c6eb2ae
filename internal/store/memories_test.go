//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/memory/memorytest"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

const (
	someRun = "01900000-0000-7000-8000-000000000001"
	annsID  = "test/ann"
	bobsID  = "test/bob"
)

// told is a fact of Ann with an embedding, as most are here.
func told(text string, change ...func(*memory.Fact)) memory.Fact {
	f := memory.Fact{Scope: memory.Scope{Person: annsID}, RunID: someRun, Text: text, Embedding: memorytest.Embedding(text)}
	for _, c := range change {
		c(&f)
	}
	return f
}

func wordsOnly(f *memory.Fact) { f.Embedding = memory.Embedding{} }

func (b bundle) learn(tb testing.TB, f memory.Fact) memory.Outcome {
	tb.Helper()
	out, err := b.tryLearn(tb, f)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func (b bundle) tryLearn(tb testing.TB, f memory.Fact) (out memory.Outcome, err error) {
	tb.Helper()
	err = b.try(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = tx.Memories().UpsertFact(ctx, f)
		return err
	})
	return out, err
}

func (b bundle) happened(tb testing.TB, e memory.Episode) memory.Outcome {
	tb.Helper()
	var out memory.Outcome
	b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = tx.Memories().InsertEpisode(ctx, e)
		return err
	})
	return out
}

func (b bundle) recall(tb testing.TB, q memory.Query) []memory.Match {
	tb.Helper()
	var list []memory.Match
	err := b.InRead(tb.Context(), func(tx *store.Tx) (err error) {
		list, err = tx.Memories().Recall(tb.Context(), q)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return list
}

func recalled(list []memory.Match) []string {
	out := []string{}
	for _, m := range list {
		out = append(out, m.Text)
	}
	return out
}

func (b bundle) all(tb testing.TB, person string) []memory.Memory {
	tb.Helper()
	var list []memory.Memory
	b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = tx.Memories().List(ctx, person, 0, 1000, time.Now())
		return err
	})
	return list
}

func (b bundle) project(tb testing.TB, name string) string {
	tb.Helper()
	var c sessions.Codebase
	b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		c, err = tx.Registry().Create(ctx, sessions.Codebase{Name: name, RepositoryURL: "https://example.com/" + name, DefaultCwd: "/" + name})
		return err
	})
	return c.ID
}

func TestFactRoundTrip(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		where := b.project(t, "acme/api")
		want := b.learn(t, told("Prefers tabs \U0001f600 \x00 over spaces", func(f *memory.Fact) {
			f.Codebase, f.Category, f.Origin, f.Events, f.Key = where, memory.Preference, memory.ByPerson, []int64{3, 3, 9}, "k"
		}))
		if want.Operation != memory.InsertNew || want.Memory.Number != 1 || want.Memory.ID == 0 || want.Memory.Confidence != 0.5 {
			t.Errorf("inserted: %+v", want)
		}
		if diff := cmp.Diff([]memory.Memory{want.Memory}, b.all(t, annsID)); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
		next := b.learn(t, told("Does not prefer tabs \U0001f600 over spaces", func(f *memory.Fact) { f.Codebase = where; f.Events = []int64{10} }))
		if next.Operation != memory.UpdateSimilar || !next.Contradicted || next.Matched != want.Memory.Text || next.Similarity < 0.85 {
			t.Errorf("updated: %+v", next)
		}
		if diff := cmp.Diff([]memory.Memory{next.Memory}, b.all(t, annsID)); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
		m := next.Memory
		if m.Category != memory.Preference || m.Origin != memory.ByPerson || m.AccessCount != 2 || len(m.Events) != 3 || len(m.History) != 1 {
			t.Errorf("merged: %+v", m)
		}
	})
}

// The sequence that seed 004's function gave on PostgreSQL, and with texts alone.
func TestUpsertFactRaisesConfidence(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"embedded", "words"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b bundle) {
				var got []string
				for i := range 7 {
					f := told([]string{"Prefers short answers", "prefers a short answer"}[i%2])
					if name == "words" {
						wordsOnly(&f)
					}
					out := b.learn(t, f)
					got = append(got, fmt.Sprintf("%s %g", out.Operation, out.Memory.Confidence))
				}
				want := []string{
					"INSERT_NEW 0.5", "UPDATE_SIMILAR 0.6", "UPDATE_SIMILAR 0.7", "UPDATE_SIMILAR 0.8", "UPDATE_SIMILAR 0.9",
					"UPDATE_SIMILAR 0.99", "UPDATE_SIMILAR 0.99",
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Fault 1: nothing was locked, so two who learned a fact at once both found none
// and both inserted it.
func TestFactsLearnedAtOnceAreOneFact(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		const n = 24
		errs := together(n, func(i int) error {
			// All alike, and no two the same text: no unique index would see it.
			text := fmt.Sprintf("prefers green tea with the breakfast%s", strings.Repeat(" and", i))
			_, err := b.tryLearn(t, told(text))
			return err
		})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if list := b.all(t, annsID); len(list) != 1 || list[0].AccessCount != n || list[0].Confidence != 0.99 {
			t.Errorf("%d facts, the first %+v", len(list), list[0])
		}
		errs = together(n, func(int) error {
			return b.try(t, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Memories().InsertEpisode(ctx, memory.Episode{Scope: memory.Scope{Person: annsID}, RunID: someRun, Text: "the build broke"})
				return err
			})
		})
		if list := b.all(t, annsID); len(errs) > 0 || len(list) != 2 {
			t.Errorf("%v; %d memories, want the fact and one episode", errs, len(list))
		}
	})
}

// Fault 2: a zero vector matched everything on PostgreSQL.
func TestBadVectorsChangeNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.learn(t, told("lives in Berlin"))
		before := b.all(t, annsID)
		nan := memorytest.Vector("x")
		nan[5] = float32(math.NaN())
		for _, v := range []memory.Vector{make(memory.Vector, 384), nan, {1, 2, 3}} {
			e := memory.Embedding{Vector: v, Model: memorytest.Model}
			_, err := b.tryLearn(t, told("something else", func(f *memory.Fact) { f.Embedding = e }))
			wantKind(t, err, fault.Invalid)
			wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Memories().Recall(ctx, memory.Query{Scope: memory.Scope{Person: annsID}, Embedding: e})
				return err
			}), fault.Invalid)
			wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error { return tx.Memories().SaveEmbedding(ctx, before[0], e) }), fault.Invalid)
		}
		// Also one that got into the table by another way matches nothing.
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `UPDATE semantic_memories SET embedding = $1`, make([]byte, memory.EncodedSize))
		})
		if out := b.learn(t, told("something else")); out.Operation != memory.InsertNew {
			t.Errorf("a zero vector in the table was taken for the same: %+v", out)
		}
		if got := recalled(b.recall(t, memory.Query{Scope: memory.Scope{Person: annsID}, Embedding: memorytest.Embedding("Berlin")})); len(got) != 0 {
			t.Errorf("recalled %q by a zero vector", got)
		}
	})
}

// Fault 3: an episode that had expired still swallowed new ones.
func TestExpiredEpisodesNeitherMatchNorBlock(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		now := time.Now()
		happen := func(at time.Time, e memory.Embedding) memory.Outcome {
			return b.happened(t, memory.Episode{Scope: memory.Scope{Person: annsID}, RunID: someRun, Text: "Deployed the website", Embedding: e, Now: at})
		}
		e := memorytest.Embedding("Deployed the website")
		first := happen(now.Add(-40*24*time.Hour), e)
		for _, q := range []memory.Query{{Text: "website"}, {Embedding: e}} {
			q.Scope = first.Memory.Scope
			if got := b.recall(t, q); len(got) != 0 {
				t.Errorf("recalled an expired episode: %+v", got)
			}
			q.Now = now.Add(-39 * 24 * time.Hour)
			if got := b.recall(t, q); len(got) != 1 {
				t.Errorf("while it was young: %+v", got)
			}
		}
		if out := happen(now, e); out.Operation != memory.InsertNew {
			t.Errorf("an expired episode swallowed a new one: %+v", out)
		}
		if out := happen(now, memory.Embedding{}); out.Operation != memory.SkipDuplicate || out.Memory.Confidence != 1.5 || out.Memory.ID == first.Memory.ID {
			t.Errorf("a duplicate: %+v", out)
		}
		var swept int64
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			swept, err = tx.Memories().SweepMemories(ctx, now, 100)
			return err
		})
		if list := b.all(t, annsID); swept != 1 || len(list) != 1 || list[0].ID == first.Memory.ID {
			t.Errorf("swept %d, left %+v", swept, list)
		}
	})
}

// Fault 4: duplicates were looked for in one run only. They are looked for
// everywhere a memory holds, and nowhere else.
func TestScopeOfDuplicates(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		api, web := b.project(t, "api"), b.project(t, "web")
		in := func(codebase string) func(*memory.Fact) { return func(f *memory.Fact) { f.Codebase = codebase } }
		otherRun := func(f *memory.Fact) { f.RunID = "01900000-0000-7000-8000-000000000002" }
		b.learn(t, told("tests run with make check", in(api)))
		if out := b.learn(t, told("Tests run with make check!", in(api), otherRun)); out.Operation != memory.UpdateSimilar {
			t.Errorf("in another run: %s", out.Operation)
		}
		for _, f := range []memory.Fact{
			told("tests run with make check", in(web)), told("tests run with make check"),
			told("tests run with make check", in(api), func(f *memory.Fact) { f.Person = bobsID }),
		} {
			if out := b.learn(t, f); out.Operation != memory.InsertNew {
				t.Errorf("%+v in another scope: %s", f.Scope, out.Operation)
			}
		}
	})
}

// Fault 6: pages ordered by time without a tie-break overlapped.
func TestPagesDoNotOverlap(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		at := time.Now()
		for i := range 7 { // all at the same moment
			b.learn(t, told(fmt.Sprintf("fact%d", i), func(f *memory.Fact) { f.Now = at }))
			b.happened(t, memory.Episode{Scope: memory.Scope{Person: annsID}, RunID: someRun, Text: fmt.Sprintf("event%d", i), Now: at})
		}
		var numbers []int64
		for before := int64(0); ; {
			var list []memory.Memory
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				list, err = tx.Memories().List(ctx, annsID, before, 4, at)
				return err
			})
			if len(list) == 0 {
				break
			}
			for _, m := range list {
				numbers = append(numbers, m.Number)
			}
			before = list[len(list)-1].Number
			b.learn(t, told("in between "+fmt.Sprint(before))) // moves no page
		}
		if diff := cmp.Diff([]int64{14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, numbers); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// Fault 7: a bulk delete had no scope and left memories behind.
func TestForgetting(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		for _, person := range []string{annsID, bobsID} {
			for _, text := range []string{"green tea", "black coffee", "red wine"} {
				b.learn(t, told(text, func(f *memory.Fact) { f.Person = person }))
			}
			b.happened(t, memory.Episode{Scope: memory.Scope{Person: person}, RunID: someRun, Text: "tea was drunk", Now: time.Now().Add(-1e6 * time.Second)})
		}
		err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Memories().ForgetMemory(ctx, annsID, 99)
			return err
		})
		wantKind(t, err, fault.NotFound)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			gone, err := tx.Memories().ForgetMemory(ctx, annsID, 2)
			if err == nil && gone.Text != "black coffee" {
				t.Errorf("forgot %q", gone.Text)
			}
			return err
		})
		wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Memories().ForgetMemory(ctx, annsID, 2) // the number is not used again
			return err
		}), fault.NotFound)
		if got := b.recall(t, memory.Query{Scope: memory.Scope{Person: annsID}, Text: "coffee"}); len(got) != 0 {
			t.Errorf("what was forgotten is found: %+v", got)
		}
		var n int64
		b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
			n, err = tx.Memories().ForgetMemories(ctx, annsID)
			return err
		})
		if n != 3 || len(b.all(t, annsID)) != 0 || len(b.all(t, bobsID)) != 4 {
			t.Errorf("forgot %d; left are %d and %d", n, len(b.all(t, annsID)), len(b.all(t, bobsID)))
		}
		if out := b.learn(t, told("green tea")); out.Operation != memory.InsertNew || out.Memory.Number != 5 {
			t.Errorf("after all was forgotten: %+v", out)
		}
	})
}

// Scope of recall: a canary of one person is never found by another.
func TestRecallSeesOnlyTheOwn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		api, web := b.project(t, "api"), b.project(t, "web")
		for _, f := range []memory.Fact{
			told("canary of Ann everywhere"), told("canary of Ann in the api", func(f *memory.Fact) { f.Codebase = api }),
			told("canary of Bob", func(f *memory.Fact) { f.Person = bobsID }),
			told("word canary of Ann in the web", func(f *memory.Fact) { f.Codebase = web }, wordsOnly),
			told("word canary of Bob", func(f *memory.Fact) { f.Person = bobsID }, wordsOnly),
		} {
			b.learn(t, f)
		}
		for _, tt := range []struct {
			scope memory.Scope
			want  []string
		}{
			{memory.Scope{Person: annsID}, []string{"canary of Ann everywhere"}},
			{memory.Scope{Person: annsID, Codebase: api}, []string{"canary of Ann everywhere", "canary of Ann in the api"}},
			{memory.Scope{Person: annsID, Codebase: web}, []string{"canary of Ann everywhere", "word canary of Ann in the web"}},
			{memory.Scope{Person: bobsID, Codebase: api}, []string{"canary of Bob", "word canary of Bob"}},
			{memory.Scope{Person: "test/eve", Codebase: api}, []string{}},
			{memory.Scope{Person: "test/an_"}, []string{}}, // no pattern
			{memory.Scope{Person: memory.PersonTerm(bobsID)}, []string{}},
		} {
			for _, q := range []memory.Query{
				{Text: "canary " + memory.PersonTerm(bobsID) + " " + memory.PersonTerm(annsID)},
				{Text: "canary", Embedding: memorytest.Embedding("canary")},
			} {
				q.Scope, q.Threshold, q.Limit = tt.scope, 0.01, 50
				less := func(a, b string) bool { return a < b }
				if diff := cmp.Diff(tt.want, recalled(b.recall(t, q)), cmpopts.SortSlices(less)); diff != "" {
					t.Errorf("%+v (-want +got):\n%s", q.Scope, diff)
				}
			}
		}
	})
}

func TestRecallRanks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		for _, text := range []string{"drinks black coffee", "the deploy server is named heron", "deploys on Friday evenings", "green tea at noon"} {
			b.learn(t, told(text))
		}
		b.happened(t, memory.Episode{Scope: memory.Scope{Person: annsID}, RunID: someRun, Text: "heron was deployed twice", Embedding: memorytest.Embedding("heron was deployed twice")})
		scope := memory.Scope{Person: annsID}
		for name, q := range map[string]memory.Query{
			"embedding": {Scope: scope, Text: "is heron deployed?", Embedding: memorytest.Embedding("is heron deployed?")},
			"words":     {Scope: scope, Text: "is heron deployed?"},
		} {
			got := b.recall(t, q)
			texts := recalled(got)
			if len(texts) < 2 || texts[len(texts)-1] == "green tea at noon" ||
				!strings.Contains(strings.Join(texts[:2], "|"), "named heron") || !strings.Contains(strings.Join(texts[:2], "|"), "deployed twice") {
				t.Errorf("%s: %q", name, texts)
			}
			for i, m := range got {
				if m.Similarity <= 0 || m.Similarity > 1 || i > 0 && m.Similarity > got[i-1].Similarity {
					t.Errorf("%s: similarity %g at %d", name, m.Similarity, i)
				}
			}
			q.Limit = 1
			if diff := cmp.Diff(texts[:1], recalled(b.recall(t, q))); diff != "" {
				t.Errorf("%s, only the best (-want +got):\n%s", name, diff)
			}
		}
		for _, text := range []string{"", "the and of", `heron" OR (`, "heron' & !'x", "NEAR(heron)", "*", "\x00", strings.Repeat("word heron ", 500)} {
			b.recall(t, memory.Query{Scope: scope, Text: text}) // no syntax of a search gets through
		}
	})
}

func TestEmbeddingLater(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		ctx := t.Context()
		b.learn(t, told("drinks green tea", wordsOnly))
		b.happened(t, memory.Episode{Scope: memory.Scope{Person: annsID}, RunID: someRun, Text: "green tea was spilled"})
		bare := func(model string) (list []memory.Memory) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				list, err = tx.Memories().BareMemories(ctx, model, 10, time.Now())
				return err
			})
			return list
		}
		list := bare(memorytest.Model)
		if len(list) != 2 {
			t.Fatalf("without embedding: %+v", list)
		}
		changed := list[0]
		changed.Hash = memory.Hash("what it said before")
		b.do(t, func(_ context.Context, tx *store.Tx) error {
			if err := tx.Memories().SaveEmbedding(ctx, changed, memorytest.Embedding("old")); err != nil {
				return err
			}
			return tx.Memories().SaveEmbedding(ctx, list[1], memorytest.Embedding(list[1].Text))
		})
		if left := bare(memorytest.Model); len(left) != 1 || left[0].ID != list[0].ID {
			t.Errorf("left: %+v", left)
		}
		if other := bare("another model"); len(other) != 2 {
			t.Errorf("for another model: %+v", other)
		}
		// A mixture of both kinds of rows is found by both ways.
		q := memory.Query{Scope: memory.Scope{Person: annsID}, Text: "green tea", Embedding: memorytest.Embedding("green tea")}
		if got := recalled(b.recall(t, q)); len(got) != 2 {
			t.Errorf("recalled %q", got)
		}
		// A text that changes is compared by the new embedding, or by none.
		b.do(t, func(_ context.Context, tx *store.Tx) error {
			return tx.Memories().SaveEmbedding(ctx, list[0], memorytest.Embedding(list[0].Text))
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Memories().CorrectFact(ctx, list[0].Number, told("drinks cocoa", wordsOnly))
			return err
		})
		if left := bare(memorytest.Model); len(left) != 1 || left[0].Text != "drinks cocoa" {
			t.Errorf("after a correction: %+v", left)
		}
	})
}

func TestCorrecting(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		for range 3 {
			b.learn(t, told("lives in Paris"))
		}
		b.learn(t, told("has a cat"))
		b.happened(t, memory.Episode{Scope: memory.Scope{Person: annsID}, RunID: someRun, Text: "moved house"})
		correct := func(number int64, f memory.Fact) (out memory.Outcome, err error) {
			err = b.try(t, func(ctx context.Context, tx *store.Tx) (err error) {
				out, err = tx.Memories().CorrectFact(ctx, number, f)
				return err
			})
			return out, err
		}
		out, err := correct(1, told("lives in a quiet village"))
		if err != nil || out.Memory.Number != 1 || out.Memory.Confidence > 0.5 || len(out.Memory.History) != 1 || out.Memory.History[0].Text != "lives in Paris" {
			t.Errorf("corrected: %+v, %v", out, err)
		}
		for number, kind := range map[int64]fault.Kind{2: fault.Conflict, 3: fault.Unsupported, 9: fault.NotFound} {
			_, err := correct(number, told("lives in a quiet village"))
			wantKind(t, err, kind)
		}
		_, err = correct(1, told("x", func(f *memory.Fact) { f.Person = bobsID }))
		wantKind(t, err, fault.NotFound)
	})
}

func TestWhetherSomethingMayBeRecalled(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		now := time.Now()
		want := func(what, account string, want bool) {
			t.Helper()
			err := b.ReadOnce(t.Context(), func(tx *store.Tx) error {
				got, err := tx.Memories().Recallable(t.Context(), account, now)
				if got != want {
					t.Errorf("%s: %v", what, got)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		want("nothing is remembered", annsID, false)
		episode := memory.Episode{Scope: memory.Scope{Person: annsID}, RunID: someRun, Text: "Deployed the website", Now: now.Add(-40 * 24 * time.Hour)}
		b.happened(t, episode)
		want("an expired episode", annsID, false)
		episode.Now = now
		b.happened(t, episode)
		want("an episode", annsID, true)
		want("of somebody else", "test/77", false)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Memories().ForgetMemories(ctx, annsID)
			return err
		})
		want("all forgotten", annsID, false)
		b.learn(t, told("green tea"))
		want("a fact", annsID, true)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Persons().JoinPeople(ctx, memory.Account{Name: annsID, LinkedAt: now}, memory.Account{Name: annsSlack, LinkedAt: now})
			return err
		})
		want("of another account", annsSlack, true)
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Memories().SetMemoryOn(ctx, annsID, false) })
		want("memory is off", annsSlack, false)
	})
}

func TestMemoryIsOffWhenAPersonSaysSo(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		set := func(on bool) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Memories().SetMemoryOn(ctx, annsID, on) })
		}
		on := func() (on bool) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				on, err = tx.Memories().MemoryOn(ctx, annsID)
				return err
			})
			return on
		}
		if !on() {
			t.Error("off before anybody said so")
		}
		b.learn(t, told("green tea"))
		set(false)
		if on() {
			t.Error("still on")
		}
		_, err := b.tryLearn(t, told("black coffee"))
		wantKind(t, err, fault.Forbidden)
		if n := len(b.all(t, annsID)); n != 1 {
			t.Errorf("%d memories, want the one from before", n)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			n, err := tx.Memories().ForgetMemories(ctx, annsID)
			if n != 1 {
				t.Errorf("forgot %d", n)
			}
			return err
		})
		if on() {
			t.Error("forgetting switched it on")
		}
		set(true)
		b.learn(t, told("black coffee"))
	})
}

func TestMemoriesGoWithTheirCodebase(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		api := b.project(t, "api")
		b.learn(t, told("builds with make", func(f *memory.Fact) { f.Codebase = api }))
		b.learn(t, told("drinks tea"))
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Registry().Delete(ctx, api) })
		if list := b.all(t, annsID); len(list) != 1 || list[0].Text != "drinks tea" {
			t.Errorf("left: %+v", list)
		}
		// The index of words has lost it as well.
		if out := b.learn(t, told("builds with make", wordsOnly)); out.Operation != memory.InsertNew {
			t.Errorf("learned anew: %+v", out)
		}
	})
}

func TestStanding(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		api := b.project(t, "api")
		b.learn(t, told("prefers tabs", func(f *memory.Fact) { f.Category = memory.Preference }))
		b.learn(t, told("said so themself", func(f *memory.Fact) { f.Origin = memory.ByPerson }))
		b.learn(t, told("a mere fact", func(f *memory.Fact) { f.Category = memory.General }))
		b.learn(t, told("only in the api", func(f *memory.Fact) { f.Codebase, f.Origin = api, memory.ByPerson }))
		for codebase, want := range map[string][]string{
			"": {"said so themself", "prefers tabs"}, api: {"only in the api", "said so themself", "prefers tabs"},
		} {
			var got []string
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				list, err := tx.Memories().Standing(ctx, memory.Scope{Person: annsID, Codebase: codebase}, 10)
				for _, m := range list {
					got = append(got, m.Text)
				}
				return err
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("in %q (-want +got):\n%s", codebase, diff)
			}
		}
	})
}

func TestRecallFindsWordsWithoutTheirAccents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		const place = "Meets Zoë at the café in Łódź, Große Straße"
		b.learn(t, told(place))
		for _, question := range []string{"Which cafe?", "lodz", "CAFE\u0301", "grosse strasse", "with Zoe"} {
			got := b.recall(t, memory.Query{Scope: memory.Scope{Person: annsID}, Text: question})
			if diff := cmp.Diff([]string{place}, recalled(got)); diff != "" {
				t.Errorf("%q (-want +got):\n%s", question, diff)
			}
		}
	})
}
