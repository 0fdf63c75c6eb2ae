package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// inOneTx calls fn with a view of a database in which each transaction is a part of one
// that is committed at the end: either all of fn happens, or, if it fails, nothing of
// it. goose commits after each of its steps; in this way an upgrade of the schema that
// fails at its third step leaves no trace, and the earlier version still starts. fn
// must not use db.
func inOneTx(ctx context.Context, db *sql.DB, fn func(view *sql.DB) error) (err error) {
	ctx = context.WithoutCancel(ctx) // database/sql would roll back beneath fn; fn has the other one
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	var failed error // Raw must not hear of a broken connection: it would wait for the end of tx
	err = conn.Raw(func(raw any) error {
		full, ok := raw.(nestable)
		if !ok {
			return fmt.Errorf("a connection that cannot do all that is needed: %T", raw)
		}
		view := sql.OpenDB(&nestedConn{nestable: full})
		view.SetMaxOpenConns(1)
		failed = errors.Join(fn(view), view.Close())
		return nil
	})
	if err = errors.Join(err, failed); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// nestable is what the connections of both databases can do.
type nestable interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

// nestedConn is a connection inside of a transaction, and the connector that returns
// it. Its own transactions are savepoints.
type nestedConn struct{ nestable }

// Connect implements driver.Connector.
func (c *nestedConn) Connect(context.Context) (driver.Conn, error) { return c, nil }

// Driver implements driver.Connector.
func (c *nestedConn) Driver() driver.Driver { return nil }

// Close implements driver.Conn: the connection belongs to inOneTx.
func (c *nestedConn) Close() error { return nil }

// CheckNamedValue implements driver.NamedValueChecker.
func (c *nestedConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.nestable.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// BeginTx implements driver.ConnBeginTx.
func (c *nestedConn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	return nestedTx{ctx, c}, c.do(ctx, "SAVEPOINT step")
}

func (c *nestedConn) do(ctx context.Context, statement string) error {
	_, err := c.ExecContext(ctx, statement, nil)
	return err
}

type nestedTx struct {
	ctx  context.Context // of BeginTx: driver.Tx has none
	conn *nestedConn
}

// Commit implements driver.Tx.
func (s nestedTx) Commit() error { return s.conn.do(s.ctx, "RELEASE SAVEPOINT step") }

// Rollback implements driver.Tx.
func (s nestedTx) Rollback() error {
	ctx := context.WithoutCancel(s.ctx)
	return errors.Join(s.conn.do(ctx, "ROLLBACK TO SAVEPOINT step"), s.conn.do(ctx, "RELEASE SAVEPOINT step"))
}
