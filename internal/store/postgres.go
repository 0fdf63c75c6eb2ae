package store

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"remote-agent/internal/fault"
)

const (
	defaultMaxConns  = 8 // each is a process of the server, which reads the schema and plans each statement for itself
	postgresAttempts = 8
	connectTimeout   = 5 * time.Second
)

func (s *Store) openPostgres(ctx context.Context, t target, options Options) error {
	config := t.pool
	if options.Trace != nil {
		config.ConnConfig.Tracer = options.Trace
	}
	maxConns := cmp.Or(options.MaxConns, defaultMaxConns)
	if _, ok := config.ConnConfig.RuntimeParams["application_name"]; !ok {
		config.ConnConfig.RuntimeParams["application_name"] = "bot"
	}
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, connectTimeout)
	// A server that only reads may have written a moment ago, and the address may lead to the
	// one that does: a connection that is kept would be used for up to an hour.
	goesOn := config.ConnConfig.OnPgError
	config.ConnConfig.OnPgError = func(c *pgconn.PgConn, e *pgconn.PgError) bool { return e.Code != pgReadOnly && goesOn(c, e) }
	// pgx counts CPUs where the URL is silent: too few for this program, whose
	// transactions wait for a disk or a row and not for a CPU.
	if !t.limited {
		config.MaxConns = int32(min(maxConns, 1000)) //nolint:gosec // bounded
	}
	config.MaxConns = max(config.MaxConns, 2) // a migration holds its lock over one and works over another

	if err := s.connectPostgres(ctx, config, options.Exclusive); err != nil {
		return &fault.Error{
			Kind:   fault.KindOf(err),
			Public: "DATABASE_URL: " + refusal(&config.ConnConfig.Config, err),
			Err:    fmt.Errorf("connect to PostgreSQL: %w", err),
		}
	}
	return nil
}

// inPostgresTx runs fn in a transaction at READ COMMITTED: order comes from row
// locks. Deadlocks and serialization failures are run again a few times.
func (s *Store) inPostgresTx(ctx context.Context, fn func(tx *Tx) error) error {
	return again(ctx, func() error { return s.postgresOnce(ctx, beginWrite, fn) })
}

// again runs a transaction until it is not the victim of others, a few times.
func again(ctx context.Context, transaction func() error) error {
	for attempt := 1; ; attempt++ {
		err := transaction()
		if err == nil || !isState(err, pgSerialization, pgDeadlock) || attempt == postgresAttempts {
			return err
		}
		pause := rand.N(time.Duration(attempt) * 50 * time.Millisecond) //nolint:gosec // jitter
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Store) inPostgresRead(ctx context.Context, fn func(tx *Tx) error) error {
	return s.postgresOnce(ctx, beginRead, fn)
}

// How transactions begin.
const (
	beginWrite = "begin"
	beginRead  = "begin isolation level repeatable read read only"
	readOnce   = "" // a single statement that reads
)

func (s *Store) postgresOnce(ctx context.Context, begin string, fn func(tx *Tx) error) error {
	tx, err := newPipeline(ctx, s.pg, begin)
	if err != nil {
		// Whatever went wrong, nothing has happened: no connection, or a closed
		// pool.
		return classified(err, func(error) fault.Kind { return fault.Unavailable })
	}
	defer tx.end(ctx) // also after a panic
	text := s.text
	if begin != beginWrite {
		text = s.reads
	}
	t := newTx(Tx{text: text, vectors: s.vectors, redact: s.redact, pg: tx})
	if err := fn(t); err != nil {
		return err
	}
	if err := t.seal(ctx); err != nil {
		return err
	}
	if begin != beginWrite {
		return nil // nothing to commit; and a statement that failed does not matter
	}
	err = commitError(classifyPostgres(tx.commit(ctx)))
	if err == nil {
		t.committed()
	}
	return err
}

// commitError marks a commit whose answer was lost: it may have happened.
func commitError(err error) error {
	if err == nil || !fault.Passing(err) && !fault.Is(err, fault.Canceled) {
		return err
	}
	kind := fault.KindOf(err)
	if kind == fault.Canceled {
		kind = fault.Unavailable
	}
	return &fault.Error{Kind: kind, Uncertain: true, Err: fmt.Errorf("commit: %w", err)}
}
