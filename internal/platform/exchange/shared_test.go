package exchange_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

// table is what processes share: buckets by the time when they are full again.
type table struct {
	mu     sync.Mutex
	alone  bool
	asked  int
	fails  error
	full   map[string]time.Time
	silent map[string]time.Time
	usages []func() []platform.Usage
}

func newTable() *table {
	return &table{full: make(map[string]time.Time), silent: make(map[string]time.Time)}
}

func (s *table) Local(full time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alone && full <= 10*time.Minute
}

func (s *table) Take(_ context.Context, c platform.Claim) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked++; s.fails != nil {
		return 0, s.fails
	}
	now := time.Now()
	if left := s.silent[c.Account+c.Who].Sub(now); left > 0 {
		return 0, exchange.Limited(left)
	}
	full := s.full[c.Account+c.Bucket]
	if full.Before(now) {
		full = now
	}
	burst := time.Duration(c.Burst) * c.Every
	need := time.Duration((float64(c.Take) + c.Keep) * float64(c.Every))
	if wait := full.Add(need).Sub(now) - burst; wait > c.Longest {
		return 0, exchange.Limited(wait)
	}
	s.full[c.Account+c.Bucket] = full.Add(time.Duration(c.Take) * c.Every)
	return max(full.Add(time.Duration(c.Take)*c.Every).Sub(now)-burst, 0), nil
}

func (s *table) CountsAlone(usage func() []platform.Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usages = append(s.usages, usage)
}

func (s *table) Silence(_ context.Context, account, who string, d time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent[account+who] = time.Now().Add(d)
	return nil
}

// TestBudgetsShare has two processes call as often as they may, and one that goes on
// when the other one has ended.
func TestBudgetsShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newTable()
		common := exchange.Share{Bucket: "all", Every: 100 * time.Millisecond, Burst: 5, Common: true}
		var mu sync.Mutex
		var calls []time.Time
		run := func(lasts time.Duration) {
			b := &exchange.Budget{Platform: "X", Shared: shared, Account: "a"}
			for end := time.Now().Add(lasts); time.Now().Before(end); {
				if err := b.Wait(t.Context(), "w", common); err != nil {
					t.Error(err)
				}
				mu.Lock()
				calls = append(calls, time.Now())
				mu.Unlock()
			}
		}
		begin := time.Now()
		var all sync.WaitGroup
		all.Go(func() { run(10 * time.Second) })
		all.Go(func() { run(20 * time.Second) })
		all.Wait()
		for i, from := range calls {
			for n, to := range calls[i:] {
				if most := 5 + int(to.Sub(from)/common.Every) + 1; n+1 > most {
					t.Fatalf("%d calls in %v, at most %d are allowed", n+1, to.Sub(from), most)
				}
			}
		}
		after := 0
		for _, at := range calls {
			if at.Sub(begin) > 11*time.Second {
				after++
			}
		}
		if after < 85 {
			t.Errorf("alone one makes %d calls in 9 s, 90 are possible", after)
		}
	})
}

func TestBudgetAloneAsksNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newTable()
		shared.alone = true
		b := &exchange.Budget{Platform: "X", Shared: shared, Account: "a"}
		common := exchange.Share{Bucket: "all", Every: time.Second, Burst: 2, Common: true}
		own := exchange.Share{Bucket: "own", Every: time.Second, Burst: 2}
		long := exchange.Share{Bucket: "an hour", Every: 20 * time.Minute, Burst: 3, Common: true}
		for range 3 {
			if err := b.Wait(t.Context(), "w", common); err != nil {
				t.Error(err)
			}
		}
		_ = b.Try(t.Context(), "w", common)
		shared.alone = false
		_ = b.Wait(t.Context(), "w", own)
		if shared.asked != 0 {
			t.Errorf("others were asked %d times", shared.asked)
		}
		if err := b.Wait(t.Context(), "w", common); err != nil || shared.asked != 1 {
			t.Errorf("others were asked %d times, want once", shared.asked)
		}
		shared.alone = true
		if err := b.Wait(t.Context(), "w", common, long); err != nil || shared.asked != 2 {
			t.Errorf("%d questions after a call that counts for an hour, want one more: %v", shared.asked, err)
		}
	})
}

