package projectdb

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/tool"
)

// NameReader is the name of the tool that reads.
const NameReader = "sqlite3_reader"

const (
	defaultRows = 100
	maxRows     = 1000
	maxCell     = 4 << 10  // bytes of a text that are shown
	maxResult   = 64 << 10 // bytes of all rows that are shown
	maxQuery    = 16 << 10 // bytes

	maxColumnName = 200 // bytes that are shown
)

// limits of a reading connection, against statements that are made to be
// expensive.
var limits = map[int]int{
	sqlite3.SQLITE_LIMIT_LENGTH:              2 * maxValue, // some functions take quadratic time
	sqlite3.SQLITE_LIMIT_SQL_LENGTH:          maxQuery + 200,
	sqlite3.SQLITE_LIMIT_COLUMN:              200,
	sqlite3.SQLITE_LIMIT_EXPR_DEPTH:          100,
	sqlite3.SQLITE_LIMIT_COMPOUND_SELECT:     50,
	sqlite3.SQLITE_LIMIT_VDBE_OP:             100_000,
	sqlite3.SQLITE_LIMIT_FUNCTION_ARG:        50,
	sqlite3.SQLITE_LIMIT_ATTACHED:            0,
	sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 500,
	sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER:     0,
	sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH:       0,
	sqlite3.SQLITE_LIMIT_WORKER_THREADS:      0,
}

type readerTool struct {
	db   *DB  // nil without a project
	past Past // may be nil
}

// Spec implements tool.Tool.
func (t *readerTool) Spec() messages.ToolSpec {
	text := "Run one SELECT (SQLite) and return {columns, rows, truncated}. Only reading is possible; give a single statement. A query is stopped after 5 seconds."
	if t.db != nil {
		text += " SELECT name, sql FROM sqlite_master shows the tables of this project."
	}
	if t.past != nil {
		text += " What happened in this conversation before is in " + describePast() + "; times are Unix seconds. One query reads either these or the tables of the project."
	}
	return messages.ToolSpec{
		Name:        NameReader,
		Description: text,
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string","description":"A SELECT statement"},` +
			`"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"How many rows; 100 if it is missing"}},` +
			`"required":["query"],"additionalProperties":false}`),
	}
}

type readArgs struct {
	Query string `json:"query"`
	Limit int    `json:"limit"`
}

func decodeRead(raw json.RawMessage) (readArgs, error) {
	var a readArgs
	if err := tool.Decode(raw, &a); err != nil {
		return a, err
	}
	switch {
	case strings.TrimSpace(a.Query) == "":
		return a, fault.New(fault.Invalid, `"query" is missing.`)
	case len(a.Query) > maxQuery:
		return a, fault.Newf(fault.Invalid, "The query is longer than %d KiB.", maxQuery>>10)
	case strings.ContainsRune(a.Query, 0):
		return a, fault.New(fault.Invalid, "The query contains a NUL character.")
	case a.Limit < 0 || a.Limit > maxRows:
		return a, fault.Newf(fault.Invalid, `"limit" is 1 to %d.`, maxRows)
	}
	a.Limit = cmp.Or(a.Limit, defaultRows)
	return a, nil
}

// Effect implements tool.Tool.
func (*readerTool) Effect(_ context.Context, raw json.RawMessage) (tool.Effect, error) {
	a, err := decodeRead(raw)
	return tool.Effect{Kind: assistant.KindRead, Summary: "Query " + tool.Line(a.Query, 150), Detail: tool.Exact("sql", a.Query)}, err
}

// Run implements tool.Tool.
func (t *readerTool) Run(ctx context.Context, raw json.RawMessage) (tool.Result, error) {
	a, err := decodeRead(raw)
	if err != nil {
		return tool.Result{}, err
	}
	var found table
	switch {
	case t.past != nil && pastName.MatchString(a.Query):
		found, err = t.readPast(ctx, a)
	case t.db == nil:
		err = fault.New(fault.Invalid, "There is no project here. Available: "+describePast()+".")
	default:
		found, err = t.db.read(ctx, a)
	}
	if err != nil {
		return tool.Result{}, err
	}
	return found.result()
}

func (found table) result() (tool.Result, error) {
	content, err := json.Marshal(found)
	if err != nil {
		return tool.Result{}, fault.Wrap(err, fault.Internal, "encode rows")
	}
	return tool.Result{Content: string(content), Note: fmt.Sprintf("%d rows", len(found.Rows))}, nil
}

