package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/memory"
	"remote-agent/internal/memory/memorytest"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// withVectors returns a store on a PostgreSQL database with pgvector.
func withVectors(tb testing.TB) bundle {
	tb.Helper()
	b := bundle{storetest.Postgres(tb)(tb)}
	storetest.WithVectors(tb, b.Store)
	return b
}

// literal is a vector as a person would type it.
func literal(v memory.Vector) string {
	numbers := make([]string, len(v))
	for i, x := range v {
		numbers[i] = fmt.Sprint(x)
	}
	return "'[" + strings.Join(numbers, ",") + "]'"
}

// sql runs a query as psql would and returns its rows, one a line.
func (b bundle) sql(tb testing.TB, query string) (out string, err error) {
	tb.Helper()
	err = b.try(tb, func(ctx context.Context, tx *store.Tx) error {
		out, err = store.String(ctx, tx, `SELECT COALESCE(string_agg(CAST(x AS text), chr(10)), '') FROM (`+query+`) x`)
		return err
	})
	return out, err
}

func (b bundle) upsertSQL(tb testing.TB, person, fact string, v memory.Vector, more string) (string, error) {
	tb.Helper()
	return b.sql(tb, fmt.Sprintf(`SELECT operation, round(similarity_score::numeric, 2), matched_fact
		FROM upsert_semantic_memory_smart('%s', '%s', '%s', %s%s)`, person, someRun, strings.ReplaceAll(fact, "'", "''"), literal(v), more))
}

func (b bundle) insertSQL(tb testing.TB, person, content string, v memory.Vector, more string) (string, error) {
	tb.Helper()
	return b.sql(tb, fmt.Sprintf(`SELECT operation, round(similarity_score::numeric, 2), similar_memory_content
		FROM insert_episodic_memory_smart('%s', '%s', '%s', %s%s)`, person, someRun, content, literal(v), more))
}

func wantText(tb testing.TB, what, want, got string, err error) {
	tb.Helper()
	if err != nil || got != want {
		tb.Errorf("%s: %q, %v; want %q", what, got, err, want)
	}
}

// The confidence of a fact that is learned again and again, through the function.
func TestSQLUpsertFollowsTheSeed(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	v := memorytest.Vector("prefers short answers")
	got, err := b.upsertSQL(t, annsID, "Prefers short  answers", v, ", 'preference', ARRAY[3,3,9]")
	wantText(t, "first", "(INSERT_NEW,,)", got, err)
	confidences := []string{}
	for i := range 6 {
		got, err = b.upsertSQL(t, annsID, []string{"Prefers short answers", "prefers short answers"}[i%2], v, ", NULL, ARRAY[9,10]")
		if err != nil || !strings.HasPrefix(got, "(UPDATE_SIMILAR,1.00,") {
			t.Fatalf("again: %q, %v", got, err)
		}
		confidences = append(confidences, fmt.Sprint(b.all(t, annsID)[0].Confidence))
	}
	if diff := cmp.Diff([]string{"0.6", "0.7", "0.8", "0.9", "0.99", "0.99"}, confidences); diff != "" {
		t.Errorf("confidence (-want +got):\n%s", diff)
	}
	m := b.all(t, annsID)[0]
	if m.AccessCount != 7 || m.Category != memory.Preference || !cmp.Equal(m.Events, []int64{3, 9, 10}) || m.Number != 1 || len(m.History) != 5 {
		t.Errorf("stored: %+v", m)
	}
	// The threshold decides: 0.84 is another fact, 0.86 the same.
	sideways := around(rand.New(rand.NewPCG(25, 26)), 2, 0, 0)
	got, err = b.upsertSQL(t, annsID, "nearly as near", turnedFrom(v, sideways[0], 0.84), "")
	wantText(t, "0.84", "(INSERT_NEW,,)", got, err)
	got, err = b.upsertSQL(t, annsID, "as near", turnedFrom(v, sideways[1], 0.86), "")
	wantText(t, "0.86", `(UPDATE_SIMILAR,0.86,"prefers short answers")`, got, err)
}

