package orchestratortest

import (
	"strings"

	"remote-agent/internal/lists"
)

// Rows returns the rows of a query on what is on the disk, whose columns are joined by
// "|". NULL is "-".
func (w *World) Rows(query string, args ...any) []string {
	w.T.Helper()
	return lists.Map(w.reader.Rows(w.T, query, args...), func(row []string) string { return strings.Join(row, "|") })
}

// Value returns the single value of a query, as Rows writes it.
func (w *World) Value(query string, args ...any) string {
	w.T.Helper()
	rows := w.Rows(query, args...)
	if len(rows) != 1 {
		w.T.Fatalf("%s: %d rows, want 1: %q", query, len(rows), rows)
	}
	return rows[0]
}

// States returns the states of what was accepted, in order, by what was said.
func (w *World) States(said string) string {
	w.T.Helper()
	return strings.Join(w.Rows(`SELECT state FROM inbound_events WHERE json_extract(data, '$.text') = $1 ORDER BY accepted_ms, id`, said), " ")
}

// Runs returns the statuses of all runs, in order.
func (w *World) Runs() string {
	w.T.Helper()
	return strings.Join(w.Rows(`SELECT status FROM agent_runs ORDER BY started_ms, session_id, number`), " ")
}

// Said returns what the sessions have on record, in order: role and text.
func (w *World) Said() []string {
	w.T.Helper()
	return w.Rows(`SELECT role, content FROM agent_messages ORDER BY id`)
}

// Open returns what is neither over nor told: entries, deliveries, approvals, runs and
// leases.
func (w *World) Open() []string {
	w.T.Helper()
	return w.Rows(`
		SELECT 'entry', json_extract(data, '$.text') FROM inbound_events WHERE state IN ('waiting', 'running')
		UNION ALL SELECT 'delivery', body FROM deliveries WHERE state NOT IN ('sent', 'failed')
		UNION ALL SELECT 'approval', title FROM approvals WHERE state = 'waiting'
		UNION ALL SELECT 'run', status FROM agent_runs WHERE status = 'running'
		UNION ALL SELECT 'lease', lease_owner FROM remote_agent_conversations WHERE lease_owner IS NOT NULL`)
}
