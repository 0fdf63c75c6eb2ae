package chat

import (
	"context"

	"remote-agent/internal/command"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// choose changes the settings of a conversation and audits it.
func (h *Handler) choose(ctx context.Context, r command.Request, what, value string, change func(s *sessions.Settings)) error {
	return h.store.InTx(ctx, func(tx *store.Tx) error {
		conv, _, err := tx.GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant) // locks it
		if err != nil {
			return err
		}
		next := conv.Settings
		change(&next)
		if err := tx.UpdateConversation(ctx, conv.ID, sessions.ConversationUpdate{Settings: &next}); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{
			Actor: r.Actor(), Action: "settings." + what, ConversationID: conv.ID, Target: value,
		})
	})
}
