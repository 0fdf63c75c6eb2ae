package api

import (
	"context"
	"strconv"
	"time"

	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

type toolCallBody struct {
	ID              string     `json:"id"`
	SessionID       string     `json:"session_id"`
	MessageSeq      *int64     `json:"message_seq"`
	ToolCallID      string     `json:"tool_call_id"`
	ToolName        string     `json:"tool_name"`
	Request         string     `json:"request"`
	Response        *string    `json:"response"`
	Status          string     `json:"status"`
	ErrorDetails    *string    `json:"error_details"`
	ExecutionTimeMS *int64     `json:"execution_time_ms"`
	CreatedAt       time.Time  `json:"created_at"`
	CompletedAt     *time.Time `json:"completed_at"`
}

func showToolCall(c sessions.ToolCall) toolCallBody {
	body := toolCallBody{
		ID: strconv.FormatInt(c.ID, 10), SessionID: c.SessionID, ToolCallID: c.CallID, ToolName: c.Name, Request: c.Request,
		Response: maybe(c.Response), Status: string(c.Status), ErrorDetails: maybe(c.Error),
		CreatedAt: c.CreatedAt, CompletedAt: when(c.CompletedAt),
	}
	if c.MessageSeq != 0 {
		body.MessageSeq = &c.MessageSeq
	}
	if !c.CompletedAt.IsZero() {
		body.ExecutionTimeMS = new(c.Duration.Milliseconds())
	}
	return body
}

const toolCallList = "t"

func (a *API) listToolCalls(ctx context.Context, c call) (any, error) {
	after, err := readNumberCursor(toolCallList, c.args.text("cursor"))
	if err != nil {
		return nil, err
	}
	var rows []sessions.ToolCall
	more := false
	err = a.config.Store.InRead(ctx, func(tx *store.Tx) error {
		rows, more, err = tx.Pages().BrowseToolCalls(ctx, c.args.text("session"), sessions.ToolStatus(c.args.text("status")), after, int(c.args.number("limit")))
		return err
	})
	p := cut(len(rows), len(rows), func(i int) any { return showToolCall(rows[i]) }, nil)
	if more && len(rows) > 0 {
		p.NextCursor = newCursor(toolCallList, strconv.FormatInt(rows[len(rows)-1].ID, 10))
	}
	return p, err
}

func (a *API) getToolCall(ctx context.Context, c call) (any, error) {
	row, err := store.Within(ctx, a.config.Store.InRead, func(tx *store.Tx) (sessions.ToolCall, error) {
		return tx.Pages().ToolCall(ctx, c.args.number("tool_call_id"))
	})
	return showToolCall(row), err
}
