package projectdb

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
)

func TestCreateDescribeDrop(t *testing.T) {
	t.Parallel()
	d := finance(t)
	got := must(t, d, object{"action": "describe", "table": "finance_transactions"})
	want := object{
		"table": "finance_transactions", "rows": 0.0,
		"columns": []any{
			object{"name": "id", "type": "integer", "primary_key": true},
			object{"name": "account_id", "type": "integer"},
			object{"name": "amount", "type": "real"},
			object{"name": "category", "type": "text"},
		},
		"foreign_keys": []any{object{"column": "account_id", "table": "finance_accounts", "to": "id", "on_delete": "no action"}},
		"indexes":      []any{object{"columns": []any{"account_id"}}, object{"columns": []any{"category", "amount"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("describe (-want +got):\n%s", diff)
	}
	list := must(t, d, object{"action": "list"})
	wantList := object{"tables": []any{
		object{"table": "finance_accounts", "rows": 2.0, "columns": []any{"id", "account_name", "balance", "order"}},
		object{"table": "finance_transactions", "rows": 0.0, "columns": []any{"id", "account_id", "amount", "category"}},
	}}
	if diff := cmp.Diff(wantList, list); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	if _, err := change(t, d, object{"action": "drop", "table": "finance_accounts"}); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Public(err), "finance_transactions references finance_accounts") {
		t.Errorf("a table that is referenced is dropped: %v", err)
	}
	must(t, d, object{"action": "drop", "table": "finance_transactions"})
	if got := must(t, d, object{"action": "drop", "table": "finance_accounts"}); got["rows"] != 2.0 {
		t.Errorf("drop says %v", got)
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	d := open(t)
	must(t, d, object{"action": "create", "table": "work_items", "columns": []object{
		{"name": "project", "type": "text", "primary_key": true}, {"name": "number", "type": "integer", "primary_key": true},
		{"name": "title", "type": "text", "default": "it's \"new\""}, {"name": "done", "type": "integer", "default": false},
		{"name": "tags", "type": "text"}, {"name": "data", "type": "blob"}, {"name": "effort", "type": "real", "default": -1.5},
	}})
	rows := []object{
		{"project": "a", "number": 1, "title": "first", "done": true, "tags": []string{"x", "y"}, "data": "AAEC", "effort": 2},
		{"project": "a", "number": 2}, {"project": "b", "number": 1, "title": nil},
	}
	if got := must(t, d, object{"action": "insert", "table": "work_items", "rows": rows}); cmp.Diff(object{"inserted": 3.0, "keys": []any{[]any{"a", 1.0}, []any{"a", 2.0}, []any{"b", 1.0}}}, got) != "" {
		t.Errorf("insert says %v", got)
	}
	if got := must(t, d, object{"action": "upsert", "table": "work_items", "rows": []object{{"project": "a", "number": 2, "title": "second"}, {"project": "c", "number": 9}, {"project": "b", "number": 1}}}); got["inserted"] != 1.0 || got["updated"] != 2.0 {
		t.Errorf("upsert says %v", got)
	}
	if got := must(t, d, object{"action": "update", "table": "work_items", "values": object{"effort": 8.25}, "where": object{"project": []string{"b", "c"}, "tags": nil}}); got["updated"] != 2.0 {
		t.Errorf("update says %v", got)
	}
	if got := must(t, d, object{"action": "delete", "table": "work_items", "where": object{"project": "c"}}); got["deleted"] != 1.0 {
		t.Errorf("delete says %v", got)
	}
	got, err := query(t, d, "SELECT project, number, title, done, tags, hex(data), effort FROM work_items ORDER BY 1, 2")
	want := `{"columns":["project","number","title","done","tags","hex(data)","effort"],"rows":[["a",1,"first",1,"[\"x\",\"y\"]","000102",2],["a",2,"second",0,null,"",-1.5],["b",1,null,0,null,"",8.25]],"truncated":false}`
	if got != want || err != nil {
		t.Errorf("rows are %s, %v", got, err)
	}
	if got := must(t, d, object{"action": "update", "table": "work_items", "values": object{"done": 1}, "all": true}); got["updated"] != 3.0 {
		t.Errorf("update of all says %v", got)
	}
	if got := must(t, d, object{"action": "delete", "table": "work_items", "all": true}); got["deleted"] != 3.0 {
		t.Errorf("delete of all says %v", got)
	}
}

func TestUpsertOfKeysOnly(t *testing.T) {
	t.Parallel()
	d := open(t)
	must(t, d, object{"action": "create", "table": "a_tags", "columns": []object{{"name": "tag", "type": "text", "primary_key": true}}})
	for i, want := range []object{{"inserted": 1.0, "updated": 0.0, "keys": []any{"x"}}, {"inserted": 0.0, "updated": 1.0}} {
		if got := must(t, d, object{"action": "upsert", "table": "a_tags", "rows": []object{{"tag": "x"}}}); !cmp.Equal(got, want) {
			t.Errorf("upsert %d says %v, want %v", i, got, want)
		}
	}
}

func TestAddColumn(t *testing.T) {
	t.Parallel()
	d := finance(t)
	must(t, d, object{"action": "add_column", "table": "finance_accounts", "columns": []object{
		{"name": "currency", "type": "text", "not_null": true, "default": "EUR"}, {"name": "parent", "type": "integer", "references": object{"table": "finance_accounts", "on_delete": "set_null"}},
	}, "indexes": []object{{"columns": []string{"account_name", "currency"}, "unique": true}}})
	if got, err := query(t, d, "SELECT currency, parent FROM finance_accounts WHERE id = 1"); !strings.Contains(got, `[["EUR",null]]`) {
		t.Errorf("%s, %v", got, err)
	}
	must(t, d, object{"action": "update", "table": "finance_accounts", "values": object{"parent": 1}, "where": object{"id": 2}})
	must(t, d, object{"action": "delete", "table": "finance_accounts", "where": object{"id": 1}})
	if got, err := query(t, d, "SELECT id, parent FROM finance_accounts"); !strings.Contains(got, `[[2,null]]`) {
		t.Errorf("on_delete does nothing: %s, %v", got, err)
	}
}

// TestChangesAreWhole checks that a call that fails changes nothing.
func TestChangesAreWhole(t *testing.T) {
	t.Parallel()
	d := finance(t)
	before := must(t, d, object{"action": "list"})
	key := object{"name": "id", "type": "integer", "primary_key": true}
	tests := map[string]struct {
		args object
		kind fault.Kind
		want string
	}{
		"NotNull":      {object{"action": "insert", "table": "finance_accounts", "rows": []object{{"account_name": "x"}, {"balance": 1}}}, fault.Invalid, "Row 2: "},
		"Duplicate":    {object{"action": "insert", "table": "finance_accounts", "rows": []object{{"id": 7, "account_name": "x"}, {"id": 7, "account_name": "y"}}}, fault.Invalid, "UNIQUE constraint failed: finance_accounts.id"},
		"ForeignKey":   {object{"action": "insert", "table": "finance_transactions", "rows": []object{{"account_id": 99}}}, fault.Invalid, "FOREIGN KEY constraint failed"},
		"Strict":       {object{"action": "insert", "table": "finance_accounts", "rows": []object{{"account_name": "x", "balance": "much"}}}, fault.Invalid, "cannot store TEXT value in REAL column"},
		"Column":       {object{"action": "insert", "table": "finance_accounts", "rows": []object{{"name": "x"}}}, fault.Invalid, "finance_accounts has no column name. The columns are: id, account_name, balance, order."},
		"Object":       {object{"action": "insert", "table": "finance_accounts", "rows": []object{{"balance": object{}}}}, fault.Invalid, "only a text column takes that"},
		"TooLong":      {object{"action": "insert", "table": "finance_accounts", "rows": []object{{"account_name": strings.Repeat("x", 70<<10)}}}, fault.Invalid, "too large"},
		"WhereColumn":  {object{"action": "delete", "table": "finance_accounts", "where": object{"nme": 1}}, fault.Invalid, "no column nme"},
		"WhereList":    {object{"action": "delete", "table": "finance_accounts", "where": object{"id": []int{}}}, fault.Invalid, "1 to 500 values"},
		"NoTable":      {object{"action": "insert", "table": "finance_x", "rows": []object{{"a": 1}}}, fault.NotFound, "The tables are: finance_accounts, finance_transactions."},
		"Exists":       {object{"action": "create", "table": "finance_accounts", "columns": []object{key}}, fault.Conflict, "already exists"},
		"NoReference":  {object{"action": "create", "table": "a_b", "columns": []object{key, {"name": "x", "type": "integer", "references": object{"table": "no_such"}}}}, fault.NotFound, "references the table no_such"},
		"BadReference": {object{"action": "create", "table": "a_b", "columns": []object{key, {"name": "x", "type": "integer", "references": object{"table": "finance_accounts", "column": "balance"}}}}, fault.Invalid, "foreign key mismatch"},
		"AddTwice":     {object{"action": "add_column", "table": "finance_accounts", "columns": []object{{"name": "new", "type": "text"}, {"name": "balance", "type": "text"}}}, fault.Invalid, "duplicate column name: balance"},
		"AddNoTable":   {object{"action": "add_column", "table": "a_b", "columns": []object{{"name": "x", "type": "text"}}}, fault.NotFound, "There is no table a_b"},
		"IndexTwice":   {object{"action": "add_column", "table": "finance_transactions", "columns": []object{{"name": "new", "type": "text"}}, "indexes": []object{{"columns": []string{"category", "amount"}}}}, fault.Invalid, "already exists"},
		"DropNoTable":  {object{"action": "drop", "table": "a_b"}, fault.NotFound, "There is no table a_b"},
	}
	for name, tt := range tests {
		if out, err := change(t, d, tt.args); !fault.Is(err, tt.kind) || !strings.Contains(fault.Public(err), tt.want) {
			t.Errorf("%s: %v, %v %q, want %s %q", name, out, err, fault.Public(err), tt.kind, tt.want)
		}
	}
	if diff := cmp.Diff(before, must(t, d, object{"action": "list"})); diff != "" {
		t.Errorf("something changed:\n%s", diff)
	}
}

// TestRefuses checks arguments that are wrong in themselves: Effect and Run say
// so, and no SQL is made of them.
func TestRefuses(t *testing.T) {
	t.Parallel()
	d := open(t)
	key := object{"name": "id", "type": "integer", "primary_key": true}
	with := func(c object) object {
		return object{"action": "create", "table": "a_b", "columns": []object{key, c}}
	}
	tests := []struct {
		args object
		want string
	}{
		{object{}, `"action" is ""`}, {object{"action": "sql"}, "it is one of create"}, {object{"action": "drop"}, `"table" is missing`},
		{object{"action": "list", "sql": "x"}, `unknown field "sql"`}, {object{"action": "drop", "table": "a_b", "rows": []object{{"a": 1}}}, `"rows" does not belong`},
		{object{"action": "create", "table": "a_b", "columns": []object{{"name": "x", "type": "text"}}}, "needs a primary key"},
		{object{"action": "create", "table": "a_b"}, "needs a primary key"},
		{with(object{"name": "id", "type": "text"}), "id is there twice"}, {with(object{"name": "x", "type": "json"}), "integer, real, text or blob"},
		{with(object{"name": "x y", "type": "text"}), "no name for a column"}, {with(object{"name": `x") --`, "type": "text"}), "no name for a column"},
		{with(object{"name": "X", "type": "text"}), "no name for a column"}, {with(object{"name": "rowid", "type": "text"}), "no name for a column"},
		{with(object{"name": "x", "type": "text", "default": object{}}), "default of x does not fit"}, {with(object{"name": "x", "type": "integer", "default": "1); DROP TABLE a_b"}), "default of x does not fit"},
		{with(object{"name": "x", "type": "integer", "default": 1.5}), "default of x does not fit"}, {with(object{"name": "x", "type": "text", "default": "a\x00b"}), "default of x does not fit"},
		{with(object{"name": "x", "type": "text", "references": object{"table": "nope"}}), "no name for a table"},
		{with(object{"name": "x", "type": "text", "references": object{"table": "c_d", "on_delete": "explode"}}), "restrict, cascade or set_null"},
		{with(object{"name": "x", "type": "text", "references": object{"table": "c_d", "column": "x)"}}), "no name for a column"},
		{object{"action": "create", "table": "a_b", "columns": []object{key}, "indexes": []object{{"columns": []string{"y"}}}}, "does not have"},
		{object{"action": "create", "table": "a_b", "columns": []object{key}, "indexes": []object{{"columns": []string{}}}}, "no columns"},
		{object{"action": "add_column", "table": "a_b"}, "are empty"}, {object{"action": "add_column", "table": "a_b", "columns": []object{key}}, "cannot be a primary key"},
		{object{"action": "add_column", "table": "a_b", "columns": []object{{"name": "x", "type": "text", "not_null": true}}}, `needs a "default"`},
		{object{"action": "insert", "table": "a_b"}, "has 0 rows"}, {object{"action": "insert", "table": "a_b", "rows": make([]object, 1001)}, "has 1001 rows"},
		{object{"action": "insert", "table": "a_b", "rows": []object{{}}}, "Row 1 is empty"}, {object{"action": "insert", "table": "a_b", "rows": []object{{"a\"": 1}}}, "no name for a column"},
		{object{"action": "update", "table": "a_b", "where": object{"a": 1}}, `"values" is missing`}, {object{"action": "update", "table": "a_b", "values": object{"a": 1}}, `"where" is missing`},
		{object{"action": "delete", "table": "a_b"}, `"where" is missing`}, {object{"action": "delete", "table": "a_b", "where": object{"a": 1}, "all": true}, "not both"},
		{object{"action": "delete", "table": "a_b", "where": object{"1=1 OR a": 1}}, "no name for a column"},
	}
	for _, name := range []string{"finance", "Finance_x", "finance_", "_x", "a__b", "a_b; DROP TABLE c_d", `a_"b`, "sqlite_x", "pragma_table_info", "json_each", "temp_x", "1_a", "ä_b", strings.Repeat("a", 62) + "_b"} {
		tests = append(tests, struct {
			args object
			want string
		}{object{"action": "describe", "table": name}, ""})
	}
	x := &tableTool{d}
	for _, tt := range tests {
		_, effectErr := x.Effect(t.Context(), arguments(t, tt.args))
		_, runErr := x.Run(t.Context(), arguments(t, tt.args))
		for _, err := range []error{effectErr, runErr} {
			if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Public(err), tt.want) {
				t.Errorf("%.150v: %v, want %q", tt.args, err, tt.want)
			}
		}
	}
}

func TestEffect(t *testing.T) {
	t.Parallel()
	d := finance(t)
	tests := map[string]struct {
		args                  object
		kind                  assistant.PermissionKind
		summary, rule, detail string
	}{
		"List":      {object{"action": "list"}, assistant.KindRead, "List tables", "", ""},
		"Describe":  {object{"action": "describe", "table": "a_b"}, assistant.KindRead, "Describe table a_b", "", ""},
		"Create":    {object{"action": "create", "table": "a_b", "columns": []object{{"name": "id", "type": "integer", "primary_key": true}, {"name": "x", "type": "text", "default": "it's", "references": object{"table": "c_d", "on_delete": "cascade"}}}}, assistant.KindWrite, "Create table a_b, 2 columns", "create a_b", "CREATE TABLE \"a_b\" (\n  \"id\" INTEGER PRIMARY KEY,\n  \"x\" TEXT DEFAULT 'it''s' REFERENCES \"c_d\" ON DELETE CASCADE\n) STRICT;\nCREATE INDEX \"idx_a_b_x\" ON \"a_b\" (\"x\");"},
		"Insert":    {object{"action": "insert", "table": "a_b", "rows": []object{{"x": 1}}}, assistant.KindWrite, "Insert 1 rows into a_b", "insert a_b", "\"x\": 1"},
		"Delete":    {object{"action": "delete", "table": "a_b", "where": object{"x": 1}}, assistant.KindWrite, "Delete rows of a_b", "delete a_b", "\"where\": {"},
		"DeleteAll": {object{"action": "delete", "table": "finance_accounts", "all": true}, assistant.KindOther, "Delete every row of finance_accounts", "", "every row of `finance_accounts`: 2 rows."},
		"Drop":      {object{"action": "drop", "table": "finance_accounts"}, assistant.KindOther, "Drop table finance_accounts", "", "what is in it: 2 rows. That cannot be undone."},
	}
	for name, tt := range tests {
		e, err := (&tableTool{d}).Effect(t.Context(), arguments(t, tt.args))
		if err != nil || e.Kind != tt.kind || e.Summary != tt.summary || e.Rule != tt.rule || !strings.Contains(e.Detail, tt.detail) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

// TestConcurrentChanges counts with many writers; no update is lost.
func TestConcurrentChanges(t *testing.T) {
	t.Parallel()
	d := finance(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				if _, err := change(t, d, object{"action": "insert", "table": "finance_transactions", "rows": []object{{"amount": 1}}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := must(t, d, object{"action": "describe", "table": "finance_transactions"}); got["rows"] != 40.0 {
		t.Errorf("there are %v rows", got["rows"])
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&tableTool{d}).Run(ctx, arguments(t, object{"action": "delete", "table": "finance_transactions", "all": true})); !fault.Is(err, fault.Canceled) {
		t.Errorf("a stopped change: %v", err)
	}
	if got := must(t, d, object{"action": "describe", "table": "finance_transactions"}); got["rows"] != 40.0 {
		t.Errorf("a stopped change left %v rows", got["rows"])
	}
}

func TestPersistsAndBackup(t *testing.T) {
	t.Parallel()
	d := finance(t)
	to := filepath.Join(t.TempDir(), "backup.db")
	for range 2 { // the second replaces the first
		if err := d.Backup(t.Context(), to); err != nil {
			t.Fatal(err)
		}
	}
	must(t, d, object{"action": "delete", "table": "finance_accounts", "all": true})
	for path, want := range map[string]string{to: "[[2]]", d.path: "[[0]]"} {
		other, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := query(t, other, "SELECT count(*) FROM finance_accounts"); !strings.Contains(got, want) {
			t.Errorf("%s has %s, %v", path, got, err)
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode of %s is %v, %v", path, info.Mode(), err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Backup(ctx, to); err == nil {
		t.Error("a stopped backup says nothing")
	}
	if _, err := os.Stat(to + ".tmp"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a stopped backup leaves a file: %v", err)
	}
	if err := d.Backup(t.Context(), filepath.Join(t.TempDir(), "none", "..", "x", "\x00")); err == nil {
		t.Error("a backup to nowhere says nothing")
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{garbage, dir, filepath.Join(garbage, "x")} {
		d, err := Open(path)
		if !fault.Is(err, fault.Unavailable) || strings.Contains(fault.Public(err), dir) {
			t.Errorf("Open(%s) = %v, %v", path, d, err)
		}
		tools := Broken(err, func(context.Context, string, func(...any) error) error { return nil })
		for i, args := range []string{`{"query":"SELECT 1"}`, `{"action":"drop","table":"a_b"}`} {
			_, unseen := tools[i].Effect(t.Context(), []byte(args))
			if _, got := tools[i].Run(t.Context(), []byte(args)); unseen != nil || got != err { //nolint:errorlint // the very error
				t.Errorf("Run(%s) = %v, %v", args, got, unseen)
			}
		}
		if _, err := tools[0].Run(t.Context(), []byte(`{"query":"SELECT * FROM agent_messages"}`)); err != nil {
			t.Errorf("the past cannot be read: %v", err)
		}
	}
	if _, err := Open("relative.db"); !fault.Is(err, fault.Invalid) {
		t.Errorf("Open of a relative path = %v", err)
	}
	odd := filepath.Join(dir, "a b?c#d%20 é.db")
	d, err := Open(odd)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(odd); err != nil {
		t.Error(err)
	}
}

// TestDamagedUnderWay damages the file while it is in use.
func TestDamagedUnderWay(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "p.db")
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	must(t, d, object{"action": "create", "table": "a_b", "columns": []object{{"name": "id", "type": "integer", "primary_key": true}}})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if d, err = Open(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	for i, args := range []string{`{"query":"SELECT * FROM a_b"}`, `{"action":"insert","table":"a_b","rows":[{"id":1}]}`} {
		if _, err := d.Tools(nil)[i].Run(t.Context(), []byte(args)); !fault.Is(err, fault.Unavailable) || fault.Public(err) != cannotBeUsed {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestValuesComeBack writes any values and reads the same.
func TestValuesComeBack(t *testing.T) {
	t.Parallel()
	d := open(t)
	must(t, d, object{"action": "create", "table": "a_b", "columns": []object{{"name": "id", "type": "integer", "primary_key": true}, {"name": "n", "type": "integer"}, {"name": "s", "type": "text"}}})
	rapid.Check(t, func(rt *rapid.T) {
		n, s := rapid.Int64().Draw(rt, "n"), rapid.String().Draw(rt, "s")
		out := must(t, d, object{"action": "insert", "table": "a_b", "rows": []object{{"n": n, "s": s}}})
		id := out["keys"].([]any)[0].(float64)
		var gotN int64
		var gotS string
		if err := d.writer.QueryRow("SELECT n, s FROM a_b WHERE id = ?", int64(id)).Scan(&gotN, &gotS); err != nil || gotN != n || gotS != s {
			rt.Fatalf("%d %q came back as %d %q, %v", n, s, gotN, gotS, err)
		}
		if got := must(t, d, object{"action": "delete", "table": "a_b", "where": object{"s": s, "n": n}}); got["deleted"] != 1.0 {
			rt.Fatalf("where finds %v rows", got["deleted"])
		}
	})
}
