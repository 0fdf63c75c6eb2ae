package exchange

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
)

const (
	// ShortWait is how long a call waits for a silence to pass that a platform
	// demanded, before it hands the wait to its caller.
	ShortWait = 3 * time.Second

	// unsaid is how long a platform is left alone that refuses and does not say for
	// how long; it doubles with each time up to unsaidMax.
	unsaid    = time.Minute
	unsaidMax = 32 * time.Minute

	// maxBuckets bounds the table; one that is idle for bucketIdle has nothing left
	// to say and may go.
	maxBuckets = 4096
	bucketIdle = 5 * time.Minute
)

// Share is what a call takes of one bucket.
type Share struct {
	Bucket string        // those who name the same one share it
	Every  time.Duration // one more becomes possible so often; zero is no limit
	Burst  int           // how many are possible at once
	Take   int           // of them; zero is one
	Keep   float64       // how many Try leaves to Wait
	Common bool          // the platform counts it for the account: see Budget.Shared
}

func (s Share) take() int { return max(s.Take, 1) }

// Budget keeps the calls of an account within a platform's rates: buckets that are
// filled again with time, and the silences that the platform demanded. A silence
// holds for who it was demanded of, named by the adapter: a chat, an installation, a
// method. It is safe for concurrent use. Make it with its exported fields set.
type Budget struct {
	// Platform names it in errors.
	Platform string

	// MaxQueue is the longest time that Wait waits for a turn; zero is no limit but
	// the context's.
	MaxQueue time.Duration

	// Shared, if not nil, counts what is Common together with the other processes that
	// use Account, while there are any, and tells them of silences.
	Shared  platform.SharedLimits
	Account string

	registered sync.Once // that it counts alone

	mu      sync.Mutex // guards all below
	buckets map[string]*bucket
	silent  map[string]silence
}

type bucket struct {
	*rate.Limiter
	used   time.Time
	common bool
}

// silence is what a platform demanded of somebody.
type silence struct {
	until   time.Time
	strikes int // refusals in a row without a time
}

// Wait takes the shares and waits for its turn, in the order of the calls. If that
// would take longer than MaxQueue or than ctx lasts, or the platform demanded a
// silence of more than ShortWait of who, it returns fault.RateLimited with the time
// and takes nothing here; of what several buckets share, what was taken before stays so. The
// end of ctx is its fault, and so is a stop if the work can be left, see platform.Leavable.
func (b *Budget) Wait(ctx context.Context, who string, shares ...Share) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.KindOf(err), "waiting for the rate limit of "+b.Platform)
	}
	delay, giveBack, err := b.reserve(ctx, who, shares)
	if err != nil {
		return err
	}
	for {
		behind, err := b.waitShared(ctx, who, shares)
		if err != nil {
			giveBack()
			return err
		}
		due := time.Now().Add(max(delay, behind))
		if err := platform.AwaitTurn(ctx, time.Until(due)); err != nil {
			giveBack()
			return fault.Wrap(err, fault.KindOf(err), "waiting for the rate limit of "+b.Platform)
		}
		if behind == 0 || time.Since(due) < lateFor {
			return nil
		}
		delay = 0 // this process stood still, and its turn has passed
	}
}

// lateFor is how long after its time a turn that others know of is still good.
const lateFor = time.Second

// sharedAnswer is how long it may take to hear from Budget.Shared.
const sharedAnswer = 3 * time.Second

// waitShared takes the common shares among all processes, and returns how long to wait
// for them. It waits out a short silence.
func (b *Budget) waitShared(ctx context.Context, who string, shares []Share) (time.Duration, error) {
	longest := time.Hour
	if b.MaxQueue > 0 {
		longest = b.MaxQueue
	}
	if deadline, ok := ctx.Deadline(); ok {
		longest = min(longest, time.Until(deadline))
	}
	for patience := ShortWait; ; {
		wait, err := b.take(ctx, who, longest, shares)
		silent := RetryAfter(err)
		if silent <= 0 || !fault.Is(err, fault.RateLimited) || silent > min(patience, longest) {
			return wait, err
		}
		patience -= silent
		if err := platform.Sleep(ctx, silent); err != nil {
			return 0, fault.Wrap(err, fault.KindOf(err), "waiting for the rate limit of "+b.Platform)
		}
	}
}

// usage returns what was used of the common buckets.
func (b *Budget) usage() (all []platform.Usage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for name, x := range b.buckets {
		if used := float64(x.Burst()) - x.TokensAt(now); x.common && used > 0 {
			all = append(all, platform.Usage{Account: b.Account, Bucket: name, FullIn: time.Duration(used / float64(x.Limit()) * float64(time.Second))})
		}
	}
	return all
}

// take takes the common shares among all processes, except where this one counts by itself: then
// what was taken here is what counts, and it has to tell of it when another one comes.
func (b *Budget) take(ctx context.Context, who string, longest time.Duration, shares []Share) (wait time.Duration, err error) {
	if b.Shared == nil {
		return 0, nil
	}
	b.registered.Do(func() { b.Shared.CountsAlone(b.usage) })
	ctx, cancel := context.WithTimeout(ctx, sharedAnswer)
	defer cancel()
	for _, s := range shares {
		if !s.Common || s.Every <= 0 || b.Shared.Local(s.Every*time.Duration(s.Burst)) {
			continue
		}
		c := platform.Claim{Account: b.Account, Bucket: s.Bucket, Who: who, Every: s.Every, Burst: s.Burst, Take: s.take(), Longest: longest}
		if longest == 0 {
			c.Keep = s.Keep
		}
		more, err := b.Shared.Take(ctx, c)
		if err != nil {
			return 0, err
		}
		wait = max(wait, more)
	}
	return wait, nil
}

