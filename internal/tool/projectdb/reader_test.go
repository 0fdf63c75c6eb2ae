package projectdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"modernc.org/sqlite"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/tool"
	"remote-agent/internal/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) *DB {
	t.Helper()
	d, err := Open(filepath.Join(t.TempDir(), "projects", "p.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func arguments(t *testing.T, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

type object = map[string]any

func query(t *testing.T, d *DB, text string) (string, error) {
	t.Helper()
	r, err := (&readerTool{db: d}).Run(context.Background(), arguments(t, object{"query": text}))
	return r.Content, err
}

// change runs project_table and returns its result.
func change(t *testing.T, d *DB, args object) (object, error) {
	t.Helper()
	r, err := (&tableTool{d}).Run(context.Background(), arguments(t, args))
	if err != nil {
		return nil, err
	}
	var out object
	if err := json.Unmarshal([]byte(r.Content), &out); err != nil {
		t.Fatalf("%q: %v", r.Content, err)
	}
	return out, nil
}

func must(t *testing.T, d *DB, args object) object {
	t.Helper()
	out, err := change(t, d, args)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out
}

// finance makes the tables of seed 003.
func finance(t *testing.T) *DB {
	t.Helper()
	d := open(t)
	must(t, d, object{"action": "create", "table": "finance_accounts", "columns": []object{
		{"name": "id", "type": "integer", "primary_key": true}, {"name": "account_name", "type": "text", "not_null": true},
		{"name": "balance", "type": "real", "default": 0}, {"name": "order", "type": "text"},
	}})
	must(t, d, object{"action": "create", "table": "finance_transactions", "columns": []object{
		{"name": "id", "type": "integer", "primary_key": true},
		{"name": "account_id", "type": "integer", "references": object{"table": "finance_accounts", "column": "id"}},
		{"name": "amount", "type": "real"}, {"name": "category", "type": "text"},
	}, "indexes": []object{{"columns": []string{"category", "amount"}}}})
	must(t, d, object{"action": "insert", "table": "finance_accounts", "rows": []object{{"account_name": "Giro", "balance": 10.5}, {"account_name": "O'Brien\n\"x\""}}})
	return d
}

func TestFreshDatabaseCanBeRead(t *testing.T) {
	t.Parallel()
	d := open(t)
	got, err := query(t, d, "SELECT name FROM sqlite_master")
	if err != nil || got != `{"columns":["name"],"rows":[],"truncated":false}` {
		t.Errorf("%s, %v", got, err)
	}
	if out := must(t, d, object{"action": "list"}); len(out["tables"].([]any)) != 0 {
		t.Errorf("tables are %v", out)
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	d := finance(t)
	tests := map[string]struct{ query, want string }{
		"Types":    {"SELECT id, account_name, balance, \"order\", x'00ff' AS b FROM finance_accounts ORDER BY id", `{"columns":["id","account_name","balance","order","b"],"rows":[[1,"Giro",10.5,null,"[blob, 2 bytes]"],[2,"O'Brien\n\"x\"",0,null,"[blob, 2 bytes]"]],"truncated":true}`},
		"Count":    {"SELECT count(*) FROM finance_accounts", `{"columns":["count(*)"],"rows":[[2]],"truncated":false}`},
		"CTE":      {"WITH c AS (SELECT id FROM finance_accounts) SELECT count(*) AS n FROM c", `{"columns":["n"],"rows":[[2]],"truncated":false}`},
		"Subquery": {"SELECT count(*) AS n FROM (SELECT 1 UNION ALL SELECT 2)", `{"columns":["n"],"rows":[[2]],"truncated":false}`},
		"Join":     {"SELECT a.id FROM finance_accounts a LEFT JOIN finance_transactions t ON t.account_id = a.id GROUP BY a.id HAVING sum(t.amount) IS NULL ORDER BY 1 DESC LIMIT 1", `{"columns":["id"],"rows":[[2]],"truncated":false}`},
		"Window":   {"SELECT row_number() OVER (ORDER BY id) AS r FROM finance_accounts", `{"columns":["r"],"rows":[[1],[2]],"truncated":false}`},
		"JSON":     {`SELECT value FROM json_each('[1,"a"]')`, `{"columns":["value"],"rows":[[1],["a"]],"truncated":false}`},
		"Arrow":    {`SELECT '{"a":[7]}' -> '$.a' ->> 0 AS x`, `{"columns":["x"],"rows":[[7]],"truncated":false}`},
		"Dates":    {"SELECT date('2026-01-31', '+1 day') AS d, strftime('%Y', 0, 'unixepoch') AS y", `{"columns":["d","y"],"rows":[["2026-02-01","1970"]],"truncated":false}`},
		"Infinity": {"SELECT 9e999 AS i, -9e999 AS j", `{"columns":["i","j"],"rows":[["+Inf","-Inf"]],"truncated":false}`},
		"Big":      {"SELECT 9223372036854775807 AS n", `{"columns":["n"],"rows":[[9223372036854775807]],"truncated":false}`},
		"BadUTF8":  {"SELECT CAST(x'61ff' AS TEXT) AS t", `{"columns":["t"],"rows":[["a` + "\uFFFD" + `"]],"truncated":false}`},
		"Recurse":  {"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 3) SELECT group_concat(x) AS g FROM c", `{"columns":["g"],"rows":[["1,2,3"]],"truncated":false}`},
		"Schema":   {"SELECT count(*) AS n FROM sqlite_schema WHERE type = 'table'", `{"columns":["n"],"rows":[[2]],"truncated":false}`},
		"Comment":  {"-- all\nSELECT 1 AS one -- done", `{"columns":["one"],"rows":[[1]],"truncated":false}`},
		"End":      {" SELECT 1 AS one ; \n", `{"columns":["one"],"rows":[[1]],"truncated":false}`},
		"Order":    {"SELECT id FROM finance_accounts ORDER BY id DESC", `{"columns":["id"],"rows":[[2],[1]],"truncated":false}`},
		"Limit":    {"SELECT id FROM finance_accounts ORDER BY balance DESC LIMIT 1 OFFSET 1", `{"columns":["id"],"rows":[[2]],"truncated":false}`},
		"Union":    {"SELECT 2 AS x UNION SELECT 1 UNION SELECT 3 ORDER BY x DESC", `{"columns":["x"],"rows":[[3],[2],[1]],"truncated":false}`},
		"With":     {"WITH a AS (VALUES (1, 'x'), (2, 'y')) SELECT column2, column1 FROM a ORDER BY 2 DESC", `{"columns":["column2","column1"],"rows":[["y",2],["x",1]],"truncated":false}`},
		"Values":   {"VALUES (3), (1)", `{"columns":["column1"],"rows":[[3],[1]],"truncated":false}`},
		"Same":     {"SELECT 1 AS a, 2 AS a, count(*)", `{"columns":["a","a","count(*)"],"rows":[[1,2,1]],"truncated":false}`},
		"Trim":     {"SELECT trim('xaxbx', 'x') AS a, ltrim(' a ') AS b, rtrim(1.50, 5) AS c, trim(NULL, 'x') AS d, ltrim('éèa', 'èé') AS e", `{"columns":["a","b","c","d","e"],"rows":[["axb","a ","1.",null,"a"]],"truncated":false}`},
	}
	for name, tt := range tests {
		if got, err := query(t, d, tt.query); got != tt.want {
			t.Errorf("%s: %s, %v\nwant %s", name, got, err, tt.want)
		}
	}
}

// TestHostileStatements is list F3 of the contracts and more. None may change or
// read anything else, and the file is byte for byte what it was.
func TestHostileStatements(t *testing.T) {
	t.Parallel()
	d := finance(t)
	dir := filepath.Dir(d.path)
	foreign := filepath.Join(dir, "foreign.db")
	other, err := sql.Open("sqlite", foreign)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec("CREATE TABLE secrets (s); INSERT INTO secrets VALUES ('the secret')"); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, d)
	hostile := []string{
		"ATTACH '" + foreign + "' AS f", "ATTACH 'file:" + foreign + "?mode=rw' AS f", "ATTACH ':memory:' AS m", "DETACH main",
		"ATTACH '" + foreign + "' AS f; SELECT * FROM f.secrets", "SELECT 1; ATTACH '" + foreign + "' AS f", "SELECT * FROM f.secrets",
		"VACUUM", "VACUUM INTO '" + filepath.Join(dir, "copy.db") + "'", "SELECT 1; VACUUM INTO '" + filepath.Join(dir, "copy.db") + "'",
		"PRAGMA query_only = 0", "PRAGMA query_only=0; INSERT INTO finance_accounts (account_name) VALUES ('x')", "PRAGMA writable_schema = 1", "PRAGMA trusted_schema = 1",
		"PRAGMA user_version", "PRAGMA journal_mode = DELETE", "PRAGMA table_info(finance_accounts)", "PRAGMA temp_store_directory = '/tmp'", "PRAGMA database_list",
		"SELECT * FROM pragma_table_info('finance_accounts')", "SELECT count(*) FROM pragma_database_list", "SELECT file FROM pragma_database_list()",
		"SELECT 1 FROM pragma_journal_mode('delete')", "SELECT * FROM pragma_function_list", "SELECT 1 WHERE EXISTS (SELECT 1 FROM pragma_query_only(0))",
		"INSERT INTO finance_accounts (account_name) VALUES ('x')", "UPDATE finance_accounts SET balance = 0", "DELETE FROM finance_accounts", "REPLACE INTO finance_accounts (id, account_name) VALUES (1, 'x')",
		"INSERT INTO finance_accounts (account_name) VALUES ('x') RETURNING id", "WITH c AS (SELECT 1) INSERT INTO finance_accounts (account_name) SELECT 'x' FROM c",
		"WITH c AS (SELECT 1) DELETE FROM finance_accounts RETURNING *", "WITH c AS (DELETE FROM finance_accounts RETURNING *) SELECT * FROM c",
		"CREATE TABLE t_x (a)", "CREATE TEMP TABLE t_x (a)", "CREATE TABLE t_x AS SELECT 1", "CREATE VIEW v_x AS SELECT 1", "CREATE TEMP VIEW v_x AS SELECT 1",
		"CREATE TEMP TRIGGER t_x AFTER INSERT ON finance_accounts BEGIN SELECT 1; END", "CREATE INDEX i_x ON finance_accounts (balance)", "CREATE VIRTUAL TABLE v_x USING fts5(a)",
		"CREATE VIRTUAL TABLE temp.v_x USING dbstat", "DROP TABLE finance_accounts", "DROP TABLE IF EXISTS finance_accounts", "ALTER TABLE finance_accounts RENAME TO x_y", "ALTER TABLE finance_accounts ADD COLUMN x",
		"REINDEX", "ANALYZE", "BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "COMMIT", "ROLLBACK", "SAVEPOINT s", "RELEASE s",
		"SELECT load_extension('/tmp/x.so')", "SELECT load_extension('/tmp/x.so', 'f')", "SELECT fts3_tokenizer('simple')", "SELECT writefile('/tmp/x', 'y')", "SELECT readfile('/etc/passwd')", "SELECT edit('x')",
		"SELECT zeroblob(1000000000)", "SELECT randomblob(1000000000)", "SELECT length(printf('%.*c', 1000000000, 'x'))", "SELECT length(hex(zeroblob(500000000)))",
		"SELECT replace(printf('%.*c', 1000000, 'x'), 'x', printf('%.*c', 1000, 'y'))", "SELECT * FROM sqlite_temp_master", "SELECT * FROM temp.sqlite_master",
		"SELECT * FROM dbstat", "SELECT * FROM sqlite_dbpage", "SELECT count(*) FROM dbstat", "SELECT * FROM bytecode('SELECT 1')", "SELECT * FROM tables_used('SELECT 1')", "SELECT * FROM sqlite_stmt",
		"SELECT * FROM fts5vocab", "SELECT * FROM vec_each('[1]')", "SELECT sqlite_source_id()", "SELECT sqlite_compileoption_get(1)", "SELECT last_insert_rowid()", "SELECT \"no_such_column\"",
		"SELECT 1" + strings.Repeat("+1", 5000), "SELECT " + strings.Repeat("abs(", 2000) + "1" + strings.Repeat(")", 2000), "SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", 200),
		"SELECT 'x' LIKE '" + strings.Repeat("%a", 1000) + "'", "EXPLAIN DELETE FROM finance_accounts", "EXPLAIN SELECT 1", "SELECT 1; SELECT 2", "SELECT 1 /*", "SELECT 1) UNION ALL SELECT 2 FROM (SELECT 1", "SELECT 1)); SELECT 2; --", ";", "-- nothing", "SELECT", "garbage", "SELECT ?", "SELECT :a", strings.Repeat("x", 20<<10), "SELECT 1\x00",
	}
	for _, q := range hostile {
		started := time.Now()
		got, err := query(t, d, q)
		if err == nil {
			t.Errorf("%.120q gives %.200s", q, got)
			continue
		}
		if k := fault.KindOf(err); k != fault.Invalid && k != fault.Forbidden && k != fault.Exhausted {
			t.Errorf("%.120q: %v", q, err)
		}
		if strings.Contains(fault.Public(err), "the secret") || strings.Contains(fault.Public(err), dir) && !strings.Contains(q, dir) {
			t.Errorf("%.120q tells %q", q, fault.Public(err))
		}
		if took := time.Since(started); waittest.TooLong(took, readLimit+time.Second) {
			t.Errorf("%.120q takes %s", q, took)
		}
	}
	if diff := cmp.Diff(before, snapshot(t, d)); diff != "" {
		t.Errorf("something changed:\n%s", diff)
	}
	if got, err := query(t, d, "SELECT account_name FROM finance_accounts WHERE id = 1"); !strings.Contains(got, "Giro") {
		t.Errorf("the connection is worse for it: %s, %v", got, err)
	}
}

// snapshot is the names of the files and the content of the database.
func snapshot(t *testing.T, d *DB) []string {
	t.Helper()
	dir := filepath.Dir(d.path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(e.Name(), "-shm") { // readers mark there what they read
			data = nil
		}
		out = append(out, fmt.Sprintf("%s %x", e.Name(), data))
	}
	return out
}

// TestVirtualTablesAreKnown fails when a new version of SQLite brings a table
// that nobody decided about.
func TestVirtualTablesAreKnown(t *testing.T) {
	t.Parallel()
	d := open(t)
	tx, err := d.writer.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	names, err := rowsOf(t.Context(), tx, func(rows *sql.Rows, name *string) error { return rows.Scan(name) }, "SELECT name FROM pragma_module_list")
	if err != nil || len(names) < 5 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if mayRead(name) && name != "json_each" && name != "json_tree" {
			t.Errorf("the virtual table %s can be read", name)
		}
	}
}

