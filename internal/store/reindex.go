package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// searchLock keeps other replicas from the same work.
const searchLock = 0x626f7477 // "botw"

// staleSQL asks whether a migration marked the index of words; see 00045.
const staleSQL = `SELECT COALESCE(obj_description(to_regclass('idx_agent_messages_words'), 'pg_class') = 'stale', false)`

// KeepSearch makes the index of words of PostgreSQL anew where a migration changed what it
// has of a text. Others read and write meanwhile, and find by it what they found before. One
// process at a time does so; others return at once. It may take many minutes and can be
// stopped any time: the next call begins again. Otherwise, and on SQLite, it does nothing.
func (s *Store) KeepSearch(ctx context.Context) (err error) {
	if s.pg == nil {
		return nil
	}
	conn, err := s.pg.Acquire(ctx)
	if err != nil {
		return classifyPostgres(err)
	}
	defer conn.Release()
	var stale bool
	if err := conn.QueryRow(ctx, staleSQL).Scan(&stale); err != nil || !stale {
		return classifyPostgres(err)
	}
	unlock, mine, err := s.lockAlone(ctx, conn, searchLock)
	if err != nil || !mine {
		return classifyPostgres(err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	// Another process may have done it since.
	if err := conn.QueryRow(ctx, staleSQL).Scan(&stale); err != nil || !stale {
		return classifyPostgres(err)
	}
	s.log.InfoContext(ctx, "makes the index of messages anew; searches may miss words with accents until that is done")
	if err := s.reindex(ctx, conn.Conn()); err != nil {
		return wrap(classifyPostgres(err), "make the index of messages anew")
	}
	s.log.InfoContext(ctx, "the index of messages is up to date")
	return nil
}

func (s *Store) reindex(ctx context.Context, conn *pgx.Conn) error {
	if !s.pooled { // else the setting would be another one's
		if _, err := conn.Exec(ctx, `SET statement_timeout = 0`); err != nil {
			return err
		}
		defer func() {
			ctx, cancel := cleanup(ctx)
			defer cancel()
			if _, err := conn.Exec(ctx, `RESET statement_timeout`); err != nil {
				_ = conn.Close(ctx)
			}
		}()
	}
	for _, statement := range []string{
		`DROP INDEX CONCURRENTLY IF EXISTS idx_agent_messages_words_ccnew`, // left over by one who was stopped
		`DROP INDEX CONCURRENTLY IF EXISTS idx_agent_messages_words_ccold`,
		`REINDEX INDEX CONCURRENTLY idx_agent_messages_words`,
		`COMMENT ON INDEX idx_agent_messages_words IS NULL`,
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
