//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"remote-agent/internal/memory"
	"remote-agent/internal/memory/memorytest"
	"remote-agent/internal/store"
)

// stored is a memory that importVectors made.
type stored struct {
	text   string
	vector memory.Vector
}

// importVectors stores facts or episodes in the way of an import: all at once.
func (b bundle) importVectors(tb testing.TB, table, person, codebase, model string, vectors []memory.Vector) []stored {
	tb.Helper()
	list := make([]stored, len(vectors))
	b.do(tb, func(ctx context.Context, tx *store.Tx) error {
		err := store.Exec(ctx, tx, `INSERT INTO memory_people (user_id) VALUES ($1) ON CONFLICT (user_id) DO NOTHING`, person)
		if err != nil {
			return err
		}
		first, err := store.Count(ctx, tx, `SELECT seq FROM memory_people WHERE user_id = $1`, person)
		if err != nil {
			return err
		}
		column, more, value := "fact", "", ""
		if table == "episodic_memories" {
			column, more, value = "content", ", expires_at", ", $10"
		}
		for i, v := range vectors {
			list[i] = stored{fmt.Sprintf("%s %s %s number %d", table, codebase, model, first+i+1), v}
			args := []any{
				person, someRun, list[i].text, v.Encode(), model, first + i + 1, memory.Hash(list[i].text), store.StoredTerms(person, list[i].text), nil,
			}
			if codebase != "" {
				args[8] = codebase
			}
			if value != "" {
				args = append(args, time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z"))
			}
			if err := store.Exec(ctx, tx, `
				INSERT INTO `+table+` (user_id, run_id, `+column+`, embedding, embedding_model, seq, content_hash, terms, codebase_id`+more+`)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9`+value+`)`, args...); err != nil {
				return err
			}
		}
		return store.Exec(ctx, tx, `UPDATE memory_people SET seq = $2 WHERE user_id = $1`, person, first+len(vectors))
	})
	return list
}

// around returns n vectors; with clusters they lie around so many centers.
func around(r *rand.Rand, n, clusters int, noise float32) []memory.Vector {
	centers := make([]memory.Vector, clusters)
	normal := func(center memory.Vector, noise float32) memory.Vector {
		v := make(memory.Vector, memory.Dimensions)
		for i := range v {
			v[i] = noise * float32(r.NormFloat64())
			if center != nil {
				v[i] += center[i]
			}
		}
		return v
	}
	for i := range centers {
		centers[i] = normal(nil, 1)
	}
	list := make([]memory.Vector, n)
	for i := range list {
		if clusters == 0 {
			list[i] = normal(nil, 1)
			continue
		}
		list[i] = normal(centers[r.IntN(clusters)], noise)
	}
	return list
}

// exactly ranks by brute force.
func exactly(list []stored, to memory.Vector, limit int, threshold float64) []string {
	type row struct {
		text       string
		similarity float64
	}
	var rows []row
	for _, s := range list {
		if similarity := memory.NewProbe(to).Cosine(s.vector.Encode()); similarity >= threshold {
			rows = append(rows, row{s.text, similarity})
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(b.similarity, a.similarity) })
	texts := []string{}
	for _, r := range rows[:min(limit, len(rows))] {
		texts = append(texts, r.text)
	}
	return texts
}

// Recall finds what comparing everything finds, in the scope and of the model that
// was asked for, whether the vectors are in memory or not.
func TestRecallByVectorIsThatOfBruteForce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		r := rand.New(rand.NewPCG(7, 8))
		api, web := b.project(t, "api"), b.project(t, "web")
		for name, vectors := range map[string][]memory.Vector{"random": around(r, 250, 0, 0), "clustered": around(r, 250, 8, 0.6)} {
			person := "test/" + name
			visible := b.importVectors(t, "semantic_memories", person, "", memorytest.Model, vectors[:100])
			visible = append(visible, b.importVectors(t, "semantic_memories", person, api, memorytest.Model, vectors[100:150])...)
			visible = append(visible, b.importVectors(t, "episodic_memories", person, "", memorytest.Model, vectors[150:])...)
			// What must not be found, though it is as near.
			b.importVectors(t, "semantic_memories", person, web, memorytest.Model, vectors[:50])
			b.importVectors(t, "semantic_memories", person, "", "another model", vectors[:50])
			b.importVectors(t, "semantic_memories", person+"'s brother", "", memorytest.Model, vectors[:50])
			for i := range 20 {
				to := around(r, 1, 0, 0)[0]
				near := vectors[r.IntN(len(vectors))]
				for i := range to {
					to[i] = near[i] + 0.5*to[i]
				}
				q := memory.Query{Scope: memory.Scope{Person: person, Codebase: api}, Embedding: memory.Embedding{Vector: to, Model: memorytest.Model}}
				store.HoldVectors(b.Store, 1000*(i%2)) // every other time they are read for each question
				want, got := exactly(visible, to, 10, memory.RecallThreshold), recalled(b.recall(t, q))
				if len(want) == 0 || !slices.Equal(want, got) {
					t.Errorf("%s: found %q, by brute force %q", name, got, want)
				}
			}
		}
	})
}

