package exchange_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform/exchange"
)

func TestWaitEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newTable()
		b := &exchange.Budget{Platform: "X", Shared: shared, Account: "a"}
		common := exchange.Share{Bucket: "all", Every: time.Second, Burst: 10, Common: true}
		b.Refused("silent", time.Minute)
		ended, end := context.WithCancel(t.Context())
		end()
		if err := b.Wait(ended, "silent", common); !fault.Is(err, fault.Canceled) {
			t.Errorf("Wait = %v for a call that has ended", err)
		}
		shared.fails = exchange.Limited(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		begin := time.Now()
		if err := b.Wait(ctx, "w", common); !fault.Is(err, fault.Canceled) || time.Since(begin) != 500*time.Millisecond {
			t.Errorf("Wait = %v after %v for a call that ends during a silence", err, time.Since(begin))
		}
		far, done := context.WithTimeout(t.Context(), time.Hour)
		defer done()
		own := exchange.Share{Bucket: "own", Every: time.Second, Burst: 1}
		begin = time.Now()
		for range 3 {
			if err := b.Wait(far, "w", own); err != nil {
				t.Errorf("Wait = %v where there is time", err)
			}
		}
		if time.Since(begin) != 2*time.Second {
			t.Errorf("three calls take %v, want 2s", time.Since(begin))
		}
	})
}

// TestWhatOthersRefuse: only a limit is waited out, and what was taken here is given back.
func TestWhatOthersRefuse(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{
		"no database":          &fault.Error{Kind: fault.Unavailable, RetryAfter: 2 * time.Second},
		"a limit without time": exchange.Limited(0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				shared := newTable()
				shared.fails = refusal
				b := &exchange.Budget{Platform: "X", Shared: shared, Account: "a"}
				common := exchange.Share{Bucket: "all", Every: time.Minute, Burst: 1, Common: true}
				begin := time.Now()
				if err := b.Wait(t.Context(), "w", common); fault.KindOf(err) != fault.KindOf(refusal) || shared.asked != 1 {
					t.Errorf("Wait = %v after %d questions", err, shared.asked)
				}
				shared.fails = nil
				if err := b.Wait(t.Context(), "w", common); err != nil || time.Since(begin) != 0 {
					t.Errorf("Wait = %v after %v: what was taken is not back", err, time.Since(begin))
				}
			})
		})
	}
}

// TestWhatIsKeptForThoseWhoWait: Try leaves it, also where others have used the rest; Wait
// takes it.
func TestWhatIsKeptForThoseWhoWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := newTable()
		common := exchange.Share{Bucket: "all", Every: time.Second, Burst: 10, Keep: 4, Common: true}
		free := exchange.Share{Bucket: "free", Keep: 4, Common: true}
		one, other := &exchange.Budget{Shared: shared, Account: "a"}, &exchange.Budget{Shared: shared, Account: "a"}
		if err := one.Try(t.Context(), "w", free); err != nil || one.Wait(t.Context(), "w", free) != nil || shared.asked != 0 {
			t.Errorf("Try = %v and %d questions where there is no limit", err, shared.asked)
		}
		begin := time.Now()
		for range 6 {
			if err := one.Wait(t.Context(), "w", common); err != nil {
				t.Error(err)
			}
		}
		if err := other.Try(t.Context(), "w", common); !fault.Is(err, fault.RateLimited) {
			t.Errorf("Try = %v where others have left what is kept", err)
		}
		for range 4 {
			if err := one.Wait(t.Context(), "w", common); err != nil {
				t.Error(err)
			}
		}
		if time.Since(begin) != 0 {
			t.Errorf("ten calls take %v where all are possible at once", time.Since(begin))
		}
	})
}

func TestTheLongestSilenceIsSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := new(exchange.Budget)
		for n := range 20 {
			b.Refused(fmt.Sprint(n), time.Duration(n+1)*time.Second)
		}
		for range 10 { // in any order
			if h := b.Headroom(); h.Silent != 20 || !h.Until.Equal(time.Now().Add(20*time.Second)) {
				t.Errorf("%+v", h)
			}
		}
	})
}

// TestWhatTheTablesForget: a bucket in use stays in a full table, and a refusal without a
// time counts after it has ended, until Calm.
func TestWhatTheTablesForget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := new(exchange.Budget)
		kept := exchange.Share{Bucket: "kept", Every: time.Hour, Burst: 1}
		if err := b.Try(t.Context(), "w", kept); err != nil {
			t.Fatal(err)
		}
		for n := range 4095 {
			_ = b.Try(t.Context(), "w", exchange.Share{Bucket: fmt.Sprint(n), Every: time.Second, Burst: 1})
		}
		time.Sleep(6 * time.Minute)
		_ = b.Try(t.Context(), "w", kept)
		_ = b.Try(t.Context(), "w", exchange.Share{Bucket: "one more", Every: time.Second, Burst: 1})
		if err := b.Try(t.Context(), "w", kept); !fault.Is(err, fault.RateLimited) {
			t.Errorf("Try = %v of a bucket that was empty", err)
		}

		b.Refused("w", 0)
		time.Sleep(2 * time.Minute)
		b.Refused("another", 0)
		if silent := b.Refused("w", 0); silent != 2*time.Minute {
			t.Errorf("silent for %v after a second refusal, want 2m", silent)
		}
	})
}

func TestPacedCalls(t *testing.T) {
	t.Parallel()
	away := fault.New(fault.Unavailable, "")
	for name, test := range map[string]struct {
		refusals []error // of the calls, one after the other; then they are taken
		wait     error
		calls    int
		kind     fault.Kind
	}{
		"taken":             {calls: 1},
		"no turn":           {wait: away, kind: fault.Unavailable},
		"a short silence":   {refusals: []error{exchange.Limited(time.Second)}, calls: 2},
		"as long as may be": {refusals: []error{exchange.Limited(exchange.ShortWait)}, calls: 2},
		"a long silence":    {refusals: []error{exchange.Limited(exchange.ShortWait + 1)}, calls: 1, kind: fault.RateLimited},
		"silences in a row": {refusals: []error{exchange.Limited(2 * time.Second), exchange.Limited(2 * time.Second)}, calls: 2, kind: fault.RateLimited},
		"no limit":          {refusals: []error{away}, calls: 1, kind: fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls, silent := 0, time.Duration(0)
				err := exchange.Paced(func() error {
					time.Sleep(silent)
					return test.wait
				}, func() error {
					if calls++; calls > len(test.refusals) {
						return nil
					}
					silent = exchange.RetryAfter(test.refusals[calls-1])
					return test.refusals[calls-1]
				})
				if calls != test.calls || (err == nil) != (test.kind == "") || err != nil && !fault.Is(err, test.kind) {
					t.Errorf("%d calls, want %d: %v", calls, test.calls, err)
				}
			})
		})
	}
}
