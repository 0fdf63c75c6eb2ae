//nolint:thelper // each runs tests, not helpers: Helper would hide the line that failed
package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/apikey"
	"remote-agent/internal/fault"
	"remote-agent/internal/store"
)

func newKey(t *testing.T, name string, life time.Duration, at time.Time) (apikey.Key, string) {
	t.Helper()
	k, token, err := apikey.New(name, []apikey.Scope{apikey.SessionsRead, apikey.MemoriesWrite}, life, at)
	if err != nil {
		t.Fatal(err)
	}
	return k, token
}

func TestAPIKeysAreKeptRevokedAndNeverRevived(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		at := time.Date(2026, 11, 21, 12, 34, 56, 0, time.UTC)
		first, token := newKey(t, "ci", time.Hour, at)
		again, _ := newKey(t, "ci", 0, at.Add(time.Second))
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if has, err := tx.SignIn().HasAPIKeys(ctx); has || err != nil {
				t.Errorf("at first there are keys: %v %v", has, err)
			}
			return tx.SignIn().InsertAPIKey(ctx, first)
		})
		wantKind(t, b.try(t, func(ctx context.Context, tx *store.Tx) error { return tx.SignIn().InsertAPIKey(ctx, again) }), fault.Conflict)
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.SignIn().APIKey(ctx, first.ID)
			if diff := cmp.Diff(first, got); diff != "" {
				t.Errorf("the key (-want +got):\n%s", diff)
			}
			if !got.Matches(token) {
				t.Error("the token does not match what was stored")
			}
			return err
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			if _, done, err := tx.SignIn().RevokeAPIKey(ctx, first.ID); !done || err != nil {
				t.Errorf("revoke: %v %v", done, err)
			}
			k, done, err := tx.SignIn().RevokeAPIKey(ctx, first.ID)
			if done || k.State(at) != apikey.Revoked {
				t.Errorf("revoking again: %v %+v", done, k)
			}
			if err != nil {
				return err
			}
			return tx.SignIn().InsertAPIKey(ctx, again)
		})
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			list, err := tx.SignIn().APIKeys(ctx)
			if len(list) != 2 || list[0].ID != again.ID || list[1].ID != first.ID {
				t.Errorf("keys: %+v", list)
			}
			if has, err := tx.SignIn().HasAPIKeys(ctx); !has || err != nil {
				t.Errorf("there are keys: %v %v", has, err)
			}
			return err
		})
		err := b.try(t, func(ctx context.Context, tx *store.Tx) error {
			_, _, err := tx.SignIn().RevokeAPIKey(ctx, "aaaaaaaaaa")
			return err
		})
		wantKind(t, err, fault.NotFound)
	})
}

func TestTheUseOfAnAPIKeyGoesForwardOnly(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bundle) {
		at := time.Date(2026, 11, 21, 12, 34, 56, 0, time.UTC)
		k, _ := newKey(t, "ci", 0, at)
		b.do(t, func(ctx context.Context, tx *store.Tx) error { return tx.SignIn().InsertAPIKey(ctx, k) })
		for _, used := range []time.Time{at, at.Add(2 * time.Hour), at.Add(time.Hour)} {
			b.do(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.SignIn().TouchAPIKey(ctx, k.ID, apikey.UsedAt(used))
			})
		}
		b.do(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.SignIn().APIKey(ctx, k.ID)
			if want := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC); !got.LastUsedAt.Equal(want) {
				t.Errorf("last used %s, want %s", got.LastUsedAt, want)
			}
			return err
		})
	})
}
