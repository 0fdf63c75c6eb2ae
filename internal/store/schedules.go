package store

import (
	"context"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
)

const scheduleColumns = `
	s.id, s.agent_id, s.conversation_id, s.created_by, s.origin, s.event_id, s.runs, s.last_ms, s.next_ms, s.created_ms`

func (t *Tasks) schedules(ctx context.Context, rest string, args ...any) ([]sessions.Schedule, error) {
	return rowsOf(ctx, t.tx, "read standing tasks", func(s *sessions.Schedule) []any {
		return []any{
			&s.ID, text{&s.AgentID}, text{&s.ConversationID}, &s.CreatedBy, jsonText{&s.Origin, "where a standing task comes from"}, text{&s.EntryID},
			&s.Runs, msTime{&s.LastAt}, msTime{&s.NextAt}, msTime{&s.CreatedAt},
		}
	}, `SELECT `+scheduleColumns+` FROM agent_schedules s `+rest, args...)
}

// Schedule implements sessions.TaskStore.
func (t *Tasks) Schedule(ctx context.Context, conversationID string) (s sessions.Schedule, ok bool, err error) {
	all, err := t.schedules(ctx, `WHERE CAST(s.conversation_id AS TEXT) = $1`, conversationID)
	if err != nil || len(all) == 0 {
		return s, false, err
	}
	return all[0], true, nil
}

// Schedules returns all standing tasks, up to limit, by their next run.
func (t *Tasks) Schedules(ctx context.Context, limit int) ([]sessions.Schedule, error) {
	return t.schedules(ctx, `ORDER BY s.next_ms, s.id LIMIT $1`, limit)
}

// SchedulesOf returns those that an account switched on and that of a conversation, up to
// limit, by their next run.
func (t *Tasks) SchedulesOf(ctx context.Context, account, conversationID string, limit int) ([]sessions.Schedule, error) {
	return t.schedules(ctx, `WHERE s.created_by = $1 OR CAST(s.conversation_id AS TEXT) = $2 ORDER BY s.next_ms, s.id LIMIT $3`,
		account, conversationID, limit)
}

// Two intervals and two hours are more than clocks of replicas differ by.
const dueSchedulesSQL = `
	JOIN agents a ON a.id = s.agent_id
	WHERE a."interval" > 0 AND (s.next_ms <= $1 OR s.next_ms > $1 + 7200000 AND (s.next_ms - $1) / 2000 > a."interval")
	ORDER BY s.next_ms, s.id LIMIT $2`

// DueSchedules implements sessions.TaskStore. The longest waiting are first, and then
// those whose next run is so late that only a wrong clock, or an interval that was longer,
// can have set it.
func (t *Tasks) DueSchedules(ctx context.Context, now time.Time, limit int) ([]sessions.Schedule, error) {
	return t.schedules(ctx, dueSchedulesSQL, millis(now), limit)
}

// SaveSchedule switches the standing task of a conversation on, in the place of
// the one it has, and sets s.ID.
func (t *Tasks) SaveSchedule(ctx context.Context, s *sessions.Schedule) error {
	origin, err := encodeJSON(s.Origin, fault.Invalid, "where a standing task comes from")
	if err != nil {
		return err
	}
	_, err = t.tx.one(ctx, []any{&s.ID}, `
		INSERT INTO agent_schedules (agent_id, conversation_id, created_by, origin, next_ms, created_ms) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (conversation_id) DO UPDATE SET
			agent_id = excluded.agent_id, created_by = excluded.created_by, origin = excluded.origin, event_id = NULL, runs = 0, last_ms = 0,
			next_ms = excluded.next_ms, created_ms = excluded.created_ms
		RETURNING id`, s.AgentID, s.ConversationID, s.CreatedBy, origin, millis(s.NextAt), millis(s.CreatedAt))
	return wrap(err, "store a standing task")
}

// AdvanceSchedule implements sessions.TaskStore.
func (t *Tasks) AdvanceSchedule(ctx context.Context, s sessions.Schedule, now, next time.Time, entryID string) (ok bool, err error) {
	n, err := t.tx.exec(ctx, `
		UPDATE agent_schedules SET
			next_ms = $3,
			runs = CASE WHEN $4 THEN runs + 1 ELSE runs END,
			last_ms = CASE WHEN $4 THEN $5 ELSE last_ms END,
			event_id = CASE WHEN $4 THEN $6 ELSE event_id END
		WHERE id = $1 AND next_ms = $2`,
		s.ID, millis(s.NextAt), millis(next), entryID != "", millis(now), orNull(entryID))
	return n == 1, wrap(err, "advance a standing task")
}

// EndSchedule implements sessions.TaskStore.
func (t *Tasks) EndSchedule(ctx context.Context, conversationID string) (ok bool, err error) {
	n, err := t.tx.exec(ctx, `DELETE FROM agent_schedules WHERE CAST(conversation_id AS TEXT) = $1`, conversationID)
	return n > 0, wrap(err, "end a standing task")
}

// TakePlace implements sessions.TaskStore. A run that is not over comes along.
func (t *Tasks) TakePlace(ctx context.Context, from, to sessions.Conversation) error {
	if from.AgentID == "" {
		return nil
	}
	if err := t.tx.Conversations().UpdateConversation(ctx, to.ID, sessions.ConversationUpdate{AgentID: &from.AgentID}); err != nil {
		return err
	}
	return t.tx.run(ctx, "move a standing task", `UPDATE agent_schedules SET conversation_id = $2 WHERE CAST(conversation_id AS TEXT) = $1`, from.ID, to.ID)
}
