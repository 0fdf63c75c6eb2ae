package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

// InsertToolCall records a call in the given status (empty: pending). Some model
// servers count their calls from the start in every answer, so an id can come
// again: the earlier call, which has ended, keeps its row and gets its row's
// number behind its id. An id of a call that has not ended is a fault.Conflict.
func (t *Calls) InsertToolCall(ctx context.Context, c sessions.ToolCall) error {
	if c.Status == "" {
		c.Status = sessions.ToolPending
	}
	message, err := t.askingMessage(ctx, c)
	if err != nil {
		return err
	}
	if c.CreatedAt.IsZero() {
		c.CreatedAt = time.Now()
	}
	n, err := t.insertToolCall(ctx, c, message)
	if err == nil && n == 0 {
		var renamed int64
		renamed, err = t.tx.exec(ctx, `
			UPDATE agent_tool_calls SET tool_call_id = tool_call_id || '~' || CAST(id AS TEXT)
			WHERE session_id = $1 AND tool_call_id = $2 AND status IN ('completed', 'failed')`, c.SessionID, c.CallID)
		if err == nil && renamed > 0 {
			n, err = t.insertToolCall(ctx, c, message)
		}
	}
	if err == nil && n == 0 {
		return fault.New(fault.Conflict, "This tool call is recorded already.")
	}
	return wrap(err, "record tool call")
}

func (t *Calls) insertToolCall(ctx context.Context, c sessions.ToolCall, message any) (int64, error) {
	return t.tx.exec(ctx, `
		INSERT INTO agent_tool_calls (
			session_id, message_id, tool_call_id, tool_name, request, status, created_at, executing_ms)
		VALUES ($1, $2, $3, $4, $5, $6, $7, CASE WHEN $8 THEN {now} END)
		ON CONFLICT (session_id, tool_call_id) DO NOTHING`,
		c.SessionID, message, c.CallID, c.Name, c.Request, string(c.Status), c.CreatedAt.Unix(),
		c.Status == sessions.ToolExecuting)
}

// askingMessage returns the id of the row that holds the call: a message may ask
// for several, each in a row of its own. It is nil if the row is not there.
func (t *Calls) askingMessage(ctx context.Context, c sessions.ToolCall) (id any, err error) {
	if c.MessageSeq == 0 {
		return nil, nil
	}
	err = t.tx.each(ctx, func(scan func(...any) error) error {
		var row int64
		var kind, data string
		if err := scan(&row, &kind, text{&data}); err != nil {
			return err
		}
		var call struct {
			ID string `json:"tool_call_id"`
		}
		if kind == messages.RecordToolCall && json.Unmarshal([]byte(data), &call) == nil && call.ID == c.CallID {
			id = row
		} else if id == nil {
			id = row
		}
		return nil
	}, `SELECT id, kind, data_json FROM agent_messages WHERE session_id = $1 AND seq = $2 ORDER BY part`,
		c.SessionID, c.MessageSeq)
	return id, wrap(err, "find message of tool call")
}

// UpdateToolCall moves a call of a session to another status, with response or
// error; completed and failed ones get their completion time and duration. A
// call that has ended is not changed (fault.Conflict).
func (t *Calls) UpdateToolCall(
	ctx context.Context, sessionID, callID string, status sessions.ToolStatus, response, errText string,
) error {
	n, err := t.tx.exec(ctx, `
		UPDATE agent_tool_calls SET
			status = $3,
			response = COALESCE($4, response),
			error_details = COALESCE($5, error_details),
			executing_ms = CASE WHEN $6 THEN {now} ELSE executing_ms END,
			completed_at = CASE WHEN $7 THEN {now} / 1000 END,
			execution_time_ms = CASE WHEN $7 THEN {now} - executing_ms END
		WHERE session_id = $1 AND tool_call_id = $2 AND status IN ('pending', 'executing')`,
		sessionID, callID, string(status), orNull(response), orNull(t.tx.said(errText)),
		status == sessions.ToolExecuting, ended(status))
	if err != nil {
		return fmt.Errorf("update tool call: %w", err)
	}
	if n > 0 {
		return nil
	}
	if err := t.tx.require(ctx, "tool call", `
		SELECT 1 FROM agent_tool_calls WHERE session_id = $1 AND tool_call_id = $2`, sessionID, callID); err != nil {
		return err
	}
	return fault.New(fault.Conflict, "This tool call has ended already.")
}