// Fault 5 through the function: what denies is kept beside what it replaces, and
// nobody is surer.
func TestSQLUpsertKeepsWhatItReplaces(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	v := memorytest.Vector("likes green tea")
	for _, text := range []string{"likes green tea", "Likes green tea.", "does not like green tea"} {
		if got, err := b.upsertSQL(t, annsID, text, v, ""); err != nil {
			t.Fatal(got, err)
		}
	}
	m := b.all(t, annsID)[0]
	if m.Confidence != 0.5 || len(m.History) != 2 || m.History[1].Text != "Likes green tea." || m.History[1].Why != "contradicted" || m.History[1].Until.IsZero() {
		t.Errorf("after a denial: %+v", m)
	}
}

func TestSQLInsertEpisodeFollowsTheSeed(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	v := memorytest.Vector("deployed on friday")
	got, err := b.insertSQL(t, annsID, "Deployed on Friday", v, ", ARRAY['log', 'log', 'chat']")
	wantText(t, "first", "(INSERT_NEW,,)", got, err)
	got, err = b.insertSQL(t, annsID, "It was deployed on Friday", turnedFrom(v, memorytest.Vector("x"), 0.96), ", ARRAY['other']")
	wantText(t, "alike", `(SKIP_DUPLICATE,0.96,"Deployed on Friday")`, got, err)
	got, err = b.insertSQL(t, annsID, "Something else", turnedFrom(v, memorytest.Vector("x"), 0.94), "")
	wantText(t, "not alike enough", "(INSERT_NEW,,)", got, err)
	m := b.all(t, annsID)[1]
	if m.Confidence != 1.5 || m.AccessCount != 1 || m.Text != "Deployed on Friday" || !cmp.Equal(m.Sources, []string{"log", "chat"}) ||
		m.ExpiresAt.Sub(m.CreatedAt).Round(time.Minute) != memory.EpisodeLife {
		t.Errorf("confirmed: %+v", m)
	}
	// Fault 3: once expired, it neither matches nor blocks nor is found.
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		return store.Exec(ctx, tx, `UPDATE episodic_memories SET expires_at = now() - interval '1 second'`)
	})
	got, err = b.sql(t, `SELECT content FROM retrieve_similar_categorized_memories('`+annsID+`', '`+someRun+`', `+literal(v)+`)`)
	wantText(t, "expired", "", got, err)
	got, err = b.insertSQL(t, annsID, "Deployed on Friday", v, "")
	wantText(t, "after it expired", "(INSERT_NEW,,)", got, err)
}

func TestSQLRetrieveFollowsTheSeed(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	v := memorytest.Vector("green tea")
	sideways := around(rand.New(rand.NewPCG(23, 24)), 5, 0, 0) // each is like v only
	for i, cosine := range []float64{0.99, 0.5, 0.36, 0.34} {
		b.learn(t, told(fmt.Sprint("fact ", cosine), func(f *memory.Fact) { f.Embedding.Vector = turnedFrom(v, sideways[i], cosine) }))
		if i == 1 {
			b.happened(t, memory.Episode{Scope: memory.Scope{Person: annsID}, RunID: someRun, Text: "episode 0.7",
				Embedding: memory.Embedding{Vector: turnedFrom(v, sideways[4], 0.7), Model: memorytest.Model}})
		}
	}
	b.learn(t, told("Bob's", func(f *memory.Fact) { f.Person, f.Embedding.Vector = bobsID, v }))
	api := b.project(t, "api")
	b.learn(t, told("of a codebase", func(f *memory.Fact) { f.Codebase, f.Embedding.Vector = api, v }))
	b.learn(t, told("of another model", func(f *memory.Fact) { f.Embedding = memory.Embedding{Vector: v, Model: "a"} }))
	b.learn(t, told("unlike", func(f *memory.Fact) { f.Embedding.Vector = memorytest.Vector("unlike all") })) // the newest: its model counts

	call := `retrieve_similar_categorized_memories('` + annsID + `', '01900000-0000-7000-8000-000000000099', ` + literal(v)
	got, err := b.sql(t, `SELECT memory_type, content, round(similarity::numeric, 2) FROM `+call+`)`)
	wantText(t, "defaults", "(semantic,\"fact 0.99\",0.99)\n(episodic,\"episode 0.7\",0.70)\n(semantic,\"fact 0.5\",0.50)\n(semantic,\"fact 0.36\",0.36)", got, err)
	got, err = b.sql(t, `SELECT content FROM `+call+`, 0.6, 1)`)
	wantText(t, "threshold and limit", `("fact 0.99")`, got, err)
	got, err = b.sql(t, `SELECT metadata ? 'confidence' AND metadata ? 'access_count' AND metadata ? 'category' AND metadata ? 'updated_at' FROM `+call+`, 0.9)`)
	wantText(t, "metadata", "(t)", got, err)
	got, err = b.sql(t, `SELECT content FROM (SELECT set_config('bot.embedding_model', 'a', true)) s, `+call+`, 0.9)`)
	wantText(t, "the model that was asked for", `("of another model")`, got, err)
}

