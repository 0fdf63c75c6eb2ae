package platform

import (
	"context"
	"time"
)

// Claim asks for calls which a platform counts for an account, from whichever process
// they come.
type Claim struct {
	Account string // whose calls are counted; no secret
	Bucket  string // which of its limits
	Who     string // who may have been told to be silent; see SharedLimits.Silence

	Every time.Duration // one more call becomes possible so often
	Burst int           // how many are possible at once
	Take  int           // how many calls it is
	Keep  float64       // how many have to be left over for others

	Longest time.Duration // how long the caller would wait
}

// SharedLimits counts calls of all processes that use the same accounts, so that they
// together stay within a limit. It is safe for concurrent use.
type SharedLimits interface {
	// Local reports whether a process counts by itself the calls of a limit of which nothing
	// is used after full: no other one calls, nor has for so long that its calls still count,
	// and if one comes, it can hear of them in time. It does no I/O.
	Local(full time.Duration) bool

	// Take takes the calls and returns how long to wait with them. If that would be longer
	// than Longest, or Who has to be silent, it takes nothing and returns a
	// fault.RateLimited with the time.
	Take(ctx context.Context, c Claim) (wait time.Duration, err error)

	// CountsAlone registers what tells how much a process has used by its own count. It is
	// called once another process is there, when Local reports false already, so that Take
	// knows of it; it must neither block nor call Take.
	CountsAlone(usage func() []Usage)

	// Silence has Take refuse all calls of who for d, which a platform demanded.
	Silence(ctx context.Context, account, who string, d time.Duration) error
}

// Usage is what an account has used of one of its limits.
type Usage struct {
	Account string
	Bucket  string
	FullIn  time.Duration // how long until nothing of it is used any more
}

// Headroom is how much is left of what a platform allows.
type Headroom struct {
	Left   float64   // of the limit that is used up most: 1 is all of it, 0 nothing
	Silent int       // chats, methods or accounts for which the platform demanded a silence
	Until  time.Time // when the last of these silences ends; zero without one
}

// Measured is implemented by adapters that know how much is left of what their platform
// allows this process.
type Measured interface {
	Adapter

	// Headroom does no I/O.
	Headroom() Headroom
}