// table is the result of a query.
type table struct {
	Columns   []string          `json:"columns"`
	Rows      []json.RawMessage `json:"rows"`
	Truncated bool              `json:"truncated"` // there are more rows, or a cell was cut
}

func (d *DB) read(ctx context.Context, a readArgs) (found table, err error) {
	if d.broken != nil {
		return found, d.broken
	}
	ctx, cancel := context.WithTimeout(ctx, d.readLimit)
	defer cancel()
	conn, err := d.reader.Conn(ctx)
	if err != nil {
		return found, d.classify(ctx, err)
	}
	defer func() { _ = conn.Close() }()
	return d.query(ctx, conn, a)
}

// query runs a query on a connection that may do nothing but read.
func (d *DB) query(ctx context.Context, conn *sql.Conn, a readArgs) (found table, err error) {
	for id, value := range limits {
		if _, err := sqlite.Limit(conn, id, value); err != nil {
			return found, d.classify(ctx, err)
		}
	}
	text := strings.TrimRight(a.Query, "; \t\r\n")
	names, err := compile(conn, text)
	if err != nil {
		return found, d.classify(ctx, err)
	}
	rows, err := conn.QueryContext(ctx, whole(text, a.Limit+1))
	if err != nil {
		return found, d.classify(ctx, err)
	}
	defer func() { _ = rows.Close() }()
	if found, err = collect(rows, names, a.Limit); err != nil {
		return found, d.classify(ctx, err)
	}
	return found, nil
}

// compile checks that a text begins with a statement that is allowed and returns
// the names of its columns.
func compile(conn *sql.Conn, text string) (names []string, err error) {
	err = conn.Raw(func(c any) error {
		describer, ok := c.(interface {
			ColumnInfo(query string) ([]sqlite.ColumnInfo, error)
		})
		if !ok {
			return fmt.Errorf("a connection of type %T tells no columns", c)
		}
		info, err := describer.ColumnInfo(text)
		for _, i := range info {
			names = append(names, tool.Clip(i.Name, maxColumnName))
		}
		return err
	})
	if err == nil && len(names) == 0 {
		err = fault.New(fault.Invalid, "That is no query: only SELECT can be run.")
	}
	return names, err
}

// whole puts a query, which compiles alone, into one that finds all its rows
// before it gives the first: the window of the count is everything. The driver
// heeds a deadline only until the first row, so that a query that gives a row and
// then searches for ever would never end. It also makes sure that the text is one
// statement.
func whole(text string, limit int) string {
	return fmt.Sprintf("SELECT *, count(*) OVER () FROM (SELECT * FROM (\n%s\n) LIMIT %d)", text, limit)
}

func collect(rows *sql.Rows, names []string, limit int) (found table, err error) {
	found.Columns, found.Rows = names, []json.RawMessage{}
	values, targets := make([]any, len(names)+1), make([]any, len(names)+1)
	for i := range values {
		targets[i] = &values[i]
	}
	size := 0
	for rows.Next() {
		if len(found.Rows) == limit {
			found.Truncated = true
			return found, nil
		}
		if err := rows.Scan(targets...); err != nil {
			return found, err
		}
		cells := make([]any, len(names))
		for i, v := range values[:len(names)] {
			var cut bool
			cells[i], cut = cell(v)
			found.Truncated = found.Truncated || cut
		}
		row, err := json.Marshal(cells)
		if err != nil {
			return found, fault.Wrap(err, fault.Internal, "encode a row")
		}
		switch size += len(row); {
		case len(row) > maxResult:
			return found, fault.Newf(fault.Invalid, "One row is larger than %d KiB. Select fewer columns, or parts of them with substr.", maxResult>>10)
		case size > maxResult:
			found.Truncated = true
			return found, nil
		}
		found.Rows = append(found.Rows, row)
	}
	return found, rows.Err()
}

// cell makes a value for JSON of one of SQLite.
func cell(v any) (value any, cut bool) {
	switch v := v.(type) {
	case string:
		s := strings.ToValidUTF8(v, "\uFFFD")
		if len(s) <= maxCell {
			return s, false
		}
		return fmt.Sprintf("%s… [%d more bytes]", strings.ToValidUTF8(s[:maxCell], ""), len(s)-maxCell), true
	case []byte:
		return fmt.Sprintf("[blob, %d bytes]", len(v)), len(v) > 0
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) { // JSON has no such numbers
			return strconv.FormatFloat(v, 'g', -1, 64), false
		}
		return v, false
	case time.Time:
		return v.Format(time.RFC3339Nano), false
	}
	return v, false // int64, bool, nil
}
