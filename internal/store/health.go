package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	sqlite3 "modernc.org/sqlite/lib"

	"remote-agent/internal/fault"
)

const (
	// writeStall is how long nothing may have been stored while work waits.
	writeStall = 10 * time.Second

	// writeFresh is how long a write that was stored proves that others will be.
	writeFresh = 10 * time.Second

	// writeDoubt is how long a write that failed is reason to look, although one was stored since.
	writeDoubt = 2 * writeFresh

	// writeProbe bounds the write that CheckWrites tries.
	writeProbe = 2 * time.Second

	// integrityFresh is how long a verdict about pages holds.
	integrityFresh = 5 * time.Minute

	// damageFresh is how long the verdict that they are damaged holds, so that a
	// database that was mended in its place is noticed.
	damageFresh = 15 * time.Second
)

// ErrNoTables is the cause of CheckSchema's fault where a database has none of the
// program's tables: Migrate makes all of them.
var ErrNoTables = errors.New("none of the program's tables")

// ErrGone is the cause of CheckWrites' fault where writes are stored in a file that no other
// process can open.
var ErrGone = errors.New("the file has no name any more")

// CheckSchema reports whether the schema is exactly the one this binary knows:
// fault.Invalid if a newer one has changed it or it is another program's,
// fault.Unavailable if migrations are missing or the database does not answer.
func (s *Store) CheckSchema(ctx context.Context) error {
	version, err := s.SchemaVersion(ctx)
	latest := LatestSchema()
	switch {
	case isNoTable(err):
		if empty, failed := s.IsEmpty(ctx); failed == nil && empty {
			err = fmt.Errorf("%w: %w", ErrNoTables, err)
		}
		return &fault.Error{
			Kind: fault.Invalid, Err: err,
			Public: "The database has no schema of this bot; `bot migrate up` creates one, or point DATABASE_URL or DATA_DIR at the right database.",
		}
	case err != nil:
		return err
	case version > latest:
		return newerSchema(version, latest)
	case version < latest:
		return fault.New(fault.Unavailable, "migrations are missing; `bot migrate up` applies them")
	}
	return nil
}

// CheckWrites reports whether what is written now is stored. It is an error if the
// last write failed and one that is tried now does as well, if one failed within 20 seconds
// because the disk of PostgreSQL is full, if nothing was stored for
// ten seconds while work waits, or if the file is gone; the public text says why. It writes nothing if
// something was stored within ten seconds. ctx bounds it.
func (s *Store) CheckWrites(ctx context.Context) error {
	if s.pg == nil && s.writer == nil {
		return nil // only read
	}
	if err := s.gone(); err != nil {
		return err
	}
	if s.pg != nil { // its disk cannot be looked at
		if err := s.writes.full(time.Now()); err != nil {
			return err
		}
	}
	if s.writes.proven(time.Now()) {
		return nil
	}
	if s.writes.waiting() {
		if err := s.writes.stalled(time.Now()); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, writeProbe)
	defer cancel()
	tried := make(chan error, 1)
	go func() { // ends with the transaction, which a disk that hangs can hold up
		tried <- s.InTx(ctx, func(tx *Tx) error {
			_, err := tx.exec(ctx, `UPDATE service_state SET id = id WHERE id = 1`)
			return err
		})
	}()
	var err error
	select {
	case err = <-tried:
	case <-ctx.Done():
	}
	switch {
	case ctx.Err() != nil: // a long transaction is no failure yet
		if err := s.writes.stalled(time.Now()); err != nil {
			return err
		}
		return s.writes.failed()
	case err != nil:
		return notStored(err)
	}
	return nil
}

// DoubtsWrites reports whether a write failed within 20 seconds, nothing goes forward while
// work waits, or the file is gone, so that CheckWrites is worth its write. A disk that is full
// still takes a small write where it refuses a message.
func (s *Store) DoubtsWrites() bool {
	return s.writes.doubted(time.Now()) || s.writes.stalled(time.Now()) != nil || s.gone() != nil
}

