package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"modernc.org/sqlite"

	sqlite3 "modernc.org/sqlite/lib"

	"remote-agent/internal/fault"
)

// How long a statement waits for another process.
const (
	busySetting = "busy_timeout(5000)"
	busyTimeout = "PRAGMA " + busySetting
)

// pageSize is that of a new database, in bytes. A turn changes some forty pages,
// little of each, and all of them are written to the write-ahead log: small ones make
// it a quarter. A database keeps the size that it was made with; a copy (Snapshot)
// has this one.
const pageSize = 1024

// checkpointPages is how many pages the write-ahead log may have until they are
// brought into the database: 4 MiB of a new one.
const checkpointPages = 4 << 20 / pageSize

// maxIdleWAL is what the write-ahead log is cut to, in bytes, once all of it is in
// the database: more than is written between two checkpoints.
const maxIdleWAL = 8 << 20

// readers is how many snapshots can be read at once on SQLite.
const readers = 4

// readerCache is how many KiB of pages a connection that reads may remember. Each commit
// of the writer makes it forget them all, so that more is only held and never used again.
const readerCache = 256

func (s *Store) openSQLite(ctx context.Context, path string, options Options) error {
	if options.Foreign {
		return s.openForeign(ctx, path)
	}
	s.path = path
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		if err := RefuseLog(path, "-wal"); err != nil {
			return err
		}
	}
	if options.Exclusive {
		if err := createFile(path); err != nil {
			return err
		}
		lock, err := lockFile(ctx, path)
		if err != nil {
			return err
		}
		s.lock = lock
		if err := s.checkAtStart(ctx, path); err != nil {
			return err
		}
	} else if _, err := os.Stat(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fault.Newf(fault.NotFound, "There is no database at %s yet; start the daemon once, or point DATABASE_URL or DATA_DIR at the right place.", path)
		}
		return unreadable(path, err)
	}

	var err error
	if s.writerDB, err = openPool(path, true, 1, options.Trace); err != nil {
		return err
	}
	if s.readerDB, err = openPool(path, false, readers, options.Trace); err != nil {
		return err
	}
	// The first connection of the writer turns on the write-ahead log, which the
	// readers rely on.
	if err := s.writerDB.PingContext(ctx); err != nil {
		return unreadable(path, err)
	}
	if s.file, err = os.Stat(path); err != nil {
		return unreadable(path, err)
	}
	s.writer = newWriter(s.writerDB, s.text, s.vectors, s.redact) //nolint:contextcheck // its transactions belong to no single caller; Close ends it
	return nil
}

// openForeign opens the file of another program for reading, as it is: without
// turning on the write-ahead log, which would change the file.
func (s *Store) openForeign(ctx context.Context, path string) (err error) {
	refused := func(err error) error {
		return &fault.Error{Kind: fault.Invalid, Public: path + " cannot be read as an SQLite database; name the file of one.", Err: fmt.Errorf("open database: %w", err)}
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return refused(errors.Join(err, errors.New("not a regular file")))
	}
	if s.readerDB, err = openFile(path, url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)", "query_only(1)", "trusted_schema(0)"}}); err != nil {
		return err
	}
	var tables int
	if err := s.readerDB.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil {
		return refused(err)
	}
	return nil
}

// RefuseLog refuses a place for a new database beside which the log of an earlier one was left.
// SQLite would replay it into a database that is put there, and delete it if it makes one: what
// a process that was killed stored last would be lost.
func RefuseLog(database string, ends ...string) error {
	for _, end := range ends {
		if info, err := os.Stat(database + end); err == nil && info.Size() > 0 {
			return fault.Newf(fault.Conflict, "%s of an earlier database is still there; move it away, to where that database is, or set DATA_DIR to another folder.", database+end)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unreadable(database+end, err)
		}
	}
	return nil
}

