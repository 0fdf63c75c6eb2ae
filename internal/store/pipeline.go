package store

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"remote-agent/internal/fault"
)

// pipeline is a transaction on PostgreSQL that waits for an answer only where one is
// needed: its begin goes with the first statement, what later queues goes with the next
// one, and the rest with the commit.
type pipeline struct {
	conn   *pgxpool.Conn
	begin  string  // not sent yet
	queue  []step  // not sent yet, without dest
	strand *strand // the part that asks, while parts run abreast; else nil
}

// newPipeline takes a connection, which end gives back.
func newPipeline(ctx context.Context, pool *pgxpool.Pool, begin string) (*pipeline, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &pipeline{conn: conn, begin: begin}, nil
}

// end rolls back what was not committed.
func (p *pipeline) end(ctx context.Context) {
	defer p.conn.Release() // which drops a connection that is still in a transaction
	if p.conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	_, _ = p.conn.Exec(ctx, "rollback")
}

// inPipeline marks the batches of a transaction, see Trace.
type inPipeline struct{}

// send sends what waits and what add queues behind it.
func (p *pipeline) send(ctx context.Context, add asking) error {
	if p.strand != nil {
		return p.strand.ask(add)
	}
	b := &pgx.Batch{}
	if p.begin != "" {
		b.Queue(p.begin)
	}
	for _, s := range p.queue {
		b.Queue(s.query, s.args...)
	}
	p.begin, p.queue = "", nil
	if add(b); b.Len() == 0 {
		return nil
	}
	return p.conn.SendBatch(context.WithValue(ctx, inPipeline{}, true), b).Close()
}

func (p *pipeline) flush(ctx context.Context) error { return p.send(ctx, func(*pgx.Batch) {}) }

func (p *pipeline) waits() bool { return p.begin != "" || len(p.queue) > 0 || p.strand != nil }

// commit is pgx.ErrTxCommitRollback if a statement had failed before.
func (p *pipeline) commit(ctx context.Context) error {
	if p.begin != "" && len(p.queue) == 0 {
		return nil // nothing was done
	}
	return p.send(ctx, func(b *pgx.Batch) {
		b.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
			if tag.String() == "ROLLBACK" {
				return pgx.ErrTxCommitRollback
			}
			return nil
		})
	})
}

func (p *pipeline) exec(ctx context.Context, query string, args []any) (n int64, err error) {
	if !p.waits() {
		tag, err := p.conn.Exec(ctx, query, args...)
		return tag.RowsAffected(), err
	}
	err = p.send(ctx, func(b *pgx.Batch) {
		b.Queue(query, args...).Exec(func(tag pgconn.CommandTag) error {
			n = tag.RowsAffected()
			return nil
		})
	})
	return n, err
}

// one scans the first row into dest; without one it is pgx.ErrNoRows.
func (p *pipeline) one(ctx context.Context, dest []any, query string, args []any) error {
	if !p.waits() {
		return p.conn.QueryRow(ctx, query, args...).Scan(dest...)
	}
	var none error
	err := p.send(ctx, func(b *pgx.Batch) {
		b.Queue(query, args...).QueryRow(func(row pgx.Row) error {
			err := row.Scan(dest...)
			if none = nil; errors.Is(err, pgx.ErrNoRows) {
				none, err = err, nil // which ends no batch
			}
			return err
		})
	})
	return cmp.Or(err, none)
}

func (p *pipeline) each(ctx context.Context, visit func(scan func(dest ...any) error) error, query string, args []any) error {
	read := func(rows pgx.Rows) error {
		defer rows.Close()
		for rows.Next() {
			if err := visit(rows.Scan); err != nil {
				return err
			}
		}
		return rows.Err()
	}
	if p.waits() {
		return p.send(ctx, func(b *pgx.Batch) { b.Queue(query, args...).Query(read) })
	}
	rows, err := p.conn.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	return read(rows)
}

// later is exec for a change whose outcome is not asked for. On PostgreSQL it goes with
// the next statement, or with the commit, which then fails if it does.
func (t *Tx) later(ctx context.Context, query string, args ...any) error {
	if t.pg == nil {
		_, err := t.exec(ctx, query, args...)
		return err
	}
	query, args = t.text.rewrite(query, args)
	t.pg.queue = append(t.pg.queue, step{query: query, args: args})
	return nil
}

// all runs statements one after the other, on PostgreSQL in one round trip, and says
// of each with a dest whether there was a row.
func (t *Tx) all(ctx context.Context, steps []step) (found []bool, err error) {
	found = make([]bool, len(steps))
	if t.pg == nil {
		for i, s := range steps {
			if s.dest != nil {
				found[i], err = t.one(ctx, s.dest, s.query, s.args...)
			} else {
				_, err = t.exec(ctx, s.query, s.args...)
			}
			if err != nil {
				return found, err
			}
		}
		return found, nil
	}
	err = t.pg.send(ctx, func(b *pgx.Batch) {
		for i, s := range steps {
			query, args := t.text.rewrite(s.query, s.args)
			if q := b.Queue(query, args...); s.dest != nil {
				q.QueryRow(func(row pgx.Row) error {
					err := row.Scan(s.dest...)
					if found[i] = err == nil; errors.Is(err, pgx.ErrNoRows) {
						return nil
					}
					return err
				})
			}
		}
	})
	return found, classifyPostgres(err)
}

// handed is a transaction as the queue of package queue takes it. It is committed and
// rolled back by whoever began it only.
type handed struct{ p *pipeline }

var _ pgx.Tx = handed{}

var errHanded = fault.New(fault.Unsupported, "A transaction is ended by whoever began it, and has none within it.")

func (handed) Begin(context.Context) (pgx.Tx, error) { return nil, errHanded }
func (handed) Commit(context.Context) error          { return errHanded }
func (handed) Rollback(context.Context) error        { return errHanded }
func (handed) LargeObjects() pgx.LargeObjects        { return pgx.LargeObjects{} }
func (h handed) Conn() *pgx.Conn                     { return h.p.conn.Conn() }

func (h handed) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, source pgx.CopyFromSource) (int64, error) {
	if err := h.p.flush(ctx); err != nil {
		return 0, err
	}
	return h.p.conn.CopyFrom(ctx, table, columns, source)
}

func (h handed) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := h.p.flush(ctx); err != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, time.Time{}, err) // pgx makes results that fail of it
		cancel()
	}
	return h.p.conn.SendBatch(context.WithValue(ctx, inPipeline{}, true), b)
}

func (h handed) Prepare(ctx context.Context, name, query string) (*pgconn.StatementDescription, error) {
	if err := h.p.flush(ctx); err != nil {
		return nil, err
	}
	return h.p.conn.Conn().Prepare(ctx, name, query)
}

func (h handed) Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error) {
	if err := h.p.flush(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return h.p.conn.Exec(ctx, query, args...)
}

func (h handed) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	if err := h.p.flush(ctx); err != nil {
		return nil, err
	}
	return h.p.conn.Query(ctx, query, args...)
}

func (h handed) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	if err := h.p.flush(ctx); err != nil {
		return failedRow{err}
	}
	return h.p.conn.QueryRow(ctx, query, args...)
}

type failedRow struct{ err error }

// Scan implements pgx.Row.
func (r failedRow) Scan(...any) error { return r.err }
