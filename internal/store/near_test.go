//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"cmp"
	"context"
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

// importVectors stores facts or episodes in the way of an import: all at once and
// without sketches.
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

// pack makes all sketches that are to be made, and returns how many chunks.
func (b bundle) pack(tb testing.TB) (all int) {
	tb.Helper()
	for n := 10; n == 10; all += n {
		b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
			n, err = tx.PackMemories(ctx, 10)
			return err
		})
	}
	return all
}

func (b bundle) count(tb testing.TB, query string, args ...any) (n int) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		n, err = store.Count(ctx, tx, query, args...)
		return err
	})
	return n
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
		if similarity := memory.Cosine(to, s.vector); similarity >= threshold {
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

// Recall with sketches finds what comparing everything finds: at least 99 of 100
// among random and among clustered vectors, in the scope and of the model that was
// asked for.
func TestRecallByVectorIsThatOfBruteForce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		r := rand.New(rand.NewPCG(7, 8))
		api, web := b.project(t, "api"), b.project(t, "web")
		for name, vectors := range map[string][]memory.Vector{
			"random": around(r, 1500, 0, 0), "clustered": around(r, 1500, 8, 0.6), "tight": around(r, 1500, 2, 0.15),
		} {
			person := "test/" + name
			visible := b.importVectors(t, "semantic_memories", person, "", memorytest.Model, vectors[:600])
			visible = append(visible, b.importVectors(t, "semantic_memories", person, api, memorytest.Model, vectors[600:900])...)
			visible = append(visible, b.importVectors(t, "episodic_memories", person, "", memorytest.Model, vectors[900:])...)
			// What must not be found, though it is as near.
			b.importVectors(t, "semantic_memories", person, web, memorytest.Model, vectors[:300])
			b.importVectors(t, "semantic_memories", person, "", "another model", vectors[:300])
			b.importVectors(t, "semantic_memories", person+"'s brother", "", memorytest.Model, vectors[:300])
			b.pack(t)
			if n := b.count(t, `SELECT count(*) FROM memory_sketches WHERE user_id = $1`, person); n < 15 {
				t.Fatalf("only %d chunks of sketches", n)
			}
			found, of := 0, 0
			for range 20 {
				to := around(r, 1, 0, 0)[0]
				near := vectors[r.IntN(len(vectors))]
				for i := range to {
					to[i] = near[i] + 0.5*to[i]
				}
				q := memory.Query{Scope: memory.Scope{Person: person, Codebase: api}, Embedding: memory.Embedding{Vector: to, Model: memorytest.Model}}
				want, got := exactly(visible, to, 10, memory.RecallThreshold), recalled(b.recall(t, q))
				if len(want) != len(got) {
					t.Errorf("%s: %d found, %d by brute force", name, len(got), len(want))
				}
				for _, text := range want {
					if of++; slices.Contains(got, text) {
						found++
					}
				}
			}
			t.Logf("%s: %d of %d", name, found, of)
			if of < 20 || found*100 < of*99 {
				t.Errorf("%s: %d of %d found", name, found, of)
			}
		}
	})
}