// Fault 2 through the functions, and everything else that is not sensible.
func TestSQLFunctionsRefuseNonsense(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	good := memorytest.Vector("tea")
	b.learn(t, told("lives in Berlin"))
	before := b.all(t, annsID)
	for name, call := range map[string]string{
		"zero":      `upsert_semantic_memory_smart('test/ann', '` + someRun + `', 'x', ` + literal(make(memory.Vector, 384)) + `)`,
		"short":     `upsert_semantic_memory_smart('test/ann', '` + someRun + `', 'x', '[1,2,3]')`,
		"null":      `upsert_semantic_memory_smart('test/ann', '` + someRun + `', 'x', NULL)`,
		"empty":     `upsert_semantic_memory_smart('test/ann', '` + someRun + `', '  ', ` + literal(good) + `)`,
		"nobody":    `upsert_semantic_memory_smart('', '` + someRun + `', 'x', ` + literal(good) + `)`,
		"NaN":       `upsert_semantic_memory_smart('test/ann', '` + someRun + `', 'x', ` + literal(good) + `, NULL, '{}', 'NaN')`,
		"category":  `upsert_semantic_memory_smart('test/ann', '` + someRun + `', 'x', ` + literal(good) + `, 'secret')`,
		"too sure":  `insert_episodic_memory_smart('test/ann', '` + someRun + `', 'x', ` + literal(good) + `, '{}', 11)`,
		"zero too":  `insert_episodic_memory_smart('test/ann', '` + someRun + `', 'x', ` + literal(make(memory.Vector, 384)) + `)`,
		"threshold": `insert_episodic_memory_smart('test/ann', '` + someRun + `', 'x', ` + literal(good) + `, '{}', 1, 0)`,
		"limit":     `retrieve_similar_categorized_memories('test/ann', '` + someRun + `', ` + literal(good) + `, 0.3, -1)`,
		"zero 3":    `retrieve_similar_categorized_memories('test/ann', '` + someRun + `', ` + literal(make(memory.Vector, 384)) + `)`,
	} {
		if got, err := b.sql(t, `SELECT * FROM `+call); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	if diff := cmp.Diff(before, b.all(t, annsID)); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Memories().SetMemoryOn(ctx, annsID, false) })
	if got, err := b.upsertSQL(t, annsID, "x", good, ""); err == nil {
		t.Errorf("memory is off: %q", got)
	}
}

// Fault 1 through the functions, beside the program's own way.
func TestSQLUpsertsAtOnceAreOneFact(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	v := memorytest.Vector("green tea for breakfast")
	errs := together(12, func(i int) error {
		if i%2 == 0 {
			_, err := b.upsertSQL(t, annsID, "green tea for breakfast"+strings.Repeat(" and", i), v, "")
			return err
		}
		_, err := b.tryLearn(t, told("green tea for breakfast"+strings.Repeat(" and", i), func(f *memory.Fact) {
			f.Embedding = memory.Embedding{Vector: v, Model: "sql"}
		}))
		return err
	})
	if list := b.all(t, annsID); len(errs) > 0 || len(list) != 1 || list[0].AccessCount != 12 {
		t.Errorf("%v; %+v", errs, list)
	}
}

