package projectdb

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/tool"
)

// NameTable is the name of the tool that changes.
const NameTable = "project_table"

const (
	maxColumns = 100
	maxIndexes = 20
	maxTables  = 200
	maxChanges = 1000 // rows of one call
)

// action is what a call of project_table does.
type action string

const (
	actCreate    action = "create"
	actAddColumn action = "add_column"
	actInsert    action = "insert"
	actUpsert    action = "upsert"
	actUpdate    action = "update"
	actDelete    action = "delete"
	actList      action = "list"
	actDescribe  action = "describe"
	actDrop      action = "drop"
)

// takes says which arguments an action has, besides the table.
func (a action) takes() (arguments []string, known bool) {
	switch a {
	case actCreate, actAddColumn:
		return []string{"columns", "indexes"}, true
	case actInsert, actUpsert:
		return []string{"rows"}, true
	case actUpdate:
		return []string{"values", "where", "all"}, true
	case actDelete:
		return []string{"where", "all"}, true
	case actList, actDescribe, actDrop:
		return nil, true
	}
	return nil, false
}

const tableSchema = `{"type":"object","properties":{
"action":{"type":"string","enum":["create","add_column","insert","upsert","update","delete","list","describe","drop"]},
"table":{"type":"string","description":"<domain>_<name> in lower case, such as finance_accounts; for every action but list"},
"columns":{"type":"array","description":"for create and add_column","items":{"type":"object","properties":{
"name":{"type":"string","description":"lower case with underscores"},
"type":{"type":"string","enum":["integer","real","text","blob"]},
"primary_key":{"type":"boolean","description":"at least one column of a new table has it; an integer key is counted up by itself"},
"not_null":{"type":"boolean"},
"unique":{"type":"boolean"},
"default":{"description":"a number, text, true or false"},
"references":{"type":"object","properties":{"table":{"type":"string"},"column":{"type":"string","description":"its primary key if it is missing"},
"on_delete":{"type":"string","enum":["restrict","cascade","set_null"]}},"required":["table"],"additionalProperties":false}},
"required":["name","type"],"additionalProperties":false}},
"indexes":{"type":"array","description":"for create and add_column","items":{"type":"object","properties":{
"columns":{"type":"array","items":{"type":"string"}},"unique":{"type":"boolean"}},"required":["columns"],"additionalProperties":false}},
"rows":{"type":"array","description":"for insert and upsert: objects of column and value; blobs in base64","items":{"type":"object"}},
"values":{"type":"object","description":"for update: the new value of each column"},
"where":{"type":"object","description":"for update and delete: columns and the values they have; null, or a list of possible values"},
"all":{"type":"boolean","description":"update or delete every row, instead of where"}},
"required":["action"],"additionalProperties":false}`

type column struct {
	Name       string          `json:"name"`
	Type       string          `json:"type"`
	PrimaryKey bool            `json:"primary_key,omitempty"`
	NotNull    bool            `json:"not_null,omitempty"`
	Unique     bool            `json:"unique,omitempty"`
	Default    json.RawMessage `json:"default,omitempty"`
	References *reference      `json:"references,omitempty"`
}

type reference struct {
	Table    string `json:"table"`
	Column   string `json:"column,omitempty"`
	OnDelete string `json:"on_delete,omitempty"`
}

type index struct {
	Columns []string `json:"columns"`
	Unique  bool     `json:"unique,omitempty"`
}

type row map[string]json.RawMessage

type tableArgs struct {
	Action  action   `json:"action"`
	Table   string   `json:"table"`
	Columns []column `json:"columns"`
	Indexes []index  `json:"indexes"`
	Rows    []row    `json:"rows"`
	Values  row      `json:"values"`
	Where   row      `json:"where"`
	All     bool     `json:"all"`
}

type tableTool struct{ db *DB }

// Spec implements tool.Tool.
func (*tableTool) Spec() messages.ToolSpec {
	return messages.ToolSpec{
		Name: NameTable,
		Description: "Create and change tables of this project, which stay when the session ends. Read them with " + NameReader + ". " +
			"Table names are <domain>_<name> in lower case; each table needs a primary key; foreign keys are enforced. A call is done as a whole or not at all.",
		Schema: compact(tableSchema),
	}
}

func compact(s string) json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(s)); err != nil {
		panic(err) // it is a constant
	}
	return b.Bytes()
}

