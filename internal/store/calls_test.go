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
	c.Longest, c.Keep = 0, 10
	if _, err := all["a"].TakeCalls(t.Context(), c); !fault.Is(err, fault.RateLimited) {
		t.Errorf("of a new bucket a call is taken, although all of it is to be left: %v", err)
	}
	c.Keep = 4
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

// TestClockThatIsSetBack has calls taken while the database's clock was far ahead.
func TestClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(time.Now().Add(100 * time.Hour).UnixMicro())
	all := replicas(t, &now, "a", "b")
	c := claimOf(time.Minute, 10)
	c.Longest = time.Hour
	for n := range 70 {
		if _, err := all["a"].TakeCalls(t.Context(), c); err != nil {
			t.Fatalf("after %d calls: %v", n, err)
		}
	}
	now.Add(-time.Second.Microseconds()) // as a clock that is kept in time
	if _, err := all["b"].TakeCalls(t.Context(), c); !fault.Is(err, fault.RateLimited) {
		t.Errorf("what was taken for the next hour is forgotten: %v", err)
	}
	now.Add(-(10 * time.Hour).Microseconds())
	c.Longest = 0
	if _, err := all["b"].TakeCalls(t.Context(), c); err != nil {
		t.Errorf("no call is possible until it is that late again: %v", err)
	}
	for range 9 {
		_, _ = all["a"].TakeCalls(t.Context(), c)
	}
	if _, err := all["b"].TakeCalls(t.Context(), c); !fault.Is(err, fault.RateLimited) {
		t.Errorf("no limit holds any more: %v", err)
	} else if wait, _ := fault.Retry(err); wait != time.Minute {
		t.Errorf("the next call is to wait %v", wait)
	}
}

// joiners begins the lives of processes on one database, at the time of a test.
type joiners struct {
	t    *testing.T
	open func(testing.TB) *store.Store
	now  atomic.Int64
}

func newJoiners(t *testing.T) *joiners {
	t.Helper()
	j := &joiners{t: t, open: storetest.Postgres(t)}
	j.now.Store(time.Now().UnixMicro())
	return j
}

func (j *joiners) begin(owner string) replica {
	j.t.Helper()
	s := j.open(j.t)
	s.SetCallClock(j.now.Load)
	l, err := s.BeginLife(j.t.Context(), store.LifeConfig{
		Owner: owner, Log: storetest.Log(j.t), Lost: func() {}, Died: func(context.Context, []string) {},
	})
	if err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(l.Drop)
	return replica{s, l}
}

// look has a process look after the others.
func (j *joiners) look(r replica) {
	j.t.Helper()
	if err := r.life.Look(j.t.Context()); err != nil {
		j.t.Fatal(err)
	}
}

// end has a process end.
func (j *joiners) end(r replica) {
	j.t.Helper()
	ctx, cancel := context.WithCancel(j.t.Context())
	cancel()
	r.life.Run(ctx)
}

// left returns how many calls of a bucket of ten with one more a minute are left.
func (j *joiners) left(r replica, bucket string) (n int) {
	j.t.Helper()
	c := claimOf(time.Minute, 10)
	c.Longest, c.Bucket = 0, bucket
	for ; ; n++ {
		_, err := r.TakeCalls(j.t.Context(), c)
		if fault.Is(err, fault.RateLimited) {
			return n
		}
		if err != nil {
			j.t.Fatal(err)
		}
	}
}

// TestWhoJoinsPauses: a process that was alone counts by itself, until it knows of the
// other one. That one takes nothing until then.
func TestWhoJoinsPauses(t *testing.T) {
	t.Parallel()
	j := newJoiners(t)
	if s := j.open(t); !s.Alone() {
		t.Error("who has no life shares limits")
	}
	first := j.begin("first")
	if !first.Alone() {
		t.Error("the first process is not alone")
	}
	first.CountsAlone(func() []store.CallUsage {
		if first.Alone() {
			t.Error("it counts by itself still when it is asked what it has used")
		}
		return []store.CallUsage{{Account: "a", Bucket: "b", FullIn: 3 * time.Minute}, {Account: "else", Bucket: "b", FullIn: 8 * time.Minute}}
	})
	second, third := j.begin("second"), j.begin("third") // the third joins two
	if second.Alone() {
		t.Error("the second process is alone")
	}
	for _, r := range []replica{second, third} {
		c := claimOf(time.Minute, 10)
		_, err := r.TakeCalls(t.Context(), c)
		if wait, _ := fault.Retry(err); !fault.Is(err, fault.RateLimited) || wait > 200*time.Millisecond {
			t.Errorf("who joins is told %v, to wait %v", err, wait)
		}
	}
	j.look(first)
	if first.Alone() {
		t.Error("the first process is alone still")
	}
	if n := j.left(second, "b") + j.left(first, "b"); n != 7 {
		t.Errorf("%d of 10 calls are left where the first process has made 3", n)
	}
	if n := j.left(third, "another"); n != 10 {
		t.Errorf("%d of 10 calls are left where nobody made any", n)
	}
}

