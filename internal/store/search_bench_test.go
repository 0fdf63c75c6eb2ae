package store_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// searchMessages is how many messages BenchmarkSearch looks through.
var searchMessages = flag.Int("search-messages", 100_000, "messages that BenchmarkSearch stores")

// BenchmarkSearch looks for words that are rare, that every tenth message has,
// that half of all have, and for a beginning; a page of 20 each.
func BenchmarkSearch(b *testing.B) {
	for _, dialect := range []struct {
		name string
		open func(testing.TB) func(testing.TB) *store.Store
	}{{"SQLite", storetest.SQLite}, {"Postgres", storetest.Postgres}} {
		b.Run(dialect.name, func(b *testing.B) {
			s := bundle{dialect.open(b)(b)}
			start := time.Now()
			s.fillSearch(b, *searchMessages)
			b.Logf("stored %d messages in %s", *searchMessages, time.Since(start).Round(time.Millisecond))
			oldest := s.conversation(b, "search 0").ID
			for _, words := range []string{"needle", "tenth", "half", "tenth half", "word1234", "word12*", "needle word12*", "nowhere", "nowhere*"} {
				for where, f := range map[string]store.SearchFilter{"": {}, "of the oldest conversation": {ConversationID: oldest}} {
					f.Words, f.Limit = words, 20
					b.Run(strings.NewReplacer(" ", "+", "*", "(begins)").Replace(words+" "+where), func(b *testing.B) {
						for b.Loop() {
							err := s.InRead(context.Background(), func(tx *store.Tx) error {
								_, err := tx.Search().Messages(context.Background(), f)
								return err
							})
							if err != nil {
								b.Fatal(err)
							}
						}
					})
				}
			}
		})
	}
}

// fillSearch stores n messages of about 60 words in sessions of 1,000.
func (b bundle) fillSearch(tb testing.TB, n int) {
	tb.Helper()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	var session string
	for i := 0; i < n; i += 100 {
		if i%1000 == 0 {
			session = b.session(tb, b.conversation(tb, fmt.Sprint("search ", i)).ID).ID
		}
		batch := make([]messages.Message, 0, 100)
		for k := i; k < min(i+100, n); k++ {
			words := make([]string, 0, 64)
			for range 60 {
				words = append(words, fmt.Sprint("word", int(random.ExpFloat64()*800)))
			}
			for every, word := range map[int]string{2: "half", 10: "tenth", max(n/10, 1): "needle"} {
				if k%every == 0 {
					words = append(words, word)
				}
			}
			batch = append(batch, textOf(messages.RoleUser, strings.Join(words, " ")))
		}
		b.do(tb, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Messages().AppendMessages(ctx, session, "", batch...)
			return err
		})
	}
	if err := store.Settle(context.Background(), b.Store); err != nil {
		tb.Fatal(err)
	}
}