// What the functions store, the program finds: by its vector at once, and by its
// words as soon as it has indexed it.
func TestTheProgramFindsWhatSQLStored(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	b.learn(t, told("likes cats")) // so that the functions know the model
	for i := range 3 {
		text := []string{"Trinkt GRÜNEN Tee", "deployed the website", "uses tabs"}[i]
		var err error
		if i == 1 {
			_, err = b.insertSQL(t, annsID, text, memorytest.Vector(text), "")
		} else {
			_, err = b.upsertSQL(t, annsID, text, memorytest.Vector(text), "")
		}
		if err != nil {
			t.Fatal(err)
		}
		q := memory.Query{Scope: memory.Scope{Person: annsID}, Embedding: memorytest.Embedding(text)}
		if got := recalled(b.recall(t, q)); len(got) == 0 || got[0] != text {
			t.Errorf("by vector: %q", got)
		}
	}
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		n, err := tx.Memories().IndexWords(ctx, 10)
		if n != 3 {
			t.Errorf("indexed %d", n)
		}
		return err
	})
	for word, text := range map[string]string{"grünen": "Trinkt GRÜNEN Tee", "website": "deployed the website"} {
		if got := recalled(b.recall(t, memory.Query{Scope: memory.Scope{Person: annsID}, Text: word})); len(got) != 1 || got[0] != text {
			t.Errorf("by words: %q", got)
		}
	}
	// The hash is the program's, also where the database knows no small letters.
	if out := b.learn(t, told("trinkt grünen TEE!", wordsOnly)); out.Operation != memory.UpdateSimilar || out.Similarity != 1 {
		t.Errorf("the same text: %+v", out)
	}
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		n, err := tx.Memories().IndexWords(ctx, 10)
		if n != 0 {
			t.Errorf("indexed %d again", n)
		}
		return err
	})
}

func TestFlattenArray(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	for call, want := range map[string]string{
		`flatten_array(ARRAY[3,1,3,2,1])`: `("{3,1,2}")`, `flatten_array(ARRAY['b','a','b',NULL,NULL])`: `("{b,a,NULL}")`, `flatten_array('{}'::int[])`: `({})`,
		`flatten_array(NULL::text[])`: `()`,
	} {
		got, err := b.sql(t, `SELECT `+call)
		wantText(t, call, want, got, err)
	}
}

// Vectors follow whatever stores an embedding, number by number.
func TestVectorsFollowEmbeddings(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	r := rand.New(rand.NewPCG(21, 22))
	v := around(r, 1, 0, 0)[0]
	v[0], v[1], v[2], v[3] = math.SmallestNonzeroFloat32, -1e-40, 3e10, 0
	b.learn(t, told("strange numbers", func(f *memory.Fact) { f.Embedding.Vector = v }))
	got, err := b.sql(t, `SELECT v.embedding = `+literal(v)+`::vector, memory_bytes(v.embedding) = m.embedding FROM semantic_vectors v JOIN semantic_memories m USING (id)`)
	wantText(t, "both ways", "(t,t)", got, err)
	for _, change := range []struct{ query, want string }{
		{`UPDATE semantic_memories SET embedding = NULL, embedding_model = ''`, "(0)"},
		{`UPDATE semantic_memories SET embedding_model = 'x', embedding = decode(repeat('0000803f', 384), 'hex')`, "(1)"},
		{`UPDATE semantic_memories SET embedding = decode(repeat('0000c07f', 384), 'hex')`, "(0)"}, // NaN
		{`UPDATE semantic_memories SET embedding = decode(repeat('00', 1536), 'hex')`, "(0)"},
		{`UPDATE semantic_memories SET embedding = decode(repeat('000080ff', 384), 'hex')`, "(0)"}, // minus infinity
		{`UPDATE semantic_memories SET embedding = decode(repeat('000080bf', 384), 'hex')`, "(1)"},
		{`DELETE FROM semantic_memories`, "(0)"},
	} {
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return store.Exec(ctx, tx, change.query) })
		got, err := b.sql(t, `SELECT count(*) FROM semantic_vectors`)
		wantText(t, change.query, change.want, got, err)
	}
}

