//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/memory"
	"remote-agent/internal/memory/memorytest"
	"remote-agent/internal/store"
)

// bare lists what a model has neither embedded nor refused.
func (b bundle) bare(tb testing.TB, model string) (list []memory.Memory) {
	tb.Helper()
	b.do(tb, func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = tx.Memories().BareMemories(ctx, model, 100, time.Now())
		return err
	})
	return list
}

// What a model refuses to embed is not asked for again until the model or the text
// changes. It is found by its words.
func TestARefusedMemory(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.learn(t, told("likes green tea", wordsOnly))
		b.happened(t, memory.Episode{Scope: memory.Scope{Person: annsID}, RunID: someRun, Text: "deployed"})
		longest := strings.Repeat("ü", 100)
		for _, model := range []string{memorytest.Model, longest} {
			refused := b.bare(t, model)
			if len(refused) != 2 {
				t.Fatalf("%s is asked for %+v, want both", model, refused)
			}
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				for _, m := range refused {
					if err := tx.Memories().RefuseEmbedding(ctx, m, model); err != nil {
						return err
					}
				}
				return nil
			})
			if got := b.bare(t, model); len(got) != 0 {
				t.Errorf("%s is asked again for %+v", model, got)
			}
			q := memory.Query{Scope: memory.Scope{Person: annsID}, Text: "green tea", Embedding: memory.Embedding{Vector: memorytest.Vector("x"), Model: model}}
			if got := recalled(b.recall(t, q)); !slices.Equal(got, []string{"likes green tea"}) {
				t.Errorf("recalled %v", got)
			}
		}
		if out := b.learn(t, told("likes green tea a lot", wordsOnly)); out.Operation != memory.UpdateSimilar {
			t.Errorf("learned %+v", out)
		}
		if got := b.bare(t, longest); len(got) != 1 || got[0].Text != "likes green tea a lot" {
			t.Errorf("asked for %+v, want the text that has changed", got)
		}
		for _, m := range b.bare(t, "another") {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.Memories().SaveEmbedding(ctx, m, memory.Embedding{Vector: memorytest.Vector(m.Text), Model: "another"})
			})
		}
		if got := b.bare(t, "another"); len(got) != 0 {
			t.Errorf("after another model has embedded them: %+v", got)
		}
	})
}

// On PostgreSQL a vector that comes in by SQL gets the newest name of a model. Under the
// name of a refusal it is embedded again.
func TestAVectorUnderTheNameOfARefusal(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.learn(t, told("likes green tea"))
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `UPDATE semantic_memories SET embedding_model = $1`, memory.RefusedBy(memorytest.Model))
		})
		if got := b.bare(t, memorytest.Model); len(got) != 1 {
			t.Errorf("to be embedded are %+v, want it", got)
		}
	})
}
