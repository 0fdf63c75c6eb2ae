package slack

import (
	"context"
	"sync"
	"time"

	"remote-agent/internal/lists"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

// pace is how often a method may be called.
type pace struct {
	method    string
	perMinute float64
	burst     int  // how many of them at once
	scoped    bool // counted for each channel and not for the workspace
	shedOnly  bool // nobody waits for it, so nothing has to be left over
}

// paceOf returns the limit of a method. One that is not in the list has none.
func paceOf(method string) pace {
	return lists.First(paces, func(p pace) bool { return p.method == method })
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
// are opened than can be closed, so that no answer waits long for that. The history
// is read to look up what a process that was killed may have sent: many at once, rarely.
var paces = []pace{
	{method: "agents.sessions.setStatus", perMinute: 50, burst: 10},
	{method: "assistant.threads.setStatus", perMinute: 300, burst: 20},
	{method: "chat.appendStream", perMinute: 100, burst: 20},
	{method: "chat.delete", perMinute: 50, burst: 10},
	{method: "chat.postEphemeral", perMinute: 100, burst: 10},
	{method: "chat.postMessage", perMinute: 60, burst: 4, scoped: true},
	{method: "chat.startStream", perMinute: 16, burst: maxStreams, shedOnly: true},
	{method: "chat.stopStream", perMinute: 20, burst: maxStreams},
	{method: "chat.update", perMinute: 50, burst: 10},
	{method: "conversations.history", perMinute: 50, burst: 25},
	{method: "conversations.replies", perMinute: 50, burst: 5},
	{method: "files.completeUploadExternal", perMinute: 100, burst: 5},
	{method: "files.getUploadURLExternal", perMinute: 100, burst: 5},
	{method: "files.info", perMinute: 100, burst: 5},
	{method: "reactions.add", perMinute: 50, burst: 10},
	{method: "reactions.remove", perMinute: 20, burst: 5},
	{method: "users.info", perMinute: 100, burst: 20},
	{method: "views.open", perMinute: 100, burst: 10},

	{method: placeholders, perMinute: 40, burst: 10, shedOnly: true},
}

// placeholders are messages that are posted to be edited: no method, but each takes one
// call of chat.update for its final text, so there are fewer of them than of those. In
// a minute with more turns than that, an answer is one message.
const placeholders = "placeholder"

const (
	// reserve is the part of a burst that calls which may be dropped leave to
	// those which may not.
	reserve = 0.4

	// competing is how long somebody who asked for a turn counts as a competitor.
	competing = 15 * time.Second

	// maxKept bounds the table of statuses that could not be taken away.
	maxKept = 4096
)

// limiter keeps the app within Slack's rates, which hold for each method, and
// shares out those of the methods that are shed.
type limiter struct {
	exchange.Budget

	mu     sync.Mutex        // guards queues
	queues map[string]*queue // by method
}

// queue shares out the rate of one method among those who compete for it with
// calls that may be dropped: nobody gets a second turn before its fair share
// of time has passed, so that everybody gets a first.
type queue struct {
	last map[string]time.Time // when somebody had a turn
	seen map[string]time.Time // when somebody last asked
	tidy time.Time            // when those who ask no more were last forgotten
}

func newLimiter(shared platform.SharedLimits, account string) *limiter {
	return &limiter{Budget: exchange.Budget{Platform: "Slack", Shared: shared, Account: account}, queues: make(map[string]*queue)}
}

// Headroom implements platform.Measured.
func (a *Adapter) Headroom() platform.Headroom { return a.api.limits.Headroom() }

// shareOf returns what a call of a method takes of its bucket, in a channel if its limit
// holds for each.
func shareOf(method, channel string) exchange.Share {
	p := paceOf(method)
	if !p.scoped {
		channel = ""
	}
	s := exchange.Share{Bucket: method + " " + channel, Burst: p.burst, Common: true}
	if p.method != "" {
		s.Every = time.Duration(float64(time.Minute) / p.refill())
	}
	if !p.shedOnly {
		s.Keep = reserve * float64(p.burst)
	}
	return s
}

// block keeps a method silent for d, as a 429 demanded.
func (l *limiter) block(method, channel string, d time.Duration) {
	l.Refused(shareOf(method, channel).Bucket, d)
}

// wait takes a token and waits for its turn, in the order of the calls. A silence
// that Slack demanded and that is longer than exchange.ShortWait is returned to
// the caller instead.
func (l *limiter) wait(ctx context.Context, method, channel string) error {
	share := shareOf(method, channel)
	return l.Wait(ctx, share.Bucket, share)
}

// try takes a token for who without waiting, if it is their turn and enough are
// left for what may not be dropped.
func (l *limiter) try(ctx context.Context, method, who string) error {
	if wait := l.turnOf(method, who); wait > 0 {
		return exchange.Limited(wait)
	}
	share := shareOf(method, who)
	if err := l.Try(ctx, share.Bucket, share); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.queue(method, who, now).last[who] = now
	return nil
}

// turnOf returns how long who, who asks for a call of method now, has to let others go first.
func (l *limiter) turnOf(method, who string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	return l.queue(method, who, now).turn(who, paceOf(method), now)
}

// queue returns the queue of a method, in which who now asks. l.mu is held.
func (l *limiter) queue(method, who string, now time.Time) *queue {
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
	return q
}

// turn returns how long who has to wait until its share of the method's rate
// allows another call.
func (q *queue) turn(who string, p pace, now time.Time) time.Duration {
	last, had := q.last[who]
	if !had || len(q.seen) == 1 || p.refill() <= 0 {
		return 0
	}
	share := time.Duration(float64(len(q.seen)) / p.refill() * float64(time.Minute))
	return max(share-now.Sub(last), 0)
}