// The cosine index is made when there are enough vectors, again if making it was cut
// short, and retrieving by it finds what comparing with all finds.
func TestTheCosineIndexFindsTheNearest(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	const many, few = 6000, 40
	vectors := around(rand.New(rand.NewPCG(31, 32)), many+few, 60, 0.6)
	b.storeVectors(t, annsID, vectors[:many])
	b.storeVectors(t, bobsID, vectors[many:many+few])
	retrieve := func(person string, v memory.Vector) string {
		got, err := b.sql(t, `SELECT memory_id FROM retrieve_similar_categorized_memories('`+person+`', NULL, `+literal(v)+`, 0.05, 10)`)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	before := make(map[string]string)
	for i := range 20 {
		for _, person := range []string{annsID, bobsID} {
			before[fmt.Sprint(person, i)] = retrieve(person, vectors[many+i])
		}
	}
	index := func(from int64) store.VectorState {
		err := store.KeepVectorsFrom(t.Context(), b.Store, from)
		state, stateErr := b.Vectors(t.Context())
		if err := errors.Join(err, stateErr); err != nil {
			t.Fatal(err)
		}
		return state
	}
	if state := index(many + few + 1); len(state.Indexes) != 0 {
		t.Fatalf("too early: %+v", state.Indexes)
	}
	if err := store.ExecAlone(t.Context(), b.Store, `CREATE UNIQUE INDEX CONCURRENTLY semantic_embedding_idx ON semantic_vectors ((1))`); err == nil {
		t.Fatal("the index was to fail, and to stay behind")
	}
	if state, err := b.Vectors(t.Context()); err != nil || len(state.Indexes) != 1 || state.Indexes[0].Valid {
		t.Fatalf("what is left of it: %+v, %v", state.Indexes, err)
	}
	state := index(many)
	if len(state.Indexes) != 1 || state.Indexes[0].Name != "semantic_embedding_idx" || !state.Indexes[0].Valid {
		t.Fatalf("indexes: %+v", state.Indexes)
	}
	same, all := 0, 0
	for i := range 20 {
		want := strings.Fields(before[fmt.Sprint(annsID, i)])
		for id := range strings.FieldsSeq(retrieve(annsID, vectors[many+i])) {
			if slices.Contains(want, id) {
				same++
			}
		}
		all += len(want)
		if got := retrieve(bobsID, vectors[many+i]); got != before[fmt.Sprint(bobsID, i)] {
			t.Errorf("question %d of one who has few: %q instead of %q", i, got, before[fmt.Sprint(bobsID, i)])
		}
	}
	t.Logf("%d of %d", same, all)
	if all != 200 || same < all*95/100 {
		t.Errorf("the index finds %d of the %d nearest", same, all)
	}
	for person, want := range map[string]int{annsID: 1, bobsID: 0} {
		if n := b.indexScans(t, `SELECT count(*) FROM retrieve_similar_categorized_memories('`+person+`', NULL, `+literal(vectors[0])+`, 0.05, 10)`); n != want {
			t.Errorf("%s: the index was asked %d times", person, n)
		}
	}
}

// indexScans is how often a query asks the index of the vectors of facts.
func (b bundle) indexScans(tb testing.TB, query string) int {
	tb.Helper()
	var asked [2]int
	b.do(tb, func(ctx context.Context, tx *store.Tx) error {
		for i := range asked { // what it was asked before in this session counts too
			if _, err := store.Count(ctx, tx, query); err != nil {
				return err
			}
			var err error
			if asked[i], err = store.Count(ctx, tx, `SELECT pg_stat_get_xact_numscans('semantic_embedding_idx'::regclass)`); err != nil {
				return err
			}
		}
		return nil
	})
	return asked[1] - asked[0]
}

// storeVectors stores facts with these embeddings, many at once.
func (b bundle) storeVectors(tb testing.TB, person string, vectors []memory.Vector) {
	tb.Helper()
	encoded := make([][]byte, len(vectors))
	for i, v := range vectors {
		encoded[i] = v.Encode()
	}
	b.do(tb, func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(
			store.Exec(ctx, tx, `INSERT INTO memory_people (user_id, seq) VALUES ($1, $2)`, person, len(vectors)),
			store.Exec(ctx, tx, `INSERT INTO semantic_memories (user_id, run_id, fact, embedding, embedding_model, seq, content_hash, terms)
				SELECT CAST($1 AS text), $2, CAST($1 AS text) || i, v, $3, i, md5(CAST($1 AS text) || i), 'x' FROM unnest(CAST($4 AS bytea[])) WITH ORDINALITY AS u(v, i)`,
				person, someRun, memorytest.Model, encoded))
	})
}

