package projectdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
	"remote-agent/internal/tool"
)

// quote quotes a name that was checked: then it has no quotes in it.
func quote(name string) string { return `"` + name + `"` }

func quoteAll(names []string) string {
	return strings.Join(lists.Map(names, quote), ", ")
}

// literal returns the default of a column as SQL.
func (c column) literal() (string, error) {
	if !c.hasDefault() {
		return "", nil
	}
	wrong := fault.Newf(fault.Invalid, "The default of %s does not fit its type %s; it is a number, text, true or false.", c.Name, c.Type)
	v, err := value(c.Default, c.Type)
	if err != nil || strings.ContainsAny(string(c.Default[:1]), "[{") {
		return "", wrong
	}
	switch v := v.(type) {
	case int64:
		return fmt.Sprint(v), nil
	case float64:
		if c.Type == "integer" {
			return "", wrong
		}
		return fmt.Sprintf("%g", v), nil
	case string:
		if c.Type != "text" || strings.ContainsRune(v, 0) {
			return "", wrong
		}
		return "'" + strings.ReplaceAll(v, "'", "''") + "'", nil
	}
	return "", wrong
}

// definition returns a column as SQL. alone says that it is the whole primary
// key.
func (c column) definition(alone bool) string {
	b := quote(c.Name) + " " + strings.ToUpper(c.Type)
	if alone {
		b += " PRIMARY KEY"
	}
	if c.NotNull || c.PrimaryKey && (!alone || c.Type != "integer") {
		b += " NOT NULL"
	}
	if c.Unique {
		b += " UNIQUE"
	}
	if text, _ := c.literal(); text != "" { // it was checked
		b += " DEFAULT " + text
	}
	if r := c.References; r != nil {
		b += " REFERENCES " + quote(r.Table)
		if r.Column != "" {
			b += "(" + quote(r.Column) + ")"
		}
		b += map[string]string{"cascade": " ON DELETE CASCADE", "set_null": " ON DELETE SET NULL", "restrict": " ON DELETE RESTRICT"}[r.OnDelete]
	}
	return b
}

// statements returns the SQL of create and add_column. Columns that reference
// another table get an index if none begins with them.
func (a tableArgs) statements() []string {
	var keys, indexed []string
	for _, c := range a.Columns {
		if c.PrimaryKey {
			keys = append(keys, c.Name)
		}
	}
	var definitions, statements []string
	for _, c := range a.Columns {
		alone := len(keys) == 1 && c.PrimaryKey
		definitions = append(definitions, c.definition(alone))
		if a.Action == actAddColumn {
			statements = append(statements, fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s", quote(a.Table), c.definition(false)))
		}
		if c.Unique || alone {
			indexed = append(indexed, c.Name)
		}
	}
	if len(keys) > 1 {
		definitions = append(definitions, "PRIMARY KEY ("+quoteAll(keys)+")")
		indexed = append(indexed, keys[0])
	}
	if a.Action == actCreate {
		statements = append(statements, fmt.Sprintf("CREATE TABLE %s (\n  %s\n) STRICT", quote(a.Table), strings.Join(definitions, ",\n  ")))
	}
	indexes := slices.Clone(a.Indexes)
	for _, x := range indexes {
		indexed = append(indexed, x.Columns[0])
	}
	for _, c := range a.Columns {
		if c.References != nil && !slices.Contains(indexed, c.Name) {
			indexes = append(indexes, index{Columns: []string{c.Name}})
		}
	}
	for _, x := range indexes {
		unique := ""
		if x.Unique {
			unique = "UNIQUE "
		}
		name := "idx_" + a.Table + "_" + strings.Join(x.Columns, "_")
		statements = append(statements, fmt.Sprintf("CREATE %sINDEX %s ON %s (%s)", unique, quote(name), quote(a.Table), quoteAll(x.Columns)))
	}
	return statements
}

// define runs create and add_column.
func (d *DB) define(ctx context.Context, tx *sql.Tx, a tableArgs) (any, error) {
	existing, err := tables(ctx, tx)
	if err != nil {
		return nil, err
	}
	exists := slices.Contains(existing, a.Table)
	switch {
	case a.Action == actCreate && exists:
		return nil, fault.Newf(fault.Conflict, "The table %s already exists. Use describe to see it, and add_column to extend it.", a.Table)
	case a.Action == actCreate && len(existing) >= maxTables:
		return nil, fault.Newf(fault.Exhausted, "A project has at most %d tables.", maxTables)
	case a.Action == actAddColumn && !exists:
		return nil, unknown(a.Table, existing)
	}
	for _, c := range a.Columns {
		if c.References != nil && c.References.Table != a.Table && !slices.Contains(existing, c.References.Table) {
			return nil, fault.Newf(fault.NotFound, "%s references the table %s, which does not exist. Create that first.", c.Name, c.References.Table)
		}
	}
	for _, s := range a.statements() {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return nil, err
		}
	}
	// SQLite only looks at what a foreign key points to when it compiles a change.
	check, err := tx.PrepareContext(ctx, fmt.Sprintf("INSERT INTO %s DEFAULT VALUES", quote(a.Table)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = check.Close() }()
	return describe(ctx, tx, a.Table)
}

// drop deletes a table that no other one references.
func (d *DB) drop(ctx context.Context, tx *sql.Tx, name string) (any, error) {
	existing, err := tables(ctx, tx)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(existing, name) {
		return nil, unknown(name, existing)
	}
	for _, other := range existing {
		keys, err := foreignKeys(ctx, tx, other)
		if err != nil {
			return nil, err
		}
		if other != name && slices.ContainsFunc(keys, func(k foreignKey) bool { return k.Table == name }) {
			return nil, fault.Newf(fault.Conflict, "The table %s references %s; drop that first.", other, name)
		}
	}
	count, err := countRows(ctx, tx, name)
	if err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, "DROP TABLE "+quote(name)); err != nil {
		return nil, err
	}
	return map[string]any{"dropped": name, "rows": count}, nil
}

