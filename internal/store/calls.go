package store

import (
	"context"
	"errors"
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
// Who is alone knows that for aloneFor. So who joins it takes nothing for joinPause, and
// all buckets count as empty then, whatever the other one has used meanwhile. A process
// goes on with the rows for lingerFor after the last other one is gone: by then what
// that one has used counts no more.
const (
	aloneFor  = time.Second
	joinPause = 2 * time.Second
	lingerFor = 15 * time.Minute
)

// company is what a process knows of others on its database.
type company struct {
	owner atomic.Pointer[string] // of this process, once its life has begun
	alone atomic.Pointer[time.Time]
	met   atomic.Pointer[time.Time] // when another one was there last
	clock func() int64              // of a test, in Unix microseconds; nil is the database's

	takers atomic.Pointer[[]string] // the others that take offers, in order; see Takers

	since time.Time // when this process counted by itself last; written by its Life alone
}

// saw notes what was seen of others when asked.
func (c *company) saw(others bool, asked time.Time) {
	if others {
		if met := c.met.Load(); (met == nil || asked.Sub(*met) >= lingerFor) && c.alone.Load() != nil {
			c.since = asked
		}
		c.met.Store(&asked)
		return
	}
	c.alone.Store(&asked)
}

// shares reports whether all calls of this process that still count are in the rows that
// all share.
func (c *company) shares(now time.Time) bool {
	met := c.met.Load()
	return met != nil && now.Sub(*met) < lingerFor && (c.since.IsZero() || now.Sub(c.since) > lingerFor)
}

// clearJoined has buckets not count as empty because another process joined since the last
// look, if counts says that this one has counted in the rows that all share: else each restart of
// one of two processes would empty buckets that take minutes to fill.
func (l *Life) clearJoined(ctx context.Context, before map[string]bool, counts bool) error {
	var newcomers []string
	for owner, held := range l.joined {
		if _, known := before[owner]; held && !known {
			newcomers = append(newcomers, owner)
		}
	}
	if !counts || len(newcomers) == 0 {
		return nil
	}
	_, err := l.conn.Exec(ctx, `UPDATE replicas SET joined_us = 0 WHERE owner = ANY($1)`, newcomers)
	return err
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
	if met := s.company.met.Load(); met != nil && time.Since(*met) < lingerFor {
		return false
	}
	alone := s.company.alone.Load()
	return alone != nil && time.Since(*alone) < aloneFor
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

	// earliest is when a bucket of $5 us is full at the earliest: it counts as empty until
	// a replica that joined one which was alone has paused. No row: this process is taken for dead.
	earliest = `SELECT GREATEST(` + clockUS + `, max(r.joined_us) + $2::bigint + $5::bigint) AS full_us
		FROM replicas AS r HAVING bool_or(r.owner = $3::text)`

	// takeCalls takes $6 us of a bucket, if its use of $7 us, which may be more, leaves no
	// longer to wait than $8 us.
	takeCalls = `
		INSERT INTO call_limits AS c (account, bucket, full_us)
		SELECT $4::text, $9::text, e.full_us + $6::bigint FROM (` + earliest + `) AS e
		WHERE e.full_us + $7::bigint - $5::bigint <= ` + clockUS + ` + $8::bigint
			AND NOT EXISTS (SELECT 1 FROM call_limits AS s WHERE s.account = $4::text AND s.bucket = $10::text AND s.silent_us > ` + clockUS + `)
		ON CONFLICT (account, bucket) DO UPDATE SET full_us = GREATEST(c.full_us, excluded.full_us - $6::bigint) + $6::bigint
		WHERE GREATEST(c.full_us, excluded.full_us - $6::bigint) + $7::bigint - $5::bigint <= ` + clockUS + ` + $8::bigint
		RETURNING full_us - $5::bigint - ` + clockUS

	// whenCalls tells how long to wait where takeCalls has taken nothing.
	whenCalls = `
		SELECT GREATEST(coalesce((SELECT s.silent_us FROM call_limits AS s WHERE s.account = $4::text AND s.bucket = $8::text), 0) - ` + clockUS + `,
			GREATEST(e.full_us, coalesce((SELECT c.full_us FROM call_limits AS c WHERE c.account = $4::text AND c.bucket = $7::text), 0))
			+ $6::bigint - $5::bigint - ` + clockUS + `)
		FROM (` + earliest + `) AS e`
)

// TakeCalls takes calls among all processes on a PostgreSQL database, and returns how
// long to wait with them. If that would be longer than the claim's Longest, or Who has to be
// silent, it takes nothing and returns a fault.RateLimited with the time, as it does for
// a second while this process is taken for dead. It is not idempotent: what was taken is used.
func (s *Store) TakeCalls(ctx context.Context, c CallClaim) (time.Duration, error) {
	owner := s.company.owner.Load()
	if s.pg == nil || owner == nil {
		return 0, fault.New(fault.Internal, "calls are taken from a database that nobody shares")
	}
	us := func(calls float64) int64 { return int64(calls * float64(c.Every.Microseconds())) }
	burst, take, need := us(float64(c.Burst)), us(float64(c.Take)), us(float64(c.Take)+c.Keep)
	longest := max(c.Longest, 0).Microseconds()
	var clock *int64
	if s.company.clock != nil {
		now := s.company.clock()
		clock = &now
	}
	var wait int64
	err := s.pg.QueryRow(ctx, takeCalls, clock, joinPause.Microseconds(), *owner, c.Account, burst, take, need, longest, c.Bucket, c.Who).Scan(&wait)
	if err == nil {
		return max(time.Duration(wait)*time.Microsecond, 0), nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return 0, classifyPostgres(err)
	}
	err = s.pg.QueryRow(ctx, whenCalls, clock, joinPause.Microseconds(), *owner, c.Account, burst, need, c.Bucket, c.Who).Scan(&wait)
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
	var clock *int64
	if s.company.clock != nil {
		now := s.company.clock()
		clock = &now
	}
	_, err := s.pg.Exec(ctx, `
		INSERT INTO call_limits AS c (account, bucket, silent_us) VALUES ($2::text, $3::text, `+clockUS+` + $4::bigint)
		ON CONFLICT (account, bucket) DO UPDATE SET silent_us = GREATEST(c.silent_us, excluded.silent_us)`,
		clock, account, who, d.Microseconds())
	return classifyPostgres(err)
}

// forgetCalls removes the buckets that have long been full, when a process begins.
const forgetCalls = `DELETE FROM call_limits WHERE GREATEST(full_us, silent_us) < {now} * 1000 - 3600000000`