// The extension is dropped while the program runs, and comes back.
func TestMemoryGoesOnWithoutTheExtension(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	b.learn(t, told("before"))
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		return store.Exec(ctx, tx, `DROP EXTENSION vector CASCADE`)
	})
	b.learn(t, told("while it is away"))
	if got := recalled(b.recall(t, memory.Query{Scope: memory.Scope{Person: annsID}, Embedding: memorytest.Embedding("while it is away")})); len(got) == 0 {
		t.Error("nothing is found without pgvector")
	}
	if state, err := b.Vectors(t.Context()); err != nil || state.Ready || state.Todo == "" {
		t.Errorf("away: %+v, %v", state, err)
	}
	if _, err := b.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	state, err := b.Vectors(t.Context())
	if missing, missErr := b.MissingVectors(t.Context()); err != nil || missErr != nil || !state.Ready || missing != 2 {
		t.Errorf("back: %+v, %d missing, %v, %v", state, missing, err, missErr)
	}
	if err := b.KeepVectors(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := b.sql(t, `SELECT content FROM retrieve_similar_categorized_memories('`+annsID+`', '`+someRun+`', `+literal(memorytest.Vector("while it is away"))+`, 0.9)`)
	wantText(t, "what came while it was away", `("while it is away")`, got, err)
	if missing, err := b.MissingVectors(t.Context()); err != nil || missing != 0 {
		t.Errorf("%d are still missing, %v", missing, err)
	}
}

// Only whom the owner lets may act for everybody.
func TestSQLFunctionsAreForThoseWhoAreLet(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	role := fmt.Sprintf("stranger_%d", time.Now().UnixNano())
	exec := func(query string) error {
		ctx := context.WithoutCancel(t.Context()) // also while cleaning up
		return b.InTx(ctx, func(tx *store.Tx) error { return store.Exec(ctx, tx, query) })
	}
	if err := exec(`CREATE ROLE ` + role); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := exec(`DROP OWNED BY ` + role); err != nil {
			t.Error(err)
		}
		if err := exec(`DROP ROLE ` + role); err != nil {
			t.Error(err)
		}
	})
	call := `SELECT upsert_semantic_memory_smart('test/ann', '` + someRun + `', 'x', ` + literal(memorytest.Vector("x")) + `)`
	as := func() error {
		return b.try(t, func(ctx context.Context, tx *store.Tx) error {
			if err := store.Exec(ctx, tx, `SET LOCAL ROLE `+role); err != nil {
				return err
			}
			return store.Exec(ctx, tx, call)
		})
	}
	if err := as(); err == nil {
		t.Error("anybody may")
	}
	if err := exec(`GRANT EXECUTE ON FUNCTION upsert_semantic_memory_smart TO ` + role); err != nil {
		t.Fatal(err)
	}
	if err := as(); err != nil {
		t.Errorf("who was granted it: %v", err)
	}
	got, err := b.sql(t, `SELECT proname, prosecdef, provolatile, proconfig IS NOT NULL FROM pg_proc
		WHERE proname IN ('upsert_semantic_memory_smart', 'insert_episodic_memory_smart', 'retrieve_similar_categorized_memories', 'flatten_array') ORDER BY 1`)
	wantText(t, "declared", "(flatten_array,f,i,f)\n(insert_episodic_memory_smart,t,v,t)\n(retrieve_similar_categorized_memories,t,s,t)\n(upsert_semantic_memory_smart,t,v,t)", got, err)
}
