package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
)

const (
	runColumns = `
		session_id, number, entry_id, status, waiting, started_ms, finished_ms, duration_ms,
		model, input_tokens, output_tokens, cost_micros, error`

	resumeRunSQL = `
		UPDATE agent_runs SET waiting = false
		WHERE session_id = $1 AND entry_id = $2 AND status = 'running' AND waiting RETURNING number`

	insertRunSQL = `
		INSERT INTO agent_runs (session_id, number, entry_id, model, started_ms)
		VALUES ($1, COALESCE((SELECT max(r.number) FROM agent_runs r WHERE r.session_id = $1), 0) + 1, $2, $3, $4)
		RETURNING number`

	// What a run used is what is on record for its entry since it began: another run
	// of the same entry may have come before it.
	setRunSQL = `
		UPDATE agent_runs SET status = $3, waiting = ($3 = 'running'), finished_ms = $4,
			duration_ms = CASE WHEN $5 THEN COALESCE(duration_ms, 0) + $6 ELSE duration_ms END,
			model = COALESCE($7, model), error = $8,
			(input_tokens, output_tokens, cost_micros) = (
				SELECT CAST(COALESCE(sum(u.input_tokens), 0) AS BIGINT), CAST(COALESCE(sum(u.output_tokens), 0) AS BIGINT),
					CAST(sum(u.cost_micros) AS BIGINT)
				FROM usage_records u WHERE u.event_id = agent_runs.entry_id AND u.at_ms >= agent_runs.started_ms
					AND u.conversation_id = (SELECT s.conversation_id FROM remote_agent_sessions s WHERE s.id = agent_runs.session_id))
		WHERE session_id = $1 AND status = 'running'`

	endRunSQL     = setRunSQL + ` AND number = $2`
	endOpenRunSQL = setRunSQL + ` AND entry_id = $2`
)

func endRunArgs(redact redaction, sessionID string, which any, end sessions.RunEnd) []any {
	var finished any
	if end.Status != sessions.RunRunning {
		finished = millis(time.Now())
	}
	return []any{
		sessionID, which, string(end.Status), finished, end.Took > 0, end.Took.Milliseconds(), orNull(end.Model), orNull(redact.said(end.Error)),
	}
}

// BeginRun implements sessions.SessionStore.
func (t *Sessions) BeginRun(ctx context.Context, r sessions.NewRun, msgs ...messages.Message) (begun sessions.BegunRun, err error) {
	steps, last, err := appendSteps(r.SessionID, r.EntryID, sessions.Running, msgs, &begun.Newest)
	if err != nil {
		return begun, err
	}
	insert := step{query: insertRunSQL, args: []any{r.SessionID, r.EntryID, r.Model, millis(time.Now())}, dest: []any{&begun.Number}}
	if !r.Again {
		steps = append(steps, insert)
	}
	if begun.Seqs, err = t.tx.Messages().append(ctx, steps, last, len(msgs)); err != nil || !r.Again {
		return begun, err
	}
	ok, err := t.tx.one(ctx, []any{&begun.Number}, resumeRunSQL, r.SessionID, r.EntryID)
	if err != nil || ok {
		return begun, wrap(err, "go on with a run")
	}
	args := endRunArgs(t.tx.redact, r.SessionID, r.EntryID, sessions.RunEnd{Status: sessions.RunInterrupted})
	if _, err := t.tx.exec(ctx, endOpenRunSQL, args...); err != nil {
		return begun, fmt.Errorf("mark an interrupted run: %w", err)
	}
	_, err = t.tx.one(ctx, insert.dest, insert.query, insert.args...)
	return begun, wrap(err, "begin a run")
}

// EndOpenRun implements sessions.SessionStore. The session's status follows.
func (t *Sessions) EndOpenRun(ctx context.Context, sessionID, entryID string, end sessions.RunEnd) error {
	n, err := t.tx.exec(ctx, endOpenRunSQL, endRunArgs(t.tx.redact, sessionID, entryID, end)...)
	if err != nil || n == 0 {
		return wrap(err, "end an open run")
	}
	return t.tx.run(ctx, "end an open run", `UPDATE remote_agent_sessions SET status = $2 WHERE id = $1`, sessionID, string(end.Status.Session()))
}

const runsSQL = `SELECT ` + runColumns + ` FROM agent_runs WHERE session_id = $1 AND number > $2`

// Runs returns up to limit runs of a session in order, behind the one with the
// number after, with a status (empty: any). What is no id of a session is
// fault.Invalid; of a session that is not there, there are none.
func (t *Sessions) Runs(ctx context.Context, sessionID string, status sessions.RunStatus, after int64, limit int) ([]sessions.Run, error) {
	if err := checkID(sessionID, "session"); err != nil {
		return nil, err
	}
	query, args := runsSQL+` ORDER BY number LIMIT $3`, []any{sessionID, after, limit}
	if status != "" {
		query, args = runsSQL+` AND status = $4 ORDER BY number LIMIT $3`, append(args, string(status))
	}
	return t.runs(ctx, query, args...)
}

func (t *Sessions) runs(ctx context.Context, query string, args ...any) (list []sessions.Run, err error) {
	err = t.tx.each(ctx, func(scan func(...any) error) error {
		r, err := scanRun(scan)
		list = append(list, r)
		return err
	}, query, args...)
	return list, wrap(err, "list runs")
}

func scanRun(scan func(...any) error) (r sessions.Run, err error) {
	var finished, took, cost sql.NullInt64
	err = scan(text{&r.SessionID}, &r.Number, text{&r.EntryID}, &r.Status, &r.Waiting, msTime{&r.StartedAt}, &finished, &took,
		&r.Model, &r.InputTokens, &r.OutputTokens, &cost, text{&r.Error})
	if finished.Valid {
		r.FinishedAt = time.UnixMilli(finished.Int64).UTC()
	}
	if took.Valid {
		r.Duration = new(time.Duration(took.Int64) * time.Millisecond)
	}
	if cost.Valid {
		r.CostMicros = &cost.Int64
	}
	return r, err
}
