package store

import (
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"remote-agent/internal/fault"
	"remote-agent/migrations"
)

// fileName is the database in the data directory when no URL is given.
const fileName = "bot.db"

// target is where a database is.
type target struct {
	dialect migrations.Dialect
	path    string          // SQLite
	pool    *pgxpool.Config // PostgreSQL
	limited bool            // the URL sets pool_max_conns
}

// parseURL reads DATABASE_URL. The value may hold a password, so no error
// repeats it.
func parseURL(raw, dataDir string) (target, error) {
	path, isSQLite := strings.CutPrefix(raw, "sqlite:")
	switch {
	case raw == "":
		if dataDir == "" {
			return target{}, fault.New(fault.Invalid, "DATA_DIR is empty; set it, or set DATABASE_URL to sqlite:PATH or postgres://...")
		}
		path = filepath.Join(dataDir, fileName)
	case isSQLite:
		path = strings.TrimPrefix(path, "//")
		if path == "" || strings.HasPrefix(path, ":") {
			return target{}, fault.New(fault.Invalid, "DATABASE_URL names no file; write sqlite:PATH, or leave it empty for "+fileName+" in DATA_DIR")
		}
	case strings.HasPrefix(raw, "postgres://"), strings.HasPrefix(raw, "postgresql://"):
		config, err := pgxpool.ParseConfig(raw)
		if err != nil {
			return target{}, fault.New(fault.Invalid, "DATABASE_URL is not a valid PostgreSQL address; write postgres://user:password@host:5432/name and percent-encode special characters of the password")
		}
		return target{
			dialect: migrations.Postgres, pool: config, limited: strings.Contains(raw, "pool_max_conns="),
		}, nil
	default:
		return target{}, fault.New(fault.Invalid, "DATABASE_URL has an unknown form; leave it empty for SQLite, or write sqlite:PATH or postgres://...")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return target{}, fault.Wrap(err, fault.Invalid, "find the database file")
	}
	return target{dialect: migrations.SQLite, path: path}, nil
}
