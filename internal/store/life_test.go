package store_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// lives runs the life of a process until the test ends or stop is called, and returns
// the owners that it found dead and a value for each time that it was taken for dead.
func lives(t *testing.T, s *store.Store, owner string) (died chan string, lost chan struct{}) {
	t.Helper()
	died, lost = make(chan string, 10), make(chan struct{}, 10)
	runLife(t, s, store.LifeConfig{
		Owner: owner,
		Died: func(_ context.Context, owners []string) {
			for _, o := range owners {
				died <- o
			}
		},
		Lost: func() { lost <- struct{}{} },
	})
	return died, lost
}

// runLife begins the life of a process and runs it until the test ends.
func runLife(t *testing.T, s *store.Store, config store.LifeConfig) {
	t.Helper()
	config.Log = storetest.Log(t)
	if config.Died == nil {
		config.Died = func(context.Context, []string) {}
	}
	if config.Lost == nil {
		config.Lost = func() {}
	}
	life, err := s.BeginLife(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		life.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// TestLeasesOfTheDeadAreVoid has a process that dies with its connection, one that
// says nothing any more although its connection stands, and two that live.
func TestLeasesOfTheDeadAreVoid(t *testing.T) {
	t.Parallel()
	s := storetest.Postgres(t)(t)
	var thawed []string
	begin := func(owner string) *store.Life {
		t.Helper()
		l, err := s.BeginLife(t.Context(), store.LifeConfig{Owner: owner, Log: storetest.Log(t), Lost: func() { thawed = append(thawed, owner) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Drop)
		return l
	}
	claim := func(owner, chat string) (lease sessions.Lease, ok bool) {
		t.Helper()
		err := s.InTx(t.Context(), func(tx *store.Tx) error {
			conv, _, err := tx.Conversations().GetOrCreateConversation(t.Context(), messages.ConversationKey{Platform: "test", ID: chat}, "demo")
			if err != nil {
				return err
			}
			if lease, _, ok, err = tx.Leases().ClaimLease(t.Context(), conv.ID, owner, time.Hour); err != nil {
				return err
			}
			_, err = tx.Leases().AcquireNamed(t.Context(), chat, owner, time.Hour)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return lease, ok
	}
	dead, frozen := begin("dead"), begin("frozen")
	begin("alive")
	run := func(query string) {
		t.Helper()
		if err := s.InTx(t.Context(), func(tx *store.Tx) error { return store.Exec(t.Context(), tx, query) }); err != nil {
			t.Fatal(err)
		}
	}
	run(`UPDATE replicas SET until_ms = {now} + 3600000`) // none of them says so again
	old, _ := claim("dead", "1")
	claim("frozen", "2")
	claim("alive", "3")
	died, lost := lives(t, s, "heir")

	dead.Drop()
	if got := <-died; got != "dead" {
		t.Fatalf("%s is taken for dead", got)
	}
	if _, ok := claim("heir", "1"); !ok {
		t.Error("the lease of the dead holds")
	}
	err := s.InTx(t.Context(), func(tx *store.Tx) error {
		if ok, err := tx.Leases().AcquireNamed(t.Context(), "1", "heir", time.Hour); err != nil || !ok {
			t.Errorf("the named lease of the dead holds: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.InTx(t.Context(), func(tx *store.Tx) error { _, err := tx.Leases().HoldLease(t.Context(), old); return err }); err == nil {
		t.Error("the dead may write")
	}
	run(`UPDATE replicas SET until_ms = 1 WHERE owner = 'frozen'`)
	if got := <-died; got != "frozen" {
		t.Fatalf("%s is taken for dead", got)
	}
	if _, ok := claim("heir", "2"); !ok {
		t.Error("the lease of the frozen holds")
	}
	if _, ok := claim("heir", "3"); ok {
		t.Error("the lease of a living process is void")
	}
	if err := frozen.Beat(t.Context()); err != nil || len(thawed) != 1 {
		t.Errorf("who thaws is told %d times that it was taken for dead: %v", len(thawed), err)
	}
	if len(lost) > 0 {
		t.Error("the heir was taken for dead")
	}
}

// TestLockThatIsLeftOver has the server not notice that the connection of a process is gone,
// as behind a network that drops what it carries: the process goes on over another one, and
// the others see that.
func TestLockThatIsLeftOver(t *testing.T) {
	t.Parallel()
	open := storetest.Postgres(t)
	s := open(t)
	begin := func(s *store.Store, owner string) *store.Life {
		t.Helper()
		l, err := s.BeginLife(t.Context(), store.LifeConfig{
			Owner: owner, Log: storetest.Log(t), Died: func(_ context.Context, dead []string) { t.Errorf("%q are taken for dead", dead) },
			Lost: func() { t.Error("it is told that it was") }, Offered: func(context.Context, []string) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Drop)
		return l
	}
	mine, other := begin(open(t), "mine"), begin(s, "other")
	gone := make(chan struct{})
	held := make(chan error)
	go func() { // what the server takes for the first connection
		held <- s.InTx(t.Context(), func(tx *store.Tx) error {
			var (
				n   int
				err error
			)
			for n == 0 && err == nil {
				n, err = store.Count(t.Context(), tx, `
					SELECT count(*) FROM replicas WHERE owner = 'mine' AND pg_try_advisory_xact_lock($1::int, lock_key::int)`, store.LifeClass)
			}
			held <- err
			<-gone
			return err
		})
	}()
	mine.Drop()
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	if err := mine.Beat(t.Context()); err != nil {
		t.Errorf("it cannot go on: %v", err)
	}
	close(gone)
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := other.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Takers(); !slices.Equal(got, []string{"mine"}) {
		t.Errorf("to it, %q take offers", got)
	}
	if err := mine.Beat(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestWhoIsTakenForDead: nobody for one look without a lock, nor by whoever has lost a
// connection itself a moment ago.
func TestWhoIsTakenForDead(t *testing.T) {
	t.Parallel()
	s := storetest.Postgres(t)(t)
	begin := func(owner string) *store.Life {
		t.Helper()
		l, err := s.BeginLife(t.Context(), store.LifeConfig{Owner: owner, Log: storetest.Log(t), Lost: func() {}, Died: func(context.Context, []string) {}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Drop)
		return l
	}
	other, me := begin("other"), begin("me")
	lock := func(factor int) { // -1 takes its lock away, and gives it back
		t.Helper()
		if err := s.InTx(t.Context(), func(tx *store.Tx) error {
			return store.Exec(t.Context(), tx, `UPDATE replicas SET lock_key = lock_key * $1 WHERE owner = 'other'`, factor)
		}); err != nil {
			t.Fatal(err)
		}
	}
	lives := func(when string, want int) {
		t.Helper()
		if err := me.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := s.InRead(t.Context(), func(tx *store.Tx) (err error) {
			n, err = store.Count(t.Context(), tx, `SELECT count(*) FROM replicas WHERE owner = 'other'`)
			return err
		}); err != nil || n != want {
			t.Fatalf("%s, %d live, want %d: %v", when, n, want, err)
		}
	}
	lock(-1)
	lives("at the first look without its lock", 1)
	lock(-1)
	lives("when it is back", 1)
	lock(-1)
	lives("at the next look without", 1)
	lives("at two in a row", 0)
	if err := other.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	if done, err := me.Void(t.Context(), "other"); err != nil || done {
		t.Errorf("what one holds that has come back in between is void: %v", err)
	}
	me.Drop()
	lock(-1)
	for range 3 {
		lives("to who has just come back itself", 1)
	}
}

// TestLifeIsSaidAgain has a process say in time that it lives, for as long as at the beginning.
func TestLifeIsSaidAgain(t *testing.T) {
	t.Parallel()
	s := storetest.Postgres(t)(t)
	l, err := s.BeginLife(t.Context(), store.LifeConfig{Owner: "me", Log: storetest.Log(t), Lost: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Drop)
	var said int
	err = s.InTx(t.Context(), func(tx *store.Tx) error { return store.Exec(t.Context(), tx, `UPDATE replicas SET until_ms = 1`) })
	if err == nil {
		l.Tire()
		err = l.Step(t.Context())
	}
	if err == nil {
		err = s.InRead(t.Context(), func(tx *store.Tx) (err error) {
			said, err = store.Count(t.Context(), tx, `SELECT count(*) FROM replicas WHERE until_ms > {now} + 10000`)
			return err
		})
	}
	if err != nil || said != 1 {
		t.Errorf("it does not say that it lives: %v", err)
	}
}
