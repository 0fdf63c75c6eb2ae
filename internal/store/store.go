package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"remote-agent/internal/fault"
	"remote-agent/internal/live"
	"remote-agent/migrations"
)

// Options says which database to open, and what for.
type Options struct {
	// URL is DATABASE_URL: empty for SQLite in DataDir, "sqlite:PATH", or
	// "postgres://...". It is never logged.
	URL string

	// DataDir holds the SQLite file if URL is empty.
	DataDir string

	// Log may not be nil.
	Log *slog.Logger

	// Exclusive is for the daemon and for migrations. On SQLite it takes the
	// lock file of the database, and creates directory and file as needed;
	// without it a missing database is a fault.NotFound, and commands can look
	// while the daemon runs. PostgreSQL needs no such lock.
	Exclusive bool

	// Foreign is for the database of another program, which is only read: on
	// SQLite not a byte of the file is changed, and InTx is fault.Unsupported.
	Foreign bool

	// MaxConns limits the connections to PostgreSQL. Zero is 8, and at least two are
	// used. A limit in URL (pool_max_conns) wins.
	MaxConns int

	// Redact takes credentials out of what providers, platforms and programs said
	// of an error before it is stored, and out of the summary of a result. Nil
	// changes nothing.
	Redact func(string) string

	// Trace, if not nil, is told of everything that the database is asked.
	Trace Trace
}

// Store is an open database. It is safe for concurrent use.
type Store struct {
	dialect migrations.Dialect
	log     *slog.Logger
	text    *rewriter
	reads   *rewriter // text, for read-only snapshots
	vectors *vectorCache
	redact  func(string) string // may be nil

	afterErasing func(context.Context) // may be nil
	changed      func(...live.Topic)   // may be nil

	migrating sync.Mutex // one Migrate at a time in this process
	steps     func(migrations.Dialect) fs.FS

	path      string      // of the SQLite file
	file      fs.FileInfo // that file as it was opened to be written; nil if it is only read
	writes    writes
	integrity integrity

	pg     *pgxpool.Pool
	pooled bool // a pooler gives each transaction another session of the server

	company company

	writerDB *sql.DB // one connection
	readerDB *sql.DB
	writer   *writer
	lock     *fileLock
}

// Open opens a database; it does not create or change tables, Migrate does. The
// errors say which variable to fix: fault.Invalid for a URL that cannot be
// used, fault.Conflict if another process works on the data directory,
// fault.Unavailable if the database does not answer.
func Open(ctx context.Context, options Options) (*Store, error) {
	t, err := parseURL(options.URL, options.DataDir)
	if err != nil {
		return nil, err
	}
	s := &Store{dialect: t.dialect, steps: migrations.Files, log: options.Log, text: newRewriter(t.dialect), reads: newRewriter(t.dialect), vectors: newVectorCache(), redact: options.Redact}
	s.reads.reads = true
	if t.dialect == migrations.Postgres {
		err = s.openPostgres(ctx, t, options)
	} else {
		err = s.openSQLite(ctx, t.path, options)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close waits for the transactions that run, refuses new ones and closes the
// database. The queue that shares the pools must have stopped before. Closing
// twice is allowed.
func (s *Store) Close() error {
	var errs []error
	if s.writer != nil {
		s.writer.close()
	}
	if s.readerDB != nil {
		errs = append(errs, s.readerDB.Close())
	}
	if s.writerDB != nil {
		errs = append(errs, s.writerDB.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.release())
	}
	if s.pg != nil {
		s.pg.Close()
	}
	return errors.Join(errs...)
}

// Dialect returns "sqlite" or "postgres".
func (s *Store) Dialect() string { return string(s.dialect) }

// Postgres returns the connections to PostgreSQL, for package queue; nil on SQLite.
func (s *Store) Postgres() *pgxpool.Pool { return s.pg }

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if s.pg != nil {
		return classifyPostgres(s.pg.Ping(ctx))
	}
	var one int
	return classifySQLite(s.readerDB.QueryRowContext(ctx, "SELECT 1").Scan(&one))
}

// InTx runs fn in one transaction and commits it durably if fn returns nil. fn
// runs in the caller's goroutine, may run more than once (a serialization
// failure on PostgreSQL), uses only tx, and never calls out of the process. A
// panic in fn rolls back and is passed on. An error of fn is returned as it is.
//
// On SQLite several callers' transactions may share one commit, each in its own
// savepoint: what one of them does wrong does not touch the others.
func (s *Store) InTx(ctx context.Context, fn func(tx *Tx) error) error {
	if s.pg == nil && s.writer == nil {
		return fault.New(fault.Unsupported, "The database of another program is only read.")
	}
	erased, touched := false, []live.Topic(nil)
	do := func(tx *Tx) error {
		err := fn(tx)
		erased, touched = tx.erased, tx.touched
		return err
	}
	err := s.watched(func() error {
		if s.pg != nil {
			return s.inPostgresTx(ctx, do)
		}
		return s.writer.do(ctx, do)
	})
	if err == nil && erased && s.afterErasing != nil {
		s.afterErasing(context.WithoutCancel(ctx))
	}
	s.tell(err, touched)
	return err
}

// watched runs a transaction that writes and notes how it ended.
func (s *Store) watched(transaction func() error) (err error) {
	err = errAbrupt // unless it returns
	s.writes.begin(time.Now())
	defer func() {
		s.writes.end(err, time.Now())
		s.integrity.notice(err)
	}()
	return transaction()
}

// InRead runs fn in a read-only snapshot that does not wait for writers.
func (s *Store) InRead(ctx context.Context, fn func(tx *Tx) error) (err error) {
	defer func() { s.integrity.notice(err) }()
	if s.pg != nil {
		return s.inPostgresRead(ctx, fn)
	}
	return s.inSQLiteRead(ctx, fn)
}

// ReadOnce is InRead for an fn that asks one thing: it is read without a transaction where
// that saves a round trip.
func (s *Store) ReadOnce(ctx context.Context, fn func(tx *Tx) error) (err error) {
	if s.pg == nil {
		return s.InRead(ctx, fn)
	}
	defer func() { s.integrity.notice(err) }()
	return s.postgresOnce(ctx, readOnce, fn)
}

// cleanup returns a context for rolling back and releasing after ctx has ended.
func cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}

// Within returns what fn reads in a transaction: in is InRead or InTx of a store, or what
// stands for it. With an error it means nothing.
//
//go:noinline // it would be copied into some forty callers
func Within[T any](ctx context.Context, in func(context.Context, func(tx *Tx) error) error, fn func(tx *Tx) (T, error)) (v T, err error) {
	err = in(ctx, func(tx *Tx) (err error) {
		v, err = fn(tx)
		return err
	})
	return v, err
}
