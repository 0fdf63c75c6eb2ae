package store

import (
	"context"
	"encoding/json"

	"remote-agent/internal/commit"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

// A call is in the row of the message that asks for it. One that has ended and has the
// name of a new one keeps its row, with the number of that behind its name.
const (
	renameCallSQL = `
	UPDATE agent_tool_calls SET tool_call_id = tool_call_id || '~' || CAST(id AS TEXT)
	WHERE session_id = $1 AND tool_call_id = $2 AND status IN ('completed', 'failed')`

	insertCallSQL = `
	INSERT INTO agent_tool_calls (session_id, message_id, tool_call_id, tool_name, request, status, created_at)
	VALUES ($1, (
		SELECT id FROM agent_messages WHERE session_id = $1 AND part = $5
			AND seq = (SELECT last_seq FROM remote_agent_sessions WHERE id = $1) - $6
	), $2, $3, $4, 'pending', {now} / 1000)`

	endCallSQL = `
	UPDATE agent_tool_calls SET status = $3, response = $4, error_details = $5,
		completed_at = {now} / 1000, execution_time_ms = {now} - executing_ms
	WHERE session_id = $1 AND tool_call_id = $2 AND status IN ('pending', 'executing')`

	endCallsSQL = `
	UPDATE agent_tool_calls SET
		status = 'failed', completed_at = {now} / 1000, execution_time_ms = {now} - executing_ms,
		error_details = CASE WHEN status = 'executing' THEN 'interrupted, may have run' ELSE 'not run: the turn ended before' END
	WHERE session_id = $1 AND status IN ('pending', 'executing')`
)

// callSteps are the statements about the calls in the messages of a session, which are
// stored already.
func callSteps(redact redaction, c *commit.Session) (steps []step) {
	add := func(query string, args ...any) { steps = append(steps, step{query: query, args: args}) }
	insert := insertCallSQL
	if c.Twice {
		insert += ` ON CONFLICT (session_id, tool_call_id) DO NOTHING`
	}
	for i, m := range c.Messages {
		for part, b := range m.Blocks {
			switch b := b.(type) {
			case messages.ToolCall:
				add(renameCallSQL, c.ID, b.ID)
				add(insert, c.ID, b.ID, b.Name, b.Arguments, part, int64(len(c.Messages)-1-i))
			case messages.ToolResult:
				status, failed := sessions.ToolCompleted, ""
				if b.IsError {
					status, failed = sessions.ToolFailed, b.Content
				}
				add(endCallSQL, c.ID, b.CallID, string(status), jsonOf(b.Content), orNull(redact.said(failed)))
			case messages.Text, messages.Thinking, messages.Attachment:
			}
		}
	}
	if c.Over {
		add(endCallsSQL, c.ID)
	}
	return steps
}

// jsonOf returns text as a JSON document: itself if it is one, else as a string.
func jsonOf(text string) string {
	if json.Valid([]byte(text)) {
		return text
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(quoted)
}

// BeginToolCall implements sessions.CallStore.
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

// OpenCalls implements sessions.CallStore.
func (t *Calls) OpenCalls(ctx context.Context, sessionID string) ([]sessions.ToolCall, error) {
	return rowsOf(ctx, t.tx, "read tool calls", scanToolCall, toolCallsSQL+` WHERE c.session_id = $1 AND c.status IN ('pending', 'executing') ORDER BY c.id`, sessionID)
}
