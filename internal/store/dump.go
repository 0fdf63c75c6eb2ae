package store

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"remote-agent/internal/fault"
)

// Dump writes an SQLite database as SQL that makes an equal one when it is fed
// to the sqlite3 program. It is one snapshot and one row in memory at a time.
// Full-text indexes are built again from their tables. On PostgreSQL it is
// fault.Unsupported: pg_dump is for that.
func (s *Store) Dump(ctx context.Context, out io.Writer) error {
	if s.pg != nil {
		return fault.New(fault.Unsupported, "A dump of PostgreSQL is made with pg_dump; `bot backup create` calls it.")
	}
	w := bufio.NewWriterSize(out, 64<<10)
	err := s.InRead(ctx, func(tx *Tx) error { return tx.Care().dump(ctx, w) })
	if err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return &fault.Error{Kind: fault.Unavailable, Public: "The dump cannot be written; is the disk full?", Err: err}
	}
	return nil
}

// schemaObject is a row of sqlite_schema.
type schemaObject struct{ kind, name, sql string }

func (t *Care) dump(ctx context.Context, w *bufio.Writer) error {
	var objects []schemaObject
	var virtual []string
	err := t.tx.each(ctx, func(scan func(...any) error) error {
		var o schemaObject
		if err := scan(&o.kind, &o.name, &o.sql); err != nil {
			return err
		}
		objects = append(objects, o)
		if isVirtual(o) {
			virtual = append(virtual, o.name)
		}
		return nil
	}, `SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY rowid`)
	if err != nil {
		return fmt.Errorf("read schema: %w", err)
	}
	put := func(format string, args ...any) { fmt.Fprintf(w, format, args...) } //nolint:errcheck // Flush returns it
	put("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n")
	for _, o := range objects {
		if o.kind != "table" || isVirtual(o) || isShadow(o.name, virtual) {
			continue
		}
		put("%s;\n", o.sql)
		if err := t.dumpRows(ctx, w, o.name); err != nil {
			return err
		}
	}
	put("DELETE FROM sqlite_sequence;\n")
	if err := t.dumpRows(ctx, w, "sqlite_sequence"); err != nil {
		return err
	}
	for _, kind := range []string{"view", "virtual", "index", "trigger"} {
		for _, o := range objects {
			switch {
			case kind == "virtual" && isVirtual(o):
				put("%s;\nINSERT INTO %s(%s) VALUES ('rebuild');\n", o.sql, quoted(o.name), quoted(o.name))
			case o.kind == kind:
				put("%s;\n", o.sql)
			}
		}
	}
	put("COMMIT;\n")
	return nil
}

func isVirtual(o schemaObject) bool {
	return strings.HasPrefix(strings.ToUpper(o.sql), "CREATE VIRTUAL TABLE")
}

// isShadow reports whether a table holds the data of a virtual one.
func isShadow(name string, virtual []string) bool {
	return slices.ContainsFunc(virtual, func(v string) bool { return strings.HasPrefix(name, v+"_") })
}

func (t *Care) dumpRows(ctx context.Context, w *bufio.Writer, table string) error {
	var columns []string
	err := t.tx.each(ctx, func(scan func(...any) error) error {
		var name string
		err := scan(&name)
		columns = append(columns, "quote("+quoted(name)+")")
		return err
	}, `SELECT name FROM pragma_table_info($1) ORDER BY cid`, table)
	if err != nil || len(columns) == 0 {
		return wrap(err, "read columns of "+table)
	}
	prefix := "INSERT INTO " + quoted(table) + " VALUES("
	err = t.tx.each(ctx, func(scan func(...any) error) error {
		var values string
		if err := scan(&values); err != nil {
			return err
		}
		_, err := w.WriteString(prefix + values + ");\n")
		return err
	}, `SELECT `+strings.Join(columns, " || ',' || ")+` FROM `+quoted(table))
	return wrap(err, "dump "+table)
}
