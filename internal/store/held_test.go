//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/store"
)

// holds locks the people of accounts, as whoever is about to change them does.
func (b bundle) holds(ctx context.Context, tx *store.Tx, accounts ...string) error {
	for _, account := range accounts {
		query := `SELECT 1 FROM memory_people WHERE user_id = (SELECT user_id FROM memory_accounts WHERE account = $1)`
		if b.Dialect() == "postgres" {
			query += ` FOR UPDATE`
		}
		if err := store.Exec(ctx, tx, query, account); err != nil {
			return err
		}
	}
	return nil
}

// Two people are linked by two of their accounts at once, which sort the other way round
// than the people do. The second one waits for the first and finds them linked: neither
// is the victim of a deadlock, which would run its transaction twice.
func TestTwoJoinsOfTheSamePeopleAtOnce(t *testing.T) {
	t.Parallel()
	for name, guests := range map[string][2]string{"the same way": {"b/1", "c/1"}, "each the other way": {"b/1", "d/1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b bundle) {
				for i, account := range []string{"a/1", "b/1", "c/1", "d/1"} {
					b.learn(t, told(fmt.Sprintf("thing number%d of mine", i), of(account), wordsOnly))
				}
				b.join(t, "a/1", "d/1")
				b.join(t, "b/1", "c/1")
				hosts := map[string]string{"b/1": "a/1", "c/1": "d/1", "d/1": "c/1"}
				var runs atomic.Int32
				ended := make(chan error, len(guests))
				b.do(t, func(ctx context.Context, tx *store.Tx) error {
					if err := b.holds(ctx, tx, "a/1", "b/1"); err != nil { // so that both meet
						return err
					}
					for _, guest := range guests {
						go func() {
							ended <- b.InTx(ctx, func(tx *store.Tx) error {
								runs.Add(1)
								_, err := tx.Persons().JoinPeople(ctx, memory.Account{Name: hosts[guest]}, memory.Account{Name: guest})
								return err
							})
						}()
					}
					return b.awaitBlocked(ctx, len(guests), ended)
				})
				first, second := <-ended, <-ended
				if first != nil {
					first, second = second, first
				}
				if first != nil || !fault.Is(second, fault.Conflict) || runs.Load() != 2 {
					t.Errorf("ended with %v and %v after %d runs, want one that is linked already, after 2", first, second, runs.Load())
				}
				for _, account := range []string{"a/1", "b/1", "c/1", "d/1"} {
					if got := b.known(t, account); len(got) != 4 {
						t.Errorf("%s knows %v", account, got)
					}
				}
			})
		})
	}
}

// Somebody waits for a person that is another one's when the wait is over: what they do
// goes to that one.
func TestWhoWaitsForAPersonThatWasJoined(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(ctx context.Context, tx *store.Tx) error{
		"learns": func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Memories().UpsertFact(ctx, told("has a dog", of("c/1"), wordsOnly))
			return err
		},
		"joins": func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Persons().JoinPeople(ctx, memory.Account{Name: "c/1"}, memory.Account{Name: "e/1"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b bundle) {
				b.learn(t, told("likes green tea", of("a/1"), wordsOnly))
				b.learn(t, told("has a dog", of("e/1"), wordsOnly))
				b.join(t, "b/1", "c/1")
				ended := make(chan error, 1)
				b.do(t, func(ctx context.Context, tx *store.Tx) error {
					if err := b.holds(ctx, tx, "b/1"); err != nil {
						return err
					}
					go func() { ended <- b.InTx(ctx, func(tx *store.Tx) error { return do(ctx, tx) }) }()
					if err := b.awaitBlocked(ctx, 1, ended); err != nil {
						return err
					}
					_, err := tx.Persons().JoinPeople(ctx, memory.Account{Name: "a/1"}, memory.Account{Name: "b/1"})
					return err
				})
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if got := b.known(t, "a/1"); len(got) != 2 {
					t.Errorf("they know %v", got)
				}
			})
		})
	}
}