// TestReadOnlyWithoutAuthorizer shows that the layers beneath it hold alone.
func TestReadOnlyWithoutAuthorizer(t *testing.T) {
	t.Parallel()
	d := finance(t)
	plain := sql.OpenDB(connector{&sqlite.Driver{}, dsn(d.path, reading)})
	t.Cleanup(func() { plain.Close() })
	for _, q := range []string{"DELETE FROM finance_accounts", "CREATE TABLE x_y (a)", "PRAGMA query_only = 0; DELETE FROM finance_accounts", "PRAGMA writable_schema = 1; DELETE FROM sqlite_master"} {
		if _, err := plain.Exec(q); err == nil {
			t.Errorf("%q works", q)
		}
	}
}

func TestRunawayQueriesAreStopped(t *testing.T) {
	t.Parallel()
	d := finance(t)
	d.readLimit = 300 * time.Millisecond
	for _, q := range []string{
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c",
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x FROM c WHERE x = 1", // one row, then none
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION SELECT x+1 FROM c) SELECT max(x) FROM c ORDER BY 1",
		"WITH d AS (SELECT 1 AS a UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8), e AS (SELECT 1 FROM d, d, d, d, d, d) SELECT count(*) FROM e a, e b",
	} {
		started := time.Now()
		got, err := query(t, d, q)
		if !fault.Is(err, fault.Exhausted) || !strings.Contains(fault.Public(err), "took too long") {
			t.Errorf("%q: %s, %v", q, got, err)
		}
		if took := time.Since(started); waittest.TooLong(took, d.readLimit+time.Second) {
			t.Errorf("%q takes %s", q, took)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&readerTool{db: d}).Run(ctx, arguments(t, object{"query": "SELECT 1"})); !fault.Is(err, fault.Canceled) {
		t.Errorf("a stopped query: %v", err)
	}
}

