package store_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/messages"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// TestTheWriteAheadLogShrinks lets the log grow under a reader, which keeps it from
// being brought into the database.
func TestTheWriteAheadLogShrinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := storetest.Open(t, store.Options{DataDir: dir, Exclusive: true})
	b := bundle{s}
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, "bot.db-wal"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	session := b.session(t, b.conversation(t, "1").ID)
	err := s.InRead(t.Context(), func(tx *store.Tx) error {
		if _, _, err := tx.Sessions().ActiveSession(t.Context(), session.ConversationID); err != nil {
			return err
		}
		for range 12 {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Messages().AppendMessages(ctx, session.ID, "", messages.NewText(messages.RoleUser, strings.Repeat("x", 1<<20)))
				return err
			})
		}
		if s.EmptyLog() || size() < 12<<20 {
			t.Errorf("the log has %d bytes under a reader, and all of it is in the database", size())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !s.EmptyLog() || size() != 0 {
		t.Errorf("the log still has %d bytes", size())
	}
	b.conversation(t, "2") // it can still be written
}
