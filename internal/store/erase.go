package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"remote-agent/internal/fault"
)

// On SQLite secure_delete overwrites what is deleted, and the full-text indexes
// take its words out in the same transaction. The write-ahead log still has the
// pages as they were: it is written back and truncated before whoever deleted is
// told that it is done. A reader in the way makes that happen later, by itself.

const (
	checkpointPatience = 100 * time.Millisecond // of a deletion, with readers in its way
	checkpointAgain    = time.Second
)

// errLogBusy means that a reader needs what the log has.
var errLogBusy = fault.New(fault.Unavailable, "Another program is reading the database, so its log cannot be emptied yet; try again in a moment.")

// erases notes that the transaction deletes what somebody said.
func (t *Tx) erases() { t.erased = true }

// truncate empties the write-ahead log. It reports whether a reader was in the way.
// It runs in the goroutine that owns the connection.
func (w *writer) truncate(ctx context.Context) bool {
	conn, err := w.db.Conn(ctx)
	if err != nil {
		return true
	}
	defer conn.Close() //nolint:errcheck // gives the connection back to the pool
	return truncateLog(ctx, conn, checkpointPatience) != nil
}

// truncateLog writes the write-ahead log back and truncates it, unless readers are
// in the way for longer than patience.
func truncateLog(ctx context.Context, conn *sql.Conn, patience time.Duration) error {
	if _, err := conn.ExecContext(ctx, fmt.Sprintf(`PRAGMA busy_timeout(%d)`, patience.Milliseconds())); err != nil {
		return classifySQLite(err)
	}
	var busy, pages, moved int
	err := conn.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &moved)
	if _, back := conn.ExecContext(context.WithoutCancel(ctx), busyTimeout); err == nil {
		err = back
	}
	switch {
	case err != nil:
		return classifySQLite(err)
	case busy != 0:
		return errLogBusy
	}
	return nil
}

// Scrub removes what deletions have left in the files of the database. With whole
// it rewrites all of it, which takes as long as copying it, needs as much room
// again, and on PostgreSQL keeps everybody from each table meanwhile: nothing
// of deleted rows is left in the files afterwards. Without, SQLite's log is emptied
// and PostgreSQL's tables are vacuumed: whole pages are given back, and what was
// deleted from others stays on the disk until its place is used again. The log of
// PostgreSQL and its archives are not touched. fault.Unavailable means that
// somebody reads the database meanwhile; try again.
func (s *Store) Scrub(ctx context.Context, whole bool) error {
	if s.pg != nil {
		return s.scrubPostgres(ctx, whole)
	}
	conn, err := s.writerDB.Conn(ctx)
	if err != nil {
		return classifySQLite(err)
	}
	defer conn.Close() //nolint:errcheck // gives the connection back to the pool
	if whole {
		if _, err := conn.ExecContext(ctx, `VACUUM`); err != nil {
			return fmt.Errorf("rewrite the database: %w", classifySQLite(err))
		}
	}
	return wrap(truncateLog(ctx, conn, 5*time.Second), "empty the log of the database")
}

func (s *Store) scrubPostgres(ctx context.Context, whole bool) error {
	conn, err := s.pg.Acquire(ctx)
	if err != nil {
		return classifyPostgres(err)
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, `
		SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tableowner = current_user ORDER BY 1`)
	if err != nil {
		return classifyPostgres(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return classifyPostgres(err)
	}
	how := "VACUUM (ANALYZE) "
	if whole {
		how = "VACUUM (FULL, ANALYZE) "
	}
	// The planner's statistics have samples of texts, also of a table that is empty
	// by now, which ANALYZE passes over. What needs a privilege that the bot may not
	// have is left to the server.
	if whole {
		s.mayScrub(ctx, conn, `DELETE FROM pg_catalog.pg_statistic WHERE starelid IN (
			SELECT oid FROM pg_catalog.pg_class WHERE relnamespace = current_schema()::regnamespace)`)
	}
	for _, table := range tables {
		if _, err := conn.Exec(ctx, how+pgx.Identifier{table}.Sanitize()); err != nil {
			return fmt.Errorf("vacuum %s: %w", table, classifyPostgres(err))
		}
	}
	if whole {
		s.mayScrub(ctx, conn, `VACUUM (FULL) pg_catalog.pg_statistic`)
		s.mayScrub(ctx, conn, `CHECKPOINT`) // removes the files that were replaced
	}
	return nil
}

func (s *Store) mayScrub(ctx context.Context, conn *pgxpool.Conn, statement string) {
	if _, err := conn.Exec(ctx, statement); err != nil {
		s.log.InfoContext(ctx, "a part of scrubbing is left to the server, for want of a privilege", "statement", statement, "err", classifyPostgres(err))
	}
}