// Whether a fact is the same one is decided by the exact cosine, just above and
// just below the threshold.
func TestThresholdsAreExactWithSketches(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		r := rand.New(rand.NewPCG(9, 10))
		vectors := around(r, 400, 0, 0)
		b.importVectors(t, "semantic_memories", annsID, "", memorytest.Model, vectors)
		b.importVectors(t, "episodic_memories", annsID, "", memorytest.Model, vectors)
		b.pack(t)
		for i, cosine := range []float64{0.8499, 0.8501, 0.9499, 0.9501} {
			e := memory.Embedding{Vector: turnedFrom(vectors[i*100], vectors[i*100+1], cosine), Model: memorytest.Model}
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

// A memory is found by what it is now, whatever happened since its sketch was made.
func TestSketchesFollowTheirMemories(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		r := rand.New(rand.NewPCG(11, 12))
		api := b.project(t, "api")
		vectors := around(r, 700, 0, 0)
		facts := b.importVectors(t, "semantic_memories", annsID, "", memorytest.Model, vectors[:300])
		b.importVectors(t, "semantic_memories", annsID, api, memorytest.Model, vectors[300:600])
		b.importVectors(t, "episodic_memories", annsID, "", memorytest.Model, vectors[:300])
		if n := b.pack(t); n == 0 {
			t.Fatal("nothing was packed")
		}
		finds := func(v memory.Vector, want ...string) {
			t.Helper()
			q := memory.Query{Scope: memory.Scope{Person: annsID, Codebase: api}, Embedding: memory.Embedding{Vector: v, Model: memorytest.Model}, Threshold: 0.9}
			got := recalled(b.recall(t, q))
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("found %q, want %q", got, want)
			}
		}
		exec := func(query string, args ...any) {
			t.Helper()
			b.do(t, func(ctx context.Context, tx *store.Tx) error { return store.Exec(ctx, tx, query, args...) })
		}
		episode := func(i int) string { return fmt.Sprintf("episodic_memories  %s number %d", memorytest.Model, 600+i+1) }
		finds(vectors[5], facts[5].text, episode(5))

		exec(`UPDATE semantic_memories SET embedding = $2 WHERE fact = $1`, facts[5].text, vectors[650].Encode())
		finds(vectors[5], episode(5))
		finds(vectors[650], facts[5].text)
		exec(`UPDATE semantic_memories SET embedding = NULL, embedding_model = '' WHERE fact = $1`, facts[6].text)
		finds(vectors[6], episode(6))
		exec(`UPDATE episodic_memories SET expires_at = $2 WHERE content = $1`, episode(6), "2026-01-01T00:00:00.000Z")
		finds(vectors[6])
		exec(`UPDATE semantic_memories SET access_count = 5 WHERE fact = $1`, facts[7].text) // changes no sketch
		finds(vectors[7], facts[7].text, episode(7))
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.ForgetMemory(ctx, annsID, 8)
			return err
		})
		finds(vectors[7], episode(7))

		places := `SELECT COALESCE(sum(live), 0) FROM memory_sketches`
		inPlace := `SELECT count(*) FROM (SELECT id FROM semantic_memories WHERE sketch_id IS NOT NULL UNION ALL SELECT id FROM episodic_memories WHERE sketch_id IS NOT NULL) x`
		if p, n := b.count(t, places), b.count(t, inPlace); p != n || n == 0 {
			t.Errorf("%d places are taken by %d memories", p, n)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteCodebase(ctx, api) })
		finds(vectors[310])
		if p, n := b.count(t, places), b.count(t, inPlace); p != n || n == 0 {
			t.Errorf("without the codebase: %d places are taken by %d memories", p, n)
		}
		// Nothing of a forgotten person stays, also by a binary that knows no sketches.
		exec(`DELETE FROM episodic_memories WHERE user_id = $1`, annsID)
		if n := b.count(t, `SELECT count(*) FROM memory_sketches WHERE kind = 'episodic'`); n != 0 {
			t.Errorf("%d chunks of episodes that are gone", n)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.ForgetMemories(ctx, annsID)
			return err
		})
		if n := b.count(t, `SELECT count(*) FROM memory_sketches`); n != 0 {
			t.Errorf("%d chunks of nobody", n)
		}
	})
}

