package store

import (
	"context"
	"database/sql/driver"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Trace is told of everything that a database is asked, as it is asked: each
// statement, also those of the queue that shares the connections, and "begin",
// "commit" and "rollback" for what frames transactions. It is called by many
// goroutines at once and must be quick. A nil Trace is told nothing.
type Trace func(statement string)

func (t Trace) tell(statement string) {
	if t != nil {
		t(statement)
	}
}

// frames are the first words of statements that frame a transaction on
// PostgreSQL.
var frames = []string{"begin", "commit", "rollback"}

// TraceQueryStart implements pgx.QueryTracer.
func (t Trace) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	t.tellPostgres(q.SQL)
	return ctx
}

func (t Trace) tellPostgres(query string) {
	for _, f := range frames {
		if strings.HasPrefix(query, f) {
			query = f
			break
		}
	}
	t.tell(query)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (Trace) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer: a batch is a transaction of its own, or a
// part of a pipeline.
func (t Trace) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	if ctx.Value(inPipeline{}) == nil {
		t.tell("begin")
	}
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (t Trace) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	t.tellPostgres(q.SQL)
}

// TraceBatchEnd implements pgx.BatchTracer.
func (t Trace) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, end pgx.TraceBatchEndData) {
	if ctx.Value(inPipeline{}) != nil {
		return
	}
	if end.Err != nil {
		t.tell("rollback")
		return
	}
	t.tell("commit")
}

// tracedTx tells how a transaction of SQLite ends.
type tracedTx struct {
	driver.Tx
	trace Trace
}

// Commit implements driver.Tx.
func (t tracedTx) Commit() error {
	t.trace.tell("commit")
	return t.Tx.Commit()
}

// Rollback implements driver.Tx.
func (t tracedTx) Rollback() error {
	t.trace.tell("rollback")
	return t.Tx.Rollback()
}
