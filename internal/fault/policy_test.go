package fault_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/fault"
)

func TestPauseGrowsAndIsBounded(t *testing.T) {
	t.Parallel()
	for _, most := range []time.Duration{time.Minute, 5 * time.Minute} {
		p, last := fault.Policy{Longest: most}, time.Duration(0)
		for n := -1; n < 100; n++ {
			d := p.Pause(n)
			if d < time.Second || d > most || d < last {
				t.Errorf("Pause(%d) = %s after %s, at most %s", n, d, last, most)
			}
			last = d
		}
		if last != most {
			t.Errorf("the longest pause is %s, not %s", last, most)
		}
	}
}

func TestPolicyNext(t *testing.T) {
	t.Parallel()
	plain := fault.Policy{Longest: time.Minute, Tries: 3}
	sending := fault.Policy{Longest: time.Minute, Uncertain: true, Unauthorized: 90 * time.Second}
	uncertain := &fault.Error{Kind: fault.Unavailable, Uncertain: true}
	for name, tt := range map[string]struct {
		policy fault.Policy
		n      int
		err    error
		pause  time.Duration
		again  bool
	}{
		"passes":                           {plain, 1, fault.New(fault.Unavailable, ""), time.Second, true},
		"passes, later":                    {plain, 2, fault.New(fault.Unavailable, ""), 2 * time.Second, true},
		"the last try":                     {plain, 3, fault.New(fault.Unavailable, ""), 0, false},
		"never passes":                     {plain, 1, fault.New(fault.Invalid, ""), 0, false},
		"longer than asked":                {plain, 1, &fault.Error{Kind: fault.Unavailable, RetryAfter: 20 * time.Second}, 20 * time.Second, true},
		"a limited rate names its pause":   {sending, 9, &fault.Error{Kind: fault.RateLimited, RetryAfter: 3 * time.Second}, 3 * time.Second, true},
		"tries that count are not hurried": {plain, 2, &fault.Error{Kind: fault.RateLimited, RetryAfter: time.Millisecond}, 2 * time.Second, true},
		"a limited rate without a pause":   {sending, 3, fault.New(fault.RateLimited, ""), 4 * time.Second, true},
		"asked for less than its pause":    {sending, 9, &fault.Error{Kind: fault.Unavailable, RetryAfter: 3 * time.Second}, time.Minute, true},
		"uncertain is final":               {plain, 1, uncertain, 0, false},
		"unless it is looked up":           {sending, 100, uncertain, time.Minute, true},
		"our credentials":                  {plain, 1, fault.New(fault.Unauthorized, ""), 0, false},
		"unless an operator is awaited":    {sending, 1, fault.New(fault.Unauthorized, ""), 90 * time.Second, true},
	} {
		if pause, again := tt.policy.Next(tt.n, tt.err); pause != tt.pause || again != tt.again {
			t.Errorf("%s: Next = %s, %t; want %s, %t", name, pause, again, tt.pause, tt.again)
		}
	}
}

func TestAskedIsBelievedWithinReason(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		seconds float64
		want    time.Duration
	}{
		{7, 7 * time.Second}, {0.3, 300 * time.Millisecond}, {4.35, 4350 * time.Millisecond}, {3600, time.Hour}, {3601, time.Hour},
		{0, 0}, {-1, 0}, {1e300, time.Hour}, {-1e300, 0}, {9.3e9, time.Hour}, {math.Inf(1), time.Hour}, {math.Inf(-1), 0}, {math.NaN(), 0},
	} {
		if got := fault.Asked(tt.seconds, time.Hour); got != tt.want {
			t.Errorf("%v s: %v, want %v", tt.seconds, got, tt.want)
		}
	}
}

func TestPolicyDo(t *testing.T) {
	t.Parallel()
	away := fault.New(fault.Unavailable, "away")
	asked := func(after time.Duration) error { return &fault.Error{Kind: fault.RateLimited, RetryAfter: after} }
	for name, tt := range map[string]struct {
		errs  []error // of one try after another
		limit time.Duration
		tries int
		took  time.Duration
		want  fault.Kind
	}{
		"works":               {[]error{nil}, time.Hour, 1, 0, ""},
		"works the next time": {[]error{away, nil}, time.Hour, 2, time.Second, ""},
		"waits as asked":      {[]error{asked(4 * time.Second), nil}, time.Hour, 2, 4 * time.Second, ""},
		"asked for too much":  {[]error{asked(11 * time.Second), nil}, time.Hour, 1, 0, fault.RateLimited},
		"final":               {[]error{fault.New(fault.NotFound, "gone"), nil}, time.Hour, 1, 0, fault.NotFound},
		"never works":         {[]error{away, away, away, nil}, time.Hour, 3, 3 * time.Second, fault.Unavailable},
		"no time left":        {[]error{away, away, nil}, 2 * time.Second, 2, time.Second, fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.limit)
				defer cancel()
				start, tries := time.Now(), 0
				err := fault.Fetching.Do(ctx, func() error { tries++; return tt.errs[tries-1] })
				if took := time.Since(start); tries != tt.tries || took != tt.took || fault.KindOf(err) != tt.want {
					t.Errorf("%d tries in %s and %v, want %d in %s and %q", tries, took, err, tt.tries, tt.took, tt.want)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // who leaves does not wait
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		err := fault.Fetching.Do(ctx, func() error { cancel(); return away })
		if took := time.Since(start); took != 0 || !errors.Is(err, away) {
			t.Errorf("%v after %s", err, took)
		}
	})
}