// gone says that SQLite's file was removed, or another one put in its place. Reading and
// writing succeed all the same, in a file that no other process can open.
func (s *Store) gone() error {
	if s.file == nil {
		return nil
	}
	now, err := os.Stat(s.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && os.SameFile(s.file, now) {
		return nil
	}
	return &fault.Error{Kind: fault.Unavailable, Public: "The database file " + s.path + " was removed or replaced: what is stored now is lost when the bot ends.", Err: ErrGone}
}

// notStored says that a write failed, and why.
func notStored(err error) error {
	why := cmp.Or(writeFailure(err), "the database does not answer")
	return &fault.Error{Kind: fault.KindOf(err), Public: "The last write failed: " + why + ".", Err: fmt.Errorf("write to the database: %w", err)}
}

// writeFailure is why a write failed, and what helps; empty if err does not say it.
func writeFailure(err error) string {
	switch kind := fault.KindOf(err); kind {
	case fault.Disk:
		return "the disk is full, or the file may not grow; make room"
	case fault.Memory:
		return "there is no memory left; end other programs or add some"
	case fault.Descriptors:
		return "too many files and connections are open; raise the limit (ulimit -n)"
	case fault.Damaged:
		return "the database is damaged"
	default:
		switch code := sqliteCode(err); {
		case code == sqlite3.SQLITE_BUSY, code == sqlite3.SQLITE_LOCKED:
			return "another program holds the database; end it"
		case code == sqlite3.SQLITE_READONLY:
			return "its file, -wal or -shm is read-only; look at their owner and at the disk"
		case code != 0:
			return "the disk cannot be written; look whether it is full, mounted read-only, or failing"
		case isState(err, pgReadOnly):
			return "the database server only reads; use the one that writes"
		case isState(err, pgPrivilege):
			return refused(err) + "; make the bot's user the owner of the database, or GRANT it the schema and its tables"
		case isState(err, pgNoSchema):
			return refused(err) + "; create one that search_path names, or correct search_path in DATABASE_URL"
		}
		return ""
	}
}

// refused is what PostgreSQL said of a statement. It names tables and schemas.
func refused(err error) string {
	e, _ := errors.AsType[*pgconn.PgError](err)
	return fmt.Sprintf("PostgreSQL says %.200q", e.Message)
}

// Explain gives an error of the database words for an operator: what happened, and what
// helps. Others it returns as they are.
func (s *Store) Explain(err error) error {
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, answered := errors.AsType[*pgconn.PgError](err)
	switch f, _ := errors.AsType[*fault.Error](err); {
	case f == nil || f.Public != "" || fault.Is(err, fault.Damaged) || !fault.Passing(err) || sqliteCode(err) == 0 && !connecting && !answered:
	case connecting && s.pg != nil:
		return &fault.Error{Kind: fault.Unavailable, Public: "DATABASE_URL: " + refusal(&s.pg.Config().ConnConfig.Config, err) + ".", Err: err}
	default:
		if why := writeFailure(err); why != "" {
			return fault.New(f.Kind, "The database cannot be used: "+why+".")
		}
	}
	return err
}

// writes follows how transactions that write end. It is safe for concurrent use.
type writes struct {
	mu       sync.Mutex
	running  int       // begun and not ended
	stored   time.Time // when something was stored last
	progress time.Time // since when nothing has gone forward while work waits; zero if it does
	last     error     // how the last write failed; nil if it was stored
	refused  time.Time // when one failed last
	why      error     // how that one failed
}

func (w *writes) begin(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running++; w.progress.IsZero() {
		w.progress = now
	}
}

// end notes how a write ended. An error that is not the database's shows that it
// works; one of a caller who waited no longer shows nothing.
func (w *writes) end(err error, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	switch {
	case err == nil:
		w.stored, w.last = now, nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return
	case isOutage(err):
		w.last, w.refused, w.why = err, now, err
	}
	if w.progress = now; w.running == 0 {
		w.progress = time.Time{}
	}
}

// isOutage reports whether a write failed for a reason that others share.
func isOutage(err error) bool {
	return fault.Passing(err) || fault.Is(err, fault.Damaged)
}

// proven reports whether a write was stored a moment ago and none has failed since.
func (w *writes) proven(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last == nil && now.Sub(w.stored) < writeFresh
}

// waiting reports whether somebody waits for a write.
func (w *writes) waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running > 0
}

func (w *writes) stalled(now time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.progress.IsZero() || now.Sub(w.progress) < writeStall {
		return nil
	}
	return fault.Newf(fault.Unavailable, "Nothing has been stored for %d s while work waits.", int(now.Sub(w.progress).Seconds()))
}

func (w *writes) doubted(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last != nil || now.Sub(w.refused) < writeDoubt
}

// full reports that a write failed a moment ago because the disk is full, although others may
// have been stored since: a small one often has room where a message has none.
func (w *writes) full(now time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.refused) >= writeDoubt || !fault.Is(w.why, fault.Disk) {
		return nil
	}
	return notStored(w.why)
}

func (w *writes) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		return nil
	}
	return notStored(w.last)
}

// integrity is the last verdict about the pages of the database. It is safe for
// concurrent use.
type integrity struct {
	mu      sync.Mutex
	checked time.Time
	damage  error
	look    bool // something that was read or written was damaged
}

// notice has the next CheckIntegrity look if err says that something is damaged.
func (i *integrity) notice(err error) {
	if err == nil || !fault.Is(err, fault.Damaged) {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.look = true
}

// due reports whether it is time to look again, and the verdict until then.
func (i *integrity) due(now time.Time) (bool, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	fresh := integrityFresh
	if i.damage != nil {
		fresh = damageFresh
	}
	if !i.look && now.Sub(i.checked) < fresh {
		return false, i.damage
	}
	i.look, i.checked = false, now // the others do not look meanwhile
	return true, nil
}

// CheckIntegrity reports damage as fault.Damaged. It looks at the pages of the
// database, for two seconds at most, if nobody has in the last five minutes or a
// transaction has met damage since; what it did not get to is not known to be
// sound. On PostgreSQL it asks whether the server has met pages with a wrong
// checksum in the last hour.
func (s *Store) CheckIntegrity(ctx context.Context) error {
	look, damage := s.integrity.due(time.Now())
	if !look {
		return damage
	}
	if s.pg != nil {
		damage = s.checkPostgresPages(ctx)
	} else {
		_, damage = quickCheck(ctx, s.path)
	}
	if damage != nil && !fault.Is(damage, fault.Damaged) {
		damage = nil // it could not be found out; other checks say why
	}
	s.integrity.mu.Lock()
	defer s.integrity.mu.Unlock()
	s.integrity.damage = damage
	return damage
}

// checkPostgresPages asks for the failures that the server itself has counted. It
// verifies the checksum of each page it reads, where the cluster has checksums.
func (s *Store) checkPostgresPages(ctx context.Context) error {
	var failures int64
	err := s.pg.QueryRow(ctx, `
		SELECT COALESCE(checksum_failures, 0) FROM pg_stat_database
		WHERE datname = current_database() AND checksum_last_failure > now() - interval '1 hour'
		UNION ALL SELECT 0 LIMIT 1`).Scan(&failures)
	if err != nil {
		return classifyPostgres(err)
	}
	if failures > 0 {
		return fault.Newf(fault.Damaged, "The database is damaged: PostgreSQL has met %d pages with a wrong checksum.", failures)
	}
	return nil
}