func (b *Budget) reserve(ctx context.Context, who string, shares []Share) (delay time.Duration, giveBack func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if delay = max(b.silent[who].until.Sub(now), 0); delay > ShortWait {
		return 0, nil, Limited(delay)
	}
	var taken []*rate.Reservation
	giveBack = func() {
		for _, r := range taken {
			r.CancelAt(now)
		}
	}
	for _, s := range shares {
		if s.Every <= 0 {
			continue
		}
		r := b.bucket(s, now).ReserveN(now, s.take())
		taken = append(taken, r)
		delay = max(delay, r.DelayFrom(now))
	}
	deadline, bound := ctx.Deadline()
	if b.MaxQueue > 0 && delay > b.MaxQueue || bound && delay > 0 && now.Add(delay).After(deadline) {
		giveBack()
		return 0, nil, Limited(delay)
	}
	return delay, giveBack, nil
}

// Try takes the shares at once, if no silence was demanded of who and enough is left
// for those who wait; else it returns fault.RateLimited and takes nothing here.
func (b *Budget) Try(ctx context.Context, who string, shares ...Share) error {
	if err := b.tryHere(who, shares); err != nil {
		return err
	}
	_, err := b.take(ctx, who, 0, shares)
	return err
}

func (b *Budget) tryHere(who string, shares []Share) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if left := b.silent[who].until.Sub(now); left > 0 {
		return Limited(left)
	}
	for _, s := range shares {
		if s.Every > 0 && b.bucket(s, now).TokensAt(now) < float64(s.take())+s.Keep {
			return Limited(time.Second)
		}
	}
	for _, s := range shares {
		if s.Every > 0 {
			b.bucket(s, now).AllowN(now, s.take())
		}
	}
	return nil
}

// Refused notes that the platform refused a call of who because of a limit, for
// after or, if that is zero, without a time. It returns how long to be silent: a
// minute, then twice as long each time until Calm, at most 32 minutes. The other
// processes are told, whatever became of the call.
func (b *Budget) Refused(who string, after time.Duration) time.Duration {
	after = b.refusedHere(who, after)
	if b.Shared != nil {
		ctx, cancel := context.WithTimeout(context.Background(), sharedAnswer)
		defer cancel()
		_ = b.Shared.Silence(ctx, b.Account, who, after) // else each hears of it from the platform
	}
	return after
}

func (b *Budget) refusedHere(who string, after time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.tidy(now)
	s := b.silent[who]
	if after <= 0 {
		after = min(unsaid<<min(s.strikes, 10), unsaidMax)
		s.strikes++
	}
	if until := now.Add(after); until.After(s.until) {
		s.until = until
	}
	b.silent[who] = s
	return after
}

// Calm notes that a call of who was taken.
func (b *Budget) Calm(who string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, ok := b.silent[who]; ok {
		s.strikes = 0
		b.silent[who] = s
	}
}

// Headroom says how much is left of the bucket that is used up most, and which silences
// hold.
func (b *Budget) Headroom() platform.Headroom {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, h := time.Now(), platform.Headroom{Left: 1}
	for _, x := range b.buckets {
		h.Left = min(h.Left, max(x.TokensAt(now), 0)/float64(max(x.Burst(), 1)))
	}
	for _, s := range b.silent {
		if now.Before(s.until) {
			h.Silent++
		}
		if now.Before(s.until) && s.until.After(h.Until) {
			h.Until = s.until
		}
	}
	return h
}

// bucket returns the bucket of a share. b.mu is held.
func (b *Budget) bucket(s Share, now time.Time) *bucket {
	found, ok := b.buckets[s.Bucket]
	if !ok {
		b.tidy(now)
		found = &bucket{Limiter: rate.NewLimiter(rate.Every(s.Every), s.Burst), common: s.Common}
		b.buckets[s.Bucket] = found
	}
	found.used = now
	return found
}

// tidy makes the tables and keeps them small: what is idle goes, and if all are in
// use the half that is met first. What is forgotten too early costs at worst a
// refusal. b.mu is held.
func (b *Budget) tidy(now time.Time) {
	if b.buckets == nil {
		b.buckets, b.silent = make(map[string]*bucket), make(map[string]silence)
	}
	if len(b.buckets) >= maxBuckets {
		shrink(b.buckets, func(x *bucket) bool { return now.Sub(x.used) > bucketIdle })
	}
	if len(b.silent) >= maxBuckets {
		shrink(b.silent, func(x silence) bool { return now.After(x.until) })
	}
}

func shrink[V any](table map[string]V, idle func(V) bool) {
	for k, v := range table {
		if idle(v) {
			delete(table, k)
		}
	}
	for k := range table {
		if len(table) <= maxBuckets/2 {
			return
		}
		delete(table, k)
	}
}

// Paced makes a call once wait lets it, and again after a refusal because of a limit as
// long as that ends within ShortWait from the beginning.
func Paced(wait, call func() error) error {
	deadline := time.Now().Add(ShortWait)
	for {
		if err := wait(); err != nil {
			return err
		}
		err := call()
		if !fault.Is(err, fault.RateLimited) || time.Now().Add(RetryAfter(err)).After(deadline) {
			return err
		}
	}
}

// Limited returns the fault of a call that has to wait.
func Limited(after time.Duration) error {
	return &fault.Error{Kind: fault.RateLimited, RetryAfter: after}
}

// RetryAfter returns how long an error asks to wait, or zero.
func RetryAfter(err error) time.Duration {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.RetryAfter
	}
	return 0
}
