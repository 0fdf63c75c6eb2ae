// Package projectdb has the tables that agents make for a codebase: one SQLite
// file, which lives independently of sessions, with the tools sqlite3_reader
// (free SELECT, nothing else) and project_table (structured changes, no SQL).
//
// The reader trusts nothing of what it runs: an authorizer names what a
// statement may use, beneath it the connection is read-only in three more ways,
// and time, rows, cells and bytes are bounded.
package projectdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"remote-agent/internal/fault"
	"remote-agent/internal/pattern"
	"remote-agent/internal/tool"
)

const (
	maxPages   = 262_144  // of 4 KiB: 1 GiB
	maxValue   = 64 << 10 // bytes of a row that is written
	readers    = 4
	writeLimit = 30 * time.Second
	readLimit  = 5 * time.Second
)

// DB is the database of one codebase. It is safe for concurrent use, also beside
// other processes on the same machine that open the same file.
type DB struct {
	path      string
	writer    *sql.DB // one connection
	reader    *sql.DB
	readLimit time.Duration
	broken    error // why it could not be opened
}

// Open opens a database and makes it, with its directory, if it does not exist.
// Both can be read by nobody else. A file that is no database, or that cannot be
// written, is fault.Unavailable. path is absolute.
func Open(path string) (*DB, error) {
	if !filepath.IsAbs(path) {
		return nil, fault.Newf(fault.Invalid, "The path of a project database must be absolute: %s.", path)
	}
	if err := createFile(path); err != nil {
		return nil, unusable(path, err)
	}
	restricted := &sqlite.Driver{}
	restricted.RegisterConnectionHook(func(c sqlite.ExecQuerierContext, _ string) error { return restrict(c) })
	if err := registerTrim(restricted); err != nil {
		return nil, unusable(path, err)
	}
	d := &DB{
		path:      path,
		writer:    sql.OpenDB(connector{&sqlite.Driver{}, dsn(path, writing)}),
		reader:    sql.OpenDB(connector{restricted, dsn(path, reading)}),
		readLimit: readLimit,
	}
	d.writer.SetMaxOpenConns(1)
	d.reader.SetMaxOpenConns(readers)
	d.reader.SetMaxIdleConns(1)
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	// Writing the header lets readers, which may not, open a fresh file.
	_, err := d.writer.ExecContext(ctx, `PRAGMA user_version = 1`)
	if err == nil {
		err = d.reader.PingContext(ctx)
	}
	if err != nil {
		return nil, errors.Join(unusable(path, err), d.Close())
	}
	return d, nil
}

// Close closes the database. Calls that still run fail.
func (d *DB) Close() error {
	return errors.Join(d.reader.Close(), d.writer.Close())
}

// Tools returns sqlite3_reader and project_table. The reader also has the past of
// a conversation, unless it is nil.
func (d *DB) Tools(past Past) []tool.Tool {
	return []tool.Tool{&readerTool{db: d, past: past}, &tableTool{d}}
}

// Broken returns the tools of a database that could not be opened: each call that needs it
// says why.
func Broken(err error, past Past) []tool.Tool { return (&DB{broken: err}).Tools(past) }

// Backup writes a consistent copy of the database to a file, while it is in use.
// The copy appears under its name only when it is complete, replaces what was
// there, and can be read by nobody else.
func (d *DB) Backup(ctx context.Context, to string) (err error) {
	temporary := to + ".tmp"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return unusable(to, err)
	}
	if err := createFile(temporary); err != nil {
		return unusable(to, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary)
		}
	}()
	// A connection of its own, because a copy takes long and nobody should wait.
	source := sql.OpenDB(connector{&sqlite.Driver{}, dsn(d.path, copying)})
	defer func() { err = errors.Join(err, source.Close()) }()
	if _, err := source.ExecContext(ctx, `VACUUM INTO ?`, temporary); err != nil {
		return unusable(to, err)
	}
	f, err := os.OpenFile(temporary, os.O_RDWR, 0) //nolint:gosec // the operator's own path
	if err != nil {
		return unusable(to, err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return unusable(to, err)
	}
	if err := os.Rename(temporary, to); err != nil {
		return unusable(to, err)
	}
	return nil
}

