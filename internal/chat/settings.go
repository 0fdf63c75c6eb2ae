package chat

import (
	"context"

	"remote-agent/internal/approval"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// askedBy names the person whose turn asks for an approval.
func askedBy(ctx context.Context, tx *store.Tx, a approval.Approval) (string, error) {
	if a.EntryID != "" {
		e, err := tx.Inbox().Entry(ctx, a.EntryID)
		if err == nil && e.In.Actor() == a.Requester {
			return wording.Who(e.In.Sender.Name, a.Requester), nil
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return "", err
		}
	}
	return sessions.NameOf(ctx, tx.People(), a.Requester)
}

// choose changes the settings of a conversation and audits it.
func choose(ctx context.Context, storage Storage, r command.Request, what, value string, change func(s *sessions.Settings)) error {
	return storage.InTx(ctx, func(tx *store.Tx) error {
		conv, _, err := tx.Conversations().GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant) // locks it
		if err != nil {
			return err
		}
		next := conv.Settings
		change(&next)
		if err := tx.Conversations().UpdateConversation(ctx, conv.ID, sessions.ConversationUpdate{Settings: &next}); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{
			Actor: r.Actor(), Action: "settings." + what, ConversationID: conv.ID, Target: value,
		})
	})
}