func TestResultsAreCapped(t *testing.T) {
	t.Parallel()
	d := open(t)
	numbers := "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 5000) "
	read := func(q string, limit int) (out table, err error) {
		args := object{"query": q}
		if limit > 0 {
			args["limit"] = limit
		}
		r, err := (&readerTool{db: d}).Run(t.Context(), arguments(t, args))
		if err == nil {
			err = json.Unmarshal([]byte(r.Content), &out)
		}
		return out, err
	}
	trim := "SELECT length(trim(printf('%.*c', 60000, 'a'), printf('%.*c', 60000, 'b') || 'a'))"
	if out, err := read(trim, 0); err != nil || string(out.Rows[0]) != "[0]" {
		t.Errorf("trim: %s, %v", out.Rows, err)
	}
	for limit, want := range map[int]int{0: 100, 7: 7, 1000: 1000} {
		if out, err := read(numbers+"SELECT x FROM c", limit); err != nil || len(out.Rows) != want || !out.Truncated {
			t.Errorf("limit %d: %d rows, %v, %v", limit, len(out.Rows), out.Truncated, err)
		}
	}
	if out, err := read("SELECT 1 UNION ALL SELECT 2", 2); err != nil || len(out.Rows) != 2 || out.Truncated {
		t.Errorf("exactly the limit: %+v, %v", out, err)
	}
	if out, err := read("SELECT printf('%.*c', 60000, 'x')", 0); err != nil || len(out.Rows[0]) > maxCell+50 || !out.Truncated {
		t.Errorf("a long cell: %d bytes, %v", len(out.Rows[0]), err)
	}
	if out, err := read(numbers+"SELECT printf('%.*c', 3000, 'x') FROM c", 1000); err != nil || len(out.Rows) != maxResult/3004 || !out.Truncated {
		t.Errorf("many long rows: %d, %v", len(out.Rows), err)
	}
	wide := "SELECT " + strings.TrimSuffix(strings.Repeat("printf('%.*c', 3000, 'x'), ", 30), ", ")
	if _, err := read(wide, 0); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), "Select fewer columns") {
		t.Errorf("a wide row: %v", err)
	}
	for _, limit := range []int{-1, 1001} {
		if _, err := read("SELECT 1", limit); limit > 0 && !fault.Is(err, fault.Invalid) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

func TestReaderEffect(t *testing.T) {
	t.Parallel()
	e, err := (&readerTool{}).Effect(t.Context(), arguments(t, object{"query": "SELECT 1\nFROM a_b"}))
	want := tool.Effect{Kind: assistant.KindRead, Summary: "Query SELECT 1 …", Detail: "```sql\nSELECT 1\nFROM a_b\n```"}
	if diff := cmp.Diff(want, e); diff != "" || err != nil {
		t.Errorf("%s %v", diff, err)
	}
}

// TestReadersBesideWriters reads while rows are written; readers see whole
// transactions only, and nobody fails.
func TestReadersBesideWriters(t *testing.T) {
	t.Parallel()
	d := finance(t)
	second, err := Open(d.path) // as another process would
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { second.Close() })
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			for range 15 {
				rows := []object{{"amount": 1, "account_id": 1}, {"amount": -1, "account_id": 1}}
				if _, err := change(t, []*DB{d, second}[w], object{"action": "insert", "table": "finance_transactions", "rows": rows}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 3 {
		wg.Go(func() {
			for range 30 {
				got, err := query(t, d, "SELECT coalesce(sum(amount), 0) AS s, count(*) % 2 AS odd FROM finance_transactions")
				if err != nil || !strings.Contains(got, "[[0,0]]") {
					t.Errorf("%s, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
	if got, err := query(t, d, "SELECT count(*) FROM finance_transactions"); !strings.Contains(got, "[[60]]") {
		t.Errorf("%s, %v", got, err)
	}
}

func FuzzQuery(f *testing.F) {
	d, err := Open(filepath.Join(f.TempDir(), "p.db"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { d.Close() })
	d.readLimit = 200 * time.Millisecond
	args, _ := json.Marshal(object{"action": "create", "table": "a_b", "columns": []object{{"name": "id", "type": "integer", "primary_key": true}}})
	if _, err := (&tableTool{d}).Run(f.Context(), args); err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"SELECT * FROM a_b", "WITH c AS (SELECT 1) SELECT * FROM c", "PRAGMA user_version", "INSERT INTO a_b DEFAULT VALUES RETURNING id", "SELECT x'00', 1e999, '"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, q string) {
		raw, err := json.Marshal(object{"query": q})
		if err != nil {
			return
		}
		r, err := (&readerTool{db: d}).Run(t.Context(), raw)
		if err == nil && !json.Valid([]byte(r.Content)) {
			t.Errorf("%q gives %q", q, r.Content)
		}
		if err != nil && fault.KindOf(err) == fault.Internal && !errors.Is(err, context.Canceled) {
			t.Errorf("%q: %v", q, err)
		}
		var n int
		if err := d.writer.QueryRow("SELECT count(*) FROM a_b").Scan(&n); err != nil || n != 0 {
			t.Fatalf("%q wrote %d rows: %v", q, n, err)
		}
	})
}
