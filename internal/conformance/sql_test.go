package conformance_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// queryer is a database or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// table is what a query returned, each value as text; NULL is "NULL".
type table struct {
	columns []string
	rows    [][]string
}

// lines are the rows with their values apart by a bar.
func (t table) lines() string {
	lines := make([]string, len(t.rows))
	for i, row := range t.rows {
		lines[i] = strings.Join(row, "|")
	}
	return strings.Join(lines, "\n")
}

func ask(ctx context.Context, db queryer, query string, args ...any) (found table, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return found, err
	}
	defer rows.Close()
	if found.columns, err = rows.Columns(); err != nil {
		return found, err
	}
	for rows.Next() {
		values, into := make([]any, len(found.columns)), make([]any, len(found.columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return found, err
		}
		row := make([]string, len(values))
		for i, v := range values {
			row[i] = asText(v)
		}
		found.rows = append(found.rows, row)
	}
	return found, rows.Err()
}

// asText is a value as psql and sqlite3 print it, but for truth: SQLite's 1 and 0 are
// what it has for it.
func asText(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case []byte:
		return string(v)
	case bool:
		if v {
			return "1"
		}
		return "0"
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprint(v)
}

// query asks the database as a person with its address does.
func (c *check) query(query string, args ...any) table {
	c.Helper()
	found, err := ask(c.Context(), c.sql, query, args...)
	if err != nil {
		c.Fatalf("%s: %v", query, err)
	}
	return found
}

// one is the only value that a query returns.
func (c *check) one(query string, args ...any) string {
	c.Helper()
	found := c.query(query, args...)
	if len(found.rows) != 1 || len(found.rows[0]) != 1 {
		c.Fatalf("%s returned %q, want one value", query, found.rows)
	}
	return found.rows[0][0]
}

// is fails unless a query returns lines.
func (c *check) is(want, query string, args ...any) {
	c.Helper()
	if got := c.query(query, args...).lines(); got != want {
		c.Errorf("%s\nreturns %q\nwant    %q", query, got, want)
	}
}

// change changes the database for good, as another program does that has its address.
func (c *check) change(statement string) {
	c.Helper()
	if _, err := c.sql.ExecContext(c.Context(), statement); err != nil {
		c.Fatalf("%s: %v", statement, err)
	}
}

// trial is a transaction that is taken back, in which a check changes what it likes.
type trial struct {
	c  *check
	tx *sql.Tx
}

// try calls f with a transaction and takes back what that did.
func (c *check) try(f func(t trial)) {
	c.Helper()
	tx, err := c.sql.BeginTx(c.Context(), nil)
	if err != nil {
		c.Fatalf("%v", err)
	}
	defer tx.Rollback() //nolint:errcheck // that is the point
	f(trial{c, tx})
}

// exec runs a statement.
func (t trial) exec(statement string, args ...any) {
	t.c.Helper()
	if _, err := t.tx.ExecContext(t.c.Context(), statement, args...); err != nil {
		t.c.Fatalf("%s: %v", statement, err)
	}
}

// is fails unless a query returns lines.
func (t trial) is(want, query string, args ...any) {
	t.c.Helper()
	found, err := ask(t.c.Context(), t.tx, query, args...)
	if err != nil {
		t.c.Fatalf("%s: %v", query, err)
	}
	if got := found.lines(); got != want {
		t.c.Errorf("%s\nreturns %q\nwant    %q", query, got, want)
	}
}

// one is the only value that a query returns.
func (t trial) one(query string, args ...any) string {
	t.c.Helper()
	found, err := ask(t.c.Context(), t.tx, query, args...)
	if err != nil || len(found.rows) != 1 {
		t.c.Fatalf("%s: %q, %v", query, found.rows, err)
	}
	return found.rows[0][0]
}

// refuses fails unless the database refuses a statement with an error that contains
// one of the parts. What was done before in the trial holds.
func (t trial) refuses(statement string, parts ...string) {
	t.c.Helper()
	t.exec("SAVEPOINT refused")
	_, err := t.tx.ExecContext(t.c.Context(), statement)
	t.exec("ROLLBACK TO SAVEPOINT refused")
	if err == nil {
		t.c.Errorf("not refused: %s", statement)
		return
	}
	for _, part := range parts {
		if strings.Contains(strings.ToLower(err.Error()), part) {
			return
		}
	}
	t.c.Errorf("%s\nis refused with %v, want one of %q", statement, err, parts)
}

// on returns what stands for the database at hand.
func (c *check) on(sqlite, postgres string) string {
	if c.database == "sqlite" {
		return sqlite
	}
	return postgres
}

// opens opens another database than the world's.
func (c *check) opens(driver, address string) *sql.DB {
	c.Helper()
	db, err := sql.Open(driver, address)
	if err != nil {
		c.Fatalf("%v", err)
	}
	c.Cleanup(func() { _ = db.Close() })
	return db
}

// fills runs statements in another database: a file of SQLite, or a URL.
func (c *check) fills(source, ddl string) {
	c.Helper()
	driver, address := "sqlite", "file:"+source
	if strings.Contains(source, "://") {
		driver, address = "pgx", source
	}
	db := c.opens(driver, address)
	for _, statement := range statements(ddl) {
		if _, err := db.ExecContext(c.Context(), statement); err != nil {
			c.Fatalf("%s: %v", statement, err)
		}
	}
}
