package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/waittest"
)

// hears runs the life of a process that takes offers until the test ends.
func hears(t *testing.T, s *store.Store, owner string, heard chan<- []string) {
	t.Helper()
	runLife(t, s, store.LifeConfig{Owner: owner, Offered: func(_ context.Context, ids []string) { heard <- ids }})
}

// TestOffers has a process offer conversations to another one, which hears of them once
// the transaction is committed, and see who takes offers at all.
func TestOffers(t *testing.T) {
	t.Parallel()
	open := storetest.Postgres(t)
	mine, theirs := open(t), open(t)
	heard := make(chan []string, 10)
	hears(t, theirs, "their's \"odd\" name", heard)
	runLife(t, open(t), store.LifeConfig{Owner: "of a version that takes none"})
	mineHeard := make(chan []string, 10)
	hears(t, mine, "mine", mineHeard)
	waittest.Until(t, "who takes offers is known", func() bool {
		return slices.Equal(mine.Takers(), []string{"their's \"odd\" name"}) && slices.Equal(theirs.Takers(), []string{"mine"})
	})
	offer := func(failed error, ids ...string) {
		t.Helper()
		err := mine.InTx(t.Context(), func(tx *store.Tx) error {
			if err := tx.Leases().Offer(t.Context(), "their's \"odd\" name", ids...); err != nil {
				return err
			}
			return failed
		})
		if !errors.Is(err, failed) {
			t.Fatal(err)
		}
	}
	offer(errors.New("undone"), "undone")
	var many []string
	for n := range 501 {
		many = append(many, fmt.Sprintf("01234567-89ab-cdef-0123-%012d", n))
	}
	offer(nil, many...)
	var got []string
	for len(got) < len(many) {
		select {
		case ids := <-heard:
			got = append(got, ids...)
		case <-waittest.Late(t):
			t.Fatalf("%d of %d conversations were heard of", len(got), len(many))
		}
	}
	if !slices.Equal(got, many) {
		t.Error("what was heard of is not what was offered, in its order")
	}
	if len(mineHeard) > 0 {
		t.Errorf("who offers hears of it: %q", <-mineHeard)
	}
}

// TestFrozenTakesNoOffers has a process say nothing any more although its connection
// stands, another one lose its connection, which it opens again, and one end.
func TestFrozenTakesNoOffers(t *testing.T) {
	t.Parallel()
	s := storetest.Postgres(t)(t)
	heard := make(chan []string, 1)
	begin := func(owner string) *store.Life {
		t.Helper()
		l, err := s.BeginLife(t.Context(), store.LifeConfig{Owner: owner, Log: storetest.Log(t), Lost: func() {}, Offered: func(_ context.Context, ids []string) { heard <- ids }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Drop)
		return l
	}
	other, me := begin("other"), begin("me")
	want := func(when string, takers ...string) {
		t.Helper()
		if err := me.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.Takers(); !slices.Equal(got, takers) {
			t.Errorf("%s, %q take offers, want %q", when, got, takers)
		}
	}
	run := func(query string) {
		t.Helper()
		if err := s.InTx(t.Context(), func(tx *store.Tx) error { return store.Exec(t.Context(), tx, query) }); err != nil {
			t.Fatal(err)
		}
	}
	want("at first", "other")
	run(`UPDATE replicas SET until_ms = until_ms - 6000 WHERE owner = 'other'`)
	want("once one says nothing for six seconds")
	if err := other.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("after it goes on", "other")
	other.Drop()
	waittest.Until(t, "it is known to be gone", func() bool { // the server learns of the end a little later
		return me.Look(t.Context()) == nil && len(s.Takers()) == 0
	})
	if err := other.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("with another one", "other")
	if err := s.InTx(t.Context(), func(tx *store.Tx) error { return tx.Leases().Offer(t.Context(), "other", "1") }); err != nil {
		t.Fatal(err)
	}
	other.Listen(t.Context(), time.Second)
	if got := <-heard; !slices.Equal(got, []string{"1"}) {
		t.Errorf("over another connection it hears %q", got)
	}
}

// TestWhoSeesNobodyOffersNothing has a process lose sight of the others.
func TestWhoSeesNobodyOffersNothing(t *testing.T) {
	t.Parallel()
	open := storetest.Postgres(t)
	hears(t, open(t), "other", make(chan []string, 1))
	s := open(t)
	l, err := s.BeginLife(t.Context(), store.LifeConfig{Owner: "me", Log: storetest.Log(t), Lost: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Takers(); !slices.Equal(got, []string{"other"}) {
		t.Errorf("%q take offers", got)
	}
	l.Drop()
	if got := s.Takers(); len(got) > 0 {
		t.Errorf("%q are offered work although they may be gone", got)
	}
}

// TestWhoEndsHearsWhatWasOfferedBefore has a process end that the other one has seen a moment ago.
func TestWhoEndsHearsWhatWasOfferedBefore(t *testing.T) {
	t.Parallel()
	open := storetest.Postgres(t)
	mine, theirs := open(t), open(t)
	hears(t, mine, "mine", make(chan []string, 1))
	var heard []string
	l, err := theirs.BeginLife(t.Context(), store.LifeConfig{
		Owner: "theirs", Log: storetest.Log(t), Lost: func() {}, Offered: func(_ context.Context, ids []string) { heard = append(heard, ids...) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Drop)
	if err := mine.InTx(t.Context(), func(tx *store.Tx) error { return tx.Leases().Offer(t.Context(), "theirs", "1") }); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	l.Run(ended)
	if !slices.Equal(heard, []string{"1"}) {
		t.Errorf("it hears %q in the end", heard)
	}
	if err := mine.InRead(t.Context(), func(tx *store.Tx) error {
		n, err := store.Count(t.Context(), tx, `SELECT count(*) FROM replicas`)
		if n != 1 {
			t.Errorf("%d processes are on record behind it", n)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// TestWhoCannotListenWaits as long as it would listen: else it would look after the others
// without a pause.
func TestWhoCannotListenWaits(t *testing.T) {
	t.Parallel()
	s := storetest.Postgres(t)(t)
	for name, offered := range map[string]func(context.Context, []string){"takes offers": func(context.Context, []string) {}, "takes none": nil} {
		l, err := s.BeginLife(t.Context(), store.LifeConfig{Owner: name, Log: storetest.Log(t), Lost: func() {}, Offered: offered})
		if err != nil {
			t.Fatal(err)
		}
		l.Drop()
		begin := time.Now()
		if l.Listen(t.Context(), 50*time.Millisecond); time.Since(begin) < 50*time.Millisecond {
			t.Errorf("who %s, without a connection, listens for %v", name, time.Since(begin))
		}
	}
}

// TestNobodyToOfferTo has a process on SQLite, which is alone.
func TestNobodyToOfferTo(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t)(t)
	err := s.InTx(t.Context(), func(tx *store.Tx) error { return tx.Leases().Offer(t.Context(), "other", "1") })
	if !fault.Is(err, fault.Unsupported) || len(s.Takers()) > 0 {
		t.Errorf("an offer on SQLite is %v, to %q", err, s.Takers())
	}
}
