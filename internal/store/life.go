package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/fault"
)

// A replica's life. A dead process is known within deadLooks times lifeLook, one that
// is frozen or cut off after lifeTTL. A process that could not say that it lives for
// lifeGivesUp stops working on what others are about to take.
const (
	lifeLook    = 400 * time.Millisecond
	lifeBeat    = 3 * time.Second
	lifeTTL     = 14 * time.Second
	lifeGivesUp = 11 * time.Second
	lifeTimeout = 3 * time.Second // of a question to the database
	deadLooks   = 2               // one may fall between the end of a connection and the next one

	// lifeSettles is how long after a connection broke nobody is judged by theirs: the
	// server may have been started again, and all have to come back.
	lifeSettles = 3 * time.Second

	// lifeClass is the first key of the advisory locks of lives.
	lifeClass = 0x62_6f_74
)

// LifeConfig configures a Life.
type LifeConfig struct {
	Owner string // as in the leases of this process
	Log   *slog.Logger

	// Died is called after the leases of dead processes were voided: what they worked
	// on waits for somebody.
	Died func(ctx context.Context, owners []string)

	// Lost is called when others may have voided the leases of this process, or are
	// about to: whoever works under one stops.
	Lost func()

	// Offered is called with the conversations of an offer to this process; see
	// Leases.Offer. It must not block. Nil has nobody offer it any.
	Offered func(ctx context.Context, conversationIDs []string)
}

// Life keeps this process known as alive to the other processes on a PostgreSQL
// database, and voids what dead ones held. On SQLite, where one process works, it
// does nothing. It is used by one goroutine.
type Life struct {
	store  *Store
	config LifeConfig

	conn    *pgx.Conn // holds the advisory lock; nil while there is none
	key     int64     // of that lock, another one for each connection; 0 behind a pooler, where there is none
	broke   time.Time // when a connection was lost last
	beaten  time.Time // when this process was last on record
	known   bool      // it was on record once
	missing map[string]int
	before  map[string]bool // who was there when this process came, and has not been dead since
	shared  bool            // all calls of this process that count are in the rows that all share
}

// BeginLife puts this process on record, before it takes any lease. End or Run ends
// it.
func (s *Store) BeginLife(ctx context.Context, config LifeConfig) (*Life, error) {
	l := &Life{store: s, config: config, missing: make(map[string]int)}
	if s.pg == nil {
		return l, nil
	}
	if err := l.beat(ctx); err != nil {
		l.hangUp(ctx)
		return nil, fmt.Errorf("say that this process lives: %w", err)
	}
	s.company.owner.Store(&config.Owner)
	if _, err := l.look(ctx); err != nil { // who is there: the first call need not wait for the next look
		config.Log.DebugContext(ctx, "could not look for other replicas", "err", err)
	}
	if _, err := s.pg.Exec(ctx, s.text.sql(forgetCalls)); err != nil {
		config.Log.DebugContext(ctx, "could not forget old limits", "err", err)
	}
	return l, nil
}

// Run says that this process lives, and looks after the others, until ctx ends. Then
// it takes the process off the record.
func (l *Life) Run(ctx context.Context) {
	if l.store.pg == nil {
		return
	}
	defer l.end(context.WithoutCancel(ctx))
	lost := false
	for {
		l.listen(ctx, lifeLook)
		if ctx.Err() != nil {
			return
		}
		err := l.step(ctx)
		if err != nil && ctx.Err() == nil {
			l.config.Log.DebugContext(ctx, "could not record that this process is alive", "err", err)
		}
		silent := time.Since(l.beaten) > lifeGivesUp
		if silent && !lost {
			l.config.Log.WarnContext(ctx, "the database does not answer; other replicas take over what this one works on")
			l.config.Lost()
		}
		lost = silent
	}
}

// step says that this process lives, if it is time to, and looks after the others.
func (l *Life) step(ctx context.Context) error {
	if l.conn == nil || l.conn.IsClosed() || time.Since(l.beaten) >= lifeBeat {
		if err := l.beat(ctx); err != nil {
			return err
		}
	}
	dead, err := l.look(ctx)
	if err != nil {
		return l.failed(ctx, err)
	}
	var voided []string
	for _, owner := range dead {
		done, err := l.void(ctx, owner)
		if err != nil {
			return l.failed(ctx, err)
		}
		if done {
			l.config.Log.WarnContext(ctx, "a replica is gone; its work is taken over", "replica", owner)
			voided = append(voided, owner)
		}
	}
	if len(voided) > 0 {
		l.config.Died(ctx, voided)
	}
	return nil
}

// failed drops a connection that cannot be trusted any more.
func (l *Life) failed(ctx context.Context, err error) error {
	l.hangUp(ctx)
	return classifyPostgres(err)
}

func (l *Life) hangUp(ctx context.Context) {
	if l.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = l.conn.Close(ctx) // it may be broken
	l.conn, l.broke = nil, time.Now()
	l.store.company.takers.Store(nil) // whoever cannot look knows of none
}