// TestWhoNeverSaysWhatItUsed has a process die that was alone until another one joined it:
// buckets count as empty then.
func TestWhoNeverSaysWhatItUsed(t *testing.T) {
	t.Parallel()
	j := newJoiners(t)
	first := j.begin("first")
	first.CountsAlone(func() []store.CallUsage { return nil })
	second := j.begin("second")
	first.life.Drop()
	j.now.Add((2*time.Second + time.Millisecond).Microseconds())
	third := j.begin("third")
	j.look(second)
	j.look(third)
	if n := j.left(second, "b") + j.left(third, "b"); n != 0 {
		t.Errorf("%d calls are left of what nobody knows the use of", n)
	}
}

// TestLongLimitsAreAlwaysShared has a process die that was alone until another one joined it. What
// it has used of a limit of an hour is known all the same, and nothing else of it counts as used.
func TestLongLimitsAreAlwaysShared(t *testing.T) {
	t.Parallel()
	j := newJoiners(t)
	if s := j.open(t); !s.CountsCalls(time.Hour) {
		t.Error("who has no life cannot count")
	}
	first := j.begin("first")
	if first.CountsCalls(time.Hour) || !first.CountsCalls(10*time.Minute) {
		t.Error("who is alone counts a limit of an hour by itself, or one of ten minutes not")
	}
	hour := claimOf(6*time.Minute, 10)
	for range 4 {
		if _, err := first.TakeCalls(t.Context(), hour); err != nil {
			t.Fatal(err)
		}
	}
	second := j.begin("second")
	first.life.Drop()
	hour.Longest = 0
	for n := range 7 {
		if _, err := second.TakeCalls(t.Context(), hour); fault.Is(err, fault.RateLimited) != (n == 6) {
			t.Errorf("call %d of the 6 that are left: %v", n+1, err)
		}
	}
}

// TestWhoComesBackEmptiesNothing has one of two processes be started again: the other one
// has counted in the rows that they share, so what was left is left. Neither is what it used
// itself counted once more, but after a time alone.
func TestWhoComesBackEmptiesNothing(t *testing.T) {
	t.Parallel()
	j := newJoiners(t)
	stays := j.begin("stays")
	asked := 0
	stays.CountsAlone(func() []store.CallUsage { asked++; return nil })
	for i := range 3 {
		other := j.begin(fmt.Sprint("other", i))
		j.look(stays)
		if n := j.left(other, fmt.Sprint(i)); n != 10 {
			t.Errorf("%d calls are left of a bucket of which nothing was used", n)
		}
		j.end(other)
		j.look(stays)
	}
	if asked != 1 {
		t.Errorf("it was asked %d times what it used alone", asked)
	}
	stays.ForgetOthers()
	if !stays.Alone() {
		t.Error("it is not alone long after")
	}
	last := j.begin("last")
	j.look(stays)
	if n := j.left(last, "last"); asked != 2 || n != 10 {
		t.Errorf("it was asked %d times after it was alone again; %d calls are left", asked, n)
	}
}

