package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"golang.org/x/sync/errgroup"

	"remote-agent/internal/fault"
	"remote-agent/internal/queue"
)

// Migration is one step of the schema, the queue's own included.
type Migration struct {
	Name      string
	Applied   bool
	AppliedAt time.Time // zero if not applied or not known
}

// Migrate brings the schema up to date and returns the names of what it applied.
// It may run in several processes at once: one does the work, the others wait.
// A schema that a newer binary made is refused (fault.Invalid), untouched, and so is a
// PostgreSQL database that cannot hold every character. If a migration fails, the schema
// is what it was before. Where the PostgreSQL server has pgvector, it is set up as well;
// see Vectors.
func (s *Store) Migrate(ctx context.Context) (applied []string, err error) {
	s.migrating.Lock()
	defer s.migrating.Unlock()
	provider, db, err := s.provider()
	if err != nil {
		return nil, err
	}
	defer s.closeProvider(db, &err)
	unlock, err := s.lockSchema(ctx)
	if err != nil {
		return nil, fmt.Errorf("wait for another migration: %w", s.classify(err))
	}
	defer unlock()
	if err := cmp.Or(s.refuseReader(ctx), s.CheckEncoding(ctx)); err != nil {
		return nil, err
	}
	durable, err := s.hurry(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for a schema: %w", err)
	}
	defer func() { err = errors.Join(err, durable()) }()

	if err := s.refuseNewer(ctx, provider); err != nil {
		return nil, err
	}
	current, err := provider.GetDBVersion(ctx)
	if err != nil {
		return nil, fmt.Errorf("read schema version: %w", s.classify(err))
	}
	if applied, err = s.migrateBoth(ctx, db, provider, current == 0); err != nil {
		return applied, err
	}
	if err := s.adoptAudit(ctx); err != nil {
		return applied, err
	}
	if s.pg != nil {
		s.setUpVectors(ctx)
	}
	return applied, nil
}

// migrateBoth applies our migrations and the queue's, which comes first: earlier versions
// of this program work with a newer queue. In an empty database there is no earlier
// version, and each is made while the other one waits for the disk, pgvector with them.
func (s *Store) migrateBoth(ctx context.Context, db *sql.DB, provider *goose.Provider, empty bool) (applied []string, err error) {
	if s.pg == nil {
		return s.migrateOurs(ctx, db, provider, empty)
	}
	var queues []string
	migrateQueue := func() (err error) {
		queues, err = queue.Migrate(ctx, s.pg, s.log)
		return err
	}
	var group errgroup.Group
	if empty {
		group.Go(func() error {
			_, _ = s.installVectors(ctx) // setUpVectors tells what is wrong
			return migrateQueue()
		})
	} else if err := migrateQueue(); err != nil {
		return queues, err
	}
	applied, err = s.migrateOurs(ctx, db, provider, empty)
	if failed := group.Wait(); err == nil {
		err = failed
	}
	return append(applied, queues...), err
}

// migrateOurs applies what is not applied yet: all of it or nothing.
func (s *Store) migrateOurs(ctx context.Context, db *sql.DB, provider *goose.Provider, empty bool) (applied []string, err error) {
	made := false
	if empty {
		applied, made, err = s.applySchema(ctx, db, provider)
	}
	if err == nil && !made {
		applied, err = s.up(ctx, db)
	}
	if err != nil {
		return nil, notMigrated(applied, s.classify(err))
	}
	return applied, nil
}

// notMigrated is the error of an upgrade, behind the steps that were applied first. Where an
// operator can help, it says with what.
func notMigrated(applied []string, err error) error {
	step := "the first step"
	if partial, ok := errors.AsType[*goose.PartialError](err); ok {
		step = "step " + migrationName(partial.Failed.Source.Path)
	} else if len(applied) > 0 {
		step = "step " + applied[len(applied)-1]
	}
	kept := fmt.Errorf("apply migrations; none of them was kept: %s: %w", step, err)
	if why := writeFailure(err); why != "" && fault.Passing(err) {
		return &fault.Error{Kind: fault.KindOf(err), Err: kept, Public: "The upgrade of the database failed at " + step + ": " + why + ". Nothing of it was kept: start this version again after that. The earlier one still starts, too."}
	}
	return kept
}

// up applies the migrations that are not applied yet, one after the other in one
// transaction.
func (s *Store) up(ctx context.Context, db *sql.DB) (applied []string, err error) {
	err = inOneTx(ctx, db, func(view *sql.DB) error {
		provider, err := s.providerOf(view)
		if err != nil {
			return err
		}
		if s.pg != nil {
			if _, err := view.ExecContext(ctx, migrationLimits); err != nil {
				return err
			}
		}
		results, err := provider.Up(ctx)
		for _, result := range results {
			applied = append(applied, migrationName(result.Source.Path))
		}
		return err
	})
	return applied, err
}