// TestWhatWasUsedAlone: what a budget has counted by itself is told when somebody asks.
func TestWhatWasUsedAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newTable()
		shared.alone = true
		b := &exchange.Budget{Platform: "X", Shared: shared, Account: "a"}
		common := exchange.Share{Bucket: "all", Every: time.Minute, Burst: 10, Take: 2, Common: true}
		own := exchange.Share{Bucket: "own", Every: time.Minute, Burst: 10}
		for range 3 {
			if err := b.Wait(t.Context(), "w", common, own); err != nil {
				t.Error(err)
			}
		}
		waits := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		common.Take = 9
		go func() { waits <- b.Wait(ctx, "w", common) }() // counts, though its turn has not come
		synctest.Wait()
		if len(shared.usages) != 1 {
			t.Fatalf("told of itself %d times", len(shared.usages))
		}
		want := platform.Usage{Account: "a", Bucket: "all", FullIn: 15 * time.Minute}
		if used := shared.usages[0](); len(used) != 1 || used[0] != want {
			t.Errorf("used %+v, want %+v", used, want)
		}
		cancel()
		<-waits
		time.Sleep(6 * time.Minute)
		if used := shared.usages[0](); len(used) != 0 {
			t.Errorf("used %+v long after", used)
		}
	})
}

// TestSilenceIsShared: what one process was told holds for the other one, at once.
func TestSilenceIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newTable()
		one, other := &exchange.Budget{Platform: "X", Shared: shared, Account: "a"}, &exchange.Budget{Platform: "X", Shared: shared, Account: "a"}
		common := exchange.Share{Bucket: "all", Every: time.Millisecond, Burst: 100, Common: true}
		one.Refused("w", 10*time.Second)
		if err := other.Wait(t.Context(), "w", common); !fault.Is(err, fault.RateLimited) || exchange.RetryAfter(err) != 10*time.Second {
			t.Errorf("Wait = %v", err)
		}
		if err := other.Try(t.Context(), "w", common); !fault.Is(err, fault.RateLimited) {
			t.Errorf("Try = %v", err)
		}
		if err := other.Wait(t.Context(), "else", common); err != nil {
			t.Error(err)
		}
		time.Sleep(8 * time.Second) // what is left is waited out
		begin := time.Now()
		if err := other.Wait(t.Context(), "w", common); err != nil || time.Since(begin) != 2*time.Second {
			t.Errorf("Wait = %v after %v", err, time.Since(begin))
		}
	})
}

// TestSilenceThatGoesOnIsHandedOn: each that is short is waited out, but not one after the
// other without an end.
func TestSilenceThatGoesOnIsHandedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newTable()
		shared.fails = exchange.Limited(2 * time.Second)
		b := &exchange.Budget{Platform: "X", Shared: shared, Account: "a"}
		begin := time.Now()
		err := b.Wait(t.Context(), "w", exchange.Share{Bucket: "all", Every: time.Second, Burst: 1, Common: true})
		if !fault.Is(err, fault.RateLimited) || time.Since(begin) > exchange.ShortWait {
			t.Errorf("Wait = %v after %v", err, time.Since(begin))
		}
	})
}

func TestSharedWithBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newTable()
		b := &exchange.Budget{Platform: "X", Shared: shared, Account: "a", MaxQueue: 5 * time.Second}
		common := exchange.Share{Bucket: "all", Every: time.Second, Burst: 10, Keep: 4, Common: true}
		n := 0
		for b.Try(t.Context(), "w", common) == nil {
			n++
		}
		if n != 6 {
			t.Errorf("Try gives %d of 10 where 4 are kept", n)
		}
		// Others have used what is left, and more.
		shared.full["aall"] = time.Now().Add(16 * time.Second)
		if err := b.Wait(t.Context(), "w", common); !fault.Is(err, fault.RateLimited) {
			t.Errorf("Wait = %v where the queue is too long", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		shared.full["aall"] = time.Now().Add(12 * time.Second)
		if err := b.Wait(ctx, "w", common); !fault.Is(err, fault.RateLimited) {
			t.Errorf("Wait = %v where the caller has no time", err)
		}
		shared.fails = fault.New(fault.Unavailable, "")
		if err := b.Wait(t.Context(), "w", common); !fault.Is(err, fault.Unavailable) {
			t.Errorf("Wait = %v without a database", err)
		}
	})
}