// BeginToolCall moves a pending call of a session to executing and returns it, with
// what was asked for. begun is false if it was executing already; one that has ended
// is a fault.Conflict.
func (t *Calls) BeginToolCall(ctx context.Context, sessionID, callID string) (c sessions.ToolCall, begun bool, err error) {
	c = sessions.ToolCall{SessionID: sessionID, CallID: callID, Status: sessions.ToolExecuting}
	begun, err = t.tx.one(ctx, []any{&c.ID, &c.Name, &c.Request}, `
		UPDATE agent_tool_calls SET status = 'executing', executing_ms = {now}
		WHERE session_id = $1 AND tool_call_id = $2 AND status = 'pending'
		RETURNING id, tool_name, request`, sessionID, callID)
	if err != nil || begun {
		return c, begun, wrap(err, "begin tool call")
	}
	ok, err := t.tx.one(ctx, []any{&c.Status}, `
		SELECT status FROM agent_tool_calls WHERE session_id = $1 AND tool_call_id = $2`, sessionID, callID)
	if err := missing(ok, err, "tool call"); err != nil {
		return c, false, err
	}
	if ended(c.Status) {
		return c, false, fault.New(fault.Conflict, "This tool call has ended already.")
	}
	return c, false, nil
}

func ended(status sessions.ToolStatus) bool {
	return status == sessions.ToolCompleted || status == sessions.ToolFailed
}

// FailInterrupted marks pending and executing calls of a session as failed with
// text and returns how many there were.
func (t *Calls) FailInterrupted(ctx context.Context, sessionID, text string) (int, error) {
	n, err := t.tx.exec(ctx, `
		UPDATE agent_tool_calls SET
			status = 'failed', error_details = $2,
			completed_at = {now} / 1000, execution_time_ms = {now} - executing_ms
		WHERE session_id = $1 AND status IN ('pending', 'executing')`, sessionID, text)
	return int(n), wrap(err, "fail interrupted tool calls")
}

// FailExecuting marks the executing calls of a session as failed with text and
// returns them: a crash interrupted them. Calls that never began stay pending.
func (t *Calls) FailExecuting(ctx context.Context, sessionID, text string) ([]sessions.ToolCall, error) {
	all, err := t.ToolCalls(ctx, sessionID)
	if err != nil {
		return nil, err
	}
	var failed []sessions.ToolCall
	for _, c := range all {
		if c.Status != sessions.ToolExecuting {
			continue
		}
		if err := t.UpdateToolCall(ctx, sessionID, c.CallID, sessions.ToolFailed, "", text); err != nil {
			return nil, err
		}
		c.Status, c.Error = sessions.ToolFailed, text
		failed = append(failed, c)
	}
	return failed, nil
}

const toolCallsSQL = `
		SELECT c.id, c.session_id, COALESCE(m.seq, 0), c.tool_call_id, c.tool_name, c.request, c.response,
			c.status, c.error_details, c.created_at, COALESCE(c.completed_at, 0), COALESCE(c.execution_time_ms, 0)
		FROM agent_tool_calls c LEFT JOIN agent_messages m ON m.id = c.message_id`

func scanToolCall(c *sessions.ToolCall) []any {
	return []any{
		&c.ID, text{&c.SessionID}, &c.MessageSeq, &c.CallID, &c.Name, &c.Request, text{&c.Response},
		&c.Status, text{&c.Error}, secTime{&c.CreatedAt}, secTime{&c.CompletedAt}, milliseconds{&c.Duration},
	}
}

// ToolCalls returns the tool calls of a session in the order of their recording.
func (t *Calls) ToolCalls(ctx context.Context, sessionID string) ([]sessions.ToolCall, error) {
	return rowsOf(ctx, t.tx, "read tool calls", scanToolCall, toolCallsSQL+` WHERE c.session_id = $1 ORDER BY c.id`, sessionID)
}
