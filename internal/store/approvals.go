package store

import (
	"context"
	"fmt"
	"time"

	"remote-agent/internal/approval"
	"remote-agent/internal/fault"
)

const approvalColumns = `
	number, conversation_id, session_id, event_id, codebase_id, tool_call_id, tool_name, request, sha256, kind, title,
	detail, rule, requester, state, delivery_id, decided_by, decided_ms, note, created_ms, expires_ms`

func scanApproval(a *approval.Approval) []any {
	return []any{
		&a.Number, text{&a.ConversationID}, text{&a.SessionID}, text{&a.EntryID}, text{&a.CodebaseID}, &a.CallID, &a.Tool,
		&a.Arguments, &a.SHA256, &a.Kind, &a.Title, &a.Detail, &a.Rule, &a.Requester, &a.State, &a.DeliveryID,
		&a.DecidedBy, msTime{&a.DecidedAt}, &a.Note, msTime{&a.CreatedAt}, msTime{&a.ExpiresAt},
	}
}

// InsertApproval implements approval.Store. It makes a what is stored: the sum is that of
// the arguments as they are kept. A rule that would not be kept byte by byte is left out.
func (t *Questions) InsertApproval(ctx context.Context, a *approval.Approval) error {
	next := *a
	for _, s := range []*string{&next.Tool, &next.Arguments, &next.Title, &next.Detail} {
		*s = storable(*s)
	}
	if storable(next.Rule) != next.Rule {
		next.Rule = ""
	}
	next.SHA256, next.State = approval.Sum(next.Tool, next.Arguments), approval.Waiting
	next.DecidedBy, next.DecidedAt, next.Note = "", time.Time{}, ""
	next.CreatedAt = time.Now().UTC().Truncate(time.Millisecond)
	if next.ExpiresAt.IsZero() {
		next.ExpiresAt = next.CreatedAt.Add(approval.TTL)
	}
	next.ExpiresAt = next.ExpiresAt.UTC().Truncate(time.Millisecond)
	_, err := t.tx.one(ctx, []any{&next.Number}, `
		INSERT INTO approvals (
			conversation_id, session_id, event_id, codebase_id, tool_call_id, tool_name, request, sha256, kind, title,
			detail, rule, requester, state, delivery_id, created_ms, expires_ms)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
		RETURNING number`,
		next.ConversationID, orNull(next.SessionID), orNull(next.EntryID), orNull(next.CodebaseID), next.CallID, next.Tool,
		next.Arguments, next.SHA256, string(next.Kind), next.Title, next.Detail, next.Rule, next.Requester,
		string(next.State), next.DeliveryID, millis(next.CreatedAt), millis(next.ExpiresAt))
	if err != nil {
		return fmt.Errorf("store approval: %w", err)
	}
	t.tx.touches(next.ConversationID)
	*a = next
	return nil
}

// Approval implements approval.Store.
func (t *Questions) Approval(ctx context.Context, number int64) (approval.Approval, error) {
	if err := t.tx.require(ctx, "approval", `
		SELECT 1 FROM remote_agent_conversations
		WHERE id = (SELECT conversation_id FROM approvals WHERE number = $1) {lock}`, number); err != nil {
		return approval.Approval{}, err
	}
	return rowOf(ctx, t.tx, "approval", scanApproval, `SELECT `+approvalColumns+` FROM approvals WHERE number = $1`, number)
}

const callApprovalSQL = `
	SELECT ` + approvalColumns + ` FROM approvals
	WHERE event_id = $1 AND tool_call_id = $2 ORDER BY number DESC LIMIT 1`

// CallApproval implements approval.Store.
func (t *Questions) CallApproval(ctx context.Context, entryID, callID string) (a approval.Approval, ok bool, err error) {
	ok, err = t.tx.one(ctx, scanApproval(&a), callApprovalSQL, entryID, callID)
	return a, ok, wrap(err, "find approval")
}

const unheardApprovalSQL = `
	SELECT ` + approvalColumns + ` FROM approvals a
	WHERE state = 'allowed' AND number = (SELECT max(number) FROM approvals WHERE event_id = $1 AND sha256 = $2) AND EXISTS (
		SELECT 1 FROM agent_tool_calls c WHERE c.session_id = a.session_id AND c.tool_call_id = a.tool_call_id
			AND c.status = 'failed' AND c.executing_ms IS NULL AND c.error_details = $3)`

// UnheardApproval implements approval.Store.
func (t *Questions) UnheardApproval(ctx context.Context, entryID, sum, result string) (a approval.Approval, ok bool, err error) {
	ok, err = t.tx.one(ctx, scanApproval(&a), unheardApprovalSQL, entryID, sum, result)
	return a, ok, wrap(err, "find approval")
}

const countApprovalsSQL = `
	SELECT count(*) FROM approvals WHERE event_id = $1 AND tool_name = $2 AND state = $3`

