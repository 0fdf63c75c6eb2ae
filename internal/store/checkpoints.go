package store

import (
	"context"
	"fmt"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
)

// SaveCheckpoint records the state before the turn of an entry: a git ref, and
// where the session stood. A turn that is begun again (after a crash, or a fault
// that passes) saves another one: the files before its first beginning are what
// counts, so the first ref is kept, and the first place in the session unless
// the turn now runs in another session. An unknown entry or conversation is a
// fault.NotFound, on PostgreSQL of what comes next in the transaction.
func (t *Tx) SaveCheckpoint(ctx context.Context, c sessions.Checkpoint) error {
	if c.CreatedAt.IsZero() {
		c.CreatedAt = time.Now()
	}
	err := t.later(ctx, `
		INSERT INTO checkpoints (event_id, conversation_id, session_id, inbox_seq, seq, ref, created_ms)
		VALUES ($1, $2, $3, COALESCE((SELECT e.seq FROM inbound_events e WHERE e.id = $1), 0), $4, $5, $6)
		ON CONFLICT (event_id) DO UPDATE SET
			ref = CASE WHEN checkpoints.ref = '' THEN excluded.ref ELSE checkpoints.ref END,
			seq = CASE WHEN checkpoints.session_id = excluded.session_id THEN checkpoints.seq ELSE excluded.seq END,
			session_id = excluded.session_id`,
		c.EntryID, c.ConversationID, orNull(c.SessionID), c.Seq, c.Ref, millis(c.CreatedAt))
	return wrap(err, "save checkpoint")
}

const lastCheckpointSQL = `
	SELECT event_id, conversation_id, session_id, seq, ref, created_ms FROM checkpoints
	WHERE conversation_id = $1 AND NOT undone
	ORDER BY inbox_seq DESC LIMIT 1`

// LastCheckpoint returns the newest checkpoint of a conversation, by the order of
// its inbox, that was not undone; ok is false if there is none.
func (t *Tx) LastCheckpoint(ctx context.Context, conversationID string) (c sessions.Checkpoint, ok bool, err error) {
	ok, err = t.one(ctx, []any{
		text{&c.EntryID}, text{&c.ConversationID}, text{&c.SessionID}, &c.Seq, &c.Ref, msTime{&c.CreatedAt},
	}, lastCheckpointSQL, conversationID)
	return c, ok, wrap(err, "read last checkpoint")
}

// UndoTurn marks a checkpoint, by its entry, as undone and takes the messages of
// its session from its sequence number on out of the message array: they stay
// stored and are left out of MessagesBefore and RunMessages. It returns how many
// there were, system ones not counted. Of two callers at once one gets a
// fault.Conflict: a turn is undone once.
func (t *Tx) UndoTurn(ctx context.Context, c sessions.Checkpoint) (int, error) {
	var session string
	var seq int64
	ok, err := t.one(ctx, []any{text{&session}, &seq}, `
		UPDATE checkpoints SET undone = true WHERE event_id = $1 AND NOT undone
		RETURNING session_id, seq`, c.EntryID)
	if err != nil {
		return 0, fmt.Errorf("undo checkpoint: %w", err)
	}
	if !ok {
		var one int
		ok, err := t.one(ctx, []any{&one}, `SELECT 1 FROM checkpoints WHERE event_id = $1`, c.EntryID)
		if _, err := found(one, ok, err, "checkpoint"); err != nil {
			return 0, err
		}
		return 0, fault.New(fault.Conflict, "That turn was already undone.")
	}
	var n int
	if _, err := t.one(ctx, []any{&n}, `
		SELECT count(*) FROM agent_messages
		WHERE session_id = $1 AND seq >= $2 AND part = 0 AND role <> 'system' AND NOT undone`,
		orNull(session), seq); err != nil {
		return 0, fmt.Errorf("count undone messages: %w", err)
	}
	return n, t.WithdrawMessages(ctx, session, seq)
}

// WithdrawMessages takes the messages of a session from a sequence number on out of the
// message array: they stay stored and are left out of MessagesBefore and RunMessages.
// Once more it changes nothing.
func (t *Tx) WithdrawMessages(ctx context.Context, session string, seq int64) error {
	_, err := t.exec(ctx, `
		UPDATE agent_messages SET undone = true WHERE session_id = $1 AND seq >= $2 AND NOT undone`,
		orNull(session), seq)
	return wrap(err, "undo messages")
}
