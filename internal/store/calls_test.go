package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/waittest"
)

// replica is a store that counts by a clock of the test.
type replica struct {
	*store.Store
	life *store.Life
}

// replicas opens a PostgreSQL database for processes whose calls are counted at the
// time that now says, in microseconds.
func replicas(t *testing.T, now *atomic.Int64, owners ...string) map[string]replica {
	t.Helper()
	open := storetest.Postgres(t)
	all := make(map[string]replica)
	for _, owner := range owners {
		s := open(t)
		s.SetCallClock(now.Load)
		l, err := s.BeginLife(t.Context(), store.LifeConfig{Owner: owner, Log: storetest.Log(t), Lost: func() {}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Drop)
		all[owner] = replica{s, l}
	}
	return all
}

func claimOf(every time.Duration, burst int) store.CallClaim {
	return store.CallClaim{Account: "a", Bucket: "b", Who: "w", Every: every, Burst: burst, Take: 1, Longest: time.Hour}
}

// TestReplicasShareLimits has four processes call at random for a minute, some of which
// die and come back. In no stretch of time they make more calls than the limit allows,
// and what one does not use the others do.
func TestReplicasShareLimits(t *testing.T) {
	t.Parallel()
	const burst, every = 10, 1500 * time.Millisecond
	begin := time.Now().Add(time.Hour) // all have joined long before
	var now atomic.Int64
	now.Store(begin.UnixMicro())
	all := replicas(t, &now, "a", "b", "c", "d")
	names := []string{"a", "b", "c", "d"}
	var calls []time.Duration
	refused := 0
	for at := time.Duration(0); at < 3*time.Minute; at += time.Duration(rand.IntN(300)) * time.Millisecond {
		now.Store(begin.Add(at).UnixMicro())
		who := names[rand.IntN(len(names))]
		if at > time.Minute { // one is alone with all that is left
			who = "c"
		}
		c := claimOf(every, burst)
		c.Longest = time.Duration(rand.IntN(4)) * time.Second
		wait, err := all[who].TakeCalls(t.Context(), c)
		switch {
		case fault.Is(err, fault.RateLimited):
			refused++
		case err != nil:
			t.Fatal(err)
		case wait > c.Longest:
			t.Errorf("waits %v, at most %v were asked for", wait, c.Longest)
		default:
			calls = append(calls, at+wait)
		}
	}
	slices.Sort(calls)
	for i, from := range calls {
		for n, to := range calls[i:] {
			if most := burst + int((to-from)/every) + 1; n+1 > most {
				t.Fatalf("%d calls between %v and %v, at most %d are allowed", n+1, from, to, most)
			}
		}
	}
	alone := 0
	for _, at := range calls {
		if at > time.Minute+10*time.Second {
			alone++
		}
	}
	if least := int((110*time.Second)/every) - 5; alone < least || refused == 0 {
		t.Errorf("one process makes %d calls in 110 s while the others make none, want at least %d; %d were refused", alone, least, refused)
	}
}

// TestWhatIsKept: a call that may be left out leaves some to those that may not.
func TestWhatIsKeptOfASharedLimit(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(time.Now().Add(time.Hour).UnixMicro())
	all := replicas(t, &now, "a", "b")
	c := claimOf(time.Second, 10)
	c.Longest, c.Keep = 0, 4
	n := 0
	for ; n < 20; n++ {
		if _, err := all[[]string{"a", "b"}[n%2]].TakeCalls(t.Context(), c); err != nil {
			break
		}
	}
	if n != 6 {
		t.Errorf("%d calls leave 4 of 10 over", n)
	}
	c.Keep = 0
	for range 4 {
		if wait, err := all["a"].TakeCalls(t.Context(), c); err != nil || wait != 0 {
			t.Errorf("what was kept waits %v: %v", wait, err)
		}
	}
	if _, err := all["b"].TakeCalls(t.Context(), c); !fault.Is(err, fault.RateLimited) {
		t.Errorf("an empty bucket gives one more: %v", err)
	}
}

// TestSilenceHoldsForAll has one process hear that somebody wants to be left alone.
func TestSilenceHoldsForAll(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	begin := time.Now().Add(time.Hour)
	now.Store(begin.UnixMicro())
	all := replicas(t, &now, "a", "b")
	silence := func(d time.Duration) {
		t.Helper()
		if err := all["a"].SilenceCalls(t.Context(), "a", "w", d); err != nil {
			t.Fatal(err)
		}
	}
	silence(30 * time.Second)
	silence(2 * time.Second) // is over sooner, and shortens nothing
	c := claimOf(time.Second, 10)
	for after, silent := range map[time.Duration]bool{0: true, 29 * time.Second: true, 31 * time.Second: false} {
		now.Store(begin.Add(after).UnixMicro())
		_, err := all["b"].TakeCalls(t.Context(), c)
		if left, _ := fault.Retry(err); fault.Is(err, fault.RateLimited) != silent || silent && left != 30*time.Second-after {
			t.Errorf("after %v: %v, for %v", after, err, left)
		}
	}
	now.Store(begin.UnixMicro())
	other := c
	other.Who = "somebody else"
	if _, err := all["b"].TakeCalls(t.Context(), other); err != nil {
		t.Errorf("others are silent, too: %v", err)
	}
}

// TestWhoJoinsPauses: a process that was alone counts by itself, until it knows of the
// other one. That one takes nothing until then, and what both share begins empty.
func TestWhoJoinsPauses(t *testing.T) {
	t.Parallel()
	open := storetest.Postgres(t)
	first, second, third := open(t), open(t), open(t)
	begin := func(s *store.Store, owner string) *store.Life {
		l, err := s.BeginLife(t.Context(), store.LifeConfig{Owner: owner, Log: storetest.Log(t), Lost: func() {}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Drop)
		return l
	}
	if !first.Alone() {
		t.Error("who has no life shares limits")
	}
	l := begin(first, "first")
	if !first.Alone() {
		t.Error("the first process is not alone")
	}
	begin(second, "second")
	if second.Alone() {
		t.Error("the second process is alone")
	}
	c := claimOf(100*time.Millisecond, 5)
	wait, err := second.TakeCalls(t.Context(), c)
	if err != nil || wait < time.Second || wait > 2100*time.Millisecond {
		t.Errorf("who joins waits %v: %v", wait, err)
	}
	if err := l.Look(t.Context()); err != nil || first.Alone() {
		t.Errorf("the first process is alone still: %v", err)
	}
	before := wait
	begin(third, "third") // joins two who share already
	if wait, err = third.TakeCalls(t.Context(), c); err != nil || wait > before+100*time.Millisecond {
		t.Errorf("who joins two waits %v: %v", wait, err)
	}
	c.Bucket = "another"
	if wait, err = first.TakeCalls(t.Context(), c); err != nil || wait > 2100*time.Millisecond {
		t.Errorf("the first waits %v: %v", wait, err)
	}
}

// TestWhoComesBackEmptiesNothing has one of two processes be started again. The other one
// has counted in the rows that they share, so what was left is left; where it may have
// counted by itself lately, it is not.
func TestWhoComesBackEmptiesNothing(t *testing.T) {
	t.Parallel()
	for name, alone := range map[string]bool{"Shared": false, "AloneBefore": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := storetest.Postgres(t)
			begin := func(s *store.Store, owner string) *store.Life {
				t.Helper()
				l, err := s.BeginLife(t.Context(), store.LifeConfig{Owner: owner, Log: storetest.Log(t), Lost: func() {}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(l.Drop)
				return l
			}
			leave := func(l *store.Life) {
				t.Helper()
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				l.Run(ctx)
			}
			first := open(t)
			one := begin(first, "first")
			other := open(t)
			stays, second := first, begin(other, "second")
			if !alone { // who was there before leaves
				stays, second, one = other, one, second
				err := stays.InTx(t.Context(), func(tx *store.Tx) error {
					return store.Exec(t.Context(), tx, `UPDATE replicas SET joined_us = 1`) // long ago
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if err := one.Look(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			leave(second)
			if err := one.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
			third := open(t)
			begin(third, "third")
			if err := one.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
			c := claimOf(time.Minute, 10)
			c.Longest = 0
			for _, s := range []*store.Store{third, stays} {
				if wait, err := s.TakeCalls(t.Context(), c); alone != fault.Is(err, fault.RateLimited) || !alone && err != nil {
					t.Errorf("a bucket of which nothing was used waits %v: %v", wait, err)
				}
			}
		})
	}
}

// TestRestartedProcessIsAlone: the row of a process that was killed is no company.
func TestRestartedProcessIsAlone(t *testing.T) {
	t.Parallel()
	open := storetest.Postgres(t)
	before, after := open(t), open(t)
	l, err := before.BeginLife(t.Context(), store.LifeConfig{Owner: "before", Log: storetest.Log(t), Lost: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	l.Drop()
	waittest.Until(t, "a process that is alone", func() bool { // the server learns of the end a little later
		l, err := after.BeginLife(t.Context(), store.LifeConfig{Owner: fmt.Sprint("after", rand.Int()), Log: storetest.Log(t), Lost: func() {}})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Drop()
		return after.Alone()
	})
}

// TestManyTakeAtOnce has calls taken at the same time, by the database's own clock.
func TestManyTakeAtOnce(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(time.Now().Add(time.Hour).UnixMicro())
	all := replicas(t, &now, "a", "b", "c")
	var taken atomic.Int64
	var group sync.WaitGroup
	for _, s := range all {
		for range 4 {
			group.Go(func() {
				c := claimOf(time.Second, 20)
				c.Longest = 0
				for range 5 {
					if _, err := s.TakeCalls(t.Context(), c); err == nil {
						taken.Add(1)
					} else if !fault.Is(err, fault.RateLimited) {
						t.Error(err)
					}
				}
			})
		}
	}
	group.Wait()
	if n := taken.Load(); n != 20 {
		t.Errorf("%d calls were taken of a burst of 20", n)
	}
}