// beat moves this process's time on, over a connection that holds its lock.
func (l *Life) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lifeTimeout)
	defer cancel()
	if l.conn == nil || l.conn.IsClosed() {
		if err := l.connect(ctx); err != nil {
			return l.failed(ctx, err)
		}
	}
	asked := time.Now()
	var (
		fresh  bool
		before []string // as the statement found them: whoever came later has seen this process
	)
	err := l.conn.QueryRow(ctx, l.store.text.sql(`
		INSERT INTO replicas AS n (owner, lock_key, until_ms, joined_us)
		SELECT $1::text, $3::bigint, {now} + $4, CASE WHEN count(r.owner) = 1 THEN {now} * 1000 ELSE 0 END
		FROM replicas AS r WHERE r.owner <> $1::text AND (r.lock_key = 0 OR `+locked+`)
		ON CONFLICT (owner) DO UPDATE SET until_ms = excluded.until_ms, lock_key = excluded.lock_key
		RETURNING xmax = 0, ARRAY(SELECT o.owner::text FROM replicas AS o)`),
		l.config.Owner, int64(lifeClass), l.key, lifeTTL.Milliseconds()).Scan(&fresh, &before)
	if err != nil {
		return l.failed(ctx, err)
	}
	if fresh && l.known {
		l.config.Log.WarnContext(ctx, "other replicas considered this one dead; it starts again")
		l.config.Lost()
	}
	if fresh {
		l.before = make(map[string]bool)
		for _, owner := range before {
			l.before[owner] = true
		}
	}
	l.beaten, l.known = asked, true
	return nil
}

// connect opens the connection that is this process's life. Its lock is a new one: the server
// may take an earlier connection for alive for hours, if the network dropped what ended it.
func (l *Life) connect(ctx context.Context) error {
	config := l.store.pg.Config().ConnConfig.Copy()
	config.RuntimeParams["application_name"] = "bot life"
	config.Tracer = nil // none of what anybody asked for
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	l.conn = conn
	if l.store.pooled {
		return nil
	}
	l.key = 1 + rand.Int64N(1<<31-1) //nolint:gosec // to differ, not to be secret
	var held bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1::int, $2::int)`, lifeClass, l.key).Scan(&held); err != nil {
		return err
	}
	if !held {
		return errors.New("another process has the same lock")
	}
	return l.subscribe(ctx)
}

// locked says whether the process in row r holds its lock, of the class in $2.
var locked = lockedOf("$2")

func lockedOf(class string) string {
	return `EXISTS (SELECT 1 FROM pg_locks AS l
	WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2
	AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
	AND l.classid::bigint = ` + class + ` AND l.objid::bigint = r.lock_key)`
}

// look returns the processes that are dead.
func (l *Life) look(ctx context.Context) (dead []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, lifeTimeout)
	defer cancel()
	asked, others := time.Now(), false
	rows, err := l.conn.Query(ctx, l.store.text.sql(`
		SELECT r.owner, r.until_ms <= {now}, r.lock_key <> 0 AND NOT `+locked+`,
			r.lock_key <> 0 AND r.until_ms > {now} + $4 AND `+lockedOf("$3")+`, r.joined_us > 0
		FROM replicas AS r WHERE r.owner <> $1 ORDER BY r.owner`),
		l.config.Owner, int64(lifeClass), int64(listenClass), (lifeTTL - listensFor).Milliseconds())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	missing := make(map[string]int)
	var takers []string
	var joined []string // those that buckets count as empty because of, if they joined this process
	for rows.Next() {
		var (
			owner                           string
			silent, unlocked, listens, held bool
		)
		if err := rows.Scan(&owner, &silent, &unlocked, &listens, &held); err != nil {
			return nil, err
		}
		if held && !l.before[owner] {
			joined = append(joined, owner)
		}
		if listens {
			takers = append(takers, owner)
		}
		if unlocked && time.Since(l.broke) > lifeSettles {
			missing[owner] = l.missing[owner] + 1
		} else {
			others = true
		}
		if silent || missing[owner] >= deadLooks {
			dead = append(dead, owner)
		}
	}
	l.missing = missing
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if l.store.company.saw(others, asked) {
		l.shared = false
	}
	l.store.company.takers.Store(&takers)
	if others {
		err = l.shareCounts(ctx, joined)
	}
	return dead, err
}

// void ends all leases of a process that is dead still, and reports whether it was
// this call that did.
func (l *Life) void(ctx context.Context, owner string) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lifeTimeout)
	defer cancel()
	err = pgx.BeginFunc(ctx, l.conn, func(tx pgx.Tx) error {
		gone, err := tx.Exec(ctx, l.store.text.sql(`
			DELETE FROM replicas AS r WHERE r.owner = $1
			AND (r.until_ms <= {now} OR r.lock_key <> 0 AND NOT `+locked+`)`), owner, int64(lifeClass))
		if err != nil || gone.RowsAffected() == 0 {
			return err
		}
		done = true
		if _, err := tx.Exec(ctx, `UPDATE remote_agent_conversations SET lease_owner = NULL, lease_until = 0 WHERE lease_owner = $1`, owner); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM named_leases WHERE owner = $1`, owner)
		return err
	})
	if err != nil {
		return false, err
	}
	delete(l.before, owner) // if it comes back, it joins this process
	return done, nil
}

// end takes this process off the record, so that nobody takes it for dead, and hands on what
// it was offered until the others knew.
func (l *Life) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lifeTimeout)
	defer cancel()
	if l.conn != nil && !l.conn.IsClosed() {
		if _, err := l.conn.Exec(ctx, `DELETE FROM replicas WHERE owner = $1`, l.config.Owner); err != nil && !fault.Is(err, fault.Canceled) {
			l.config.Log.InfoContext(ctx, "could not take this process off the record; the others see that it is gone", "err", err)
		}
		if len(l.store.Takers()) > 0 {
			l.listen(ctx, 2*lifeLook) // who has not looked since then offers still
		}
	}
	l.hangUp(ctx)
}
