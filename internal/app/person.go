package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/platform/console"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// consoleAccount is the account of the person at the console.
const consoleAccount = string(console.Name) + "/" + string(console.Sender)

// parseAccount checks the name of an account that a person typed.
func parseAccount(named string) (string, error) {
	platform, id, _ := strings.Cut(named, "/")
	if platform == "" || id == "" || len(named) > 300 || strings.ContainsFunc(named, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return "", fault.Newf(fault.Invalid, "%q is not an account ID: use platform/id, such as telegram/42; /whoami shows it.", named)
	}
	return named, nil
}

// ShowPerson prints what is kept of the person of an account, in numbers: never
// what it says.
func ShowPerson(ctx context.Context, cfg config.Config, env Env, named string) error {
	account, err := parseAccount(named)
	if err != nil {
		return err
	}
	h, err := readStored(ctx, cfg, env, func(tx *store.Tx) (memory.Holdings, error) { return tx.Persons().Holdings(ctx, account) })
	if err == nil {
		sayHoldings(env, h)
	}
	return err
}

func sayHoldings(env Env, h memory.Holdings) {
	for _, a := range h.Accounts {
		since := ""
		if !a.LinkedAt.IsZero() {
			since = "  linked " + a.LinkedAt.Format("2006-01-02 15:04Z")
		}
		say(env.Stdout, "account   %s%s\n", a.Name, since)
	}
	state := "on"
	if !h.On {
		state = "off"
	}
	say(env.Stdout, "memory    %s: %s, %s, %s to learn from\n", state, count(h.Facts, "fact"), count(h.Episodes, "event"), count(h.Lessons, "message"))
	say(env.Stdout, "codes     %d to link another account\n", h.Codes)
	for _, id := range h.Chats {
		say(env.Stdout, "chat      in the browser: web/%s\n", id)
	}
}

// ForgetPerson deletes what ShowPerson counts, for all accounts of the person. It
// says what is kept for the record.
func ForgetPerson(ctx context.Context, cfg config.Config, env Env, named string) error {
	account, err := parseAccount(named)
	if err != nil {
		return err
	}
	if done, err := inDaemon(ctx, cfg, env, callForget, nameCall{account}); done {
		return err
	}
	return withExisting(ctx, cfg, env, true, func(s *store.Store) error {
		var h memory.Holdings
		err := s.InTx(ctx, func(tx *store.Tx) (err error) {
			if h, err = tx.Persons().ForgetPerson(ctx, account); err != nil {
				return err
			}
			detail, err := json.Marshal(map[string]any{"accounts": len(h.Accounts), "facts": h.Facts, "episodes": h.Episodes})
			if err != nil {
				return fmt.Errorf("encode the audit entry: %w", err)
			}
			return tx.Audit(ctx, sessions.AuditEntry{Actor: "cli", Action: "person.forget", Target: account, Detail: string(detail)})
		})
		if err != nil {
			return err
		}
		sayHoldings(env, h)
		say(env.Stdout, "deleted; memory is on and empty for these accounts\n"+
			"kept: conversations (bot sessions rm --conversation), usage totals, roles, and the audit log, which contains accounts but no memories\n")
		if slices.ContainsFunc(h.Accounts, func(a memory.Account) bool { return a.Name == consoleAccount }) {
			err = forgetTyped(cfg, env)
		}
		return errors.Join(finishErasing(ctx, cfg, env, s), err)
	})
}