// TestWhoComesBackOnceItThaws has a process be taken for dead that only stood still: the
// other one, which took all from the shared rows, vouches for that again.
func TestWhoComesBackOnceItThaws(t *testing.T) {
	t.Parallel()
	j := newJoiners(t)
	frozen, stays := j.begin("frozen"), j.begin("stays")
	j.look(frozen)
	err := stays.InTx(t.Context(), func(tx *store.Tx) error {
		return store.Exec(t.Context(), tx, `UPDATE replicas SET until_ms = 1 WHERE owner = 'frozen'`)
	})
	if err == nil {
		err = stays.life.Step(t.Context())
	}
	if err == nil {
		err = frozen.life.Beat(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	j.look(stays)
	if n := j.left(frozen, "b"); n != 10 {
		t.Errorf("%d calls are left of a bucket of which nothing was used", n)
	}
}

// TestWhoJoinsAtTheSameMoment has a process come between two steps of the first one's beginning.
func TestWhoJoinsAtTheSameMoment(t *testing.T) {
	t.Parallel()
	j := newJoiners(t)
	s := j.open(t)
	s.SetCallClock(j.now.Load)
	l, err := s.Join(t.Context(), store.LifeConfig{Owner: "first", Log: storetest.Log(t), Lost: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Drop)
	second := j.begin("second")
	j.look(replica{s, l})
	if n := j.left(second, "b"); n != 10 {
		t.Errorf("%d calls are left of a bucket of which nothing was used", n)
	}
}

// TestWhatWasUsedIsAdded has two budgets of a process name the same bucket, of which more was
// used before: what was used most counts.
func TestWhatWasUsedIsAdded(t *testing.T) {
	t.Parallel()
	j := newJoiners(t)
	first := j.begin("first")
	usage := func(minutes time.Duration) func() []store.CallUsage {
		return func() []store.CallUsage {
			return []store.CallUsage{{Account: "a", Bucket: "b", FullIn: minutes * time.Minute}}
		}
	}
	first.CountsAlone(usage(1))
	first.CountsAlone(usage(4))
	first.CountsAlone(usage(2))
	second := j.begin("second")
	j.look(first)
	if n := j.left(second, "b"); n != 6 {
		t.Errorf("%d of 10 calls are left where 4 were used", n)
	}
	first.ForgetOthers()
	j.end(second)
	j.look(first) // is alone again
	third := j.begin("third")
	j.look(first)
	if n := j.left(third, "b"); n != 0 {
		t.Errorf("%d calls are left, although the second process had used all", n)
	}
}

// TestWhoJoinsWithoutAWord has a process join of a version that does not say that it did.
func TestWhoJoinsWithoutAWord(t *testing.T) {
	t.Parallel()
	j := newJoiners(t)
	first := j.begin("first")
	first.CountsAlone(func() []store.CallUsage {
		return []store.CallUsage{{Account: "a", Bucket: "b", FullIn: 4 * time.Minute}}
	})
	second := j.begin("second")
	err := second.InTx(t.Context(), func(tx *store.Tx) error {
		return store.Exec(t.Context(), tx, `UPDATE replicas SET joined_us = 0`)
	})
	if err != nil {
		t.Fatal(err)
	}
	j.look(first)
	if n := j.left(second, "b"); n != 6 {
		t.Errorf("%d of 10 calls are left where 4 were used", n)
	}
}

// TestHowLongOneIsAlone: who has not looked for a second knows nothing, and who was not alone
// goes on with the shared rows for a quarter of an hour.
func TestHowLongOneIsAlone(t *testing.T) {
	t.Parallel()
	j := newJoiners(t)
	first := j.begin("first")
	first.Age(1100 * time.Millisecond)
	if first.Alone() {
		t.Error("who could not look for a second is alone")
	}
	j.look(first)
	if !first.Alone() {
		t.Error("it is not alone after a look")
	}
	other := j.begin("other")
	j.look(first)
	j.end(other)
	for _, minutes := range []time.Duration{0, 14} {
		first.Age(minutes * time.Minute)
		j.look(first)
		if first.Alone() {
			t.Errorf("what the other one used is forgotten after %d minutes", minutes)
		}
	}
	first.Age(time.Minute)
	j.look(first)
	if !first.Alone() {
		t.Error("it never is alone again")
	}
}

// TestWhoBeginsForgetsNothing has a process begin while a bucket is used and somebody silent.
func TestWhoBeginsForgetsNothing(t *testing.T) {
	t.Parallel()
	j := newJoiners(t)
	first, second := j.begin("first"), j.begin("second")
	j.look(first)
	if n := j.left(first, "b"); n != 10 {
		t.Errorf("%d of 10 calls are left", n)
	}
	if err := first.SilenceCalls(t.Context(), "a", "w", time.Hour); err != nil {
		t.Fatal(err)
	}
	j.begin("third")
	c := claimOf(time.Minute, 10)
	c.Who = "else"
	if wait, err := second.TakeCalls(t.Context(), c); err != nil || wait != time.Minute {
		t.Errorf("a call of an empty bucket waits %v: %v", wait, err)
	}
	c.Who = "w"
	if _, err := second.TakeCalls(t.Context(), c); !fault.Is(err, fault.RateLimited) {
		t.Errorf("who is to be silent calls: %v", err)
	}
}

// TestWhoIsTakenForDeadCallsNobody, and asks again only after a second.
func TestWhoIsTakenForDeadCallsNobody(t *testing.T) {
	t.Parallel()
	j := newJoiners(t)
	first := j.begin("first")
	err := first.InTx(t.Context(), func(tx *store.Tx) error { return store.Exec(t.Context(), tx, `DELETE FROM replicas`) })
	if err != nil {
		t.Fatal(err)
	}
	_, err = first.TakeCalls(t.Context(), claimOf(time.Second, 10))
	if wait, _ := fault.Retry(err); !fault.Is(err, fault.RateLimited) || wait != time.Second {
		t.Errorf("it is told %v, to wait %v", err, wait)
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
		_, err = after.TakeCalls(t.Context(), claimOf(time.Second, 10)) // and does not pause for another one
		return after.Alone() && err == nil
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
