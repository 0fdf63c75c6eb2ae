package store_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
	"remote-agent/migrations"
)

// writeSchema is a flag because "make generate" uses it.
var writeSchema = flag.Bool("write-schema", false, "write migrations/schema")

// The text that a new SQLite database is made of is what the migrations make, step by
// step.
func TestSchemaIsWhatTheMigrationsMake(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	open := func() *store.Store { return storetest.Open(t, store.Options{DataDir: t.TempDir(), Exclusive: true}) }
	stepwise := open()
	if err := store.MigrateTo(ctx, stepwise, store.LatestSchema()); err != nil {
		t.Fatal(err)
	}
	if *writeSchema {
		text := fmt.Sprintf("-- version %d\n%s\n", store.LatestSchema(), strings.Join(schemaOf(t, stepwise), migrations.SchemaSeparator))
		if err := os.WriteFile("../../migrations/schema/sqlite.sql", []byte(text), 0o644); err != nil { //nolint:gosec // a source file
			t.Fatal(err)
		}
		return
	}
	if _, version := migrations.Schema(migrations.SQLite); version != store.LatestSchema() {
		t.Fatalf("migrations/schema/sqlite.sql is of version %d, the migrations go to %d: run make generate", version, store.LatestSchema())
	}
	atOnce := open()
	applied, err := atOnce.Migrate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(schemaOf(t, stepwise), schemaOf(t, atOnce)); diff != "" {
		t.Errorf("a new database differs from one that the migrations made; run make generate (-stepwise +new):\n%s", diff)
	}
	list, err := atOnce.MigrationStatus(ctx)
	if err != nil || len(list) != len(applied) {
		t.Errorf("%d migrations, %d applied, %v", len(list), len(applied), err)
	}
	for _, m := range list {
		if !m.Applied {
			t.Errorf("%s is not noted as applied", m.Name)
		}
	}
}

// schemaOf returns the statements that make the database what it is: its objects, the
// settings of its full-text indexes, and its rows.
func schemaOf(t *testing.T, s *store.Store) (statements []string) {
	t.Helper()
	err := s.InTx(t.Context(), func(tx *store.Tx) error {
		objects, err := store.Rows(t.Context(), tx, `SELECT type, name, sql FROM sqlite_master
			WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name <> 'goose_db_version' ORDER BY rowid`, 3)
		if err != nil {
			return err
		}
		var virtual, tables []string
		for _, o := range objects {
			if strings.HasPrefix(o[2], "CREATE VIRTUAL TABLE") {
				virtual = append(virtual, o[1])
			}
		}
		shadow := func(name string) bool {
			for _, v := range virtual {
				if strings.HasPrefix(name, v+"_") && name != v {
					for _, part := range []string{"_data", "_idx", "_docsize", "_config", "_content"} {
						if name == v+part {
							return true
						}
					}
				}
			}
			return false
		}
		for _, o := range objects {
			if shadow(o[1]) {
				continue
			}
			statements = append(statements, o[2])
			if o[0] == "table" {
				tables = append(tables, o[1])
			}
		}
		for _, v := range virtual {
			settings, err := store.Rows(t.Context(), tx, `SELECT k, quote(v) FROM "`+v+`_config" WHERE k <> 'version' ORDER BY k`, 2)
			if err != nil {
				return err
			}
			for _, setting := range settings {
				statements = append(statements, fmt.Sprintf(`INSERT INTO %s (%s, rank) VALUES ('%s', %s)`, v, v, setting[0], setting[1]))
			}
		}
		return rowsOf(t.Context(), tx, tables, virtual, &statements)
	})
	if err != nil {
		t.Fatal(err)
	}
	return statements
}

// rowsOf adds the rows that migrations put into new tables: one or none each.
func rowsOf(ctx context.Context, tx *store.Tx, tables, virtual []string, statements *[]string) error {
	for _, table := range tables {
		if strings.Contains(strings.Join(virtual, " "), table) {
			continue
		}
		columns, err := store.Rows(ctx, tx, `SELECT name FROM pragma_table_info('`+table+`') ORDER BY cid`, 1)
		if err != nil {
			return err
		}
		var names, quoted []string
		for _, c := range columns {
			names, quoted = append(names, `"`+c[0]+`"`), append(quoted, `quote("`+c[0]+`")`)
		}
		rows, err := store.Rows(ctx, tx, `SELECT `+strings.Join(quoted, ` || ', ' || `)+` FROM "`+table+`"`, 1)
		if err != nil {
			return err
		}
		for _, row := range rows {
			*statements = append(*statements, fmt.Sprintf(`INSERT INTO "%s" (%s) VALUES (%s)`, table, strings.Join(names, ", "), row[0]))
		}
	}
	return nil
}
