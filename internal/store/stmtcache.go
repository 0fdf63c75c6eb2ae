package store

import (
	"context"
	"database/sql/driver"
	"strings"
)

// SQLite parses and plans a statement each time it is given as text, which costs
// more than running it. database/sql can keep prepared statements, but not
// prepare one while the only connection is inside a transaction. So the cache
// sits below it, in the connection.

// maxStatements bounds the cache of a connection. The program has fewer texts.
const maxStatements = 512

type cachingConnector struct {
	driver.Connector
	trace Trace
}

// Connect implements driver.Connector.
func (c cachingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	full, ok := conn.(fullConn)
	if !ok {
		return conn, nil
	}
	return &cachingConn{fullConn: full, stmts: make(map[string]*cachedStmt), trace: c.trace}, nil
}

// fullConn is what modernc.org/sqlite's connections can do.
type fullConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// cachingConn keeps the prepared statements of one connection. database/sql
// never uses a connection from two goroutines at once.
type cachingConn struct {
	fullConn
	stmts  map[string]*cachedStmt
	parsed int // statements given to SQLite as text
	trace  Trace
}

type cachedStmt struct {
	fullStmt
	busy bool // its rows are being read
}

type fullStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// ExecContext implements driver.ExecerContext.
func (c *cachingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.trace.tell(query)
	stmt, err := c.cached(ctx, query)
	if err != nil {
		return nil, err
	}
	if stmt == nil {
		return c.fullConn.ExecContext(ctx, query, args)
	}
	return stmt.ExecContext(ctx, args)
}

// QueryContext implements driver.QueryerContext.
func (c *cachingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.trace.tell(query)
	stmt, err := c.cached(ctx, query)
	if err != nil {
		return nil, err
	}
	if stmt == nil {
		return c.fullConn.QueryContext(ctx, query, args)
	}
	rows, err := stmt.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	stmt.busy = true
	return &cachedRows{Rows: rows, stmt: stmt}, nil
}

// BeginTx implements driver.ConnBeginTx.
func (c *cachingConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if c.trace == nil {
		return c.fullConn.BeginTx(ctx, options)
	}
	c.trace.tell("begin")
	tx, err := c.fullConn.BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	return tracedTx{Tx: tx, trace: c.trace}, nil
}

// Close implements driver.Conn.
func (c *cachingConn) Close() error {
	for _, stmt := range c.stmts {
		_ = stmt.Close() // the connection goes with it
	}
	return c.fullConn.Close()
}

// cached returns the prepared statement of query, or nil if it has to be run as
// text: it is no plain statement, it is in use, or the cache is full.
func (c *cachingConn) cached(ctx context.Context, query string) (*cachedStmt, error) {
	stmt, ok := c.stmts[query]
	if ok && !stmt.busy {
		return stmt, nil
	}
	c.parsed++
	if ok {
		return nil, nil
	}
	if len(c.stmts) >= maxStatements || !cacheable(query) {
		return nil, nil
	}
	prepared, err := c.PrepareContext(ctx, strings.TrimRight(query, "; \t\r\n"))
	if err != nil {
		return nil, err
	}
	full, ok := prepared.(fullStmt)
	if !ok {
		return nil, prepared.Close()
	}
	stmt = &cachedStmt{fullStmt: full}
	c.stmts[query] = stmt
	return stmt, nil
}

// cacheable reports whether query reads or changes rows, or is a savepoint:
// what the program repeats. Scripts, pragmas and schema changes are not kept.
func cacheable(query string) bool {
	rest := strings.TrimSpace(query)
	for strings.HasPrefix(rest, "--") {
		_, rest, _ = strings.Cut(rest, "\n")
		rest = strings.TrimSpace(rest)
	}
	if strings.Contains(strings.TrimRight(rest, "; \t\r\n"), ";") {
		return false
	}
	word, _, _ := strings.Cut(rest, " ")
	word, _, _ = strings.Cut(word, "\n")
	switch strings.ToUpper(word) {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "SAVEPOINT", "RELEASE", "ROLLBACK":
		return true
	}
	return false
}

// cachedRows gives its statement back when it is closed.
type cachedRows struct {
	driver.Rows
	stmt *cachedStmt
}

// Close implements driver.Rows.
func (r *cachedRows) Close() error {
	r.stmt.busy = false
	return r.Rows.Close()
}
