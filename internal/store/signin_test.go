//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/fault"
	"remote-agent/internal/signin"
	"remote-agent/internal/store"
)

func TestSignInLinksWorkOnceAndForAWhile(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		at := time.Date(2026, 11, 21, 12, 34, 56, 0, time.UTC)
		ann := signin.Account{Platform: "telegram", ID: "42"}
		link, token := signin.NewLink(ann, at)
		late, lateToken := signin.NewLink(ann, at)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.SignIn().SaveSignInLink(ctx, link, at); err != nil {
				return err
			}
			return tx.SignIn().SaveSignInLink(ctx, late, at)
		})
		take := func(token string, at time.Time) (got signin.Link, ok bool) {
			b.do(t, func(ctx context.Context, tx *store.Tx) (err error) {
				got, ok, err = tx.SignIn().TakeSignInLink(ctx, signin.Hash(token), at)
				return err
			})
			return got, ok
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, ok, err := tx.SignIn().SignInLink(ctx, signin.Hash(token), at)
			if diff := cmp.Diff(link, got); diff != "" || !ok {
				t.Errorf("looking at a link (-want +got), %t:\n%s", ok, diff)
			}
			return err
		})
		if got, ok := take(token, at.Add(signin.LinkLife-time.Millisecond)); !ok || got.Account != ann {
			t.Errorf("a link that is good: %v %+v", ok, got)
		}
		if _, ok := take(token, at); ok {
			t.Error("a link works twice")
		}
		if _, ok := take(lateToken, at.Add(signin.LinkLife)); ok {
			t.Error("a link works after its time")
		}
		if _, ok := take("another", at); ok {
			t.Error("a link that nobody made works")
		}
	})
}

func TestSessionsOfBrowsers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		at := time.Date(2026, 11, 21, 12, 34, 56, 0, time.UTC)
		ann, bob := signin.Account{Platform: "telegram", ID: "42"}, signin.Account{Platform: "slack", ID: "T1/U7"}
		first, token := signin.NewSession(ann, "Firefox\xff", at, signin.SessionLife)
		second, _ := signin.NewSession(bob, "Chromium", at.Add(time.Minute), signin.SessionLife)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.SignIn().InsertWebSession(ctx, first); err != nil {
				return err
			}
			if err := tx.SignIn().InsertWebSession(ctx, second); err != nil {
				return err
			}
			got, err := tx.SignIn().WebSession(ctx, signin.Hash(token))
			if diff := cmp.Diff(first, got); diff != "" {
				t.Errorf("a session (-want +got):\n%s", diff)
			}
			return err
		})
		list := func(of signin.Account, at time.Time) (ids []string) {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				ids = nil
				all, err := tx.SignIn().WebSessions(ctx, of, at, 0, 9)
				for _, s := range all {
					ids = append(ids, s.ID)
				}
				return err
			})
			return ids
		}
		if diff := cmp.Diff([]string{second.ID, first.ID}, list(signin.Account{}, at)); diff != "" {
			t.Errorf("all sessions (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{first.ID}, list(ann, at)); diff != "" {
			t.Errorf("those of one account (-want +got):\n%s", diff)
		}
		later := at.Add(signin.Idle)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.SignIn().TouchWebSession(ctx, first.ID, later); err != nil {
				return err
			}
			if err := tx.SignIn().TouchWebSession(ctx, first.ID, at); err != nil { // never back
				return err
			}
			got, err := tx.SignIn().WebSession(ctx, signin.Hash(token))
			if !got.LastUsedAt.Equal(later) || !got.Live(later) {
				t.Errorf("last used %s", got.LastUsedAt)
			}
			return err
		})
		if diff := cmp.Diff([]string{first.ID}, list(signin.Account{}, later.Add(time.Minute))); diff != "" {
			t.Errorf("those that are used (-want +got):\n%s", diff)
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			for i, want := range []bool{true, false} {
				if s, done, err := tx.SignIn().RevokeWebSession(ctx, first.ID); err != nil || done != want || s.Live(at) || s.Account != ann {
					t.Errorf("revoking %d: %v %v %+v", i, done, err, s)
				}
			}
			return nil
		})
		if got := list(ann, at); got != nil {
			t.Errorf("after it was revoked: %v", got)
		}
		wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
			_, _, err := tx.SignIn().RevokeWebSession(ctx, "nobody")
			return err
		}), fault.NotFound)
		wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.SignIn().WebSession(ctx, signin.Hash("wrong"))
			return err
		}), fault.NotFound)
	})
}