// CountApprovals returns how many approvals of a turn for a tool are in a state.
func (t *Questions) CountApprovals(ctx context.Context, entryID, tool string, state approval.State) (n int64, err error) {
	_, err = t.tx.one(ctx, []any{&n}, countApprovalsSQL, entryID, tool, string(state))
	return n, wrap(err, "count approvals")
}

// WaitingApprovals implements approval.Store. Without a conversation it returns those of
// all. They may have expired.
func (t *Questions) WaitingApprovals(ctx context.Context, conversationID string, limit int) ([]approval.Approval, error) {
	return t.approvals(ctx, `
		SELECT `+approvalColumns+` FROM approvals
		WHERE state = 'waiting' AND (conversation_id = $1 OR $1 IS NULL) ORDER BY number LIMIT $2`,
		orNull(conversationID), limit)
}

// OpenApprovals returns the approvals of a conversation that wait, and those that were
// decided at or after a time, oldest first. Those that wait may have expired.
func (t *Questions) OpenApprovals(ctx context.Context, conversationID string, decided time.Time, limit int) ([]approval.Approval, error) {
	return t.approvals(ctx, `
		SELECT `+approvalColumns+` FROM approvals
		WHERE conversation_id = $1 AND (state = 'waiting' OR decided_ms >= $2) ORDER BY number LIMIT $3`,
		conversationID, millis(decided), limit)
}

func (t *Questions) approvals(ctx context.Context, query string, args ...any) (list []approval.Approval, err error) {
	return rowsOf(ctx, t.tx, "list approvals", scanApproval, query, args...)
}

const entryApprovalsSQL = `
	SELECT ` + approvalColumns + ` FROM approvals WHERE event_id = $1 AND state = 'waiting' ORDER BY number`

// EntryApprovals implements approval.Store. They may have expired.
func (t *Questions) EntryApprovals(ctx context.Context, entryID string) ([]approval.Approval, error) {
	return t.approvals(ctx, entryApprovalsSQL, entryID)
}

// SettleApproval implements approval.Store.
func (t *Questions) SettleApproval(ctx context.Context, a approval.Approval) error {
	if a.State == approval.Waiting {
		return t.tx.change(ctx, "record where an approval is shown", "approval", `UPDATE approvals SET delivery_id = $2 WHERE number = $1`, a.Number, a.DeliveryID)
	}
	n, err := t.tx.exec(ctx, `
		UPDATE approvals SET state = $2, decided_by = $3, decided_ms = $4, note = $5
		WHERE number = $1 AND state = 'waiting'`,
		a.Number, string(a.State), a.DecidedBy, millis(a.DecidedAt), a.Note)
	if err != nil {
		return fmt.Errorf("settle approval: %w", err)
	}
	if n == 0 {
		return fault.Newf(fault.Conflict, "%s is already settled.", a.Name())
	}
	t.tx.touches(a.ConversationID)
	return nil
}

// SaveRule stores an allow rule; one that is there already stays as it is.
func (t *Questions) SaveRule(ctx context.Context, r approval.Rule) error {
	return t.tx.run(ctx, "store allow rule", `
		INSERT INTO allow_rules (codebase_id, tool_name, rule, created_by, created_ms)
		VALUES ($1, $2, $3, $4, $5) ON CONFLICT (codebase_id, tool_name, rule) DO NOTHING`,
		r.CodebaseID, r.Tool, r.Rule, r.CreatedBy, millis(time.Now()))
}

// Rules returns the allow rules of a codebase, oldest first.
func (t *Questions) Rules(ctx context.Context, codebaseID string) (list []approval.Rule, err error) {
	return rowsOf(ctx, t.tx, "list allow rules", func(r *approval.Rule) []any {
		return []any{&r.ID, text{&r.CodebaseID}, &r.Tool, &r.Rule, &r.CreatedBy, msTime{&r.CreatedAt}}
	}, `SELECT id, codebase_id, tool_name, rule, created_by, created_ms FROM allow_rules WHERE codebase_id = $1 ORDER BY id`, codebaseID)
}

const hasRuleSQL = `SELECT 1 FROM allow_rules WHERE codebase_id = $1 AND tool_name = $2 AND rule = $3`

// HasRule reports whether a codebase has an allow rule. One that differs in a
// single byte is another.
func (t *Questions) HasRule(ctx context.Context, codebaseID, tool, rule string) (bool, error) {
	if storable(rule) != rule {
		return false, nil // PostgreSQL would compare what it makes of it
	}
	ok, err := t.tx.exists(ctx, hasRuleSQL, codebaseID, tool, rule)
	return ok, wrap(err, "find allow rule")
}

// DeleteRule removes an allow rule of a codebase; fault.NotFound if it has none
// with that id.
func (t *Questions) DeleteRule(ctx context.Context, codebaseID string, id int64) error {
	return t.tx.change(ctx, "delete allow rule", "rule", `DELETE FROM allow_rules WHERE codebase_id = $1 AND id = $2`, codebaseID, id)
}
