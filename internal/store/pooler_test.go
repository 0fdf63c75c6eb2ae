package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"remote-agent/internal/messages"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/waittest"
)

// TestTransactionPooler makes the schema and works through a pooler that gives each
// transaction another session, with several processes at once.
func TestTransactionPooler(t *testing.T) {
	t.Parallel()
	direct := storetest.PostgresURL(t)
	url := storetest.TransactionPooler(t, direct)
	open := func(url string) *store.Store { return storetest.Open(t, store.Options{URL: url, Exclusive: true}) }
	if open(direct).Pooled() {
		t.Error("a pooler was found where there is none")
	}
	a, b := open(url), open(url)
	if !a.Pooled() || !b.Pooled() {
		t.Fatal("the pooler was not found")
	}
	var starts sync.WaitGroup
	for _, s := range []*store.Store{a, b} {
		starts.Go(func() {
			if _, err := s.Migrate(t.Context()); err != nil {
				t.Errorf("migrate: %v", err)
			}
		})
	}
	starts.Wait()
	var work sync.WaitGroup
	for i := range 40 {
		work.Go(func() {
			s := []*store.Store{a, b}[i%2]
			err := s.InTx(t.Context(), func(tx *store.Tx) error {
				_, _, err := tx.Conversations().GetOrCreateConversation(t.Context(), messages.ConversationKey{Platform: "test", ID: fmt.Sprint(i % 5)}, "demo")
				return err
			})
			if err != nil {
				t.Errorf("work: %v", err)
			}
		})
	}
	work.Wait()

	died := make(chan string, 1)
	life := func(s *store.Store, owner string) *store.Life {
		t.Helper()
		l, err := s.BeginLife(t.Context(), store.LifeConfig{Owner: owner, Log: storetest.Log(t), Lost: func() {}, Died: func(_ context.Context, owners []string) { died <- owners[0] }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Drop)
		return l
	}
	lost, heir := life(a, "lost"), life(b, "heir")
	lost.Drop()
	for range 3 {
		if err := heir.Step(t.Context()); err != nil || len(died) > 0 {
			t.Fatalf("who is silent for a moment is taken for dead: %v", err)
		}
	}
	err := b.InTx(t.Context(), func(tx *store.Tx) error {
		return store.Exec(t.Context(), tx, `UPDATE replicas SET until_ms = 1 WHERE owner = 'lost'`)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := heir.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-died:
		if got != "lost" {
			t.Errorf("%s is taken for dead", got)
		}
	case <-waittest.Late(t):
		t.Error("the lost one is not found")
	}
}
