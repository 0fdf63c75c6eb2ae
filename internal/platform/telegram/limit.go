package telegram

import (
	"context"
	"math"
	"strconv"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

const (
	// A chat may get two messages at once, so that an answer need not wait for
	// the placeholder before it; on average it keeps the rate.
	chatBurst = 2

	// Telegram's published limit for groups is 20 messages a minute. A burst and
	// the refill of a minute together stay within it.
	groupBurst = 3
	groupRate  = (20.0 - groupBurst) / 60
)

// limiter keeps the bot within Telegram's rates: one bucket for all chats, one
// for each chat, and the waits that Telegram demanded.
type limiter struct {
	exchange.Budget
	all  exchange.Share
	chat float64 // messages per second in one chat; 0 is no limit
}

func newLimiter(all, chat float64, shared platform.SharedLimits, account string) *limiter {
	return &limiter{
		Budget: exchange.Budget{Platform: "Telegram", Shared: shared, Account: account},
		all:    exchange.Share{Bucket: "all", Every: every(all), Burst: 1, Common: true},
		chat:   chat,
	}
}

// Headroom implements platform.Measured.
func (a *Adapter) Headroom() platform.Headroom { return a.client.limits.Headroom() }

func every(perSecond float64) time.Duration {
	if perSecond <= 0 {
		return 0
	}
	return time.Duration(float64(time.Second) / perSecond)
}

// of names a chat and what one message takes of its rate: what is only progress
// leaves one to what is final.
func (l *limiter) of(chatID int64) (string, exchange.Share) {
	who := strconv.FormatInt(chatID, 10)
	s := exchange.Share{Bucket: who, Every: every(l.chat), Burst: chatBurst, Keep: 1}
	if chatID < 0 && l.chat > 0 { // groups have negative ids
		s.Every, s.Burst = every(math.Min(l.chat, groupRate)), groupBurst
	}
	return who, s
}

// block keeps the chat silent for d, as a 429 demanded.
func (l *limiter) block(chatID int64, d time.Duration) {
	who, _ := l.of(chatID)
	l.Refused(who, d)
}

// silence returns fault.RateLimited while Telegram demands silence in a chat.
func (l *limiter) silence(ctx context.Context, chatID int64) error {
	who, _ := l.of(chatID)
	return l.Try(ctx, who)
}

// try takes a token without waiting.
func (l *limiter) try(ctx context.Context, chatID int64) error {
	who, s := l.of(chatID)
	return l.Try(ctx, who, s, l.all)
}

// wait takes a token and waits for its turn, in its chat and then among all: who
// waits for a chat holds up no other. A silence that Telegram demanded and that is
// longer than exchange.ShortWait is returned to the caller instead.
func (l *limiter) wait(ctx context.Context, chatID int64) error {
	who, s := l.of(chatID)
	if err := l.Wait(ctx, who, s); err != nil {
		return err
	}
	return l.Wait(ctx, who, l.all)
}

// pass takes a token of all chats together for a call that is no message, and
// waits for its turn. A silence that Telegram demanded is returned to the caller.
func (l *limiter) pass(ctx context.Context, chatID int64) error {
	if err := l.silence(ctx, chatID); err != nil {
		return err
	}
	who, _ := l.of(chatID)
	return l.Wait(ctx, who, l.all)
}

// limited runs a call when the rate limits allow it and waits out a short 429.
func (c *client) limited(ctx context.Context, chatID int64, method string, idempotent bool, fn apiCall) error {
	return c.paced(ctx, chatID, func() error { return c.call(ctx, method, idempotent, fn) })
}

func (c *client) paced(ctx context.Context, chatID int64, call func() error) error {
	return exchange.Paced(
		func() error { return c.limits.wait(ctx, chatID) },
		func() error { return c.heard(chatID, call()) }, //nolint:contextcheck // it is told to the others whoever gives up
	)
}

// heard notes that Telegram refused a call because of a limit, if err says so, and returns err.
func (c *client) heard(chatID int64, err error) error {
	if fault.Is(err, fault.RateLimited) {
		c.observe("rate_limited")
		c.limits.block(chatID, exchange.RetryAfter(err))
	}
	return err
}

// shed runs a call that is worth nothing later: at once or not at all.
func (c *client) shed(ctx context.Context, chatID int64, method string, fn apiCall) error {
	if err := c.limits.try(ctx, chatID); err != nil {
		c.observe("edit_shed")
		return err
	}
	return c.heard(chatID, c.call(ctx, method, true, fn)) //nolint:contextcheck // as above
}
