package store_test

import (
	"context"
	"fmt"
	"testing"

	"remote-agent/internal/messages"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// TestTheIndexOfWordsCatchesUp without being asked: while others write, and when the
// store is closed.
func TestTheIndexOfWordsCatchesUp(t *testing.T) {
	t.Parallel()
	const all = 300
	options := store.Options{DataDir: t.TempDir(), Log: storetest.Log(t), Exclusive: true}
	s := storetest.Open(t, options)
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := bundle{s}
	indexed := func() (n int) {
		t.Helper()
		err := b.InRead(t.Context(), func(tx *store.Tx) (err error) {
			n, err = store.Count(t.Context(), tx, `SELECT count(*) FROM agent_messages_fts_docsize`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	session := b.session(t, b.conversation(t, "1").ID)
	for i := range all {
		if n := indexed(); n > 0 && i < store.WorthIndexed {
			t.Fatalf("%d of %d messages are indexed, one by one", n, i)
		}
		b.say(t, session.ID, "", textOf(messages.RoleUser, fmt.Sprint("number", i)))
	}
	if n := indexed(); n < store.WorthIndexed || n == all {
		t.Errorf("%d of %d messages are indexed while others write", n, all)
	}
	for _, i := range []int{0, 200, all - 1} {
		if found, _ := b.search(t, store.SearchFilter{Words: fmt.Sprint("number", i)}); len(found) != 1 {
			t.Errorf("message %d was found %d times", i, len(found))
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b.Store = storetest.Open(t, options)
	if n := indexed(); n != all {
		t.Errorf("%d of %d messages are indexed after closing", n, all)
	}
	b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.Search().CheckSearchIndex(ctx) })
}
