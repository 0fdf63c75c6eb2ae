//go:build unix

package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"remote-agent/internal/memory"
	"remote-agent/internal/memory/memorytest"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

var benchWords = []string{
	"deploy", "server", "heron", "tabs", "spaces", "coffee", "tea", "friday", "review", "branch", "test", "coverage", "postgres",
	"sqlite", "slack", "telegram", "release", "dark", "theme", "editor", "keyboard", "garden", "music", "berlin", "paris", "python",
	"golang", "rust", "docker", "kernel", "budget", "meeting",
}

func benchText(r *rand.Rand, i int) string {
	pick := func() string { return benchWords[r.IntN(len(benchWords))] }
	return fmt.Sprintf("%s %s %s %s %s note%d of %d", pick(), pick(), pick(), pick(), pick(), i, r.IntN(1000))
}

// fillMemories stores memories of some people in the way of a bulk import.
func (b bundle) fillMemories(tb testing.TB, people, memories int) {
	tb.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for at := 0; at < memories; at += 5000 {
		b.do(tb, func(ctx context.Context, tx *store.Tx) error {
			for i := at; i < at+5000; i++ {
				who, text := fmt.Sprint("bench/", i%people), benchText(r, i)
				if i < people {
					if err := store.Exec(ctx, tx, `INSERT INTO memory_people (user_id, seq) VALUES ($1, 1000000)`, who); err != nil {
						return err
					}
				}
				err := store.Exec(ctx, tx, `
					INSERT INTO semantic_memories (user_id, run_id, fact, embedding, embedding_model, seq, content_hash, terms)
					VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
					who, someRun, text, memorytest.Vector(text).Encode(), memorytest.Model, i+1, memory.Hash(text), store.StoredTerms(who, text))
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := store.Settle(context.Background(), b.Store); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkMemory recalls memories and learns one more, with 1,000 people who have
// 100 each, and with one person who has 10,000.
func BenchmarkMemory(b *testing.B) {
	for _, dialect := range []struct {
		name string
		open func(testing.TB) func(testing.TB) *store.Store
	}{{"SQLite", storetest.SQLite}, {"Postgres", storetest.Postgres}} {
		for _, have := range []struct{ people, memories int }{{1000, 100_000}, {1, 10_000}} {
			b.Run(fmt.Sprintf("%s/people=%d/memories=%d", dialect.name, have.people, have.memories), func(b *testing.B) {
				s := bundle{dialect.open(b)(b)}
				s.fillMemories(b, have.people, have.memories)
				benchmarkMemory(b, s)
			})
		}
	}
}

func benchmarkMemory(b *testing.B, s bundle) {
	b.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	scope := memory.Scope{Person: "bench/0"}
	for name, embedding := range map[string]func(text string) memory.Embedding{
		"Vector": memorytest.Embedding, "Words": func(string) memory.Embedding { return memory.Embedding{} },
	} {
		b.Run("Recall"+name, func(b *testing.B) {
			defer processorTime(b)()
			for each := newMedian(b); b.Loop(); each.lap() {
				text := benchText(r, 0)
				err := s.InRead(context.Background(), func(tx *store.Tx) error {
					_, err := tx.Memories().Recall(context.Background(), memory.Query{Scope: scope, Text: text, Embedding: embedding(text)})
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("Upsert"+name, func(b *testing.B) {
			defer processorTime(b)()
			i := 0
			for each := newMedian(b); b.Loop(); each.lap() {
				i++
				text := benchText(r, 1_000_000+i)
				err := s.InTx(context.Background(), func(tx *store.Tx) error {
					_, err := tx.Memories().UpsertFact(context.Background(), memory.Fact{Scope: scope, RunID: someRun, Text: text, Embedding: embedding(text)})
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// median reports the middle one of the times of a benchmark's operations as p50-ms/op.
type median struct {
	last time.Time
	all  []time.Duration
}

func newMedian(b *testing.B) *median {
	b.Helper()
	m := &median{last: time.Now()}
	b.Cleanup(func() {
		if len(m.all) > 0 {
			slices.Sort(m.all)
			b.ReportMetric(float64(m.all[len(m.all)/2].Microseconds())/1000, "p50-ms/op")
		}
	})
	return m
}

// lap ends one operation and begins the next.
func (m *median) lap() {
	now := time.Now()
	m.all, m.last = append(m.all, now.Sub(m.last)), now
}

// processorTime reports the processor's time of this process for each operation,
// which says more than the clock on a machine that does other things too.
func processorTime(b *testing.B) (report func()) {
	b.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	begin := used()
	return func() { b.ReportMetric(float64((used()-begin).Microseconds())/1000/float64(b.N), "cpu-ms/op") }
}