func decodeTable(raw json.RawMessage) (a tableArgs, err error) {
	if err := tool.Decode(raw, &a); err != nil {
		return a, err
	}
	allowed, known := a.Action.takes()
	if !known {
		return a, fault.Newf(fault.Invalid, `"action" is %q; it is one of create, add_column, insert, upsert, update, delete, list, describe, drop.`, tool.Line(string(a.Action), 50))
	}
	for name, given := range map[string]bool{
		"columns": a.Columns != nil, "indexes": a.Indexes != nil, "rows": a.Rows != nil, "values": a.Values != nil, "where": a.Where != nil, "all": a.All,
	} {
		if given && !slices.Contains(allowed, name) {
			return a, fault.Newf(fault.Invalid, "%q does not belong to the action %s.", name, a.Action)
		}
	}
	if a.Action == actList {
		return a, nil
	}
	if err := checkTable(a.Table); err != nil {
		return a, err
	}
	switch a.Action {
	case actCreate, actAddColumn:
		return a, a.checkColumns()
	case actInsert, actUpsert:
		return a, a.checkRows()
	case actUpdate, actDelete:
		return a, a.checkWhere()
	default:
		return a, nil
	}
}

var (
	tableName  = pattern.Lazy(`^[a-z][a-z0-9]*(_[a-z0-9]+)+$`)
	columnName = pattern.Lazy(`^[a-z][a-z0-9_]*$`)
)

const maxName = 63

func checkTable(name string) error {
	domain, _, _ := strings.Cut(name, "_")
	switch {
	case name == "":
		return fault.New(fault.Invalid, `"table" is missing.`)
	case len(name) > maxName || !tableName.MatchString(name):
		return fault.Newf(fault.Invalid, "%q is no name for a table. It is <domain>_<name> in lower case, at most %d characters, such as finance_accounts.", tool.Line(name, 100), maxName)
	case reserved[domain]:
		return fault.Newf(fault.Invalid, "Tables that begin with %q are reserved; take another domain.", domain+"_")
	}
	return nil
}

func checkColumn(name string) error {
	if len(name) > maxName || !columnName.MatchString(name) || name == "rowid" || name == "oid" {
		return fault.Newf(fault.Invalid, "%q is no name for a column. It is in lower case with underscores, at most %d characters, such as account_name.", tool.Line(name, 100), maxName)
	}
	return nil
}

func (a tableArgs) checkColumns() error {
	switch {
	case len(a.Columns) > maxColumns || len(a.Indexes) > maxIndexes:
		return fault.Newf(fault.Invalid, "A table has at most %d columns and %d indexes.", maxColumns, maxIndexes)
	case a.Action == actCreate && !slices.ContainsFunc(a.Columns, func(c column) bool { return c.PrimaryKey }):
		return fault.New(fault.Invalid, `A table needs a primary key: set "primary_key" of at least one column, for instance {"name":"id","type":"integer","primary_key":true}.`)
	case a.Action == actAddColumn && len(a.Columns)+len(a.Indexes) == 0:
		return fault.New(fault.Invalid, `"columns" and "indexes" are empty.`)
	}
	seen := make(map[string]bool)
	for _, c := range a.Columns {
		if err := a.check(c); err != nil {
			return err
		}
		if seen[c.Name] {
			return fault.Newf(fault.Invalid, "The column %s is there twice.", c.Name)
		}
		seen[c.Name] = true
	}
	for _, x := range a.Indexes {
		if len(x.Columns) == 0 {
			return fault.New(fault.Invalid, "An index has no columns.")
		}
		for _, c := range x.Columns {
			if err := checkColumn(c); err != nil {
				return err
			}
			if a.Action == actCreate && !seen[c] {
				return fault.Newf(fault.Invalid, "An index names the column %s, which the table does not have.", c)
			}
		}
	}
	return nil
}

func (a tableArgs) check(c column) error {
	if err := checkColumn(c.Name); err != nil {
		return err
	}
	if _, err := c.literal(); err != nil {
		return err
	}
	switch {
	case !slices.Contains([]string{"integer", "real", "text", "blob"}, c.Type):
		return fault.Newf(fault.Invalid, "The type of %s is %q; it is integer, real, text or blob.", c.Name, tool.Line(c.Type, 50))
	case a.Action == actAddColumn && (c.PrimaryKey || c.Unique):
		return fault.Newf(fault.Invalid, `%s cannot be a primary key or unique: the table already exists. For unique values, add a unique index.`, c.Name)
	case a.Action == actAddColumn && c.NotNull && !c.hasDefault():
		return fault.Newf(fault.Invalid, `%s is "not_null", so it needs a "default" for the rows that exist.`, c.Name)
	case a.Action == actAddColumn && c.References != nil && c.hasDefault():
		return fault.Newf(fault.Invalid, `%s references another table, so it cannot have a "default".`, c.Name)
	case c.References == nil:
		return nil
	case !slices.Contains([]string{"", "restrict", "cascade", "set_null"}, c.References.OnDelete):
		return fault.Newf(fault.Invalid, `"on_delete" of %s is restrict, cascade or set_null.`, c.Name)
	case c.References.Column != "":
		if err := checkColumn(c.References.Column); err != nil {
			return err
		}
	}
	return checkTable(c.References.Table)
}

