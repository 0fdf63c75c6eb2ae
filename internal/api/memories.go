package api

import (
	"context"
	"strconv"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
)

type memoryBody struct {
	ID           string           `json:"id"`
	Person       string           `json:"person"`
	Kind         string           `json:"kind"`
	Text         string           `json:"text"`
	Category     *string          `json:"category"`
	Origin       string           `json:"origin"`
	Confidence   float64          `json:"confidence"`
	AccessCount  int64            `json:"access_count"`
	CodebaseID   *string          `json:"codebase_id"`
	RunID        string           `json:"run_id"`
	SourceEvents []string         `json:"source_events"`
	Sources      []string         `json:"sources"`
	History      []memory.Earlier `json:"history"`
	CreatedAt    time.Time        `json:"created_at"`
	UpdatedAt    time.Time        `json:"updated_at"`
	ExpiresAt    *time.Time       `json:"expires_at"`
}

func showMemory(m memory.Memory) memoryBody {
	body := memoryBody{
		ID: strconv.FormatInt(m.Number, 10), Person: m.Person, Kind: string(m.Kind), Text: m.Text, Category: maybe(string(m.Category)),
		Origin: string(m.Origin), Confidence: m.Confidence, AccessCount: m.AccessCount, CodebaseID: maybe(m.Codebase), RunID: m.RunID,
		SourceEvents: []string{}, Sources: append([]string{}, m.Sources...), History: append([]memory.Earlier{}, m.History...),
		CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt, ExpiresAt: when(m.ExpiresAt),
	}
	for _, e := range m.Events {
		body.SourceEvents = append(body.SourceEvents, strconv.FormatInt(e, 10))
	}
	return body
}

const memoryList = "y" // not "m", which messages have

func (a *API) listMemories(ctx context.Context, c call) (any, error) {
	before, err := readNumberCursor(memoryList, c.args.text("cursor"))
	if err != nil {
		return nil, err
	}
	limit := int(c.args.number("limit"))
	rows, err := store.Within(ctx, a.config.Store.InRead, func(tx *store.Tx) ([]memory.Memory, error) {
		return tx.Memories().List(ctx, c.args.text("person"), before, limit+1, c.now)
	})
	after := func(i int) *string { return newCursor(memoryList, strconv.FormatInt(rows[i].Number, 10)) }
	return cut(len(rows), limit, func(i int) any { return showMemory(rows[i]) }, after), err
}

// noMemory is what is said of a memory that is not there: the store's words are
// for the person themselves.
func noMemory(err error) error {
	if gone(err) {
		return fault.New(fault.NotFound, "This person has no such memory.")
	}
	return err
}

func (a *API) getMemory(ctx context.Context, c call) (any, error) {
	var m memory.Memory
	err := a.config.Store.InRead(ctx, func(tx *store.Tx) (err error) {
		m, err = tx.Memories().Memory(ctx, c.args.text("person"), c.args.number("memory_id"))
		if err == nil && !m.ExpiresAt.IsZero() && !c.now.Before(m.ExpiresAt) {
			err = fault.New(fault.NotFound, "")
		}
		return err
	})
	return showMemory(m), noMemory(err)
}

type forgottenCounts struct {
	Memories int64 `json:"memories"`
}

func (a *API) deleteMemory(ctx context.Context, c call) (any, error) {
	whose, number := c.args.text("person"), c.args.number("memory_id")
	err := a.config.Store.InTx(ctx, func(tx *store.Tx) error {
		if _, err := tx.Memories().ForgetMemory(ctx, whose, number); err != nil {
			return err
		}
		target := whose + " " + strconv.FormatInt(number, 10)
		return tx.Audit(ctx, sessions.AuditEntry{Actor: c.actor(), Action: "memory.forget", Target: target, Detail: c.detail()})
	})
	return deleted[forgottenCounts]{forgottenCounts{1}}, noMemory(err)
}

// deleteMemories deletes all memories of a person; of somebody of whom there are
// none that is 0, and nothing is written.
func (a *API) deleteMemories(ctx context.Context, c call) (any, error) {
	whose := c.args.text("person")
	var n int64
	err := a.config.Store.InTx(ctx, func(tx *store.Tx) error {
		n = 0
		some, err := tx.Memories().List(ctx, whose, 0, 1, time.Time{}) // expired ones as well
		if err != nil || len(some) == 0 {
			return err
		}
		if n, err = tx.Memories().ForgetMemories(ctx, whose); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: c.actor(), Action: "memory.forget_all", Target: whose, Detail: c.detail()})
	})
	return deleted[forgottenCounts]{forgottenCounts{n}}, err
}
