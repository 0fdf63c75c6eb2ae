//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

// TestFullDiskLosesNothingThatWasConfirmed lets the disk run full under callers
// that share commits: whoever was told of success is stored, nobody else is, and
// the store works again when there is room.
func TestFullDiskLosesNothingThatWasConfirmed(t *testing.T) {
	t.Parallel()
	b := bundleOf(t)
	if err := store.LimitPages(t.Context(), b.Store, 40); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	confirmed := map[string]bool{}
	errs := together(40, func(i int) error {
		id := fmt.Sprint(i)
		err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
			c, _, err := tx.Conversations().GetOrCreateConversation(ctx, key(id), "demo")
			if err != nil || i%2 == 0 {
				return err
			}
			return tx.Deliveries().AddDelivery(ctx, &messages.Delivery{ConversationID: c.ID, Text: strings.Repeat("y", 60_000)})
		})
		if err == nil {
			mu.Lock()
			confirmed[id] = true
			mu.Unlock()
		}
		return err
	})
	if len(errs) == 0 {
		t.Fatal("the disk never ran full")
	}
	for _, err := range errs {
		if !fault.Is(err, fault.Disk) && !fault.Is(err, fault.Unavailable) { // the latter: it shared the commit
			t.Errorf("%v is %s", err, fault.KindOf(err))
		}
	}
	if !slices.ContainsFunc(errs, func(err error) bool { return fault.Is(err, fault.Disk) }) {
		t.Errorf("nobody was told that the disk is full: %v", errs)
	}
	if err := store.LimitPages(t.Context(), b.Store, 1_000_000); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Conversations().FindConversation(ctx, key(fmt.Sprint(i)))
			if stored := err == nil; stored != confirmed[fmt.Sprint(i)] {
				t.Errorf("caller %d: stored %v, told of success %v", i, stored, !stored)
			}
			return nil
		})
	}
	b.conversation(t, "afterwards")
}

func TestBrokenTransactionsAreTriedAgainOnPostgres(t *testing.T) {
	t.Parallel()
	b := bundle{storetest.Postgres(t)(t)}
	for code, wantRuns := range map[string]int{"40001": 3, "40P01": 3, "23514": 1} {
		runs := 0
		err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
			if runs++; runs < 3 {
				return store.Exec(ctx, tx, `DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '`+code+`'; END $$`)
			}
			return nil
		})
		if runs != wantRuns || (err == nil) != (wantRuns == 3) {
			t.Errorf("%s: run %d times, %v; want %d", code, runs, err, wantRuns)
		}
	}
}

func TestLostConnectionIsUnavailableAndTheNextOneWorks(t *testing.T) {
	t.Parallel()
	b := bundle{storetest.Postgres(t)(t)}
	err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
		return store.Exec(ctx, tx, `SELECT pg_terminate_backend(pg_backend_pid())`)
	})
	wantKind(t, err, fault.Unavailable)
	b.conversation(t, "afterwards")
}

func TestConstraintsHaveKinds(t *testing.T) {
	t.Parallel()
	const none = "01900000-0000-7000-8000-000000000000"
	statements := map[string]struct {
		sql  string
		kind fault.Kind
	}{
		"unique": {`INSERT INTO named_leases (name, owner, lease_until) VALUES ('a', 'b', 1)`, fault.Conflict},
		"check":  {`INSERT INTO identities (platform_type, user_id, role, created_ms) VALUES ('t', 'u', 'king', 1)`, fault.Invalid},
		"null":   {`INSERT INTO named_leases (name, owner, lease_until) VALUES ('c', NULL, 1)`, fault.Invalid},
		"foreign key": {`
			INSERT INTO deliveries (id, conversation_id, seq, created_ms) VALUES ('d', '` + none + `', 1, 1)`, fault.NotFound},
		"json":   {`INSERT INTO remote_agent_codebases (name, default_cwd, commands) VALUES ('a', 'b', '{')`, fault.Invalid},
		"status": {`UPDATE remote_agent_sessions SET status = 'odd'`, fault.Invalid},
		"syntax": {`SELEKT 1`, fault.Internal},
	}
	each(t, func(t *testing.T, b bundle) {
		b.session(t, b.conversation(t, "chat").ID)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return store.Exec(ctx, tx, statements["unique"].sql)
		})
		for name, s := range statements {
			err := b.try(t, func(ctx context.Context, tx *store.Tx) error { return store.Exec(ctx, tx, s.sql) })
			if !fault.Is(err, s.kind) {
				t.Errorf("%s: %v is %s, want %s", name, err, fault.KindOf(err), s.kind)
			}
		}
	})
}

// TestDefaultsAreThoseOfTheSeeds inserts rows as a person with a shell would.
func TestDefaultsAreThoseOfTheSeeds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for _, statement := range []string{
				`INSERT INTO remote_agent_codebases (name, default_cwd) VALUES ('app', '/w')`,
				`INSERT INTO remote_agent_conversations (platform_type, platform_conversation_id, codebase_id)
					SELECT 'telegram', '1', id FROM remote_agent_codebases`,
				`INSERT INTO remote_agent_sessions (conversation_id, ai_assistant_type)
					SELECT id, ai_assistant_type FROM remote_agent_conversations`,
			} {
				if err := store.Exec(ctx, tx, statement); err != nil {
					return err
				}
			}
			c, err := tx.Conversations().FindConversation(ctx, messages.ConversationKey{Platform: "telegram", ID: "1"})
			if err != nil {
				return err
			}
			code, err := tx.Registry().Codebase(ctx, c.CodebaseID)
			if err != nil {
				return err
			}
			s, ok, err := tx.Sessions().ActiveSession(ctx, c.ID)
			if !ok || c.Assistant != "claude" || code.Assistant != "claude" || len(s.Metadata) != 0 ||
				s.Status != "running" || s.StartedAt.IsZero() || c.CreatedAt.IsZero() || len(c.ID) != 36 {
				t.Errorf("defaults: %+v, %+v, %+v", code, c, s)
			}
			return err
		})
	})
}
