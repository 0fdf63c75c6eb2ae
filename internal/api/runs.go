package api

import (
	"context"
	"strconv"
	"time"

	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

type runBody struct {
	SessionID    string     `json:"session_id"`
	Number       int64      `json:"number"`
	EntryID      string     `json:"entry_id"`
	Status       string     `json:"status"`
	Waiting      bool       `json:"waiting"`
	Model        *string    `json:"model"`
	InputTokens  int64      `json:"input_tokens"`
	OutputTokens int64      `json:"output_tokens"`
	CostMicros   *int64     `json:"cost_micros"`
	Error        *string    `json:"error"`
	DurationMS   *int64     `json:"duration_ms"`
	StartedAt    time.Time  `json:"started_at"`
	FinishedAt   *time.Time `json:"finished_at"`
}

func showRun(r sessions.Run) runBody {
	body := runBody{
		SessionID: r.SessionID, Number: r.Number, EntryID: r.EntryID, Status: string(r.Status), Waiting: r.Waiting, Model: maybe(r.Model),
		InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, CostMicros: r.CostMicros, Error: maybe(r.Error),
		StartedAt: r.StartedAt, FinishedAt: when(r.FinishedAt),
	}
	if r.Duration != nil {
		body.DurationMS = new(r.Duration.Milliseconds())
	}
	return body
}

const runList = "r"

func (a *API) listRuns(ctx context.Context, c call) (any, error) {
	after, err := readNumberCursor(runList, c.args.text("cursor"))
	if err != nil {
		return nil, err
	}
	limit := int(c.args.number("limit"))
	rows, err := store.Within(ctx, a.config.Store.InRead, func(tx *store.Tx) ([]sessions.Run, error) {
		return tx.Sessions().Runs(ctx, c.args.text("session"), sessions.RunStatus(c.args.text("status")), after, limit+1)
	})
	return cut(len(rows), limit, func(i int) any { return showRun(rows[i]) }, func(i int) *string { return newCursor(runList, strconv.FormatInt(rows[i].Number, 10)) }), err
}
