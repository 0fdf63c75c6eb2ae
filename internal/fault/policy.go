package fault

import (
	"context"
	"math"
	"time"
)

// Asked is how long to wait when the other side asks for so many seconds, as far as it is
// believed: at most for most, which is the longest that it has reason to ask for. What is
// none, such as a negative number, is zero. All that others say about waiting goes through
// here: nothing that they say, or that somebody between us says in their name, silences
// them for years.
func Asked(seconds float64, most time.Duration) time.Duration {
	switch {
	case !(seconds > 0): // also not a number
		return 0
	case seconds >= most.Seconds():
		return most
	}
	return time.Duration(math.Round(seconds * float64(time.Second)))
}

// Policy says whether and when something that failed is tried again. It is the
// only place that decides on pauses between tries; what it does not say is final.
type Policy struct {
	Longest time.Duration // of the pauses 1, 2, 4, ... seconds
	Tries   int           // how often something is tried at most; 0 is without a limit

	// Uncertain tries again what may have happened: for effects that are looked up
	// before they are repeated.
	Uncertain bool

	// Unauthorized is the least pause before something is tried again that our own
	// credentials were refused for, which an operator can mend; 0 does not try it again.
	Unauthorized time.Duration
}

// Fetching is for what is fetched while somebody waits for an answer about it.
var Fetching = Policy{Longest: 10 * time.Second, Tries: 3}

// Do tries something until it works, its error is final, or the next pause would be
// longer than p.Longest or end behind the deadline of ctx. It returns the last error.
func (p Policy) Do(ctx context.Context, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		pause, again := p.Next(n, err)
		if end, limited := ctx.Deadline(); !again || pause > p.Longest || limited && time.Until(end) < pause {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// Next returns the pause before the next try of something that failed n times, now
// with err: at least as long as the other side asked for, and exactly that where it
// limits our rate and tries are not counted. again is false if err is final.
func (p Policy) Next(n int, err error) (pause time.Duration, again bool) {
	after, again := Retry(err)
	switch {
	case p.Uncertain && Uncertain(err):
		again = true
	case p.Unauthorized > 0 && Is(err, Unauthorized):
		after, again = p.Unauthorized, true
	}
	if !again || p.Tries > 0 && n >= p.Tries {
		return 0, false
	}
	if after > 0 && p.Tries == 0 && Is(err, RateLimited) {
		return after, true
	}
	return max(after, p.Pause(n)), true
}

// Pause is how long to wait after the n-th failure: 1, 2, 4, ... seconds, at most
// p.Longest.
func (p Policy) Pause(n int) time.Duration {
	return min(time.Second<<min(max(n-1, 0), 20), p.Longest)
}
