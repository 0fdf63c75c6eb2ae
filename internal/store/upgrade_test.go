//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/store"
)

// The files testdata/schema-N.sql are the data of databases of earlier versions; the
// schema itself is made by the migrations up to N, which never change. A release adds
// one for its schema.

// gone names tables that a later schema has not any more, with the reason.
var gone = map[string]string{"checkpoints": "each is a part of its inbound event"}

func TestUpgrade(t *testing.T) { //nolint:tparallel // those of eachEmpty are parallel
	t.Parallel()
	files, err := filepath.Glob("testdata/schema-*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal("no earlier schemas:", err)
	}
	for _, file := range files {
		version, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "schema-"), ".sql"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file) //nolint:gosec // a file of the tests
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			eachEmpty(t, func(t *testing.T, b bundle) { testUpgrade(t, b, version, string(data)) })
		})
	}
}

func testUpgrade(t *testing.T, b bundle, version int64, data string) {
	ctx := t.Context()
	if err := store.MigrateTo(ctx, b.Store, version); err != nil {
		t.Fatal(err)
	}
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		for statement := range strings.SplitSeq(strings.TrimSuffix(data, ";\n"), ";\n") {
			if err := store.Exec(ctx, tx, statement); err != nil {
				return fmt.Errorf("%w\n%s", err, statement)
			}
		}
		return nil
	})
	before := countRows(t, b)
	for table, n := range before {
		if n == 0 {
			t.Errorf("the data has no row for %s", table)
		}
	}

	if _, err := b.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	after := countRows(t, b)
	for table := range before {
		if _, there := after[table]; !there && gone[table] == "" {
			t.Errorf("the table %s is not there any more", table)
		} else if gone[table] != "" {
			delete(before, table)
		}
	}
	for table := range after {
		if _, old := before[table]; !old {
			delete(after, table) // made by a later migration
		}
	}
	before["audit_log"]++ // what was in it is taken into the chain, which is on record itself
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("rows by table (-before +after):\n%s", diff)
	}
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		s, active, err := tx.Sessions().ActiveSession(ctx, "0190c042-0000-7000-8000-000000000001")
		if err != nil || !active {
			t.Errorf("the active session: %v, %v", active, err)
		}
		window, err := tx.Messages().MessagesBefore(ctx, s.ID, 1<<40, 10)
		if err != nil || len(window) == 0 {
			t.Errorf("its messages: %v, %v", window, err)
		}
		entry, waits, err := tx.Inbox().NextEntry(ctx, "0190c042-0000-7000-8000-000000000001")
		if err != nil || !waits || entry.In.Text != "why does it panic?" {
			t.Errorf("the turn that goes on: %+v, %v, %v", entry, waits, err)
		}
		return nil
	})
	if applied, err := b.Migrate(ctx); err != nil || len(applied) != 0 {
		t.Errorf("a second time applies %v, %v", applied, err)
	}
}

// countRows counts what is in every table of ours.
func countRows(t *testing.T, b bundle) map[string]int {
	rows := map[string]int{}
	b.do(t, func(ctx context.Context, tx *store.Tx) error {
		tables, err := store.Tables(ctx, tx)
		if err != nil {
			return err
		}
		for table := range tables {
			if strings.HasPrefix(table, "river_") || strings.HasPrefix(table, "goose_") {
				continue
			}
			if rows[table], err = store.Count(ctx, tx, `SELECT count(*) FROM "`+table+`"`); err != nil {
				return err
			}
		}
		return nil
	})
	return rows
}

// A later version fails at its second step. Nothing of its first one is kept, so that
// this version still starts.
func TestAFailedMigrationLeavesTheEarlierVersionStartable(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, b bundle) {
		ctx := t.Context()
		if _, err := b.Migrate(ctx); err != nil {
			t.Fatal(err)
		}
		store.AddMigrations(b.Store, map[string]string{
			"90001_first.sql":  "-- +goose Up\nCREATE TABLE added (id INTEGER);\nINSERT INTO added VALUES (1);\n",
			"90002_second.sql": "-- +goose Up\nDROP TABLE usage_records;\nSELECT nonsense FROM nowhere;\n",
		})
		applied, err := b.Migrate(ctx)
		if err == nil || !strings.Contains(err.Error(), "90002") || len(applied) != 0 {
			t.Fatalf("applied %v, %v; want an error that names the step", applied, err)
		}
		store.AddMigrations(b.Store, nil)
		if applied, err := b.Migrate(ctx); err != nil || len(applied) != 0 {
			t.Errorf("the earlier version: applied %v, %v", applied, err)
		}
		rows := countRows(t, b)
		if _, kept := rows["added"]; kept {
			t.Error("the first step was kept")
		}
		if _, there := rows["usage_records"]; !there {
			t.Error("what the failed step had dropped is gone")
		}
		store.AddMigrations(b.Store, map[string]string{
			"90001_first.sql": "-- +goose Up\nCREATE TABLE added (id INTEGER);\n",
		})
		if applied, err := b.Migrate(ctx); err != nil || len(applied) != 1 {
			t.Errorf("the corrected version: applied %v, %v", applied, err)
		}
	})
}
