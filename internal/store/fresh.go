package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/pressly/goose/v3"

	"remote-agent/migrations"
)

// applySchema makes the schema of an empty SQLite database from the text of what all
// migrations together make of it (migrations.Schema), which takes a fraction of their
// time: they build, fill and drop much that is not there in the end. It reports false
// where that text is not of the newest version.
func (s *Store) applySchema(ctx context.Context, db *sql.DB, provider *goose.Provider) (applied []string, done bool, err error) {
	text, version := migrations.Schema()
	sources := provider.ListSources()
	if len(sources) == 0 || sources[len(sources)-1].Version != version {
		return nil, false, nil
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, false, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	for statement := range strings.SplitSeq(text, migrations.SchemaSeparator) {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return nil, false, fmt.Errorf("make the schema: %w", err)
		}
	}
	for _, source := range sources {
		if _, err := tx.ExecContext(ctx, `INSERT INTO `+goose.DefaultTablename+` (version_id, is_applied) VALUES ($1, 1)`, source.Version); err != nil { //nolint:gosec // a constant of goose
			return nil, false, err
		}
		applied = append(applied, migrationName(source.Path))
	}
	return applied, true, tx.Commit()
}
