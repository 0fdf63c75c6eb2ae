package store

import (
	"context"
	"fmt"

	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
)

// The session of a checkpoint may be deleted: it leads to the files then.
const lastCheckpointSQL = `
	SELECT e.id, e.conversation_id, (SELECT s.id FROM remote_agent_sessions s WHERE s.id = e.session_id), e.checkpoint_seq, e.checkpoint_ref
	FROM inbound_events e
	WHERE e.conversation_id = $1 AND e.seq > 0 AND e.checkpoint_seq IS NOT NULL AND NOT e.checkpoint_undone
	ORDER BY e.seq DESC LIMIT 1`

// LastCheckpoint returns the newest checkpoint of a conversation, by the order of
// its inbox, that was not undone; ok is false if there is none.
func (t *Messages) LastCheckpoint(ctx context.Context, conversationID string) (c sessions.Checkpoint, ok bool, err error) {
	ok, err = t.tx.one(ctx, []any{
		text{&c.EntryID}, text{&c.ConversationID}, text{&c.SessionID}, &c.Seq, text{&c.Ref},
	}, lastCheckpointSQL, conversationID)
	return c, ok, wrap(err, "read last checkpoint")
}

// UndoTurn marks a checkpoint, by its entry, as undone and takes the messages of
// its session from its sequence number on out of the message array: they stay
// stored and are left out of MessagesBefore and RunMessages. It returns how many
// there were, system ones not counted. Of two callers at once one gets a
// fault.Conflict: a turn is undone once.
func (t *Messages) UndoTurn(ctx context.Context, c sessions.Checkpoint) (int, error) {
	var session string
	var seq int64
	ok, err := t.tx.one(ctx, []any{text{&session}, &seq}, `
		UPDATE inbound_events SET checkpoint_undone = true
		WHERE id = $1 AND checkpoint_seq IS NOT NULL AND NOT checkpoint_undone
		RETURNING session_id, checkpoint_seq`, c.EntryID)
	if err != nil {
		return 0, fmt.Errorf("undo checkpoint: %w", err)
	}
	if !ok {
		if err := t.tx.require(ctx, "checkpoint", `SELECT 1 FROM inbound_events WHERE id = $1 AND checkpoint_seq IS NOT NULL`, c.EntryID); err != nil {
			return 0, err
		}
		return 0, fault.New(fault.Conflict, "That turn was already undone.")
	}
	var n int
	if _, err := t.tx.one(ctx, []any{&n}, `
		SELECT count(*) FROM agent_messages
		WHERE session_id = $1 AND seq >= $2 AND part = 0 AND role <> 'system' AND NOT undone`,
		orNull(session), seq); err != nil {
		return 0, fmt.Errorf("count undone messages: %w", err)
	}
	return n, t.WithdrawMessages(ctx, session, seq)
}

// WithdrawMessages implements sessions.MessageStore.
func (t *Messages) WithdrawMessages(ctx context.Context, session string, seq int64) error {
	return t.tx.run(ctx, "undo messages", `
		UPDATE agent_messages SET undone = true WHERE session_id = $1 AND seq >= $2 AND NOT undone`,
		orNull(session), seq)
}
