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
			// One of the two clocks may have been set by minutes since.
			if since := clock.Since(made); !since.Before(theirs.Add(-10*time.Minute)) || theirs.Sub(since) > 16*time.Minute {
				t.Errorf("looked for since %v, made at %v", since, theirs)
			}
			// Our clock was most of a day fast when it was made, an hour ago, and was set.
			if since := clock.Since(time.Now().Add(19 * time.Hour)); since.After(time.Now().Add(ahead - time.Hour)) {
				t.Errorf("after our clock was set by hours, looked for since %v", since)
			}
			// Our clock was half an hour fast when it was made, and was set.
			if since := clock.Since(made.Add(31 * time.Minute)); !since.Before(theirs) {
				t.Errorf("after our clock was set, looked for since %v, made at %v", since, theirs)
			}
		})
	}
}

// TestClockIgnoresWhatIsNoTime keeps what an earlier answer told: what has no date, none
// that a clock shows, or comes from somebody on the way, tells nothing.
func TestClockIgnoresWhatIsNoTime(t *testing.T) {
	t.Parallel()
	format := func(ahead time.Duration) string { return time.Now().Add(ahead).UTC().Format(http.TimeFormat) }
	for name, later := range map[string]struct {
		date   string
		status int
	}{
		"no date":         {"", http.StatusOK},
		"garbage":         {"yesterday", http.StatusOK},
		"far future":      {"Fri, 31 Dec 9999 23:59:59 GMT", http.StatusOK},
		"far past":        {"Thu, 01 Jan 1970 00:00:00 GMT", http.StatusOK},
		"the year zero":   {"Sat, 01 Jan 0000 00:00:00 GMT", http.StatusOK},
		"a month ahead":   {format(30 * 24 * time.Hour), http.StatusOK},
		"a proxy's error": {format(-3 * time.Hour), http.StatusBadGateway},
		"a portal's page": {format(-3 * time.Hour), http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			date, status := format(time.Hour), http.StatusOK
			client, address := server(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Date"] = []string{date}
				if date == "" {
					w.Header()["Date"] = nil // the server sets none
				}
				w.WriteHeader(status)
			})
			var clock exchange.Clock
			for range 2 {
				call := &exchange.Call{Clock: &clock}
				if err := post(call.Context(t.Context()), client, address); call.Status() != status {
					t.Fatal(err)
				}
				date, status = later.date, later.status
			}
			now := time.Now()
			if ahead := clock.At(now).Sub(now); ahead < 59*time.Minute || ahead > 61*time.Minute {
				t.Errorf("the platform is %v ahead, want an hour", ahead)
			}
		})
	}
}

// TestClockIsThatOfThePlatform: another host that a call goes to as well tells nothing.
func TestClockIsThatOfThePlatform(t *testing.T) {
	t.Parallel()
	dated := func(ahead time.Duration) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		}
	}
	client, address := server(t, dated(time.Hour))
	_, elsewhere := server(t, dated(-time.Hour))
	var clock exchange.Clock
	call := &exchange.Call{Clock: &clock}
	for _, to := range []string{address, elsewhere} {
		if err := post(call.Context(t.Context()), client, to); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	if ahead := clock.At(now).Sub(now); ahead < 59*time.Minute {
		t.Errorf("the platform is %v ahead, want an hour", ahead)
	}
}
