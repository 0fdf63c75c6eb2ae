package github

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
)

// cost is what a call counts for.
type cost struct {
	points  int  // of 900 a minute: reading one, writing five
	content bool // of 80 a minute and 500 an hour
}

// costOf returns what GitHub counts a call for (contract C6). A reaction counts
// as content: what is published does not say otherwise.
func costOf(r request) cost {
	if r.method() == http.MethodGet {
		return cost{points: 1}
	}
	return cost{points: 5, content: r.method() == http.MethodPost && strings.Contains(string(r.route), "/repos/")}
}

// The buckets are filled so that a burst and what flows in until the end of the
// time stay below what is published.
const (
	contentBurst, contentEvery         = 20, time.Second      // 20 + 60 a minute
	contentHourBurst, contentHourEvery = 80, 9 * time.Second  // 80 + 400 an hour
	pointBurst, pointEvery             = 300, time.Second / 9 // 300 + 540 a minute
)

const (
	// shortWait is how long a call waits for a limit to pass before it hands the
	// wait to its caller.
	shortWait = 3 * time.Second

	// maxQueue is how long a call waits for its turn.
	maxQueue = 20 * time.Second

	// reserve is the part of a burst that calls which may be dropped leave to
	// those which may not.
	reserve = 0.4

	// unsaid is how long GitHub is left alone when it refuses and does not say for
	// how long; it doubles with each time up to unsaidMax.
	unsaid    = time.Minute
	unsaidMax = 32 * time.Minute
)

// limiter keeps the bot within GitHub's limits, which hold for each installation
// and each token.
type limiter struct {
	mu  sync.Mutex // guards all below
	who map[caller]*allowance
}

// allowance is what one caller may do; limiter.mu guards its other fields.
type allowance struct {
	content, contentHour, points *rate.Limiter

	blocked time.Time // GitHub asked for silence until then
	strikes int       // refusals in a row without a time
}

func newLimiter() *limiter { return &limiter{who: make(map[caller]*allowance)} }

// of returns the allowance of a caller. l.mu is held.
func (l *limiter) of(who caller) *allowance {
	w, ok := l.who[who]
	if !ok {
		w = &allowance{
			content:     rate.NewLimiter(rate.Every(contentEvery), contentBurst),
			contentHour: rate.NewLimiter(rate.Every(contentHourEvery), contentHourBurst),
			points:      rate.NewLimiter(rate.Every(pointEvery), pointBurst),
		}
		l.who[who] = w
	}
	return w
}

// buckets returns those that c is taken from, with how much.
func (w *allowance) buckets(c cost) ([]*rate.Limiter, []int) {
	if c.content {
		return []*rate.Limiter{w.points, w.content, w.contentHour}, []int{c.points, 1, 1}
	}
	return []*rate.Limiter{w.points}, []int{c.points}
}

// wait takes c and waits for its turn, in the order of the calls. If that would
// take long, or GitHub demanded a longer silence, it returns fault.RateLimited
// with the time and takes nothing.
func (l *limiter) wait(ctx context.Context, who caller, c cost) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.KindOf(err), "waiting for GitHub's rate limit")
	}
	l.mu.Lock()
	w := l.of(who)
	now := time.Now()
	delay := max(w.blocked.Sub(now), 0)
	if delay > shortWait {
		l.mu.Unlock()
		return limitedFor(delay)
	}
	var taken []*rate.Reservation
	buckets, amounts := w.buckets(c)
	for i, b := range buckets {
		r := b.ReserveN(now, amounts[i])
		taken = append(taken, r)
		delay = max(delay, r.DelayFrom(now))
	}
	giveBack := func() {
		for _, r := range taken {
			r.CancelAt(now)
		}
	}
	if delay > maxQueue {
		giveBack()
		l.mu.Unlock()
		return limitedFor(delay)
	}
	l.mu.Unlock()
	if err := platform.Sleep(ctx, delay); err != nil {
		giveBack()
		return fault.Wrap(err, fault.KindOf(err), "waiting for GitHub's rate limit")
	}
	return nil
}

// try takes c without waiting, if enough is left for what may not be dropped.
func (l *limiter) try(who caller, c cost) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.of(who)
	now := time.Now()
	if blocked := w.blocked.Sub(now); blocked > 0 {
		return limitedFor(blocked)
	}
	buckets, amounts := w.buckets(c)
	for i, b := range buckets {
		if b.TokensAt(now) < float64(amounts[i])+reserve*float64(b.Burst()) {
			return limitedFor(time.Second)
		}
	}
	for i, b := range buckets {
		b.AllowN(now, amounts[i])
	}
	return nil
}

// refused notes that GitHub refused a call because of a limit, for after or, if
// that is zero, without a time. It returns how long to be silent.
func (l *limiter) refused(who caller, after time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.of(who)
	if after <= 0 {
		after = min(unsaid<<min(w.strikes, 10), unsaidMax)
		w.strikes++
	}
	if until := time.Now().Add(after); until.After(w.blocked) {
		w.blocked = until
	}
	return after
}

// calm notes that a call was taken.
func (l *limiter) calm(who caller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(who).strikes = 0
}

func limitedFor(after time.Duration) error {
	return &fault.Error{Kind: fault.RateLimited, RetryAfter: after}
}