// What is learned one at a time gets its sketches as it comes, and chunks that
// became sparse are given up.
func TestSketchesAreMadeWhileLearning(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		r := rand.New(rand.NewPCG(13, 14))
		vectors := around(r, 700, 0, 0)
		learn := func(from, to int) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				for i := from; i < to; i++ {
					e := memory.Embedding{Vector: vectors[i], Model: memorytest.Model}
					f := memory.Fact{Scope: memory.Scope{Person: annsID}, RunID: someRun, Text: fmt.Sprint("fact ", i), Embedding: e}
					if _, err := tx.UpsertFact(ctx, f); err != nil {
						return err
					}
				}
				return nil
			})
		}
		learn(0, 400)
		chunks, loose := b.count(t, `SELECT count(*) FROM memory_sketches`), b.count(t, `SELECT count(*) FROM semantic_memories WHERE sketch_id IS NULL`)
		if chunks < 2 || loose > 128 {
			t.Errorf("%d chunks and %d without a sketch", chunks, loose)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `DELETE FROM semantic_memories WHERE sketch_place > 3`)
		})
		learn(400, 700)
		if n := b.count(t, `SELECT count(*) FROM memory_sketches WHERE live < 16`); n != 0 {
			t.Errorf("%d sparse chunks are left", n)
		}
		for _, i := range []int{0, 3, 350, 399, 450, 699} {
			q := memory.Query{Scope: memory.Scope{Person: annsID}, Embedding: memory.Embedding{Vector: vectors[i], Model: memorytest.Model}}
			if got := b.recall(t, q); len(got) == 0 || got[0].Text != fmt.Sprint("fact ", i) {
				t.Errorf("fact %d: %q", i, recalled(got))
			}
		}
	})
}

// Packing, learning, embedding and forgetting at once leave each memory in one
// place.
func TestSketchesWhileAllHappensAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		r := rand.New(rand.NewPCG(15, 16))
		vectors := around(r, 1200, 0, 0)
		b.importVectors(t, "semantic_memories", annsID, "", memorytest.Model, vectors[:600])
		errs := together(24, func(i int) error {
			return b.try(t, func(ctx context.Context, tx *store.Tx) error {
				switch i % 4 {
				case 0:
					_, err := tx.PackMemories(ctx, 2)
					return err
				case 1:
					e := memory.Embedding{Vector: vectors[600+i], Model: memorytest.Model}
					_, err := tx.UpsertFact(ctx, memory.Fact{Scope: memory.Scope{Person: annsID}, RunID: someRun, Text: fmt.Sprint("new ", i), Embedding: e})
					return err
				case 2:
					m, err := tx.Memory(ctx, annsID, int64(i))
					if err != nil {
						return err
					}
					return tx.SaveEmbedding(ctx, m, memory.Embedding{Vector: vectors[700+i], Model: memorytest.Model})
				default:
					_, err := tx.ForgetMemory(ctx, annsID, int64(100+i))
					return err
				}
			})
		})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		b.pack(t)
		for i := range 24 {
			var v memory.Vector
			want := 1
			switch i % 4 {
			case 1:
				v = vectors[600+i]
			case 2:
				v = vectors[700+i]
			case 3:
				v, want = vectors[100+i-1], 0
			default:
				v = vectors[300+i]
			}
			q := memory.Query{Scope: memory.Scope{Person: annsID}, Embedding: memory.Embedding{Vector: v, Model: memorytest.Model}, Threshold: 0.99}
			if got := b.recall(t, q); len(got) != want {
				t.Errorf("after step %d: %q", i, recalled(got))
			}
		}
	})
}

// A vector that got into the table by another way is embedded again instead of
// being in everybody's way.
func TestPackingTakesBadEmbeddingsAway(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		vectors := around(rand.New(rand.NewPCG(1, 1)), 300, 0, 0)
		vectors[3] = make(memory.Vector, memory.Dimensions) // like nothing
		list := b.importVectors(t, "semantic_memories", annsID, "", memorytest.Model, vectors)
		b.pack(t)
		b.pack(t)
		if n := b.count(t, `SELECT count(*) FROM memory_sketches`); n == 0 {
			t.Error("a bad vector stops packing")
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			bare, err := tx.BareMemories(ctx, memorytest.Model, 10, time.Now())
			if len(bare) != 1 || bare[0].Text != list[3].text {
				t.Errorf("to be embedded: %+v", bare)
			}
			return err
		})
	})
}
