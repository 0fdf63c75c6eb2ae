package github_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform/github"
)

// However often it is asked, no window has more than what is published.
func TestLimiterKeepsThePublishedLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := github.NewLimiter()
		var at []time.Time
		for end := time.Now().Add(3 * time.Hour); time.Now().Before(end); {
			if err := l.WaitFor(t.Context(), http.MethodPost); fault.Is(err, fault.RateLimited) {
				after, _ := fault.Retry(err)
				time.Sleep(after)
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			at = append(at, time.Now())
		}
		for window, most := range map[time.Duration]int{time.Minute: 80, time.Hour: 500} {
			from := 0
			for i, x := range at {
				for x.Sub(at[from]) >= window {
					from++
				}
				if n := i - from + 1; n > most {
					t.Fatalf("%d calls within %v", n, window)
				}
			}
		}
		if len(at) < 1100 {
			t.Errorf("only %d calls in three hours", len(at))
		}
	})
}

func TestLimiterPoints(t *testing.T) {
	t.Parallel()
	for method, most := range map[string]int{http.MethodGet: 900, http.MethodPatch: 180} {
		synctest.Test(t, func(t *testing.T) {
			l := github.NewLimiter()
			n := 0
			for end := time.Now().Add(time.Minute); time.Now().Before(end); n++ {
				if err := l.WaitFor(t.Context(), method); err != nil {
					t.Fatal(err)
				}
			}
			if n > most || n < most*3/4 {
				t.Errorf("%d times %s in a minute", n, method)
			}
		})
	}
}
