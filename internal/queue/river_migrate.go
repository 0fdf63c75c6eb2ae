package queue

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"

	"remote-agent/internal/fault"
)

// Pools are the connections of the store, in whose database the jobs are. Exactly
// one is set. The SQLite pool has a single connection, shared with the store.
type Pools struct {
	SQLite   *sql.DB
	Postgres *pgxpool.Pool
}

// Migration is a step of River's own schema.
type Migration struct {
	Name      string
	Applied   bool
	AppliedAt time.Time
}

// Migrate brings River's tables up to date and returns the names of what it
// applied. The caller keeps other processes from migrating at the same time.
func Migrate(ctx context.Context, pools Pools, log *slog.Logger) (applied []string, err error) {
	if pools.Postgres != nil {
		m, err := rivermigrate.New(riverpgxv5.New(pools.Postgres), &rivermigrate.Config{Logger: quiet(log)})
		if err != nil {
			return nil, fault.Wrap(err, fault.Internal, "load queue migrations")
		}
		return migrate(ctx, m)
	}
	m, err := rivermigrate.New(riversqlite.New(pools.SQLite), &rivermigrate.Config{Logger: quiet(log)})
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "load queue migrations")
	}
	return migrate(ctx, m)
}

// MigrationStatus lists the steps of River's schema in order.
func MigrationStatus(ctx context.Context, pools Pools, log *slog.Logger) ([]Migration, error) {
	if pools.Postgres != nil {
		m, err := rivermigrate.New(riverpgxv5.New(pools.Postgres), &rivermigrate.Config{Logger: quiet(log)})
		if err != nil {
			return nil, fault.Wrap(err, fault.Internal, "load queue migrations")
		}
		return status(ctx, m)
	}
	m, err := rivermigrate.New(riversqlite.New(pools.SQLite), &rivermigrate.Config{Logger: quiet(log)})
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "load queue migrations")
	}
	return status(ctx, m)
}

func migrate[T any](ctx context.Context, m *rivermigrate.Migrator[T]) (applied []string, err error) {
	result, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "migrate queue")
	}
	for _, v := range result.Versions {
		applied = append(applied, riverName(v.Version, v.Name))
	}
	return applied, nil
}

func status[T any](ctx context.Context, m *rivermigrate.Migrator[T]) ([]Migration, error) {
	existing, err := m.ExistingVersions(ctx)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "read queue migrations")
	}
	at := make(map[int]bool, len(existing))
	for _, v := range existing {
		at[v.Version] = true
	}
	all := m.AllVersions()
	list := make([]Migration, 0, len(all))
	for _, v := range all {
		list = append(list, Migration{Name: riverName(v.Version, v.Name), Applied: at[v.Version]})
	}
	return list, nil
}

func riverName(version int, name string) string {
	return fmt.Sprintf("queue_%03d_%s", version, name)
}