// hurry has SQLite make the schema of a new database without waiting for the disk
// after each of its steps, which takes most of the time. There is nothing in it that
// could be lost. The returned function writes it to the disk, for good.
func (s *Store) hurry(ctx context.Context) (durable func() error, err error) {
	var tables int
	if s.pg == nil {
		err = s.writerDB.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master`).Scan(&tables)
	}
	if s.pg != nil || err != nil || tables > 0 {
		return func() error { return nil }, s.classify(err)
	}
	if _, err := s.writerDB.ExecContext(ctx, `PRAGMA synchronous = OFF`); err != nil {
		return nil, s.classify(err)
	}
	return func() error {
		ctx := context.WithoutCancel(ctx)
		_, err := s.writerDB.ExecContext(ctx, `PRAGMA synchronous = FULL`)
		if err == nil {
			_, err = s.writerDB.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
		}
		return s.classify(err)
	}, nil
}

// MigrationStatus lists all steps of the schema in order.
func (s *Store) MigrationStatus(ctx context.Context) (list []Migration, err error) {
	provider, db, err := s.provider()
	if err != nil {
		return nil, err
	}
	defer s.closeProvider(db, &err)
	if err := s.refuseNewer(ctx, provider); err != nil {
		return nil, err
	}
	states, err := provider.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", s.classify(err))
	}
	for _, state := range states {
		list = append(list, Migration{
			Name:      migrationName(state.Source.Path),
			Applied:   state.State == goose.StateApplied,
			AppliedAt: state.AppliedAt,
		})
	}
	if s.pg == nil {
		return list, nil
	}
	river, err := queue.MigrationStatus(ctx, s.pg, s.log)
	for _, m := range river {
		list = append(list, Migration{Name: m.Name, Applied: m.Applied, AppliedAt: m.AppliedAt})
	}
	return list, err
}

func migrationName(file string) string { return strings.TrimSuffix(path.Base(file), ".sql") }

func (s *Store) classify(err error) error {
	if s.pg != nil {
		return classifyPostgres(err)
	}
	return classifySQLite(err)
}

func (s *Store) provider() (*goose.Provider, *sql.DB, error) {
	db := s.writerDB
	if s.pg != nil {
		db = stdlib.OpenDBFromPool(s.pg)
	}
	provider, err := s.providerOf(db)
	return provider, db, err
}

func (s *Store) providerOf(db *sql.DB) (*goose.Provider, error) {
	dialect := goose.DialectSQLite3
	if s.pg != nil {
		dialect = goose.DialectPostgres
	}
	provider, err := goose.NewProvider(dialect, db, s.steps(s.dialect),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "load migrations")
	}
	return provider, nil
}

// closeProvider closes the database/sql view of the PostgreSQL pool, which
// leaves the pool open. On SQLite db is the store's own.
func (s *Store) closeProvider(db *sql.DB, err *error) {
	if s.pg != nil {
		*err = errors.Join(*err, db.Close())
	}
}

func (s *Store) refuseNewer(ctx context.Context, provider *goose.Provider) error {
	current, target, err := provider.GetVersions(ctx) // makes a table where there is none
	if err != nil {
		return cmp.Or(s.refuseReader(ctx), fmt.Errorf("read schema version: %w", s.classify(err)))
	}
	if current > target {
		return newerSchema(current, target)
	}
	if current == 0 {
		return nil
	}
	return s.InRead(ctx, func(tx *Tx) error {
		var one int
		_, err := tx.one(ctx, []any{&one}, `SELECT 1 FROM remote_agent_conversations LIMIT 1`) // the first migration made it
		if isNoTable(err) {
			return &fault.Error{
				Kind: fault.Invalid, Err: err,
				Public: "The database belongs to another program. Point DATABASE_URL or DATA_DIR at another one, or at none: it is created.",
			}
		}
		return err
	})
}

// refuseReader refuses a PostgreSQL server that only reads, such as a standby.
func (s *Store) refuseReader(ctx context.Context) error {
	if s.pg == nil {
		return nil
	}
	var reads bool
	if err := s.pg.QueryRow(ctx, `SELECT current_setting('transaction_read_only')::boolean`).Scan(&reads); err != nil || !reads {
		return s.classify(err)
	}
	return s.classify(&pgconn.PgError{Code: pgReadOnly, Message: "the server only reads"})
}

// CheckEncoding refuses a PostgreSQL database that cannot hold every character (fault.Invalid).
func (s *Store) CheckEncoding(ctx context.Context) error {
	if s.pg == nil {
		return nil
	}
	var encoding string
	if err := s.pg.QueryRow(ctx, `SHOW server_encoding`).Scan(&encoding); err != nil {
		return fmt.Errorf("read the encoding: %w", s.classify(err))
	}
	if encoding == "UTF8" || encoding == "SQL_ASCII" { // the second one keeps what it is given
		return nil
	}
	return fault.Newf(fault.Invalid,
		"The database stores text as %s, which lacks characters that people write, such as emoji. Make one with `createdb -E UTF8 -T template0 NAME`, and point DATABASE_URL at it; `bot export` and `bot import` move what the old one has.",
		encoding)
}

func newerSchema(current, target int64) error {
	return fault.Newf(fault.Invalid,
		"The database has schema version %d, but this version supports only %d: a newer version has used it. Start that version or newer, or point DATABASE_URL or DATA_DIR at another database.",
		current, target)
}
