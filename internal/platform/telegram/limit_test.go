package telegram

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/fault"
)

// most returns how many of times lie within any window of length d.
func most(times []time.Time, d time.Duration) int {
	n := 0
	for i, from := range times {
		k := 0
		for _, at := range times[i:] {
			if at.Sub(from) < d {
				k++
			}
		}
		n = max(n, k)
	}
	return n
}

func TestLimiterKeepsTheRates(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		all, chat float64
		chatID    int64
		window    time.Duration
		most      int
	}{
		"Chat":    {0, 1, 1, 10 * time.Second, 10 + chatBurst},
		"Group":   {0, 1, -1, time.Minute, 20},
		"Overall": {30, 0, 1, time.Second, 31},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(tt.all, tt.chat, nil, "")
				var times []time.Time
				for range 60 {
					if err := l.wait(t.Context(), tt.chatID); err != nil {
						t.Fatal(err)
					}
					times = append(times, time.Now())
				}
				if got := most(times, tt.window); got > tt.most {
					t.Errorf("%d messages within %v, want at most %d", got, tt.window, tt.most)
				}
			})
		})
	}
}

func TestNoLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(0, 0, nil, "")
		started := time.Now()
		for range 1000 {
			if err := l.wait(t.Context(), -1); err != nil {
				t.Fatal(err)
			}
			if err := l.try(t.Context(), -1); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(started) != 0 {
			t.Errorf("waited %v", time.Since(started))
		}
	})
}

// Progress never makes the final text wait: it is shed unless two tokens are
// there.
func TestProgressIsShed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(30, 1, nil, "")
		shed, done := 0, 0
		for range 100 { // ten seconds
			if err := l.try(t.Context(), 1); err == nil {
				done++
			} else if fault.Is(err, fault.RateLimited) {
				shed++
			}
			time.Sleep(100 * time.Millisecond)
		}
		if done < 9 || done > 11 || shed+done != 100 {
			t.Errorf("%d done, %d shed", done, shed)
		}
		started := time.Now()
		if err := l.wait(t.Context(), 1); err != nil || time.Since(started) > 40*time.Millisecond {
			t.Errorf("the final text waited %v: %v", time.Since(started), err)
		}
	})
}

func TestFloodSilencesTheChat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(0, 0, nil, "")
		l.block(1, 10*time.Second)
		for name, err := range map[string]error{"progress": l.try(t.Context(), 1), "final": l.wait(t.Context(), 1)} {
			if after, _ := fault.Retry(err); !fault.Is(err, fault.RateLimited) || after != 10*time.Second {
				t.Errorf("%s: %v, retry after %v", name, err, after)
			}
		}
		if err := l.wait(t.Context(), 2); err != nil {
			t.Errorf("another chat: %v", err)
		}
		time.Sleep(8 * time.Second)
		started := time.Now()
		if err := l.wait(t.Context(), 1); err != nil || time.Since(started) != 2*time.Second {
			t.Errorf("waited %v: %v", time.Since(started), err)
		}
	})
}

func TestLimiterHonorsTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(0, 0.01, nil, "")
		for range chatBurst {
			_ = l.wait(t.Context(), 1)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := l.wait(ctx, 1); !fault.Is(err, fault.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.wait(ctx, 1); !fault.Is(err, fault.RateLimited) {
			t.Errorf("deadline: %v", err)
		}
	})
}

func TestKeyRoundTrip(t *testing.T) {
	t.Parallel()
	for _, c := range []chat{{1, 0}, {-100123, 0}, {-100123, 7}, {1<<52 - 1, 1 << 30}} {
		got, err := parseKey(makeKey(c.id, c.thread))
		if err != nil || got != c {
			t.Errorf("%+v became %+v, %v", c, got, err)
		}
	}
}
