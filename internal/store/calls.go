package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/fault"
)

// While one process works on a database it counts its calls by itself, and nothing of
// them is here. Once another one lives, each takes its calls from rows that all share:
// the generic cell rate algorithm, one statement for a call, so that all together never
// make more than the limit, and what one does not use is the others' at once.
//
// Who is alone knows that for aloneFor. So who joins it takes nothing for joinPause, or until
// the other one has written down what it used. If it never does, all buckets count as empty.
// A process goes on with the rows for lingerFor after the last other one is gone: by then what
// that one has used counts no more.
//
// A bucket that takes longer than keptOver to be full again would be empty for too long where
// the other one was killed before it wrote that down. So all its calls are taken from its row,
// by who is alone, too.
const (
	aloneFor  = time.Second
	joinPause = 2 * time.Second
	joinAgain = 200 * time.Millisecond // how soon to ask again meanwhile
	lingerFor = 15 * time.Minute
	keptOver  = 10 * time.Minute // in earliest, too
)

// company is what a process knows of others on its database.
type company struct {
	owner atomic.Pointer[string] // of this process, once its life has begun
	alone atomic.Pointer[time.Time]
	met   atomic.Pointer[time.Time] // when another one was there last
	clock func() int64              // of a test, in Unix microseconds; nil is the database's

	takers atomic.Pointer[[]string] // the others that take offers, in order; see Takers

	mu     sync.Mutex // guards usages
	usages []func() []CallUsage
}

// saw notes what was seen of others when asked, and returns whether this process may have
// counted by itself until now.
func (c *company) saw(others bool, asked time.Time) (counted bool) {
	before := c.met.Load()
	if others {
		c.met.Store(&asked)
	} else {
		c.alone.Store(&asked)
	}
	return before == nil || time.Since(*before) >= lingerFor
}

// lingers reports whether another process is there, or was lately.
func (c *company) lingers(now time.Time) bool {
	met := c.met.Load()
	return met != nil && now.Sub(*met) < lingerFor
}

// CallUsage is how long it takes until nothing of a bucket is used any more.
type CallUsage struct {
	Account string
	Bucket  string
	FullIn  time.Duration
}

// CountsAlone registers what tells which calls this process has counted by itself. It is
// called when Alone has become false, by the Life; it must neither block nor use the Store.
func (s *Store) CountsAlone(usage func() []CallUsage) {
	s.company.mu.Lock()
	defer s.company.mu.Unlock()
	s.company.usages = append(s.company.usages, usage)
}

// used returns what all that is registered has used.
func (c *company) used() (accounts, buckets []string, fullIn []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, usage := range c.usages {
		for _, u := range usage() {
			accounts, buckets, fullIn = append(accounts, u.Account), append(buckets, u.Bucket), append(fullIn, u.FullIn.Microseconds())
		}
	}
	return accounts, buckets, fullIn
}

// writeUsed adds what a process has counted by itself to the rows that all share.
const writeUsed = `
	INSERT INTO call_limits AS c (account, bucket, full_us)
	SELECT u.account, u.bucket, ` + clockUS + ` + max(u.full_in)
	FROM unnest($2::text[], $3::text[], $4::bigint[]) AS u (account, bucket, full_in) GROUP BY u.account, u.bucket ORDER BY 1, 2
	ON CONFLICT (account, bucket) DO UPDATE SET full_us = GREATEST(c.full_us, excluded.full_us)`

// shareCounts writes down what this process has counted by itself, when it is not alone any
// more. Then all it ever used is in the rows, so that buckets need not count as empty because
// of those who joined it.
func (l *Life) shareCounts(ctx context.Context, joined []string) error {
	if c := &l.store.company; !l.shared {
		if accounts, buckets, fullIn := c.used(); len(accounts) > 0 {
			if _, err := l.conn.Exec(ctx, writeUsed, c.time(), accounts, buckets, fullIn); err != nil {
				return err
			}
		}
		l.shared = true
	}
	if len(joined) == 0 {
		return nil
	}
	_, err := l.conn.Exec(ctx, `UPDATE replicas SET joined_us = 0 WHERE owner = ANY($1)`, joined)
	return err
}

// time returns the time of a test; nil is the database's.
func (c *company) time() *int64 {
	if c.clock == nil {
		return nil
	}
	now := c.clock()
	return &now
}

// Shared reports whether several processes may work on the database.
func (s *Store) Shared() bool { return s.pg != nil }

// Alone reports whether no other process works on the database, nor has lately: then
// this one may count calls by itself. So may one without a Life, which does not work
// on it. It does no I/O.
func (s *Store) Alone() bool {
	if s.company.owner.Load() == nil {
		return true
	}
	if s.company.lingers(time.Now()) {
		return false
	}
	alone := s.company.alone.Load()
	return alone != nil && time.Since(*alone) < aloneFor
}

// CountsCalls reports whether this process counts calls by itself that take full until nothing
// of them is used any more; else it has to take them with TakeCalls. It does no I/O.
func (s *Store) CountsCalls(full time.Duration) bool {
	return s.Alone() && (full <= keptOver || s.company.owner.Load() == nil)
}

// CallClaim asks for calls of an account.
type CallClaim struct {
	Account string // at most 64 bytes
	Bucket  string // at most 255 bytes
	Who     string // likewise; see SilenceCalls

	Every time.Duration // one more call becomes possible so often
	Burst int           // how many are possible at once
	Take  int           // how many calls it is
	Keep  float64       // how many have to be left over

	Longest time.Duration // how long the caller would wait
}

