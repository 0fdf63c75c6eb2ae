package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/live"
	"remote-agent/internal/sessions"
	"remote-agent/migrations"
)

// Tx is one transaction. It is valid only inside the function it was passed to,
// and not safe for concurrent use. It runs statements; which ones its parts know, each
// of which has those of one kind of rows.
type Tx struct {
	text    *rewriter
	vectors *vectorCache
	redact  func(string) string // of Options; may be nil
	pg      *pipeline           // on PostgreSQL
	lite    *sql.Tx             // on SQLite

	audits []sessions.AuditEntry // written by seal
	erased bool                  // what somebody said was deleted
	after  []func()              // called after the commit

	touched []live.Topic // what the transaction changes, each once

	self part // what its parts are
}

func newTx(t Tx) *Tx {
	t.self.tx = &t
	return &t
}

// redaction is Options.Redact; nil changes nothing.
type redaction func(string) string

// said returns what somebody else said as it may be stored, without credentials.
func (r redaction) said(text string) string {
	if r == nil || text == "" {
		return text
	}
	return r(text)
}

func (t *Tx) said(text string) string { return redaction(t.redact).said(text) }

// AfterCommit has fn called once the transaction is committed, and not otherwise.
func (t *Tx) AfterCommit(fn func()) { t.after = append(t.after, fn) }

// committed does what AfterCommit was asked for.
func (t *Tx) committed() {
	for _, fn := range t.after {
		fn()
	}
}

// Handle returns the driver's own transaction, for queue.Queue.
func (t *Tx) Handle() any {
	if t.pg != nil {
		return handed{t.pg}
	}
	return t.lite
}

// exec runs a statement and returns how many rows it touched.
func (t *Tx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	query, args = t.text.rewrite(query, args)
	if t.pg != nil {
		n, err := t.pg.exec(ctx, query, args)
		return n, classifyPostgres(err)
	}
	ctx, err := statementContext(ctx)
	if err != nil {
		return 0, err
	}
	result, err := t.lite.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, classifySQLite(err)
	}
	n, err := result.RowsAffected()
	return n, classifySQLite(err)
}

// one scans the first row of a query into dest. ok is false if there is none.
func (t *Tx) one(ctx context.Context, dest []any, query string, args ...any) (ok bool, err error) {
	query, args = t.text.rewrite(query, args)
	if t.pg != nil {
		err = t.pg.one(ctx, dest, query, args)
		if errors.Is(err, pgx.ErrNoRows) {
			return false, nil
		}
		return err == nil, classifyPostgres(err)
	}
	if ctx, err = statementContext(ctx); err != nil {
		return false, err
	}
	err = t.lite.QueryRowContext(ctx, query, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, classifySQLite(err)
}

// each calls visit for every row of a query. visit only scans: it may not use t.
func (t *Tx) each(ctx context.Context, visit func(scan func(dest ...any) error) error, query string, args ...any) error {
	query, args = t.text.rewrite(query, args)
	if t.pg != nil {
		return classifyPostgres(t.pg.each(ctx, visit, query, args))
	}
	ctx, err := statementContext(ctx)
	if err != nil {
		return err
	}
	rows, err := t.lite.QueryContext(ctx, query, args...)
	if err != nil {
		return classifySQLite(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err has told what went wrong
	for rows.Next() {
		if err := visit(rows.Scan); err != nil {
			return classifySQLite(err)
		}
	}
	return classifySQLite(rows.Err())
}

// alone has PostgreSQL answer what follows in the transaction without helpers and without
// compiling it first. It does these for what it expects to take long, which is what reads
// for people avoid, and both take longer than the answer.
func (t *Tx) alone(ctx context.Context) error {
	if t.pg == nil {
		return nil
	}
	return t.later(ctx, `SELECT set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)`)
}

// statementContext lets no statement start after ctx has ended, and lets none
// that has started be interrupted: SQLite answers an interrupted write by
// rolling back the whole transaction, which other callers share.
func statementContext(ctx context.Context) (context.Context, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return context.WithoutCancel(ctx), nil
}

// The words in braces that differ between the databases.
const (
	tokenNow   = "{now}"   // Unix milliseconds by the database's clock; on SQLite the process's
	tokenStamp = "{stamp}" // the same moment for the seeds' timestamp columns
	tokenLock  = "{lock}"  // locks the selected rows until the transaction ends, where it can write

	// tokenBySender has SQLite read inbound_events by their senders. Of two indexes that
	// would do it takes the other one, with all that was said in a conversation.
	tokenBySender = "{by sender}"

	// tokenRun is a run_id as what it is the id of, so that the key finds it; none that is not.
	tokenRun = "{run}"
)

// rewriter makes the SQL text of one dialect. The result depends only on the
// text, so that it is computed once and its statement is prepared once.
type rewriter struct {
	dialect migrations.Dialect
	reads   bool     // for read-only snapshots: nothing can be locked in them
	done    sync.Map // string -> rewritten
}

type rewritten struct {
	query string
	now   bool // one more argument: now
}

func newRewriter(dialect migrations.Dialect) *rewriter { return &rewriter{dialect: dialect} }

// sql returns the text of a query without {now} on SQLite, for a connection of its own.
func (r *rewriter) sql(query string) string {
	text, _ := r.rewrite(query, nil)
	return text
}

func (r *rewriter) rewrite(query string, args []any) (string, []any) {
	found, ok := r.done.Load(query)
	if !ok {
		found, _ = r.done.LoadOrStore(query, r.translate(query, len(args)))
	}
	w, _ := found.(rewritten)
	if w.now {
		args = append(args, time.Now().UnixMilli())
	}
	if r.dialect == migrations.Postgres {
		for i, arg := range args {
			if s, ok := arg.(string); ok {
				args[i] = storable(s)
			}
		}
	}
	return w.query, args
}

func (r *rewriter) translate(query string, args int) rewritten {
	if r.dialect == migrations.Postgres {
		lock := "FOR UPDATE"
		if r.reads {
			lock = ""
		}
		return rewritten{query: strings.NewReplacer(
			tokenNow, "(extract(epoch FROM clock_timestamp()) * 1000)::bigint",
			tokenStamp, "clock_timestamp()",
			tokenLock, lock,
			tokenBySender, "",
			tokenRun, `CASE WHEN run_id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN CAST(run_id AS UUID) END`,
		).Replace(query)}
	}
	return rewritten{
		now: strings.Contains(query, tokenNow),
		query: strings.NewReplacer(
			tokenNow, "$"+strconv.Itoa(args+1),
			tokenStamp, "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')",
			tokenLock, "",
			tokenBySender, "INDEXED BY idx_inbound_events_sender",
			tokenRun, "run_id",
		).Replace(query),
	}
}

// storable replaces what PostgreSQL cannot store in text, so that a strange
// message is kept nearly as it was instead of refused for ever.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
