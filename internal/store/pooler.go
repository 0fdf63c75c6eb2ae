package store

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3/lock"

	"remote-agent/internal/fault"
)

// idleInTransaction ends a session that holds locks and says nothing: that of a
// process which was frozen or cut off in the middle of a transaction. A limit in the URL
// is the operator's choice.
const (
	idleLimit         = "idle_in_transaction_session_timeout"
	idleInTransaction = "10s"
)

// migrationLimits are those of an upgrade's transaction. One that suits the bot's short
// statements would fail every upgrade of large tables, and a busy machine may be silent for
// a while between two steps.
const migrationLimits = `SET LOCAL statement_timeout = 0; SET LOCAL ` + idleLimit + ` = '5min'`

// planning is how the server plans for a session. All but a few statements ask for few
// rows by an index: reading whole tables is the last resort, for a plan that was made while
// a table was empty is kept, and still read all of it when a crowd had filled it (1.5 ms
// for a row by its key instead of 0.2). Compiling a plan takes longer than it saves.
// Order comes from row locks, which a database that isolates more by default would make failures.
const planning = `SET jit = off; SET enable_seqscan = off; SET default_transaction_isolation = 'read committed'`

// poolerLooks is how often it is looked whether two connections share a session: a
// busy pooler may hide it a few times.
const poolerLooks = 10

// backendPID returns the session of the server that a connection talks to. It
// prepares nothing.
func backendPID(ctx context.Context, conn *pgconn.PgConn) (uint32, error) {
	results, err := conn.Exec(ctx, `SELECT pg_backend_pid()`).ReadAll()
	if err != nil {
		return 0, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return 0, fault.New(fault.Internal, "the server did not say which session this is")
	}
	pid, err := strconv.ParseUint(string(results[0].Rows[0][0]), 10, 32)
	return uint32(pid), err
}

// findPooler reports whether something between this process and the server gives
// each transaction another session, such as PgBouncer with pool_mode=transaction.
// direct is true if nothing is between: a pooler tells another number for the session
// at the beginning of a connection than the server does.
func findPooler(ctx context.Context, first *pgx.Conn) (direct, pooled bool, err error) {
	one := first.PgConn()
	mine, err := backendPID(ctx, one)
	if err != nil || mine == one.PID() {
		return err == nil, false, err
	}
	second, err := pgx.ConnectConfig(ctx, first.Config().Copy())
	if err != nil {
		return false, false, err
	}
	defer second.Close(context.WithoutCancel(ctx)) //nolint:errcheck // was only asked
	two := second.PgConn()
	for range poolerLooks {
		if mine, err = backendPID(ctx, one); err != nil {
			return false, false, err
		}
		if err := two.Exec(ctx, `BEGIN`).Close(); err != nil {
			return false, false, err
		}
		other, err := backendPID(ctx, two)
		if err != nil {
			return false, false, err
		}
		if other == mine {
			return false, true, nil
		}
		// While the second one is in a transaction, the first may get another session.
		now, err := backendPID(ctx, one)
		if err != nil {
			return false, false, err
		}
		if err := two.Exec(ctx, `ROLLBACK`).Close(); err != nil {
			return false, false, err
		}
		if now != mine {
			return false, true, nil
		}
	}
	return false, false, nil
}

// connectPostgres opens the connections. Where a pooler gives each transaction another
// session, nothing is kept in one: statements are described and not prepared, and
// locks belong to transactions.
func (s *Store) connectPostgres(ctx context.Context, config *pgxpool.Config, daemon bool) error {
	settings := planning
	if _, chosen := config.ConnConfig.RuntimeParams[idleLimit]; daemon && !chosen {
		settings += `; SET ` + idleLimit + ` = '` + idleInTransaction + `'`
	}
	set := func(ctx context.Context, conn *pgx.Conn) error {
		return conn.PgConn().Exec(ctx, settings).Close()
	}
	var direct atomic.Bool
	again := config.Copy()
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if !direct.Load() {
			return nil
		}
		return set(ctx, conn)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return classifyPostgres(err)
	}
	s.pg = pool
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return classifyPostgres(err)
	}
	_, s.pooled, err = findPooler(ctx, conn.Conn())
	if err == nil && !s.pooled {
		direct.Store(true) // before anybody else has the pool
		err = set(ctx, conn.Conn())
	}
	conn.Release()
	if err != nil || !s.pooled {
		return classifyPostgres(err)
	}
	pool.Close()
	if again.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		again.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	if s.pg, err = pgxpool.NewWithConfig(ctx, again); err != nil {
		return classifyPostgres(err)
	}
	s.log.InfoContext(ctx, "a pooler in transaction mode is between this process and PostgreSQL: a replica that dies is replaced after its time, not at once",
		"seconds", int(lifeTTL/time.Second))
	return classifyPostgres(s.pg.Ping(ctx))
}

// Pooled reports whether a pooler gives each transaction another session of the server,
// so that LISTEN and locks of sessions do not work.
func (s *Store) Pooled() bool { return s.pooled }

// lockTx takes an advisory lock, if nobody has it, that a transaction of its own holds until
// unlock is called: whatever pooler is between, it is one. No limit for idle ones ends it.
func (s *Store) lockTx(ctx context.Context, key int64) (unlock func(), held bool, err error) {
	tx, err := s.pg.Begin(ctx)
	if err != nil {
		return nil, false, err
	}
	unlock = func() {
		ctx, cancel := cleanup(ctx)
		defer cancel()
		_ = tx.Rollback(ctx) // the lock ends with the connection, too
	}
	err = tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1) FROM set_config('`+idleLimit+`', '0', true)`, key).Scan(&held)
	if err != nil || !held {
		unlock()
		return func() {}, false, err
	}
	return unlock, true, nil
}

// schemaLooks is how often it is looked whether another process still migrates. Waiting in
// the server would end at its limits, and hold up what waits for all snapshots there.
const schemaLooks = 200 * time.Millisecond

// lockSchema keeps other processes from migrating the same PostgreSQL database, the
// queue's part included. On SQLite the lock file of Options.Exclusive does.
func (s *Store) lockSchema(ctx context.Context) (unlock func(), err error) {
	if s.pg == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		unlock, held, err := s.lockTx(ctx, lock.DefaultLockID)
		if held || err != nil {
			return unlock, err
		}
		select {
		case <-time.After(schemaLooks):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
