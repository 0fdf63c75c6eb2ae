package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/commit"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

// Apply makes changes to a conversation as whoever holds its lease; if nobody does, under
// one of its own, which it gives back.
func Apply(ctx context.Context, tx *store.Tx, conversationID string, changes commit.Changes) error {
	c, err := tx.Conversations().Conversation(ctx, conversationID)
	if err != nil {
		return err
	}
	l := sessions.Lease{ConversationID: c.ID, Owner: c.Owner, Epoch: c.Epoch}
	if !c.Leased {
		var ok bool
		if l, _, ok, err = tx.Leases().ClaimLease(ctx, c.ID, "a test", time.Minute); err != nil || !ok {
			return fmt.Errorf("no lease, %t: %w", ok, err)
		}
		changes.Release = &commit.Release{Anyway: true}
	}
	_, err = tx.Leases().Apply(ctx, l, changes)
	return err
}

// Calls puts calls of tools on record as they are, whatever the messages say. The one with a
// MessageSeq belongs to the first row of that message.
func Calls(ctx context.Context, tx *store.Tx, calls ...sessions.ToolCall) error {
	for _, c := range calls {
		var executing, completed any
		switch c.Status {
		case sessions.ToolCompleted, sessions.ToolFailed:
			completed = time.Now().Unix()
			fallthrough
		case sessions.ToolExecuting:
			executing = time.Now().UnixMilli()
		case sessions.ToolPending, "":
			c.Status = sessions.ToolPending
		}
		null := func(s string) any { return sql.NullString{String: s, Valid: s != ""} }
		err := Exec(ctx, tx, `
			INSERT INTO agent_tool_calls (session_id, message_id, tool_call_id, tool_name, request, status, response, error_details,
				created_at, executing_ms, completed_at, execution_time_ms)
			VALUES ($1, (SELECT id FROM agent_messages WHERE session_id = $1 AND seq = $2 AND part = 0), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
			c.SessionID, c.MessageSeq, c.CallID, c.Name, c.Request, string(c.Status), null(c.Response), null(c.Error),
			time.Now().Unix(), executing, completed, sql.NullInt64{Valid: completed != nil})
		if err != nil {
			return fmt.Errorf("put a call on record: %w", err)
		}
	}
	return nil
}

// Exec runs a statement in the transaction of tx.
func Exec(ctx context.Context, tx *store.Tx, query string, args ...any) error {
	switch h := tx.Handle().(type) {
	case *sql.Tx:
		_, err := h.ExecContext(ctx, query, args...)
		return err
	case pgx.Tx:
		_, err := h.Exec(ctx, query, args...)
		return err
	default:
		return fmt.Errorf("no database of ours: %T", h)
	}
}
