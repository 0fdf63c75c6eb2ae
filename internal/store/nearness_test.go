//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/memory"
	"remote-agent/internal/memory/memorytest"
	"remote-agent/internal/store"
)

func (b bundle) nearness(t *testing.T) (all map[memory.Kind]map[int64]int64) {
	t.Helper()
	b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
		all, err = tx.Memories().Nearness(ctx)
		return err
	})
	return all
}

// How near a memory was to the nearest other one is noted, below the threshold and
// above it.
func TestNearMissesAreNoted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		v := memorytest.Vector("prefers short answers")
		sideways := around(rand.New(rand.NewPCG(3, 4)), 3, 0, 0)
		with := func(text string, v memory.Vector) {
			b.learn(t, told(text, func(f *memory.Fact) { f.Embedding.Vector = v }))
		}
		with("first", v)                                       // nothing to compare with
		with("just below", turnedFrom(v, sideways[0], 0.8405)) // kept apart
		with("first", v)                                       // the same text is no near miss
		if diff := cmp.Diff(map[memory.Kind]map[int64]int64{memory.Semantic: {840: 1}, memory.Episodic: {}}, b.nearness(t)); diff != "" {
			t.Errorf("near misses (-want +got):\n%s", diff)
		}
		with("just above", turnedFrom(v, sideways[1], 0.8705)) // takes the place of the first
		for text, v := range map[string]memory.Vector{"one": turnedFrom(v, sideways[2], 0.9405), "other": v} {
			b.happened(t, memory.Episode{Scope: memory.Scope{Person: annsID}, RunID: someRun, Text: text,
				Embedding: memory.Embedding{Vector: v, Model: memorytest.Model}})
		}
		want := map[memory.Kind]map[int64]int64{memory.Semantic: {840: 1, 870: 1}, memory.Episodic: {940: 1}}
		if diff := cmp.Diff(want, b.nearness(t)); diff != "" {
			t.Errorf("near misses (-want +got):\n%s", diff)
		}
	})
}

func TestSQLNotesNearMisses(t *testing.T) {
	t.Parallel()
	b := withVectors(t)
	v := memorytest.Vector("prefers short answers")
	sideways := around(rand.New(rand.NewPCG(5, 6)), 4, 0, 0)
	for i, cosine := range []float64{1, 0.8405, 0.8705} {
		if got, err := b.upsertSQL(t, annsID, []string{"a", "b", "c"}[i], turnedFrom(v, sideways[i], cosine), ""); err != nil {
			t.Fatal(got, err)
		}
	}
	for i, cosine := range []float64{1, 0.9405, 0.9705} {
		if got, err := b.insertSQL(t, annsID, []string{"a", "b", "c"}[i], turnedFrom(v, sideways[i], cosine), ""); err != nil {
			t.Fatal(got, err)
		}
	}
	want := map[memory.Kind]map[int64]int64{memory.Semantic: {840: 1, 870: 1}, memory.Episodic: {940: 1, 970: 1}}
	if diff := cmp.Diff(want, b.nearness(t)); diff != "" {
		t.Errorf("near misses (-want +got):\n%s", diff)
	}
}