// Whether a fact is the same one is decided just above and just below the threshold.
func TestThresholdsAreExact(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		r := rand.New(rand.NewPCG(9, 10))
		vectors := around(r, 40, 0, 0)
		b.importVectors(t, "semantic_memories", annsID, "", memorytest.Model, vectors)
		b.importVectors(t, "episodic_memories", annsID, "", memorytest.Model, vectors)
		for i, cosine := range []float64{0.8499, 0.8501, 0.9499, 0.9501} {
			e := memory.Embedding{Vector: turnedFrom(vectors[i*10], vectors[i*10+1], cosine), Model: memorytest.Model}
			fact := b.learn(t, told(fmt.Sprint("fact ", i), func(f *memory.Fact) { f.Embedding = e }))
			if want := cosine >= memory.FactThreshold; (fact.Operation == memory.UpdateSimilar) != want {
				t.Errorf("cosine %g: fact %s", cosine, fact.Operation)
			}
			episode := b.happened(t, memory.Episode{Scope: memory.Scope{Person: annsID}, RunID: someRun, Text: fmt.Sprint("episode ", i), Embedding: e})
			if want := cosine >= memory.EpisodeThreshold; (episode.Operation == memory.SkipDuplicate) != want {
				t.Errorf("cosine %g: episode %s", cosine, episode.Operation)
			}
		}
	})
}

// turnedFrom returns a vector with the given cosine to a, turned towards b.
func turnedFrom(a, b memory.Vector, cosine float64) memory.Vector {
	dot := func(x, y memory.Vector) (sum float64) {
		for i := range x {
			sum += float64(x[i]) * float64(y[i])
		}
		return sum
	}
	across := make(memory.Vector, len(a))
	for i := range across {
		across[i] = b[i] - a[i]*float32(dot(a, b)/dot(a, a))
	}
	out := make(memory.Vector, len(a))
	k := math.Sqrt(dot(a, a)/dot(across, across)) * math.Sqrt(1-cosine*cosine) / cosine
	for i := range out {
		out[i] = a[i] + float32(k)*across[i]
	}
	return out
}

// nearTo finds texts by a vector, sorted.
func (b bundle) nearTo(tb testing.TB, codebase string, v memory.Vector) []string {
	tb.Helper()
	q := memory.Query{Scope: memory.Scope{Person: annsID, Codebase: codebase}, Embedding: memory.Embedding{Vector: v, Model: memorytest.Model}, Threshold: 0.9}
	got := recalled(b.recall(tb, q))
	slices.Sort(got)
	return got
}

