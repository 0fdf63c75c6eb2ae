package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// TestMigrateRefusesAnotherProgramsDatabase: a program that counts its migrations in the
// table of the same name has its database left alone.
func TestMigrateRefusesAnotherProgramsDatabase(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, b bundle) {
		t.Helper()
		ctx := t.Context()
		if err := store.MigrateTo(ctx, b.Store, 1); err != nil {
			t.Fatal(err)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, `ALTER TABLE remote_agent_conversations RENAME TO theirs`)
		})
		applied, err := b.Migrate(ctx)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "belongs to another program") || len(applied) != 0 {
			t.Errorf("applied %v: %v", applied, err)
		}
		if v, err := b.SchemaVersion(ctx); err != nil || v != 1 {
			t.Errorf("the schema is of version %d, %v; want 1", v, err)
		}
	})
}

// TestAnUpgradeThatMeetsAFullDiskNamesItsStep: whoever reads the line knows what failed, and that
// the earlier version still starts.
func TestAnUpgradeThatMeetsAFullDiskNamesItsStep(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t)(t)
	const step = "-- +goose Up\nCREATE TABLE %[1]s (x BLOB);\nINSERT INTO %[1]s VALUES (zeroblob(%d));\n-- +goose Down\n"
	store.AddMigrations(s, map[string]string{
		"90001_small.sql": fmt.Sprintf(step, "small", 10), "90002_large.sql": fmt.Sprintf(step, "large", 9_000_000), "90003_last.sql": fmt.Sprintf(step, "last", 10)})
	if err := store.FillDisk(t.Context(), s, 20); err != nil {
		t.Fatal(err)
	}
	_, err := s.Migrate(t.Context())
	wantKind(t, err, fault.Disk)
	for _, want := range []string{"failed at step 90002_large: the disk is full", "Nothing of it was kept"} {
		if text := s.Explain(err).Error(); !strings.Contains(text, want) || !strings.Contains(fault.Public(err), want) {
			t.Errorf("an operator reads %q, want %q", text, want)
		}
	}
	if version, err := s.SchemaVersion(t.Context()); err != nil || version != store.LatestSchema() {
		t.Errorf("the schema has version %d: %v", version, err)
	}
}
