package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strconv"

	"modernc.org/sqlite"

	"remote-agent/internal/fault"
	"remote-agent/migrations"
)

// LatestSchema returns the version of the schema that this binary makes.
func LatestSchema() int64 { return migrations.Latest() }

const schemaVersionSQL = `SELECT COALESCE(max(version_id), 0) FROM goose_db_version WHERE is_applied`

// SchemaVersion returns the version of the schema in the database.
func (s *Store) SchemaVersion(ctx context.Context) (version int64, err error) {
	err = s.InRead(ctx, func(tx *Tx) error {
		_, err := tx.one(ctx, []any{&version}, schemaVersionSQL)
		return err
	})
	return version, wrap(err, "read schema version")
}

// ServerVersion returns the major version of the PostgreSQL server, such as 15; 0
// on SQLite.
func (s *Store) ServerVersion(ctx context.Context) (major int, err error) {
	if s.pg == nil {
		return 0, nil
	}
	err = s.pg.QueryRow(ctx, `SELECT current_setting('server_version_num')::int / 10000`).Scan(&major)
	return major, classifyPostgres(err)
}

// IsEmpty reports whether the database has none of the program's tables.
func (s *Store) IsEmpty(ctx context.Context) (empty bool, err error) {
	query := `SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name IN ('remote_agent_conversations', 'goose_db_version'))`
	if s.pg != nil {
		query = `SELECT to_regclass('remote_agent_conversations') IS NULL AND to_regclass('goose_db_version') IS NULL`
	}
	err = s.InRead(ctx, func(tx *Tx) error {
		_, err := tx.one(ctx, []any{&empty}, query)
		return err
	})
	return empty, wrap(err, "look for tables")
}

// Snapshot writes a consistent copy of an SQLite database to a file that must
// not exist, while this and other processes work on it. Nobody waits for it. On
// PostgreSQL it is fault.Unsupported: pg_dump is for that.
func (s *Store) Snapshot(ctx context.Context, to string) (err error) {
	if s.pg != nil {
		return fault.New(fault.Unsupported, "PostgreSQL is copied with pg_dump.")
	}
	if _, err := os.Lstat(to); err == nil {
		return fault.Newf(fault.Conflict, "%s already exists.", to)
	}
	var name string
	if err := s.readerDB.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&name); err != nil {
		return classifySQLite(err)
	}
	// A connection of its own: the copy takes long, and the writer must not wait.
	db, err := openFile(name, url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(5000)", "page_size(" + strconv.Itoa(pageSize) + ")", "trusted_schema(0)"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	f, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the operator's own path
	if err != nil {
		return unreadable(to, err)
	}
	if err := f.Close(); err != nil {
		return unreadable(to, err)
	}
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, to); err != nil {
		_ = os.Remove(to)
		return classifySQLite(err)
	}
	return syncFile(to)
}

func syncFile(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0) //nolint:gosec // the operator's own path
	if err != nil {
		return unreadable(name, err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return unreadable(name, err)
	}
	return nil
}

func openFile(name string, params url.Values) (*sql.DB, error) {
	connector, err := sqlite.NewConnector("file:" + (&url.URL{Path: name}).EscapedPath() + "?" + params.Encode())
	if err != nil {
		return nil, unreadable(name, err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db, nil
}

// CheckFile examines an SQLite file that nobody writes to: its pages and indexes, and
// where it has the program's schema the references. It changes nothing, not even a
// side file. What is damaged is fault.Invalid and says where. version is that of the
// schema; 0 for a file without it, such as the database of a project, whose references
// are its own.
func CheckFile(ctx context.Context, name string) (version int64, err error) {
	db, err := openCopy(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var verdict string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&verdict); err != nil {
		return 0, fault.Newf(fault.Invalid, "%s is not a database, or damaged: %v.", path.Base(name), err)
	}
	if verdict != "ok" {
		return 0, fault.Newf(fault.Invalid, "%s is damaged: %s.", path.Base(name), verdict)
	}
	var tables int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'`).Scan(&tables); err != nil {
		return 0, classifySQLite(err)
	}
	if tables == 0 {
		return 0, nil
	}
	if err := references(ctx, db, name); err != nil {
		return 0, err
	}
	if err := db.QueryRowContext(ctx, schemaVersionSQL).Scan(&version); err != nil {
		return 0, fmt.Errorf("read schema version: %w", classifySQLite(err))
	}
	return version, nil
}

// CheckReferences is the part of CheckFile that finds what a program with foreign keys
// off can leave in a database that works all the same.
func CheckReferences(ctx context.Context, name string) (err error) {
	db, err := openCopy(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return references(ctx, db, name)
}

func references(ctx context.Context, db *sql.DB, name string) error {
	var table string
	err := db.QueryRowContext(ctx, `SELECT "table" FROM pragma_foreign_key_check LIMIT 1`).Scan(&table)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return classifySQLite(err)
	}
	return fault.Newf(fault.Invalid, "%s is damaged: a row of %s refers to one that is not there.", path.Base(name), table)
}

// openCopy opens a file that nobody writes to. It changes nothing, not even a side file.
func openCopy(name string) (*sql.DB, error) {
	return openFile(name, url.Values{"mode": {"ro"}, "immutable": {"1"}, "_pragma": {"trusted_schema(0)"}})
}
