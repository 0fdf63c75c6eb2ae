package store_test

import (
	"context"
	"strings"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/store"
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
