package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/pressly/goose/v3"

	"remote-agent/migrations"
)

// applySchema makes the schema of an empty database from the text of what all migrations
// together make of it (migrations.Schema), which takes a fraction of their time: they
// build, fill and drop much that is not there in the end. It reports false where that text
// is not of the newest version, and where it would meet what somebody else made.
func (s *Store) applySchema(ctx context.Context, db *sql.DB, provider *goose.Provider) (applied []string, done bool, err error) {
	text, version := migrations.Schema(s.dialect)
	sources := provider.ListSources()
	if len(sources) == 0 || sources[len(sources)-1].Version != version {
		return nil, false, nil
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, false, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	if s.pg != nil {
		var taken bool
		if _, err := tx.ExecContext(ctx, migrationLimits); err != nil {
			return nil, false, err
		}
		if err := tx.QueryRowContext(ctx, takenTypesSQL).Scan(&taken); err != nil || taken {
			return nil, false, err
		}
	}
	var versions []string
	for _, source := range sources {
		versions = append(versions, fmt.Sprintf("(%d, true)", source.Version))
		applied = append(applied, migrationName(source.Path))
	}
	text += migrations.SchemaSeparator + `INSERT INTO ` + goose.DefaultTablename + ` (version_id, is_applied) VALUES ` + strings.Join(versions, ", ")
	for statement := range strings.SplitSeq(text, migrations.SchemaSeparator) {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return nil, false, fmt.Errorf("make the schema: %w", err)
		}
	}
	return applied, true, tx.Commit()
}

// takenTypesSQL asks for the types of seed 004 that a migration leaves as they are where
// they are there already. The text makes all of them.
const takenTypesSQL = `SELECT coalesce(to_regtype('memory'), to_regtype('rag'), to_regtype('model')) IS NOT NULL`
