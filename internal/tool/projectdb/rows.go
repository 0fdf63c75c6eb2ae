package projectdb

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/tool"
)

// Run implements tool.Tool.
func (t *tableTool) Run(ctx context.Context, raw json.RawMessage) (tool.Result, error) {
	a, err := decodeTable(raw)
	if err != nil {
		return tool.Result{}, err
	}
	var out any
	err = t.db.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		out, err = t.db.change(ctx, tx, a)
		return err
	})
	if err != nil {
		return tool.Result{}, err
	}
	content, err := json.Marshal(out)
	if err != nil {
		return tool.Result{}, fault.Wrap(err, fault.Internal, "encode a result")
	}
	note := "done"
	if c, ok := out.(counts); ok {
		note = c.note()
	}
	return tool.Result{Content: string(content), Note: note}, nil
}

func (d *DB) change(ctx context.Context, tx *sql.Tx, a tableArgs) (any, error) {
	switch a.Action {
	case actList:
		return list(ctx, tx)
	case actDescribe:
		return describe(ctx, tx, a.Table)
	case actCreate, actAddColumn:
		return d.define(ctx, tx, a)
	case actDrop:
		return d.drop(ctx, tx, a.Table)
	case actInsert, actUpsert:
		table, err := load(ctx, tx, a.Table)
		if err != nil {
			return nil, err
		}
		return table.put(ctx, tx, a)
	case actUpdate, actDelete:
		table, err := load(ctx, tx, a.Table)
		if err != nil {
			return nil, err
		}
		return table.change(ctx, tx, a)
	}
	return nil, fault.Newf(fault.Internal, "The action %s is not made.", a.Action)
}

func list(ctx context.Context, tx *sql.Tx) (any, error) {
	names, err := tables(ctx, tx)
	if err != nil {
		return nil, err
	}
	type entry struct {
		Table   string   `json:"table"`
		Rows    int64    `json:"rows"`
		Columns []string `json:"columns"`
	}
	out := []entry{}
	for _, name := range names {
		table, err := describe(ctx, tx, name)
		if err != nil {
			return nil, err
		}
		e := entry{Table: name, Rows: table.Rows}
		for _, c := range table.Columns {
			e.Columns = append(e.Columns, c.Name)
		}
		out = append(out, e)
	}
	return map[string]any{"tables": out}, nil
}

// counts is the result of a change of rows.
type counts struct {
	Inserted *int64            `json:"inserted,omitempty"`
	Updated  *int64            `json:"updated,omitempty"`
	Deleted  *int64            `json:"deleted,omitempty"`
	Keys     []json.RawMessage `json:"keys,omitempty"` // the primary keys of rows that were inserted
}

func (c counts) note() string {
	var parts []string
	for _, p := range []struct {
		verb string
		n    *int64
	}{{"inserted", c.Inserted}, {"updated", c.Updated}, {"deleted", c.Deleted}} {
		if p.n != nil {
			parts = append(parts, fmt.Sprintf("%s %d", p.verb, *p.n))
		}
	}
	return strings.Join(parts, ", ")
}

// maxOptions is how many values a condition on a column can have: SQLite bounds
// the depth of an expression.
const maxOptions = 500

// maxKeys is how many primary keys an insert tells the model.
const maxKeys = 100

// put inserts rows, and for upsert updates those whose primary key exists.
func (t *description) put(ctx context.Context, tx *sql.Tx, a tableArgs) (counts, error) {
	var inserted, updated int64
	var keys []json.RawMessage
	statements := make(map[string]*sql.Stmt)
	defer func() {
		for _, s := range statements {
			_ = s.Close()
		}
	}()
	prepare := func(text string) (*sql.Stmt, error) {
		if s := statements[text]; s != nil {
			return s, nil
		}
		s, err := tx.PrepareContext(ctx, text)
		if err == nil {
			statements[text] = s
		}
		return s, err
	}
	for i, r := range a.Rows {
		exists, key, err := t.putOne(ctx, prepare, r, a.Action == actUpsert)
		if err != nil {
			return counts{}, inRow(i, err)
		}
		if exists {
			updated++
			continue
		}
		inserted++
		if len(keys) < maxKeys {
			keys = append(keys, key)
		}
	}
	out := counts{Inserted: &inserted, Keys: keys}
	if a.Action == actUpsert {
		out.Updated = &updated
	}
	return out, nil
}

// inRow says in which row something was wrong.
func inRow(i int, err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return &fault.Error{Kind: f.Kind, Public: fmt.Sprintf("Row %d: %s Nothing was changed.", i+1, f.Public), Err: err}
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok || e.Code()&0xff != sqlite3.SQLITE_CONSTRAINT {
		return err
	}
	return &fault.Error{Kind: fault.Invalid, Public: fmt.Sprintf("Row %d: %s. Nothing was changed.", i+1, errorCode.ReplaceAllString(e.Error(), "")), Err: err}
}