// createFile makes the directory and an empty file. SQLite gives its side files
// the mode of the database.
func createFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator's own path
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

func unusable(path string, err error) error {
	return &fault.Error{Kind: fault.Unavailable, Public: cannotBeUsed, Err: fmt.Errorf("project database %s: %w", path, err)}
}

// Damaged reports whether a database could not be used because what its file holds is none.
func Damaged(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == sqlite3.SQLITE_CORRUPT || e.Code()&0xff == sqlite3.SQLITE_NOTADB)
}

const cannotBeUsed = "The project database cannot be used; an operator needs to check it."

// connector opens connections with a driver that nobody else uses.
type connector struct {
	driver *sqlite.Driver
	dsn    string
}

// Connect implements driver.Connector.
func (c connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver { return c.driver }

// purpose says what a connection is for.
type purpose int

const (
	writing purpose = iota
	reading
	copying
)

// dsn names a connection. Pragmas stand in it, where they reach every connection
// before anything else runs on it.
func dsn(path string, p purpose) string {
	params := url.Values{
		"_defensive": {"1"},
		"_dqs":       {"0"}, // a name in double quotes that is misspelled is an error, not a text
		"_pragma":    {"busy_timeout(5000)", "foreign_keys(1)", "trusted_schema(0)", "cell_size_check(1)"},
	}
	switch p {
	case writing:
		params.Set("mode", "rw")
		params.Set("_txlock", "immediate")
		params["_pragma"] = append(params["_pragma"], "journal_mode(WAL)", "synchronous(FULL)", fmt.Sprintf("max_page_count(%d)", maxPages))
	case reading:
		params.Set("mode", "ro")
		params.Set("_query_only", "1")
	case copying:
		params.Set("mode", "ro")
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + params.Encode()
}

// write runs f in one transaction.
func (d *DB) write(ctx context.Context, f func(ctx context.Context, tx *sql.Tx) error) error {
	if d.broken != nil {
		return d.broken
	}
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	conn, err := d.writer.Conn(ctx)
	if err != nil {
		return d.classify(ctx, err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := sqlite.Limit(conn, sqlite3.SQLITE_LIMIT_LENGTH, maxValue); err != nil {
		return d.classify(ctx, err)
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return d.classify(ctx, err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := f(ctx, tx); err != nil {
		return d.classify(ctx, err)
	}
	if err := tx.Commit(); err != nil {
		return d.classify(ctx, err)
	}
	return nil
}

// code at the end of the driver's texts, such as " (1555)".
var errorCode = pattern.Lazy(` \(\d+\)$`)

// classify turns an error of SQLite into one that a model can act on. The texts
// of SQLite about a statement name what the model itself wrote.
func (d *DB) classify(ctx context.Context, err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	out := &fault.Error{Kind: fault.Internal, Err: fmt.Errorf("project database %s: %w", d.path, err)}
	if ctx.Err() != nil {
		out.Kind, out.Public = fault.Canceled, "Stopped."
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			out.Kind, out.Public = fault.Exhausted, "It took too long and was stopped. Make it smaller: fewer rows, a condition on an indexed column."
		}
		return out
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return out
	}
	text := errorCode.ReplaceAllString(strings.TrimPrefix(e.Error(), "SQL logic error: "), "")
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE:
		out.Kind, out.Public = fault.Invalid, "SQLite says: "+text+"."
	case sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		out.Kind, out.Public = fault.Forbidden, "That is not allowed here: "+text+"."
	case sqlite3.SQLITE_TOOBIG:
		out.Kind, out.Public = fault.Invalid, "A value, a row or the statement is too large."
	case sqlite3.SQLITE_NOMEM:
		out.Kind, out.Public = fault.Exhausted, "That needs too much memory."
	case sqlite3.SQLITE_FULL:
		out.Kind, out.Public = fault.Exhausted, "The project database or the disk is full; nothing was changed."
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		out.Kind, out.Public = fault.Unavailable, "The project database is in use; nothing was changed. Try again."
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
		out.Kind, out.Public = fault.Unavailable, cannotBeUsed
	}
	return out
}
