package store

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"remote-agent/internal/fault"
)

// classified gives err a kind, unless it has one or belongs to the caller.
func classified(err error, kind func(error) fault.Kind) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return &fault.Error{Kind: kind(err), Err: err}
}

// classifySQLite gives an error of the SQLite driver its kind, by result code.
//
//go:noinline // it would be copied into many callers
func classifySQLite(err error) error { return classified(err, sqliteKind) }

func sqliteKind(err error) fault.Kind {
	if errors.Is(err, sql.ErrNoRows) {
		return fault.NotFound
	}
	if errors.Is(err, sql.ErrConnDone) || errors.Is(err, sql.ErrTxDone) {
		return fault.Unavailable
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return fault.Internal
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return fault.Conflict
	case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return fault.NotFound
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return fault.Disk
	case sqlite3.SQLITE_NOMEM:
		return fault.Memory
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fault.Damaged
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH:
		return fault.Invalid
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR,
		sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT:
		return fault.Unavailable
	}
	return fault.Internal
}

// sqliteCode returns the primary result code of err, or zero.
func sqliteCode(err error) int {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return 0
	}
	return e.Code() & 0xff
}

// The SQLSTATEs that the store reacts to by itself.
const (
	pgSerialization = "40001"
	pgDeadlock      = "40P01"
	pgReadOnly      = "25006"
	pgPrivilege     = "42501"
	pgNoSchema      = "3F000"

	pgDivisionByZero = "22012"
	pgNotNull        = "23502"
)

// classifyPostgres gives an error of the PostgreSQL driver its kind, by
// SQLSTATE.
//
//go:noinline // it would be copied into many callers
func classifyPostgres(err error) error { return classified(err, postgresKind) }

func postgresKind(err error) fault.Kind {
	if errors.Is(err, sql.ErrNoRows) {
		return fault.NotFound
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return sqlStateKind(e.Code)
	}
	if kind, own := fault.Resource(err); own {
		return kind
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	switch {
	case connecting, network, pgconn.SafeToRetry(err), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fault.Unavailable
	}
	return fault.Internal
}

func sqlStateKind(code string) fault.Kind {
	switch code {
	case "23505", "23P01", pgSerialization, pgDeadlock:
		return fault.Conflict
	case "23503":
		return fault.NotFound
	case "28000", "28P01":
		return fault.Unauthorized
	case "55P03", pgReadOnly, pgPrivilege, pgNoSchema: // a lock, or until an operator mends it
		return fault.Unavailable
	case "53100":
		return fault.Disk
	case "53200":
		return fault.Memory
	case "XX001", "XX002":
		return fault.Damaged
	}
	switch {
	case strings.HasPrefix(code, "22"), strings.HasPrefix(code, "23"): // bad data, constraint
		return fault.Invalid
	case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "53"), strings.HasPrefix(code, "57"), strings.HasPrefix(code, "58"):
		return fault.Unavailable // connection, resources, shutdown, disk
	}
	return fault.Internal
}

// isNoTable reports whether err says that a statement names a table that does not exist.
// SQLite has no code of its own for that.
func isNoTable(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return isState(err, "42P01") || ok && e.Code() == sqlite3.SQLITE_ERROR && strings.Contains(e.Error(), "no such table")
}

// isState reports whether err is the PostgreSQL error with one of the codes.
func isState(err error, codes ...string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	return slices.Contains(codes, e.Code)
}

// notFound says what is missing; the text is safe to show.
func notFound(what string) error { return fault.New(fault.NotFound, "There is no such "+what+".") }

// isNull reports whether a column got nothing that has to have a value.
func isNull(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return isState(err, pgNotNull) || ok && e.Code() == sqlite3.SQLITE_CONSTRAINT_NOTNULL
}

// wrap adds what was being done to err, and leaves nil alone.
func wrap(err error, doing string) error { return fault.Note(err, doing) }
