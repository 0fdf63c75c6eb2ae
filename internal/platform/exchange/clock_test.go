package exchange_test

import (
	"net/http"
	"testing"
	"time"

	"remote-agent/internal/platform/exchange"
)

// TestClockOfThePlatform: what was made when our clock showed a time is looked for from
// when the platform's showed the same moment, however far apart they are.
func TestClockOfThePlatform(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"agrees": 0, "is ahead": time.Hour, "is behind": -26 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, address := server(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
			})
			var clock exchange.Clock
			if err := post((&exchange.Call{Clock: &clock}).Context(t.Context()), client, address); err != nil {
				t.Fatal(err)
			}
			made := time.Now().Add(-time.Minute)
			theirs := made.Add(ahead)
			if at := clock.At(made); at.Sub(theirs).Abs() > 5*time.Second {
				t.Errorf("it shows %v, want %v", at, theirs)
			}
			if since := clock.Since(made); !since.Before(theirs) || theirs.Sub(since) > 3*time.Minute {
				t.Errorf("looked for since %v, made at %v", since, theirs)
			}
			// Our clock was half an hour fast when it was made, and was set.
			if since := clock.Since(made.Add(31 * time.Minute)); !since.Before(theirs) {
				t.Errorf("after our clock was set, looked for since %v, made at %v", since, theirs)
			}
		})
	}
}

// TestClockIgnoresWhatIsNoDate keeps what an earlier answer told.
func TestClockIgnoresWhatIsNoDate(t *testing.T) {
	t.Parallel()
	date := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	client, address := server(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", date) })
	var clock exchange.Clock
	for _, date = range []string{date, "yesterday"} {
		if err := post((&exchange.Call{Clock: &clock}).Context(t.Context()), client, address); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	if ahead := clock.At(now).Sub(now); ahead < 59*time.Minute || ahead > 61*time.Minute {
		t.Errorf("the platform is %v ahead, want an hour", ahead)
	}
}