func (t *description) putOne(ctx context.Context, prepare func(string) (*sql.Stmt, error), r row, upsert bool) (exists bool, key json.RawMessage, err error) {
	names := r.names()
	values, err := t.values(names, r)
	if err != nil {
		return false, nil, err
	}
	text := fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", quote(t.Table), quoteAll(names), marks(len(names)))
	if upsert && !slices.ContainsFunc(t.keys, func(k string) bool { return !slices.Contains(names, k) }) {
		if exists, err = t.has(ctx, prepare, names, values); err != nil {
			return false, nil, err
		}
		var sets []string
		for _, n := range names {
			if !slices.Contains(t.keys, n) {
				sets = append(sets, quote(n)+" = excluded."+quote(n))
			}
		}
		text += " ON CONFLICT (" + quoteAll(t.keys) + ") DO "
		if len(sets) == 0 { // RETURNING gives no row for DO NOTHING
			sets = append(sets, quote(t.keys[0])+" = excluded."+quote(t.keys[0]))
		}
		text += "UPDATE SET " + strings.Join(sets, ", ")
	}
	s, err := prepare(text + " RETURNING " + quoteAll(t.keys)) //nolint:sqlclosecheck // put closes it
	if err != nil {
		return false, nil, err
	}
	found, targets := make([]any, len(t.keys)), make([]any, len(t.keys))
	for i := range found {
		targets[i] = &found[i]
	}
	if err := s.QueryRowContext(ctx, values...).Scan(targets...); err != nil {
		return false, nil, err
	}
	for i := range found {
		found[i], _ = cell(found[i])
	}
	var shown any = found
	if len(found) == 1 {
		shown = found[0]
	}
	key, err = json.Marshal(shown)
	return exists, key, err
}

// has reports whether there is a row with the primary key of these values.
func (t *description) has(ctx context.Context, prepare func(string) (*sql.Stmt, error), names []string, values []any) (bool, error) {
	var conditions []string
	var key []any
	for _, k := range t.keys {
		conditions = append(conditions, quote(k)+" = ?")
		key = append(key, values[slices.Index(names, k)])
	}
	s, err := prepare(fmt.Sprintf("SELECT count(*) FROM %s WHERE %s", quote(t.Table), strings.Join(conditions, " AND "))) //nolint:sqlclosecheck // put closes it
	if err != nil {
		return false, err
	}
	var n int
	err = s.QueryRowContext(ctx, key...).Scan(&n)
	return n > 0, err
}

// change updates or deletes rows.
func (t *description) change(ctx context.Context, tx *sql.Tx, a tableArgs) (counts, error) {
	text := "DELETE FROM " + quote(t.Table) //nolint:gosec // names were checked; values are bound
	var args []any
	if a.Action == actUpdate {
		names := a.Values.names()
		values, err := t.values(names, a.Values)
		if err != nil {
			return counts{}, err
		}
		args = values
		sets := lists.Map(names, func(n string) string { return quote(n) + " = ?" })
		text = "UPDATE " + quote(t.Table) + " SET " + strings.Join(sets, ", ")
	}
	if !a.All {
		condition, values, err := t.where(a.Where)
		if err != nil {
			return counts{}, err
		}
		text, args = text+" WHERE "+condition, append(args, values...)
	}
	done, err := tx.ExecContext(ctx, text, args...)
	if err != nil {
		return counts{}, err
	}
	n, err := done.RowsAffected()
	if a.Action == actUpdate {
		return counts{Updated: &n}, err
	}
	return counts{Deleted: &n}, err
}

func (t *description) where(r row) (condition string, args []any, err error) {
	var parts []string
	for _, name := range r.names() {
		c, err := t.column(name)
		if err != nil {
			return "", nil, err
		}
		raw := bytes.TrimSpace(r[name])
		var options []json.RawMessage
		if !bytes.HasPrefix(raw, []byte("[")) {
			options = []json.RawMessage{raw}
		} else if err := json.Unmarshal(raw, &options); err != nil || len(options) == 0 || len(options) > maxOptions {
			return "", nil, fault.Newf(fault.Invalid, `The list for %s in "where" has 1 to %d values.`, name, maxOptions)
		}
		var marked []string
		for _, o := range options {
			v, err := value(o, c.Type)
			if err != nil {
				return "", nil, wrongValue(c, err)
			}
			// IS also compares with NULL.
			marked, args = append(marked, quote(name)+" IS ?"), append(args, v)
		}
		parts = append(parts, "("+strings.Join(marked, " OR ")+")")
	}
	return strings.Join(parts, " AND "), args, nil
}

func (t *description) column(name string) (column, error) {
	i := slices.IndexFunc(t.Columns, func(c column) bool { return c.Name == name })
	if i < 0 {
		names := lists.Map(t.Columns, func(c column) string { return c.Name })
		return column{}, fault.Newf(fault.Invalid, "%s has no column %s. The columns are: %s.", t.Table, name, strings.Join(names, ", "))
	}
	return t.Columns[i], nil
}

func (t *description) values(names []string, r row) ([]any, error) {
	out := make([]any, len(names))
	for i, name := range names {
		c, err := t.column(name)
		if err != nil {
			return nil, err
		}
		if out[i], err = value(r[name], c.Type); err != nil {
			return nil, wrongValue(c, err)
		}
	}
	return out, nil
}

func wrongValue(c column, err error) error {
	return fault.Newf(fault.Invalid, "The value for %s, which is %s, %v.", c.Name, c.Type, err)
}

// value makes a value for SQLite of one of JSON, for a column of a type.
func value(raw json.RawMessage, kind string) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, errors.New("cannot be read")
	}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, errors.New("is a number that is too large")
		}
		return f, nil
	case string:
		if kind != "blob" {
			return v, nil
		}
		data, err := base64.StdEncoding.DecodeString(v)
		if err != nil {
			return nil, errors.New("is not base64")
		}
		return data, nil
	}
	if kind != "text" {
		return nil, errors.New("is a list or an object; only a text column takes that")
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, errors.New("cannot be read")
	}
	return b.String(), nil
}

func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }
