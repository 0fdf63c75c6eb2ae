package queue

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
)

// Migration is a step of River's own schema.
type Migration struct {
	Name      string
	Applied   bool
	AppliedAt time.Time
}

// Migrate brings River's tables up to date and returns the names of what it
// applied. The caller keeps other processes from migrating at the same time.
func Migrate(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) (applied []string, err error) {
	m, err := migrator(pool, log)
	if err != nil {
		return nil, err
	}
	result, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "migrate queue")
	}
	for _, v := range result.Versions {
		applied = append(applied, riverName(v.Version, v.Name))
	}
	return applied, nil
}

func migrator(pool *pgxpool.Pool, log *slog.Logger) (*rivermigrate.Migrator[pgx.Tx], error) {
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet(log)})
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "load queue migrations")
	}
	return m, nil
}

// MigrationStatus lists the steps of River's schema in order.
func MigrationStatus(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) ([]Migration, error) {
	m, err := migrator(pool, log)
	if err != nil {
		return nil, err
	}
	existing, err := m.ExistingVersions(ctx)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "read queue migrations")
	}
	at := make(map[int]bool, len(existing))
	for _, v := range existing {
		at[v.Version] = true
	}
	all := m.AllVersions()
	return lists.Map(all, func(v rivermigrate.Migration) Migration {
		return Migration{Name: riverName(v.Version, v.Name), Applied: at[v.Version]}
	}), nil
}

func riverName(version int, name string) string {
	return fmt.Sprintf("queue_%03d_%s", version, name)
}
