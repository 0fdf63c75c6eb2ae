//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

func TestRolesAreGivenTakenAndRemoved(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		ann := sessions.Identity{Platform: "test", UserID: "42", Name: "Ann", Role: sessions.Owner}
		look := func(tx *store.Tx, ctx context.Context) sessions.Access {
			a, err := tx.People().Access(ctx, "test", "42")
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if a := look(tx, ctx); a.Known || a.Role != "" || a.AccessSeq != 0 || a.Halted() {
				t.Errorf("at first: %+v", a)
			}
			if err := tx.People().SetRole(ctx, ann, sessions.GrantedByCLI, false); err != nil {
				return err
			}
			a := look(tx, ctx)
			if !a.Known || a.Role != sessions.Owner || a.GrantedBy != "cli" || a.Claimed() || a.AccessSeq != 1 || time.Since(a.GrantedAt) > time.Minute {
				t.Errorf("after the grant: %+v", a)
			}
			// A refusal that was begun before must not undo what happened since.
			late := sessions.Identity{Platform: "test", UserID: "42", Name: "Anna", Role: sessions.Stranger, RefusedAt: time.UnixMilli(7).UTC()}
			if err := tx.People().SaveIdentity(ctx, late); err != nil {
				return err
			}
			if a := look(tx, ctx); a.Role != sessions.Owner || a.Name != "Anna" || a.RefusedAt.IsZero() || a.GrantedBy != "cli" {
				t.Errorf("after a refusal was noted: %+v", a)
			}
			ann.Name = ""
			if err := tx.People().SetRole(ctx, ann, "telegram/1", true); err != nil {
				return err
			}
			a = look(tx, ctx)
			if a.Role != sessions.Stranger || a.RemovedAt.IsZero() || a.GrantedBy != "telegram/1" || a.AccessSeq != 2 || a.Name != "Anna" {
				t.Errorf("after the removal: %+v", a)
			}
			list, err := tx.People().Roles(ctx)
			if err != nil || len(list) != 1 || list[0].RemovedAt.IsZero() {
				t.Errorf("roles: %+v, %v", list, err)
			}
			if has, err := tx.People().HasOwner(ctx, "test"); has || err != nil {
				t.Errorf("somebody removed counts as owner: %v", err)
			}
			if err := tx.People().SetRole(ctx, sessions.Identity{Platform: "test", UserID: "42", Role: sessions.User}, "cli", false); err != nil {
				return err
			}
			if a := look(tx, ctx); a.Role != sessions.User || !a.RemovedAt.IsZero() {
				t.Errorf("let in again: %+v", a)
			}
			return nil
		})
		wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.People().SetRole(ctx, sessions.Identity{Platform: "test", Role: sessions.User}, "cli", false)
		}), fault.Invalid)
	})
}

func TestAHaltIsTakenOnceAndKeepsEntriesFromRinging(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		b.accept(t, "1", "e-1")
		work := func() (ids []string) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				ids, err = tx.Conversations().ConversationsWithWork(ctx, 10)
				return err
			})
			return ids
		}
		if got := work(); len(got) != 1 {
			t.Fatalf("work before the halt: %v", got)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for i, want := range []bool{true, false} {
				if done, err := tx.People().Halt(ctx, "cli", "fire"); done != want || err != nil {
					t.Errorf("halt %d: %v %v", i+1, done, err)
				}
			}
			s, err := tx.People().ServiceState(ctx)
			if !s.Halted() || s.HaltedBy != "cli" || s.HaltReason != "fire" || s.AccessSeq != 1 {
				t.Errorf("state: %+v", s)
			}
			return err
		})
		if got := work(); len(got) != 0 {
			t.Errorf("an entry rings while the service is halted: %v", got)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for i, want := range []bool{true, false} {
				if done, err := tx.People().Resume(ctx); done != want || err != nil {
					t.Errorf("resume %d: %v %v", i+1, done, err)
				}
			}
			return nil
		})
		if got := work(); len(got) != 1 {
			t.Errorf("work after the resume: %v", got)
		}
	})
}

// What waits for a decision in the name of somebody who was removed is looked at now, not
// when it expires.
func TestRemovingSomebodyWakesWhatWaitsInTheirName(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		later := time.Now().Add(time.Hour)
		theirs, others := b.accept(t, "one", "1"), b.accept(t, "two", "2")
		b.question(t, theirs)
		b.question(t, others, func(a *approval.Approval) { a.Requester = "test/43" })
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(
				tx.Inbox().UpdateEntry(ctx, theirs.ID, sessions.EntryUpdate{NextAt: &later}),
				tx.Inbox().UpdateEntry(ctx, others.ID, sessions.EntryUpdate{NextAt: &later}),
				tx.People().SetRole(ctx, sessions.Identity{Platform: "test", UserID: "42"}, "test/1", true))
		})
		for id, wakes := range map[string]bool{theirs.ID: true, others.ID: false} {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				e, err := tx.Inbox().Entry(ctx, id)
				if e.NextAt.IsZero() != wakes {
					t.Errorf("waits until %s, want it woken: %v", e.NextAt, wakes)
				}
				return err
			})
		}
	})
}
