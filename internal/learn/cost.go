package learn

import (
	"context"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/sessions"
	"remote-agent/internal/spend"
)

func (a answer) costs() bool {
	return a.usage.InputTokens+a.usage.OutputTokens > 0 || a.usage.CostUSD > 0
}

// record is what an answer cost, for whom.
func (a answer) record(m assistant.Model, conv sessions.Conversation, entry sessions.Entry, account string, now time.Time) spend.Record {
	return spend.Priced(spend.Record{
		EntryID: entry.ID, ConversationID: conv.ID, SessionID: entry.SessionID, CodebaseID: conv.CodebaseID,
		Actor: account, Assistant: string(m.Name()), Model: a.model, Usage: a.usage, At: now,
	})
}

// charge records what an answer cost.
func (l *Learner) charge(ctx context.Context, tx Tx, j job, a answer) error {
	if !a.costs() {
		return nil
	}
	return tx.AddUsage(ctx, a.record(l.config.Model, j.conv, j.entries[0], j.account, l.config.Now()))
}
