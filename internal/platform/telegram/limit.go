package telegram

import (
	"context"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
)

const (
	// A chat may get two messages at once, so that an answer need not wait for
	// the placeholder before it; on average it keeps the rate.
	chatBurst = 2

	// Telegram's published limit for groups is 20 messages a minute. A burst and
	// the refill of a minute together stay within it.
	groupBurst = 3
	groupRate  = (20.0 - groupBurst) / 60

	// maxChats bounds the table of chats; an entry that is idle for chatIdle has
	// nothing left to say and may go.
	maxChats = 4096
	chatIdle = 5 * time.Minute

	// shortWait is how long a send waits for a 429 to pass before it hands the
	// wait to the caller.
	shortWait = 3 * time.Second
)

// limiter keeps the bot within Telegram's rates: one bucket for all chats, one
// for each chat, and the waits that Telegram demanded.
type limiter struct {
	all  *rate.Limiter // nil is no limit
	chat float64       // messages per second in one chat; 0 is no limit

	mu    sync.Mutex // guards chats
	chats map[int64]*chatLimit
}

// chatLimit is the state of one chat; limiter.mu guards its times.
type chatLimit struct {
	bucket  *rate.Limiter // nil is no limit
	blocked time.Time     // Telegram asked for silence until then
	used    time.Time
}

func newLimiter(all, chat float64) *limiter {
	l := &limiter{chat: chat, chats: make(map[int64]*chatLimit)}
	if all > 0 {
		l.all = rate.NewLimiter(rate.Limit(all), 1)
	}
	return l
}

// state returns the chat's bucket and how long it has to be silent.
func (l *limiter) state(chatID int64) (*rate.Limiter, time.Duration) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.entry(chatID, now)
	c.used = now
	return c.bucket, max(c.blocked.Sub(now), 0)
}

// entry returns the chat's entry and makes room for it. l.mu is held.
func (l *limiter) entry(chatID int64, now time.Time) *chatLimit {
	if c, ok := l.chats[chatID]; ok {
		return c
	}
	if len(l.chats) >= maxChats {
		l.evict(now)
	}
	c := &chatLimit{used: now}
	if l.chat > 0 {
		c.bucket = rate.NewLimiter(rate.Limit(l.chat), chatBurst)
		if chatID < 0 { // groups have negative ids
			c.bucket = rate.NewLimiter(rate.Limit(math.Min(l.chat, groupRate)), groupBurst)
		}
	}
	l.chats[chatID] = c
	return c
}

// evict drops idle chats, and if all are in use the half that is met first:
// forgetting a bucket too early costs at worst a 429. l.mu is held.
func (l *limiter) evict(now time.Time) {
	for id, c := range l.chats {
		if now.Sub(c.used) > chatIdle && now.After(c.blocked) {
			delete(l.chats, id)
		}
	}
	for id, c := range l.chats {
		if len(l.chats) <= maxChats/2 {
			return
		}
		if now.After(c.blocked) {
			delete(l.chats, id)
		}
	}
}

// block keeps the chat silent for d, as a 429 demanded.
func (l *limiter) block(chatID int64, d time.Duration) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.entry(chatID, now)
	if until := now.Add(d); until.After(c.blocked) {
		c.blocked = until
	}
	c.used = now
}

// try takes a token without waiting. It leaves one in the chat's bucket, so
// that what is final need not wait for what was only progress.
func (l *limiter) try(chatID int64) error {
	bucket, blocked := l.state(chatID)
	if blocked > 0 {
		return limited(blocked)
	}
	if bucket != nil && bucket.Tokens() < 2 {
		return limited(time.Second)
	}
	if l.all != nil && !l.all.Allow() {
		return limited(time.Second)
	}
	if bucket != nil {
		bucket.Allow()
	}
	return nil
}

// wait takes a token and waits for its turn. A silence that Telegram demanded
// and that is longer than shortWait is returned to the caller instead.
func (l *limiter) wait(ctx context.Context, chatID int64) error {
	bucket, blocked := l.state(chatID)
	if blocked > shortWait {
		return limited(blocked)
	}
	if err := platform.Sleep(ctx, blocked); err != nil {
		return fault.Wrap(err, fault.KindOf(err), "waiting for Telegram's rate limit")
	}
	for _, b := range []*rate.Limiter{bucket, l.all} {
		if b == nil {
			continue
		}
		if err := take(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// pass takes a token of all chats together for a call that is no message, and
// waits for its turn. A silence that Telegram demanded is returned to the caller.
func (l *limiter) pass(ctx context.Context, chatID int64) error {
	if _, blocked := l.state(chatID); blocked > 0 {
		return limited(blocked)
	}
	if l.all == nil {
		return nil
	}
	return take(ctx, l.all)
}

// take waits for a token.
func take(ctx context.Context, b *rate.Limiter) error {
	err := b.Wait(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil: // the deadline is nearer than the token
		return limited(time.Second)
	}
	return fault.Wrap(ctx.Err(), fault.KindOf(ctx.Err()), "waiting for Telegram's rate limit")
}

func limited(after time.Duration) error {
	return &fault.Error{Kind: fault.RateLimited, RetryAfter: after}
}
