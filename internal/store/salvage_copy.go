package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"unicode/utf8"

	"remote-agent/internal/fault"
	"remote-agent/internal/lists"
)

// copier copies the rows of one table.
type copier struct {
	ctx     context.Context
	table   table
	from    *sql.DB
	to      *sql.Tx
	insert  string
	probes  int
	copied  int64
	emptied int64 // of those, how many had damaged JSON
	refused int64 // read, but not taken: no row could be so
	damage  error // the first one that was met
	failed  error // of the target: ends everything
}

func (c *copier) names() string {
	return strings.Join(lists.Map(c.table.columns, quoted), ", ")
}

// clear removes what every new database has: the rows of the damaged one take their
// place.
func (c *copier) clear() error {
	_, err := c.to.ExecContext(c.ctx, `DELETE FROM `+quoted(c.table.name)) //nolint:gosec // names of the schema
	return classifySQLite(err)
}

// whole copies a table from its beginning up to damage, from its end down to damage,
// and then looks between.
func (c *copier) whole() {
	c.between(math.MinInt64, math.MaxInt64)
}

// between copies the rows with rowids from a to b. Where the way up and the way down
// meet damage, the halves of what is left are looked at, the lower one first.
func (c *copier) between(a, b int64) {
	if a > b || c.failed != nil || c.ctx.Err() != nil {
		return
	}
	if c.probes >= probesPerTable || c.copied == 0 && c.probes >= probesInVain {
		return
	}
	last, err := c.read(a, b, "ASC")
	if err == nil {
		return
	}
	c.noteDamage(err)
	if last != nil {
		if *last == math.MaxInt64 {
			return
		}
		a = *last + 1
	}
	first, err := c.read(a, b, "DESC")
	if err == nil {
		return
	}
	if first != nil {
		if *first == math.MinInt64 {
			return
		}
		b = *first - 1
	}
	if a >= b {
		return
	}
	// Rowids begin at 1: what is below is one place.
	middle := a + int64((uint64(b)-uint64(a))/2) //nolint:gosec // wraps to the middle
	if a < 1 && b >= 1 {
		middle = 0
	}
	c.between(a, middle)
	c.between(middle+1, b)
}

func (c *copier) noteDamage(err error) {
	if c.damage == nil {
		c.damage = err
	}
}

// read copies rows in one direction until there are no more, or until damage, and
// returns the rowid of the last one.
func (c *copier) read(a, b int64, direction string) (last *int64, err error) {
	c.probes++
	rows, err := c.from.QueryContext(c.ctx, `SELECT rowid, `+c.names()+` FROM `+quoted(c.table.name)+ //nolint:gosec // names of the schema
		` NOT INDEXED WHERE rowid BETWEEN ? AND ? ORDER BY rowid `+direction, a, b)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // only read
	for rows.Next() {
		values, err := scanRow(rows, len(c.table.columns)+1)
		if err != nil {
			return last, err
		}
		id, ok := values[0].(int64)
		inOrder := last == nil || direction == "ASC" && id > *last || direction == "DESC" && id < *last
		if !ok || id < a || id > b || !inOrder {
			return last, errors.New("rows are not in order")
		}
		last = &id
		if !c.take(values[1:]) {
			return last, c.failed
		}
	}
	return last, rows.Err()
}

// withoutRowid copies a table without rowids from both ends.
func (c *copier) withoutRowid() {
	for _, direction := range []string{"ASC", "DESC"} {
		err := c.readByKey(direction)
		if err == nil {
			return
		}
		c.noteDamage(err)
	}
}

func (c *copier) readByKey(direction string) error {
	order := strings.Join(c.table.key, " "+direction+", ") + " " + direction
	rows, err := c.from.QueryContext(c.ctx, `SELECT `+c.names()+` FROM `+quoted(c.table.name)+` ORDER BY `+order) //nolint:gosec // names of the schema
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // only read
	for rows.Next() {
		values, err := scanRow(rows, len(c.table.columns))
		if err != nil {
			return err
		}
		if !c.take(values) {
			return c.failed
		}
	}
	return rows.Err()
}

// take stores a row. One that breaks the rules of its table, or has text that is no
// text, is damage that looks like a row, and is left out; JSON that the row can do
// without is emptied instead. It reports false if the target failed.
func (c *copier) take(values []any) bool {
	emptied := int64(0)
	for i, value := range values {
		text, ok := value.(string)
		if !ok {
			continue
		}
		sound := utf8.ValidString(text)
		if empty := emptyJSON[c.table.columns[i]]; empty != "" && (!sound || !json.Valid([]byte(text))) {
			values[i], emptied = empty, 1
		} else if !sound {
			c.refused++
			return true
		}
	}
	result, err := c.to.ExecContext(c.ctx, c.insert, values...)
	if err != nil {
		switch fault.KindOf(classifySQLite(err)) {
		case fault.Invalid, fault.Conflict, fault.NotFound:
			c.refused++
			return true
		default:
			c.failed = err
			return false
		}
	}
	if n, _ := result.RowsAffected(); n > 0 {
		c.copied++
		c.emptied += emptied
	}
	return true
}

func scanRow(rows *sql.Rows, columns int) ([]any, error) {
	values, to := make([]any, columns), make([]any, columns)
	for i := range values {
		to[i] = &values[i]
	}
	return values, rows.Scan(to...)
}

func queryAll(ctx context.Context, db *sql.DB, query string, args ...any) (list [][]any, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, classifySQLite(err)
	}
	defer rows.Close() //nolint:errcheck // only read
	names, err := rows.Columns()
	if err != nil {
		return nil, classifySQLite(err)
	}
	for rows.Next() {
		values, err := scanRow(rows, len(names))
		if err != nil {
			return nil, classifySQLite(err)
		}
		list = append(list, values)
	}
	return list, classifySQLite(rows.Err())
}

//go:noinline // it would be copied into many callers
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
