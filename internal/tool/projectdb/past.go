package projectdb

import (
	"context"
	"database/sql"
	"net/url"
	"slices"
	"strings"

	"modernc.org/sqlite"

	"remote-agent/internal/lists"
	"remote-agent/internal/pattern"
	"remote-agent/internal/tool"
)

// Past gives the rows of a table of the past of one conversation: seed 003's
// agent_sessions, agent_messages and agent_tool_calls. It gives nothing of another
// conversation; the reader relies on that. It may give a row twice.
type Past func(ctx context.Context, table string, add func(row ...any) error) error

// pastTables are the tables of the past with their columns. Messages have seq and
// kind besides those of seed 003.
var pastTables = []struct{ name, columns string }{
	{"agent_sessions", "id, agent_name, provider, model, system_prompt, user_prompt, config, status, started_at, ended_at, result, error"},
	{"agent_messages", "id, session_id, role, content, created_at, seq, kind"},
	{"agent_tool_calls", "id, session_id, message_id, tool_call_id, tool_name, request, response, status, created_at, completed_at, execution_time_ms, error_details"},
}

var pastName = pattern.Lazy(`(?i)\bagent_(sessions|messages|tool_calls)\b`)

// describePast names the tables with their columns.
func describePast() string {
	tables := make([]string, len(pastTables))
	for i, t := range pastTables {
		tables[i] = t.name + "(" + t.columns + ")"
	}
	return strings.Join(tables, ", ")
}

// Reader returns sqlite3_reader for a conversation without a project: only its
// past can be read.
func Reader(past Past) tool.Tool { return &readerTool{past: past} }

// readPast runs a query on a database in memory that has this conversation's rows
// and nothing else: whatever the query says, there is nothing else to be read. Only
// the tables that it names are filled.
func (t *readerTool) readPast(ctx context.Context, a readArgs) (found table, err error) {
	d := &DB{path: "of the past", readLimit: readLimit}
	ctx, cancel := context.WithTimeout(ctx, d.readLimit)
	defer cancel()
	driver := &sqlite.Driver{}
	if err := registerTrim(driver); err != nil {
		return found, d.classify(ctx, err)
	}
	params := url.Values{"_defensive": {"1"}, "_dqs": {"0"}, "_pragma": {"trusted_schema(0)"}}
	memory := sql.OpenDB(connector{driver, "file::memory:?" + params.Encode()})
	defer func() { _ = memory.Close() }()
	conn, err := memory.Conn(ctx)
	if err != nil {
		return found, d.classify(ctx, err)
	}
	defer func() { _ = conn.Close() }()
	if err := t.fill(ctx, conn, a.Query); err != nil {
		return found, d.classify(ctx, err)
	}
	if _, err := conn.ExecContext(ctx, "PRAGMA query_only = 1"); err != nil {
		return found, d.classify(ctx, err)
	}
	if err := conn.Raw(restrict); err != nil {
		return found, d.classify(ctx, err)
	}
	return d.query(ctx, conn, a)
}

// fill makes the tables and fills those that a query names.
func (t *readerTool) fill(ctx context.Context, conn *sql.Conn, query string) error {
	named := lists.Map(pastName.FindAllString(query, -1), strings.ToLower)
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, table := range pastTables {
		if _, err := tx.ExecContext(ctx, "CREATE TABLE "+table.name+" ("+strings.Replace(table.columns, "id", "id PRIMARY KEY", 1)+")"); err != nil {
			return err
		}
		if !slices.Contains(named, table.name) {
			continue
		}
		if err := t.copyRows(ctx, tx, table.name, strings.Count(table.columns, ",")+1); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// copyRows puts the rows of the past into one table.
func (t *readerTool) copyRows(ctx context.Context, tx *sql.Tx, table string, columns int) error {
	insert, err := tx.PrepareContext(ctx, "INSERT OR REPLACE INTO "+table+" VALUES (?"+strings.Repeat(", ?", columns-1)+")") //nolint:gosec // names of our own
	if err != nil {
		return err
	}
	defer func() { _ = insert.Close() }()
	return t.past(ctx, table, func(row ...any) error {
		_, err := insert.ExecContext(ctx, row...)
		return err
	})
}
