package conformance_test

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// column is what a database says of a column.
type column struct {
	name, kind, nullable, standard string
}

func (c column) String() string {
	return strings.Join(strings.Fields(c.name+" "+c.kind+" "+c.nullable+" "+c.standard), " ")
}

// columnsOf reads the columns of a table or view, in order. SQLite's types and
// defaults are left out: a type is a hint there, and what a default is, an insert
// shows.
func (c *check) columnsOf(db queryer, schema, name string) (all []column) {
	c.Helper()
	query := `SELECT name, '', CASE WHEN "notnull" = 1 THEN 'not null' ELSE '' END, '' FROM pragma_table_info('` + name + `') ORDER BY cid`
	if c.database == "postgres" {
		query = fmt.Sprintf(`SELECT a.attname, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'not null' ELSE '' END,
				COALESCE(pg_get_expr(d.adbin, d.adrelid), '')
			FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
			WHERE a.attrelid = '%s.%s'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, schema, name)
	}
	found, err := ask(c.Context(), db, query)
	if err != nil {
		c.Fatalf("columns of %s: %v", name, err)
	}
	for _, row := range found.rows {
		all = append(all, column{row[0], row[1], row[2], row[3]})
	}
	return all
}

// twin makes a seed's tables from its own DDL, beside ours, and gives a connection
// to them and the name of their schema. SQLite's are in a database in memory.
func (c *check) twin(ddl string, f func(db queryer, schema string)) {
	c.Helper()
	if c.database == "postgres" {
		c.try(func(t trial) {
			t.exec("CREATE SCHEMA seed")
			t.exec("SET LOCAL search_path TO seed, public")
			for _, statement := range statements(ddl) {
				t.exec(statement)
			}
			f(t.tx, "seed")
		})
		return
	}
	memory, err := sql.Open("sqlite", "file::memory:?_pragma=foreign_keys(1)")
	if err != nil {
		c.Fatalf("%v", err)
	}
	defer memory.Close()
	memory.SetMaxOpenConns(1)
	if _, err := memory.ExecContext(c.Context(), ddl); err != nil {
		c.Fatalf("the seed's DDL: %v", err)
	}
	f(memory, "main")
}

// statements takes DDL apart. None of the seeds' has a semicolon in a literal.
func statements(ddl string) (all []string) {
	for s := range strings.SplitSeq(ddl, ";") {
		if strings.TrimSpace(s) != "" {
			all = append(all, s)
		}
	}
	return all
}

// hasColumns fails unless a table of ours has every column of the seed's in the
// seed's order, with the same type, NOT NULL and default, but for the differences
// that are given by column: each as the seed has it and as we have it.
func (c *check) hasColumns(ddl, name string, differs map[string][2]string) {
	c.Helper()
	c.twin(ddl, func(db queryer, schema string) {
		ours := c.columnsOf(c.sql, "public", name)
		seen, last := maps.Clone(differs), -1
		for _, want := range c.columnsOf(db, schema, name) {
			at := slices.IndexFunc(ours, func(o column) bool { return o.name == want.name })
			if at < 0 {
				c.Errorf("%s has no column %s", name, want.name)
				continue
			}
			if at < last {
				c.Errorf("%s.%s is not where the seed has it", name, want.name)
			}
			last = at
			wanted, got := want.String(), ours[at].String()
			if d, ok := differs[want.name]; ok {
				delete(seen, want.name)
				if wanted != d[0] || got != d[1] {
					c.Errorf("%s: the seed has %q and we have %q; the test says %q", name, wanted, got, d)
				}
			} else if wanted != got {
				c.Errorf("%s: the seed has %q and we have %q", name, wanted, got)
			}
		}
		for column := range seen {
			c.Errorf("%s.%s: there is no such difference", name, column)
		}
	})
}

// hasIndexes fails unless our table has the seed's indexes by their names, on the
// same columns.
func (c *check) hasIndexes(ddl, name string) {
	c.Helper()
	query := `SELECT i.name || ' ' || (SELECT group_concat(x.name || CASE x."desc" WHEN 1 THEN ' DESC' ELSE '' END) FROM pragma_index_xinfo(i.name) x WHERE x.key = 1 ORDER BY x.seqno)
		FROM pragma_index_list('` + name + `') i WHERE i.origin = 'c' ORDER BY 1`
	if c.database == "postgres" {
		query = `SELECT replace(replace(indexdef, 'seed.', ''), 'public.', '') FROM pg_indexes WHERE schemaname = '%s' AND tablename = '` + name + `' AND indexname NOT LIKE '%%_pkey' ORDER BY 1`
	}
	c.twin(ddl, func(db queryer, schema string) {
		of := func(db queryer, schema string) []string {
			q := query
			if c.database == "postgres" {
				q = fmt.Sprintf(query, schema)
			}
			found, err := ask(c.Context(), db, q)
			if err != nil {
				c.Fatalf("indexes of %s: %v", name, err)
			}
			var all []string
			for _, row := range found.rows {
				all = append(all, row[0])
			}
			return all
		}
		ours, wanted := of(c.sql, "public"), of(db, schema)
		if len(wanted) == 0 {
			c.Errorf("the seed's DDL has no index for %s", name)
		}
		for _, want := range wanted {
			if !slices.Contains(ours, want) {
				c.Errorf("%s has no index %q; it has %q", name, want, ours)
			}
		}
	})
}
