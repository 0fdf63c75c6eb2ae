package store

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"remote-agent/internal/audit"
)

// AuditSearch chooses rows of the audit log; empty members choose all.
type AuditSearch struct {
	Text         string // in any of what a row says, in any case
	Actor        string
	Action       string // or what it begins with, up to a dot: "tool"
	Since, Until time.Time
	Before       int64 // only rows with a smaller number of the database
	Limit        int
}

// auditScan is how many rows one search looks at, so that it takes a bounded time
// however many there are.
const auditScan = 10_000

// Search returns up to f.Limit rows that f chooses, the newest first. older is where
// to go on (AuditSearch.Before), 0 if there is nothing left; a page may be short, or
// empty, because there was much that was not chosen.
func (t *AuditLog) Search(ctx context.Context, f AuditSearch) (list []audit.Row, older int64, err error) {
	if f.Before <= 0 {
		f.Before = math.MaxInt64
	}
	var c conditions
	c.args = []any{f.Before, auditScan}
	c.when(f.Actor != "", "actor = $%d", f.Actor)
	if f.Action != "" {
		c.add("(action = $%d OR substr(action, 1, CAST($%d AS INTEGER)) = $%d)", f.Action, len([]rune(f.Action))+1, f.Action+".")
	}
	c.when(!f.Since.IsZero(), "at_ms >= $%d", millis(f.Since))
	c.when(!f.Until.IsZero(), "at_ms < $%d", millis(f.Until))
	if f.Text != "" {
		c.add(`lower(actor || ' ' || action || ' ' || target || ' ' || conversation_id || ' ' || detail) LIKE lower(CAST($%d AS TEXT)) ESCAPE '\'`,
			"%"+strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(storable(f.Text))+"%")
	}
	const recent = ` FROM (SELECT * FROM audit_log WHERE id < $1 ORDER BY id DESC LIMIT $2) AS recent`
	c.args = append(c.args, f.Limit+1)
	list, err = rowsOf(ctx, t.tx, "search the audit log", scanAudit,
		`SELECT `+auditColumns+recent+c.where()+fmt.Sprintf(" ORDER BY id DESC LIMIT $%d", len(c.args)), c.args...)
	if err != nil {
		return nil, 0, err
	}
	if len(list) > f.Limit {
		list = list[:f.Limit]
		return list, list[f.Limit-1].ID, nil
	}
	// The last row that was looked at, if it is not the first of all.
	if _, err := t.tx.one(ctx, []any{&older}, `SELECT id FROM audit_log WHERE id < $1 ORDER BY id DESC LIMIT 1 OFFSET $2`, f.Before, auditScan-1); err != nil {
		return nil, 0, wrap(err, "search the audit log")
	}
	return list, older, nil
}
