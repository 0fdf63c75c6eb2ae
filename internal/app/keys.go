package app

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"remote-agent/docs"
	"remote-agent/internal/api"
	"remote-agent/internal/apikey"
	"remote-agent/internal/config"
	"remote-agent/internal/lists"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// newAPI returns the handler of the HTTP API; nil if it is switched off.
func newAPI(cfg config.Config, env Env, s *store.Store) http.Handler {
	if !cfg.API {
		return nil
	}
	return api.New(api.Config{Store: s, Version: env.Version, Document: docs.OpenAPI, Log: env.Log, Proxies: cfg.SignIn.Proxies})
}

// KeyRequest says which key to make.
type KeyRequest struct {
	Name   string
	Scopes []string
	Life   time.Duration // zero: it does not expire
}

// CreateKey makes a key of the HTTP API. The key is all that goes to env.Stdout,
// so that it can be sent into a file; what is to be said about it goes to
// env.Stderr. The daemon may run, and takes the key at once.
func CreateKey(ctx context.Context, cfg config.Config, env Env, r KeyRequest) error {
	scopes, err := apikey.ParseScopes(r.Scopes)
	if err != nil {
		return err
	}
	k, token, err := apikey.New(r.Name, scopes, r.Life, time.Now())
	if err != nil {
		return err
	}
	return withStore(ctx, cfg, env, false, func(s *store.Store) error {
		err := s.InTx(ctx, func(tx *store.Tx) error {
			if err := tx.SignIn().InsertAPIKey(ctx, k); err != nil {
				return err
			}
			return tx.Audit(ctx, auditKey("key.create", k))
		})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(env.Stdout, token); err != nil {
			return fmt.Errorf("print the key %s (nobody has seen it; revoke it): %w", k.ID, err)
		}
		say(env.Stderr, "Created API key %s (%s) for %s; it %s.\nIt is shown only once. Store it like a password.\n",
			k.ID, k.Name, scopeList(k.Scopes), expiry(k))
		if !cfg.API {
			say(env.Stderr, "API=off: set it to on to use the key.\n")
		}
		return nil
	})
}

func auditKey(action string, k apikey.Key) sessions.AuditEntry {
	return sessions.AuditEntry{Actor: "cli", Action: action, Target: k.ID, Detail: fmt.Sprintf(`{"name":%q,"scopes":%q}`, k.Name, scopeList(k.Scopes))}
}

func scopeList(scopes []apikey.Scope) string {
	return strings.Join(lists.Map(scopes, func(s apikey.Scope) string { return string(s) }), ",")
}

func expiry(k apikey.Key) string {
	if k.ExpiresAt.IsZero() {
		return "does not expire"
	}
	return "expires " + k.ExpiresAt.Format("2006-01-02 15:04Z")
}

// ListKeys prints the keys, the newest first.
func ListKeys(ctx context.Context, cfg config.Config, env Env) error {
	list, err := readStored(ctx, cfg, env, func(tx *store.Tx) ([]apikey.Key, error) { return tx.SignIn().APIKeys(ctx) })
	if err != nil {
		return err
	}
	if len(list) == 0 {
		say(env.Stdout, "no keys; create one with `bot key create`\n")
	}
	for _, k := range list {
		used := "never used"
		if !k.LastUsedAt.IsZero() {
			used = "last used in the hour of " + k.LastUsedAt.Format("2006-01-02 15:04Z")
		}
		say(env.Stdout, "%s  %-7s  %s  %s  created %s, %s, %s\n",
			k.ID, k.State(time.Now()), k.Name, scopeList(k.Scopes), k.CreatedAt.Format("2006-01-02"), expiry(k), used)
	}
	return nil
}

// RevokeKey ends a key for good, at once and also for a daemon that runs. Doing
// it again changes nothing.
func RevokeKey(ctx context.Context, cfg config.Config, env Env, named string) error {
	id, err := apikey.ParseID(named)
	if err != nil {
		return err
	}
	return withStore(ctx, cfg, env, false, func(s *store.Store) error {
		var k apikey.Key
		done := false
		err := s.InTx(ctx, func(tx *store.Tx) (err error) {
			if k, done, err = tx.SignIn().RevokeAPIKey(ctx, id); err != nil || !done {
				return err
			}
			return tx.Audit(ctx, auditKey("key.revoke", k))
		})
		if err != nil {
			return err
		}
		if !done {
			say(env.Stdout, "%s (%s) is already revoked\n", k.ID, k.Name)
			return nil
		}
		say(env.Stdout, "revoked %s (%s)\n", k.ID, k.Name)
		return nil
	})
}