// A memory is found by what it is now, whatever happened since its vector was read,
// and by whomever.
func TestVectorsInMemoryFollowTheDatabase(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		vectors := around(rand.New(rand.NewPCG(11, 12)), 40, 0, 0)
		api := b.project(t, "api")
		facts := b.importVectors(t, "semantic_memories", annsID, "", memorytest.Model, vectors[:10])
		b.importVectors(t, "semantic_memories", annsID, api, memorytest.Model, vectors[10:20])
		b.importVectors(t, "episodic_memories", annsID, "", memorytest.Model, vectors[:10])
		finds := func(v memory.Vector, want ...string) {
			t.Helper()
			slices.Sort(want)
			if got := b.nearTo(t, api, v); !slices.Equal(got, want) {
				t.Errorf("found %q, want %q", got, want)
			}
		}
		exec := func(query string, args ...any) {
			t.Helper()
			b.do(t, func(ctx context.Context, tx *store.Tx) error { return store.Exec(ctx, tx, query, args...) })
		}
		episode := func(i int) string { return fmt.Sprintf("episodic_memories  %s number %d", memorytest.Model, 20+i+1) }
		finds(vectors[5], facts[5].text, episode(5))

		exec(`UPDATE semantic_memories SET embedding = $2 WHERE fact = $1`, facts[5].text, vectors[30].Encode())
		finds(vectors[5], episode(5))
		finds(vectors[30], facts[5].text)
		exec(`UPDATE semantic_memories SET embedding = NULL, embedding_model = '' WHERE fact = $1`, facts[6].text)
		finds(vectors[6], episode(6))
		exec(`UPDATE episodic_memories SET expires_at = $2 WHERE content = $1`, episode(6), "2026-01-01T00:00:00.000Z")
		finds(vectors[6])
		exec(`UPDATE semantic_memories SET access_count = 5 WHERE fact = $1`, facts[7].text) // changes no vector
		finds(vectors[7], facts[7].text, episode(7))
		finds(vectors[15], fmt.Sprintf("semantic_memories %s %s number 16", api, memorytest.Model))
		exec(`UPDATE semantic_memories SET codebase_id = NULL WHERE seq = 16`)
		if got := b.nearTo(t, "", vectors[15]); len(got) != 1 {
			t.Errorf("what holds everywhere now is not found: %q", got)
		}
		// One is forgotten and another one is learned: there are as many as before.
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Memories().ForgetMemory(ctx, annsID, 8)
			return err
		})
		b.importVectors(t, "semantic_memories", annsID, "", memorytest.Model, vectors[31:32])
		finds(vectors[7], episode(7))
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Registry().Delete(ctx, api) })
		finds(vectors[12])
		finds(vectors[31], fmt.Sprintf("semantic_memories  %s number 31", memorytest.Model))
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Memories().ForgetMemory(ctx, annsID, 1)
			return err
		})
		if n := store.HeldVectors(b.Store); n != 0 {
			t.Errorf("%d embeddings are still in memory after a memory was forgotten", n)
		}
		// Who was deleted and comes again is not who was there before.
		exec(`DELETE FROM memory_people WHERE user_id = $1`, annsID)
		finds(vectors[3])
		for i := range 31 {
			b.importVectors(t, "semantic_memories", annsID, "", memorytest.Model, vectors[32+i%8:33+i%8])
			finds(vectors[3])
		}
	})
}

// Embeddings in memory have a bound; those of who was answered last stay.
func TestVectorsInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		vectors := around(rand.New(rand.NewPCG(17, 18)), 30, 0, 0)
		store.HoldVectors(b.Store, 50)
		for person := range 10 {
			who := fmt.Sprint("test/", person)
			b.importVectors(t, "semantic_memories", who, "", memorytest.Model, vectors)
			for range 2 {
				q := memory.Query{Scope: memory.Scope{Person: who}, Embedding: memory.Embedding{Vector: vectors[3], Model: memorytest.Model}}
				if got := b.recall(t, q); len(got) == 0 {
					t.Errorf("%s recalls nothing", who)
				}
				if n := store.HeldVectors(b.Store); n != 30 {
					t.Errorf("%d embeddings are in memory, want those of the last person", n)
				}
			}
		}
	})
}