func (c column) hasDefault() bool { return c.Default != nil && string(c.Default) != "null" }

func (a tableArgs) checkRows() error {
	if len(a.Rows) == 0 || len(a.Rows) > maxChanges {
		return fault.Newf(fault.Invalid, `"rows" has %d rows; it has 1 to %d.`, len(a.Rows), maxChanges)
	}
	for i, r := range a.Rows {
		if len(r) == 0 {
			return fault.Newf(fault.Invalid, "Row %d is empty.", i+1)
		}
		if err := r.checkNames(); err != nil {
			return err
		}
	}
	return nil
}

func (a tableArgs) checkWhere() error {
	switch {
	case a.Action == actUpdate && len(a.Values) == 0:
		return fault.New(fault.Invalid, `"values" is missing.`)
	case a.All && len(a.Where) > 0:
		return fault.New(fault.Invalid, `Give "where" or "all", not both.`)
	case !a.All && len(a.Where) == 0:
		return fault.Newf(fault.Invalid, `"where" is missing. To %s every row, set "all" to true.`, a.Action)
	}
	if err := a.Values.checkNames(); err != nil {
		return err
	}
	return a.Where.checkNames()
}

func (r row) checkNames() error {
	for _, name := range r.names() {
		if err := checkColumn(name); err != nil {
			return err
		}
	}
	return nil
}

// names returns the columns in a fixed order.
func (r row) names() []string { return slices.Sorted(maps.Keys(r)) }

// Effect implements tool.Tool. Creating tables and changing rows has
// assistant.KindWrite; what destroys much, dropping a table and changing every
// row, has assistant.KindOther and no rule.
func (t *tableTool) Effect(ctx context.Context, raw json.RawMessage) (tool.Effect, error) {
	a, err := decodeTable(raw)
	if err != nil {
		return tool.Effect{Kind: assistant.KindWrite, Summary: "Change a table"}, err
	}
	e := tool.Effect{Kind: assistant.KindWrite, Summary: a.summary(), Rule: string(a.Action) + " " + a.Table}
	switch a.Action {
	case actList, actDescribe:
		return tool.Effect{Kind: assistant.KindRead, Summary: e.Summary}, nil
	case actCreate, actAddColumn:
		e.Detail = tool.Exact("sql", strings.Join(a.statements(), ";\n")+";")
	case actDrop:
		e.Kind, e.Rule = assistant.KindOther, ""
		e.Detail = fmt.Sprintf("Deletes the table `%s` and what is in it: %s. That cannot be undone.", a.Table, t.db.size(ctx, a.Table))
	default:
		var b bytes.Buffer
		if err := json.Indent(&b, raw, "", "  "); err != nil {
			return e, fault.Wrap(err, fault.Internal, "show the arguments")
		}
		e.Detail = tool.Exact("json", b.String())
		if a.All {
			e.Kind, e.Rule = assistant.KindOther, ""
			e.Detail += fmt.Sprintf("\n\nThis is about every row of `%s`: %s.", a.Table, t.db.size(ctx, a.Table))
		}
	}
	return e, nil
}

func (a tableArgs) summary() string {
	switch a.Action {
	case actCreate:
		return fmt.Sprintf("Create table %s, %d columns", a.Table, len(a.Columns))
	case actAddColumn:
		return fmt.Sprintf("Add %d columns and %d indexes to %s", len(a.Columns), len(a.Indexes), a.Table)
	case actInsert:
		return fmt.Sprintf("Insert %d rows into %s", len(a.Rows), a.Table)
	case actUpsert:
		return fmt.Sprintf("Insert or update %d rows of %s", len(a.Rows), a.Table)
	case actUpdate, actDelete:
		what := "every row of"
		if !a.All {
			what = "rows of"
		}
		verb := strings.ToUpper(string(a.Action[:1])) + string(a.Action[1:])
		return fmt.Sprintf("%s %s %s", verb, what, a.Table)
	case actDrop:
		return "Drop table " + a.Table
	case actDescribe:
		return "Describe table " + a.Table
	default:
		return "List tables"
	}
}
