package slack

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
)

// pace is how often a method may be called.
type pace struct {
	perMinute float64
	burst     int  // how many of them at once
	scoped    bool // counted for each channel and not for the workspace
	shedOnly  bool // nobody waits for it, so nothing has to be left over
}

// refill returns how many calls a minute become possible again: with a whole
// burst before them, there are never more than perMinute in a minute. A channel
// takes a burst besides (contract B4.3).
func (p pace) refill() float64 {
	if p.scoped {
		return p.perMinute
	}
	return p.perMinute - float64(p.burst)
}

// paces are the published limits (contract B4.3): tier 2 is 20 a minute, tier 3
// is 50, tier 4 is 100, a message a second for each channel. They hold for each
// method and workspace. A method that is not here is called rarely. Fewer streams
// are opened than can be closed, so that no answer waits long for that.
var paces = map[string]pace{
	"agents.sessions.setStatus":    {perMinute: 50, burst: 10},
	"assistant.threads.setStatus":  {perMinute: 300, burst: 20},
	"chat.appendStream":            {perMinute: 100, burst: 20},
	"chat.postEphemeral":           {perMinute: 100, burst: 10},
	"chat.postMessage":             {perMinute: 60, burst: 4, scoped: true},
	"chat.startStream":             {perMinute: 16, burst: maxStreams, shedOnly: true},
	"chat.stopStream":              {perMinute: 20, burst: maxStreams},
	"chat.update":                  {perMinute: 50, burst: 10},
	"conversations.history":        {perMinute: 50, burst: 5},
	"conversations.replies":        {perMinute: 50, burst: 5},
	"files.completeUploadExternal": {perMinute: 100, burst: 5},
	"files.getUploadURLExternal":   {perMinute: 100, burst: 5},
	"files.info":                   {perMinute: 100, burst: 5},
	"reactions.add":                {perMinute: 50, burst: 10},
	"reactions.remove":             {perMinute: 20, burst: 5},
	"users.info":                   {perMinute: 100, burst: 20},
	"views.open":                   {perMinute: 100, burst: 10},
}

const (
	// shortWait is how long a call waits for a 429 to pass before it hands the
	// wait to the caller.
	shortWait = 3 * time.Second

	// reserve is the part of a burst that calls which may be dropped leave to
	// those which may not.
	reserve = 0.4

	// competing is how long somebody who asked for a turn counts as a competitor.
	competing = 15 * time.Second

	// maxScopes bounds the tables; an entry that is idle for scopeIdle has
	// nothing left to say and may go.
	maxScopes = 4096
	scopeIdle = 5 * time.Minute
)

// limiter keeps the app within Slack's rates, which hold for each method.
type limiter struct {
	mu     sync.Mutex // guards all below
	scopes map[scope]*scopeLimit
	queues map[string]*queue // by method
}

type scope struct{ method, channel string }

// scopeLimit is the state of one bucket; limiter.mu guards its times.
type scopeLimit struct {
	bucket  *rate.Limiter // nil is no limit
	blocked time.Time     // Slack asked for silence until then
	used    time.Time
}

// queue shares out the rate of one method among those who compete for it with
// calls that may be dropped: nobody gets a second turn before its fair share
// of time has passed, so that everybody gets a first.
type queue struct {
	last map[string]time.Time // when somebody had a turn
	seen map[string]time.Time // when somebody last asked
	tidy time.Time            // when those who ask no more were last forgotten
}

func newLimiter() *limiter {
	return &limiter{scopes: make(map[scope]*scopeLimit), queues: make(map[string]*queue)}
}

// entry returns the bucket of a method, in a channel if its limit holds for
// each. l.mu is held.
func (l *limiter) entry(method, channel string) *scopeLimit {
	p, limited := paces[method]
	if !p.scoped {
		channel = ""
	}
	now := time.Now()
	k := scope{method, channel}
	if s, ok := l.scopes[k]; ok {
		s.used = now
		return s
	}
	if len(l.scopes) >= maxScopes {
		l.evict(now)
	}
	s := &scopeLimit{used: now}
	if limited {
		s.bucket = rate.NewLimiter(rate.Limit(p.refill()/60), p.burst)
	}
	l.scopes[k] = s
	return s
}

// evict drops idle entries, and if all are in use the half that is met first:
// forgetting a bucket too early costs at worst a 429. l.mu is held.
func (l *limiter) evict(now time.Time) {
	for k, s := range l.scopes {
		if now.Sub(s.used) > scopeIdle && now.After(s.blocked) {
			delete(l.scopes, k)
		}
	}
	for k, s := range l.scopes {
		if len(l.scopes) <= maxScopes/2 {
			return
		}
		if now.After(s.blocked) {
			delete(l.scopes, k)
		}
	}
}

// block keeps a method silent for d, as a 429 demanded.
func (l *limiter) block(method, channel string, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.entry(method, channel)
	if until := time.Now().Add(d); until.After(s.blocked) {
		s.blocked = until
	}
}

// wait takes a token and waits for its turn, in the order of the calls. A
// silence that Slack demanded and that is longer than shortWait is returned to
// the caller instead.
func (l *limiter) wait(ctx context.Context, method, channel string) error {
	l.mu.Lock()
	s := l.entry(method, channel)
	bucket, blocked := s.bucket, time.Until(s.blocked)
	l.mu.Unlock()
	if blocked > shortWait {
		return limited(blocked)
	}
	if err := platform.Sleep(ctx, blocked); err != nil {
		return fault.Wrap(err, fault.KindOf(err), "waiting for Slack's rate limit")
	}
	if bucket == nil {
		return nil
	}
	if err := bucket.Wait(ctx); err != nil {
		if ctx.Err() == nil { // the deadline is nearer than the token
			return limited(time.Second)
		}
		return fault.Wrap(ctx.Err(), fault.KindOf(ctx.Err()), "waiting for Slack's rate limit")
	}
	return nil
}

// try takes a token for who without waiting, if it is their turn and enough are
// left for what may not be dropped.
func (l *limiter) try(method, who string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.entry(method, who)
	now := time.Now()
	if blocked := s.blocked.Sub(now); blocked > 0 {
		return limited(blocked)
	}
	if s.bucket == nil {
		return nil
	}
	p := paces[method]
	if wait := l.turn(method, who, p, now); wait > 0 {
		return limited(wait)
	}
	least := 1.0
	if !p.shedOnly {
		least += reserve * float64(p.burst)
	}
	if s.bucket.TokensAt(now) < least {
		return limited(time.Second)
	}
	s.bucket.AllowN(now, 1)
	l.queues[method].last[who] = now
	return nil
}

// turn returns how long who has to wait until its share of the method's rate
// allows another call. l.mu is held.
func (l *limiter) turn(method, who string, p pace, now time.Time) time.Duration {
	q := l.queues[method]
	if q == nil {
		q = &queue{last: make(map[string]time.Time), seen: make(map[string]time.Time)}
		l.queues[method] = q
	}
	q.seen[who] = now
	if now.Sub(q.tidy) >= time.Second {
		q.tidy = now
		for other, at := range q.seen {
			if now.Sub(at) > competing {
				delete(q.seen, other)
				delete(q.last, other)
			}
		}
	}
	last, had := q.last[who]
	if !had || len(q.seen) == 1 {
		return 0
	}
	share := time.Duration(float64(len(q.seen)) / p.refill() * float64(time.Minute))
	return max(share-now.Sub(last), 0)
}

func limited(after time.Duration) error {
	return &fault.Error{Kind: fault.RateLimited, RetryAfter: after}
}