func unreadable(path string, err error) error {
	if fault.Is(classifySQLite(err), fault.Damaged) {
		return damaged(path, err)
	}
	reason, why := "", err
	// SQLite says only that it cannot open a file. Where it can, one that is closed here would lose its locks.
	if info, failed := os.Stat(path); failed == nil && info.Mode().IsRegular() && sqliteCode(err) == sqlite3.SQLITE_CANTOPEN {
		file, failed := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // the operator's own
		why = errors.Join(failed, err)
		_ = file.Close() // nothing was written; nil if it was not opened
	}
	if errno, ok := errors.AsType[syscall.Errno](why); ok {
		reason = ": " + errno.Error()
	}
	return &fault.Error{
		Kind:   fault.Or(err, fault.Unavailable),
		Public: "Cannot use the database file " + path + reason + "; check DATA_DIR or DATABASE_URL, that the directory can be written, and that the disk is not full",
		Err:    fmt.Errorf("open database: %w", err),
	}
}

// createFile makes the directory and an empty file with the permissions of a
// secret. SQLite gives its side files the mode and the owner of the database.
func createFile(path string) error {
	dir := filepath.Dir(path)
	whose := OwnerAt(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return unreadable(path, err)
	}
	f, err := openOrMake(path, whose)
	if err != nil {
		return unreadable(path, err)
	}
	err = f.Chmod(0o600)
	if err := errors.Join(err, f.Close()); err != nil {
		return unreadable(path, err)
	}
	return refuseLinks(path)
}

// openOrMake opens a file, or makes one with the permissions of a secret for an owner. One that
// was there is left to whom it belongs: it may have another name elsewhere.
func openOrMake(path string, whose Owner) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the operator's own path
	if errors.Is(err, fs.ErrExist) {
		return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // as above; a link to nothing makes what it leads to
	}
	if err == nil {
		_ = whose.Take(filepath.Dir(path), filepath.Base(path)) // a root that may not is the one who works on it
	}
	return f, err
}

// openPool opens one of the two pools of a file. Pragmas stand in the DSN,
// where they reach every connection.
func openPool(path string, write bool, conns int, trace Trace) (*sql.DB, error) {
	params := url.Values{
		"mode": {"rw"},
		"_pragma": {
			busySetting, // first: the other pragmas may have to wait
			`"main".page_size(` + strconv.Itoa(pageSize) + `)`, // the driver sorts them, and a new database takes it before WAL only
			"journal_mode(WAL)",
			"wal_autocheckpoint(" + strconv.Itoa(checkpointPages) + ")",
			"foreign_keys(1)",
			"synchronous(FULL)", // a commit that was acknowledged survives a power cut
			"trusted_schema(0)",
			"temp_store(MEMORY)",
			"secure_delete(1)", // what is deleted is overwritten
			"journal_size_limit(" + strconv.Itoa(maxIdleWAL) + ")",
		},
	}
	if write {
		params.Set("_txlock", "immediate")
	} else {
		params.Set("_query_only", "1")
		params.Add("_pragma", fmt.Sprintf("cache_size(-%d)", readerCache))
	}
	name := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + params.Encode()
	connector, err := sqlite.NewConnector(name)
	if err != nil {
		return nil, unreadable(path, err)
	}
	db := sql.OpenDB(cachingConnector{Connector: connector, trace: trace})
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

func (s *Store) inSQLiteRead(ctx context.Context, fn func(tx *Tx) error) error {
	conn, err := s.readerDB.Conn(ctx)
	if err != nil {
		// Whatever went wrong, nothing has happened: the pool is closed.
		return classified(err, func(error) fault.Kind { return fault.Unavailable })
	}
	defer conn.Close() //nolint:errcheck // gives the connection back to the pool
	tx, err := conn.BeginTx(context.WithoutCancel(ctx), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return classifySQLite(err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	return fn(newTx(Tx{text: s.reads, vectors: s.vectors, redact: s.redact, lite: tx}))
}
