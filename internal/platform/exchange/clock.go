package exchange

import (
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// clockError is how far a platform's clock may have been from where Clock believes it
	// now, because one of the two was set between a call and the search for what became of
	// it. A search that begins too early costs a page or two, one that begins too late has
	// an answer posted twice.
	clockError = 15 * time.Minute

	// clockStep is how far a clock that was set back may have been ahead.
	clockStep = 24 * time.Hour

	// maxAhead is how far a platform's clock may be from ours. What says more is no
	// clock: with such a difference there would be no TLS.
	maxAhead = 7 * 24 * time.Hour
)

// Clock tells a platform's time from the dates of its answers, so that a search by time
// finds what is there although our clock is wrong, or was set. The zero value believes
// that both clocks agree until a Call with it was answered. It is safe for concurrent use.
type Clock struct{ ahead atomic.Int64 }

// observe learns from an answer of success. Those of a failure may be of a proxy.
func (c *Clock) observe(resp *http.Response) {
	if resp.StatusCode < http.StatusMultipleChoices {
		c.Learn(resp)
	}
}

// Learn takes the time from an answer.
func (c *Clock) Learn(resp *http.Response) {
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if ahead := time.Until(at); err == nil && ahead.Abs() <= maxAhead {
		c.ahead.Store(int64(ahead))
	}
}

// At returns what the platform's clock showed when ours showed t.
func (c *Clock) At(t time.Time) time.Time { return t.Add(time.Duration(c.ahead.Load())) }

// Since returns, by the platform's clock, from when on something can be there of which
// the id was made when our clock showed made. A time to come was told by a clock that has
// been set back since, or by an id that had to be later than those before that: then it
// is a day.
func (c *Clock) Since(made time.Time) time.Time {
	if now := time.Now(); made.After(now) {
		made = now.Add(-clockStep)
	}
	return c.At(made).Add(-clockError)
}