// What a transaction that is undone has seen is nobody else's.
func TestVectorsOfAnUndoneTransactionAreNotKept(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		vectors := around(rand.New(rand.NewPCG(13, 14)), 3, 0, 0)
		fact := func(i int) memory.Fact {
			return told(fmt.Sprint("fact ", i), func(f *memory.Fact) { f.Embedding = memory.Embedding{Vector: vectors[i], Model: memorytest.Model} })
		}
		b.learn(t, fact(0))
		b.nearTo(t, "", vectors[0])
		undone := errors.New("undone")
		err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
			for _, f := range []memory.Fact{fact(1), fact(1)} { // the second looks at the first
				if _, err := tx.Memories().UpsertFact(ctx, f); err != nil {
					return err
				}
			}
			return undone
		})
		if !errors.Is(err, undone) {
			t.Fatal(err)
		}
		b.learn(t, fact(2))
		if got := b.nearTo(t, "", vectors[1]); len(got) != 0 {
			t.Errorf("found %q, which never was", got)
		}
		if got := b.nearTo(t, "", vectors[2]); !slices.Equal(got, []string{"fact 2"}) {
			t.Errorf("found %q", got)
		}
	})
}

// Learning, embedding, forgetting and recalling at once: each memory is found or
// not as it is in the end.
func TestVectorsWhileAllHappensAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		vectors := around(rand.New(rand.NewPCG(15, 16)), 200, 0, 0)
		b.importVectors(t, "semantic_memories", annsID, "", memorytest.Model, vectors[:100])
		errs := together(24, func(i int) error {
			return b.try(t, func(ctx context.Context, tx *store.Tx) error {
				switch i % 4 {
				case 0:
					_, err := tx.Memories().Recall(ctx, memory.Query{Scope: memory.Scope{Person: annsID}, Embedding: memory.Embedding{Vector: vectors[i], Model: memorytest.Model}})
					return err
				case 1:
					e := memory.Embedding{Vector: vectors[100+i], Model: memorytest.Model}
					_, err := tx.Memories().UpsertFact(ctx, memory.Fact{Scope: memory.Scope{Person: annsID}, RunID: someRun, Text: fmt.Sprint("new ", i), Embedding: e})
					return err
				case 2:
					m, err := tx.Memories().Memory(ctx, annsID, int64(i))
					if err != nil {
						return err
					}
					return tx.Memories().SaveEmbedding(ctx, m, memory.Embedding{Vector: vectors[150+i], Model: memorytest.Model})
				default:
					_, err := tx.Memories().ForgetMemory(ctx, annsID, int64(50+i))
					return err
				}
			})
		})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		for i := range 24 {
			v, want := vectors[90], 1
			switch i % 4 {
			case 1:
				v = vectors[100+i]
			case 2:
				v = vectors[150+i]
			case 3:
				v, want = vectors[50+i-1], 0
			}
			if got := b.nearTo(t, "", v); len(got) != want {
				t.Errorf("after step %d: %q", i, got)
			}
		}
	})
}

// A vector that got into the table by another way is embedded again instead of
// being in everybody's way.
func TestBadEmbeddingsAreTakenAway(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		vectors := around(rand.New(rand.NewPCG(1, 1)), 6, 0, 0)
		vectors[3] = make(memory.Vector, memory.Dimensions) // like nothing
		list := b.importVectors(t, "semantic_memories", annsID, "", memorytest.Model, vectors[:5])
		b.nearTo(t, "", vectors[0]) // may not write
		b.learn(t, told("another", func(f *memory.Fact) { f.Embedding = memory.Embedding{Vector: vectors[5], Model: memorytest.Model} }))
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			bare, err := tx.Memories().BareMemories(ctx, memorytest.Model, 10, time.Now())
			if len(bare) != 1 || bare[0].Text != list[3].text {
				t.Errorf("to be embedded: %+v", bare)
			}
			return err
		})
	})
}