func unknown(name string, existing []string) error {
	if len(existing) == 0 {
		return fault.Newf(fault.NotFound, "There is no table %s, nor any other yet.", name)
	}
	return fault.Newf(fault.NotFound, "There is no table %s. The tables are: %s.", name, tool.Clip(strings.Join(existing, ", "), 2000))
}

func tables(ctx context.Context, tx *sql.Tx) ([]string, error) {
	return rowsOf(ctx, tx, func(rows *sql.Rows, name *string) error { return rows.Scan(name) },
		`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`)
}

// rowsOf returns the rows of a query, each as scan reads it.
func rowsOf[T any](ctx context.Context, tx *sql.Tx, scan func(*sql.Rows, *T) error, text string, args ...any) ([]T, error) {
	rows, err := tx.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var out []T
	for rows.Next() {
		var one T
		if err := scan(rows, &one); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, rows.Err()
}

func countRows(ctx context.Context, tx *sql.Tx, name string) (n int64, err error) {
	err = tx.QueryRowContext(ctx, "SELECT count(*) FROM "+quote(name)).Scan(&n)
	return n, err
}

// size says how many rows a table has, for people.
func (d *DB) size(ctx context.Context, name string) string {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	var n int64
	if d.broken != nil || d.reader.QueryRowContext(ctx, "SELECT count(*) FROM "+quote(name)).Scan(&n) != nil {
		return "an unknown number of rows"
	}
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}

// description is what a model sees of a table.
type description struct {
	Table       string       `json:"table"`
	Rows        int64        `json:"rows"`
	Columns     []column     `json:"columns"`
	ForeignKeys []foreignKey `json:"foreign_keys,omitempty"`
	Indexes     []index      `json:"indexes,omitempty"`

	keys []string // the primary key, in its order
}

type foreignKey struct {
	Column   string `json:"column"`
	Table    string `json:"table"`
	To       string `json:"to,omitempty"`
	OnDelete string `json:"on_delete"`
}

// describe reads what a table is. A table that does not exist is fault.NotFound.
func describe(ctx context.Context, tx *sql.Tx, name string) (*description, error) {
	out, err := load(ctx, tx, name)
	if err != nil {
		return nil, err
	}
	if out.ForeignKeys, err = foreignKeys(ctx, tx, name); err != nil {
		return nil, err
	}
	if out.Indexes, err = indexes(ctx, tx, name); err != nil {
		return nil, err
	}
	out.Rows, err = countRows(ctx, tx, name)
	return out, err
}

// load reads the columns of a table, which is what a change of rows needs. Its
// cost does not grow with the table.
func load(ctx context.Context, tx *sql.Tx, name string) (*description, error) {
	out := &description{Table: name}
	if err := columns(ctx, tx, out); err != nil {
		return nil, err
	}
	if len(out.Columns) > 0 {
		return out, nil
	}
	existing, err := tables(ctx, tx)
	if err != nil {
		return nil, err
	}
	return nil, unknown(name, existing)
}

func columns(ctx context.Context, tx *sql.Tx, d *description) (err error) {
	keys := make(map[int]string)
	d.Columns, err = rowsOf(ctx, tx, func(rows *sql.Rows, c *column) error {
		var text sql.NullString
		var key int
		if err := rows.Scan(&c.Name, &c.Type, &c.NotNull, &text, &key); err != nil {
			return err
		}
		if c.PrimaryKey = key > 0; c.PrimaryKey {
			keys[key] = c.Name
		}
		if !text.Valid {
			return nil
		}
		var err error
		c.Default, err = json.Marshal(text.String)
		return err
	}, `SELECT name, lower(type), "notnull", dflt_value, pk FROM pragma_table_info(?) ORDER BY cid`, d.Table)
	for i := range len(keys) {
		d.keys = append(d.keys, keys[i+1])
	}
	return err
}

func foreignKeys(ctx context.Context, tx *sql.Tx, name string) ([]foreignKey, error) {
	return rowsOf(ctx, tx, func(rows *sql.Rows, k *foreignKey) error {
		return rows.Scan(&k.Column, &k.Table, &k.To, &k.OnDelete)
	}, `SELECT "from", "table", coalesce("to", ''), lower(on_delete) FROM pragma_foreign_key_list(?) ORDER BY 1`, name)
}

func indexes(ctx context.Context, tx *sql.Tx, name string) ([]index, error) {
	return rowsOf(ctx, tx, func(rows *sql.Rows, x *index) error {
		var list string
		if err := rows.Scan(&x.Unique, &list); err != nil {
			return err
		}
		return json.Unmarshal([]byte(list), &x.Columns)
	}, `SELECT l."unique", (SELECT json_group_array(i.name) FROM pragma_index_info(l.name) AS i)
		FROM pragma_index_list(?) AS l WHERE l.origin <> 'pk' ORDER BY l.name`, name)
}