const (
	// clockUS is the time in Unix microseconds; a test gives it.
	clockUS = `coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)`

	// earliest is when a bucket of $5 us is full at the earliest: it counts as empty when a
	// replica that joined one which was alone has paused for nothing, unless it is one of more
	// than keptOver. No row: this process is taken for dead.
	earliest = `SELECT GREATEST(` + clockUS + `, joined + $2::bigint + $5::bigint) AS full_us, joined + $2::bigint > ` + clockUS + ` AS pausing
		FROM (SELECT CASE WHEN $5::bigint > 600000000 THEN 0 ELSE max(r.joined_us) END AS joined
			FROM replicas AS r HAVING bool_or(r.owner = $3::text)) AS r`

	// fullAt is when bucket c of $5 us is full. Nobody takes calls of more than an hour ahead;
	// if it says two, the database's clock was wrong then, and what was used is not known.
	fullAt = `CASE WHEN c.full_us <= ` + clockUS + ` + $5::bigint + 7200000000 THEN c.full_us ELSE 0 END`

	// takeCalls takes $6 us of a bucket, if its use of $7 us, which may be more, leaves no
	// longer to wait than $8 us.
	takeCalls = `
		INSERT INTO call_limits AS c (account, bucket, full_us)
		SELECT $4::text, $9::text, e.full_us + $6::bigint FROM (` + earliest + `) AS e
		WHERE NOT e.pausing AND e.full_us + $7::bigint - $5::bigint <= ` + clockUS + ` + $8::bigint
			AND NOT EXISTS (SELECT 1 FROM call_limits AS s WHERE s.account = $4::text AND s.bucket = $10::text AND s.silent_us > ` + clockUS + `)
		ON CONFLICT (account, bucket) DO UPDATE SET full_us = GREATEST(` + fullAt + `, excluded.full_us - $6::bigint) + $6::bigint
		WHERE GREATEST(` + fullAt + `, excluded.full_us - $6::bigint) + $7::bigint - $5::bigint <= ` + clockUS + ` + $8::bigint
		RETURNING full_us - $5::bigint - ` + clockUS

	// whenCalls tells how long to wait where takeCalls has taken nothing.
	whenCalls = `
		SELECT GREATEST(coalesce((SELECT s.silent_us FROM call_limits AS s WHERE s.account = $4::text AND s.bucket = $8::text), 0) - ` + clockUS + `,
			CASE WHEN e.pausing THEN $9::bigint ELSE
			GREATEST(e.full_us, coalesce((SELECT ` + fullAt + ` FROM call_limits AS c WHERE c.account = $4::text AND c.bucket = $7::text), 0))
			+ $6::bigint - $5::bigint - ` + clockUS + ` END)
		FROM (` + earliest + `) AS e`
)

// TakeCalls takes calls among all processes on a PostgreSQL database, and returns how
// long to wait with them. If that would be longer than the claim's Longest, or Who has to be
// silent, it takes nothing and returns a fault.RateLimited with the time, as it does for
// a second while this process is taken for dead, and again and again for at most two while
// one that joined waits for what another one has used. It is not idempotent: what was taken is used.
func (s *Store) TakeCalls(ctx context.Context, c CallClaim) (time.Duration, error) {
	owner := s.company.owner.Load()
	if s.pg == nil || owner == nil {
		return 0, fault.New(fault.Internal, "calls are taken from a database that nobody shares")
	}
	us := func(calls float64) int64 { return int64(calls * float64(c.Every.Microseconds())) }
	burst, take, need := us(float64(c.Burst)), us(float64(c.Take)), us(float64(c.Take)+c.Keep)
	longest := max(c.Longest, 0).Microseconds()
	clock := s.company.time()
	var wait int64
	err := s.pg.QueryRow(ctx, takeCalls, clock, joinPause.Microseconds(), *owner, c.Account, burst, take, need, longest, c.Bucket, c.Who).Scan(&wait)
	if err == nil {
		return max(time.Duration(wait)*time.Microsecond, 0), nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return 0, classifyPostgres(err)
	}
	err = s.pg.QueryRow(ctx, whenCalls, clock, joinPause.Microseconds(), *owner, c.Account, burst, need, c.Bucket, c.Who, joinAgain.Microseconds()).Scan(&wait)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // others took this process for dead, and it does not know yet
		wait = time.Second.Microseconds()
	case err != nil:
		return 0, classifyPostgres(err)
	}
	return 0, &fault.Error{Kind: fault.RateLimited, RetryAfter: max(time.Duration(wait)*time.Microsecond, time.Millisecond)}
}

// SilenceCalls has TakeCalls refuse the calls of who for d. A longer silence stands.
// It is idempotent, and does nothing on SQLite.
func (s *Store) SilenceCalls(ctx context.Context, account, who string, d time.Duration) error {
	if s.pg == nil {
		return nil
	}
	_, err := s.pg.Exec(ctx, `
		INSERT INTO call_limits AS c (account, bucket, silent_us) VALUES ($2::text, $3::text, `+clockUS+` + $4::bigint)
		ON CONFLICT (account, bucket) DO UPDATE SET silent_us = GREATEST(c.silent_us, excluded.silent_us)`,
		s.company.time(), account, who, d.Microseconds())
	return classifyPostgres(err)
}

// forgetCalls removes the buckets that have long been full, when a process begins.
const forgetCalls = `DELETE FROM call_limits WHERE GREATEST(full_us, silent_us) < {now} * 1000 - 3600000000`
