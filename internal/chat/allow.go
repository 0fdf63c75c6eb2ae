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

func (de *decisions) allowCommand() *command.Command {
	return &command.Command{
		Name:    "allow",
		Usage:   "allow [revoke n]",
		Summary: "list or revoke always-allow rules",
		Example: "allow revoke 2",
		Run:     de.runAllow,
	}
}

// runAllow lists and revokes what is always allowed in the codebase.
func (de *decisions) runAllow(ctx context.Context, r command.Request) (command.Reply, error) {
	if r.Conv.CodebaseID == "" {
		return command.Reply{Text: "There is no repository here, so there are no always-allow rules."}, nil
	}
	if len(r.Call.Args) == 2 && strings.EqualFold(r.Call.Args[0], "revoke") {
		id, err := strconv.ParseInt(r.Call.Args[1], 10, 64)
		if err != nil {
			return command.Reply{}, fault.New(fault.Invalid, "Specify a rule by number: `/allow revoke 3`.")
		}
		err = de.store.InTx(ctx, func(tx *store.Tx) error {
			if err := tx.Questions().DeleteRule(ctx, r.Conv.CodebaseID, id); err != nil {
				return err
			}
			return tx.Audit(ctx, sessions.AuditEntry{Actor: r.Actor(), Action: "allow.revoke", ConversationID: r.Conv.ID, Target: r.Call.Args[1]})
		})
		if fault.Is(err, fault.NotFound) {
			return command.Reply{}, fault.Newf(fault.NotFound, "There is no rule %d here. `/allow` lists them.", id)
		}
		return command.Reply{Text: fmt.Sprintf("Rule %d is revoked. This needs approval again.", id)}, err
	}
	if len(r.Call.Args) > 0 {
		return command.Reply{}, fault.New(fault.Invalid, "`/allow` lists the always-allow rules, `/allow revoke 3` removes one. To add one, use the button under an approval.")
	}
	rules, err := store.Within(ctx, de.store.InRead, func(tx *store.Tx) ([]approval.Rule, error) {
		rules, err := tx.Questions().Rules(ctx, r.Conv.CodebaseID)
		for i := range rules {
			if err == nil {
				rules[i].CreatedBy, err = sessions.NameOf(ctx, tx.People(), rules[i].CreatedBy)
			}
		}
		return rules, err
	})
	if err != nil || len(rules) == 0 {
		return command.Reply{Text: "No always-allow rules here yet."}, err
	}
	var b strings.Builder
	b.WriteString("Always allowed here:\n\n")
	for _, rule := range rules {
		fmt.Fprintf(&b, "- %d: %s `%s` (by %s)\n", rule.ID, rule.Tool, strings.ReplaceAll(rule.Rule, "`", "'"), rule.CreatedBy)
	}
	fmt.Fprintf(&b, "\n`%sallow revoke <number>` removes one.", de.prefix(r.Conv.Key))
	return command.Reply{Text: b.String()}, nil
}
