package chat

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

func (h *Handler) allowCommand() command.Command {
	return command.Command{
		Name:    "allow",
		Usage:   "allow [revoke n]",
		Summary: "what is always allowed in this codebase",
		Example: "allow revoke 2",
		Run:     h.runAllow,
	}
}

// runAllow lists and revokes what is always allowed in the codebase.
func (h *Handler) runAllow(ctx context.Context, r command.Request) (command.Reply, error) {
	if r.Conv.CodebaseID == "" {
		return command.Reply{Text: "There is no codebase here, so nothing is always allowed."}, nil
	}
	if len(r.Call.Args) == 2 && strings.EqualFold(r.Call.Args[0], "revoke") {
		id, err := strconv.ParseInt(r.Call.Args[1], 10, 64)
		if err != nil {
			return command.Reply{}, fault.New(fault.Invalid, "Say which by its number: `/allow revoke 3`.")
		}
		err = h.store.InTx(ctx, func(tx *store.Tx) error {
			if err := tx.DeleteRule(ctx, r.Conv.CodebaseID, id); err != nil {
				return err
			}
			return tx.Audit(ctx, sessions.AuditEntry{Actor: r.Actor(), Action: "allow.revoke", ConversationID: r.Conv.ID, Target: r.Call.Args[1]})
		})
		if fault.Is(err, fault.NotFound) {
			return command.Reply{}, fault.Newf(fault.NotFound, "There is no rule %d in this codebase. `/allow` lists them.", id)
		}
		return command.Reply{Text: fmt.Sprintf("Rule %d is revoked: the next time I ask again.", id)}, err
	}
	if len(r.Call.Args) > 0 {
		return command.Reply{}, fault.New(fault.Invalid, "`/allow` lists what is always allowed, `/allow revoke 3` takes one back. New ones come from the button under a question.")
	}
	var rules []approval.Rule
	err := h.store.InRead(ctx, func(tx *store.Tx) error {
		var err error
		rules, err = tx.Rules(ctx, r.Conv.CodebaseID)
		return err
	})
	if err != nil || len(rules) == 0 {
		return command.Reply{Text: "Nothing is always allowed in this codebase."}, err
	}
	var b strings.Builder
	b.WriteString("Always allowed in this codebase:\n\n")
	for _, rule := range rules {
		fmt.Fprintf(&b, "- %d: %s `%s` (by %s)\n", rule.ID, rule.Tool, strings.ReplaceAll(rule.Rule, "`", "'"), rule.CreatedBy)
	}
	fmt.Fprintf(&b, "\n`%sallow revoke <number>` takes one back.", h.prefix(r.Conv.Key))
	return command.Reply{Text: b.String()}, nil
}
