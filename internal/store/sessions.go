package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
)

const sessionColumns = `
	id, conversation_id, codebase_id, parent_session_id, ai_assistant_type, assistant_session_id, active, metadata,
	status, agent_name, agent_id, model, system_prompt, user_prompt, config, result, error,
	input_tokens, output_tokens, last_seq, started_at, ended_at`

func scanSession(s *sessions.Session) []any {
	return []any{
		text{&s.ID}, text{&s.ConversationID}, text{&s.CodebaseID}, text{&s.ParentID}, &s.Assistant,
		text{&s.AssistantSessionID}, &s.Active, metadataText{&s.Metadata},
		&s.Status, &s.AgentName, text{&s.AgentID}, &s.Model, text{&s.SystemPrompt}, &s.UserPrompt, rawJSON{&s.Config},
		text{&s.Result}, text{&s.Error},
		&s.InputTokens, &s.OutputTokens, &s.LastSeq, noted{&s.StartedAt}, noted{&s.EndedAt},
	}
}

// metadataText scans the metadata of a session. What is no object is read as one that holds it:
// nobody who writes in its conversation can mend it, and what is merged into it loses nothing.
type metadataText struct{ to *sessions.Metadata }

// Scan implements sql.Scanner.
func (m metadataText) Scan(value any) error {
	var encoded string
	err := (text{&encoded}).Scan(value)
	if *m.to = (sessions.Metadata{}); encoded == "" {
		return err
	}
	if broken := json.Unmarshal([]byte(encoded), m.to); broken != nil || *m.to == nil {
		*m.to = sessions.Metadata{sessions.MetaUnreadable: encoded}
	}
	return err
}

const activeSessionSQL = `SELECT ` + sessionColumns + ` FROM remote_agent_sessions WHERE conversation_id = $1 AND active`

// ActiveSession implements sessions.SessionStore.
func (t *Sessions) ActiveSession(ctx context.Context, conversationID string) (s sessions.Session, ok bool, err error) {
	ok, err = t.tx.one(ctx, scanSession(&s), activeSessionSQL, conversationID)
	if err != nil || !ok {
		return sessions.Session{}, false, wrap(err, "read active session")
	}
	return s, true, nil
}

// Session returns a session by id; fault.NotFound if there is none.
func (t *Sessions) Session(ctx context.Context, id string) (sessions.Session, error) {
	return rowOf(ctx, t.tx, "session", scanSession, `SELECT `+sessionColumns+` FROM remote_agent_sessions WHERE id = $1`, id)
}

// CreateSession implements sessions.SessionStore.
func (t *Sessions) CreateSession(ctx context.Context, s sessions.NewSession) (sessions.Session, error) {
	id, err := newID()
	if err != nil {
		return sessions.Session{}, err
	}
	var begun sessions.Session
	ok, err := t.tx.one(ctx, scanSession(&begun), `
		INSERT INTO remote_agent_sessions (
			id, conversation_id, codebase_id, parent_session_id, ai_assistant_type,
			agent_name, agent_id, model, system_prompt, config, user_prompt, status)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'completed')
		ON CONFLICT (conversation_id) WHERE active DO NOTHING
		RETURNING `+sessionColumns,
		id, s.ConversationID, orNull(s.CodebaseID), orNull(s.ParentID), s.Assistant,
		s.AgentName, orNull(s.AgentID), s.Model, orNull(t.tx.said(s.SystemPrompt)), orNull(string(s.Config)), s.UserPrompt)
	if err != nil {
		return sessions.Session{}, fmt.Errorf("create session: %w", err)
	}
	if !ok {
		return sessions.Session{}, fault.New(fault.Conflict, "A session is active already.")
	}
	t.tx.touches(s.ConversationID)
	return begun, nil
}

// DeactivateSession implements sessions.SessionStore.
func (t *Sessions) DeactivateSession(ctx context.Context, id, reason string) error {
	metadata, active, err := t.lockMetadata(ctx, id)
	if err != nil || !active {
		return err
	}
	if reason != "" {
		metadata[sessions.MetaEndReason] = t.tx.said(reason)
	}
	encoded, err := encodeJSON(metadata, fault.Internal, "session metadata")
	if err != nil {
		return err
	}
	return t.tx.run(ctx, "end session", `
		UPDATE remote_agent_sessions SET active = false, metadata = $2, ended_at = {stamp}
		WHERE id = $1`, id, encoded)
}

func (t *Sessions) lockMetadata(ctx context.Context, id string) (m sessions.Metadata, active bool, err error) {
	ok, err := t.tx.one(ctx, []any{metadataText{&m}, &active}, `
		SELECT metadata, active FROM remote_agent_sessions WHERE id = $1 {lock}`, id)
	m, err = found(m, ok, err, "session")
	return m, active, err
}

// UpdateSession changes fields of a session.
func (t *Sessions) UpdateSession(ctx context.Context, id string, u sessions.SessionUpdate) error {
	if u.Metadata != nil {
		if err := t.mergeMetadata(ctx, id, u.Metadata); err != nil {
			return err
		}
	}
	if u.AssistantSessionID != nil {
		if err := t.updateSession(ctx, `
			UPDATE remote_agent_sessions SET assistant_session_id = $2 WHERE id = $1`, id, orNull(*u.AssistantSessionID)); err != nil {
			return err
		}
	}
	if u.AgentName == nil {
		return nil
	}
	return t.updateSession(ctx, `UPDATE remote_agent_sessions SET agent_name = $2 WHERE id = $1`, id, *u.AgentName)
}

func (t *Sessions) mergeMetadata(ctx context.Context, id string, m sessions.Metadata) error {
	metadata, _, err := t.lockMetadata(ctx, id)
	if err != nil {
		return err
	}
	maps.Copy(metadata, m)
	encoded, err := encodeJSON(metadata, fault.Invalid, "session metadata")
	if err != nil {
		return err
	}
	return t.updateSession(ctx, `
		UPDATE remote_agent_sessions SET metadata = $2 WHERE id = $1`, id, encoded)
}

const recordTurnSQL = `
	model = COALESCE($2, model), result = $3, error = $4,
	input_tokens = input_tokens + $5, output_tokens = output_tokens + $6,
	system_prompt = COALESCE($7, system_prompt), config = COALESCE($8, config)`

func recordTurnArgs(redact redaction, id string, turn sessions.TurnRecord) []any {
	return []any{
		id, orNull(turn.Model), orNull(redact.said(turn.Result)), orNull(redact.said(turn.Error)), turn.InputTokens, turn.OutputTokens,
		orNull(redact.said(turn.SystemPrompt)), orNull(string(turn.Config)),
	}
}

// RecordTurn adds a finished turn to a session: its result or error, the model
// that answered, what it cost, and the system prompt and configuration if they
// have changed.
func (t *Sessions) RecordTurn(ctx context.Context, id string, turn sessions.TurnRecord) error {
	return t.updateSession(ctx, `UPDATE remote_agent_sessions SET `+recordTurnSQL+` WHERE id = $1`, recordTurnArgs(t.tx.redact, id, turn)...)
}

// DeleteSession deletes a session with its messages and tool calls.
func (t *Sessions) DeleteSession(ctx context.Context, id string) error {
	t.tx.erases()
	return t.updateSession(ctx, `DELETE FROM remote_agent_sessions WHERE id = $1`, id)
}

func (t *Sessions) updateSession(ctx context.Context, query string, args ...any) error {
	return t.tx.change(ctx, "update session", "session", query, args...)
}
