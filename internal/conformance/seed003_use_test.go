package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/waittest"
)

type object = map[string]any

// dynamic is a table of the seed's examples: its own DDL, and the call that makes it.
type dynamic struct {
	name, ddl string
	create    object
}

func columnsOf(list ...string) (all []object) {
	for _, c := range list {
		name, kind, _ := strings.Cut(c, " ")
		column := object{"name": name, "type": kind}
		if name == "id" {
			column["primary_key"] = true
		}
		all = append(all, column)
	}
	return all
}

func references(column, table string) object {
	return object{"name": column, "type": "integer", "references": object{"table": table, "column": "id"}}
}

// project003 are the four tables, each after those that it refers to.
var project003 = []dynamic{
	{"finance_accounts", `CREATE TABLE finance_accounts (
    id INTEGER PRIMARY KEY,
    account_name TEXT,
    account_type TEXT,
    institution TEXT,
    balance REAL,
    currency TEXT
)`, object{"action": "create", "table": "finance_accounts", "columns": columnsOf("id integer", "account_name text", "account_type text", "institution text", "balance real", "currency text")}},
	{"finance_transactions", `CREATE TABLE finance_transactions (
    id INTEGER PRIMARY KEY,
    account_id INTEGER,
    date INTEGER,
    description TEXT,
    amount REAL,
    category TEXT,
    FOREIGN KEY (account_id) REFERENCES finance_accounts(id)
)`, object{"action": "create", "table": "finance_transactions", "columns": append(append(columnsOf("id integer"), references("account_id", "finance_accounts")),
		columnsOf("date integer", "description text", "amount real", "category text")...), "indexes": []object{{"columns": []string{"date"}}}}},
	{"travel_destinations", `CREATE TABLE travel_destinations (
    id INTEGER PRIMARY KEY,
    name TEXT,
    country TEXT,
    arrival_date INTEGER,
    departure_date INTEGER,
    budget REAL
)`, object{"action": "create", "table": "travel_destinations", "columns": columnsOf("id integer", "name text", "country text", "arrival_date integer", "departure_date integer", "budget real")}},
	{"travel_activities", `CREATE TABLE travel_activities (
    id INTEGER PRIMARY KEY,
    destination_id INTEGER,
    activity_name TEXT,
    date INTEGER,
    cost REAL,
    booking_status TEXT,
    FOREIGN KEY (destination_id) REFERENCES travel_destinations(id)
)`, object{"action": "create", "table": "travel_activities", "columns": append(append(columnsOf("id integer"), references("destination_id", "travel_destinations")),
		columnsOf("activity_name text", "date integer", "cost real", "booking_status text")...)}},
}

// projects opens the database of the repository's tables.
func (c *check) projects() *check {
	c.Helper()
	path := filepath.Join(c.env["DATA_DIR"], "projects", c.one(`SELECT id FROM remote_agent_codebases`)+".db")
	return &check{T: c.T, world: &world{database: "sqlite", sql: c.opens("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(5000)")}, open: c.open}
}

func dynamic003() []rule {
	const section = "DynamicProjectTables"
	const file = "they are in an SQLite file of their own for each codebase, whatever the main database is, and agents make them by the tool project_table, not by DDL"
	rules := make([]rule, 0, len(project003)+6)
	for _, d := range project003 {
		rules = append(rules, rule{section: section, name: d.name, asks: "An agent makes " + d.name + " with the seed's columns, types and foreign key", differs: file,
			holds: func(c *check) {
				twin := c.opens("sqlite", "file::memory:")
				twin.SetMaxOpenConns(1)
				for _, p := range project003 {
					if _, err := twin.ExecContext(c.Context(), p.ddl); err != nil {
						c.Fatalf("%v", err)
					}
				}
				for _, query := range []string{
					`SELECT name, lower(type), pk FROM pragma_table_info('` + d.name + `') ORDER BY cid`,
					`SELECT "table", "from", COALESCE("to", 'id') FROM pragma_foreign_key_list('` + d.name + `')`,
				} {
					want, err := ask(c.Context(), twin, query)
					if err != nil {
						c.Fatalf("%v", err)
					}
					c.projects().is(want.lines(), query)
				}
			}})
	}
	refuses := func(name, asks, text string, arguments object) rule {
		return rule{section: section, name: name, asks: asks, holds: func(c *check) {
			c.model.says(text, openai.Calls(toolCall("project_table", arguments)), openai.Text("Refused: "+text))
			p := c.the("keeper")
			p.says(text, "Refused: "+text)
			p.rests()
			c.is("failed", `SELECT status FROM agent_tool_calls WHERE session_id IN (`+p.sessions()+`) ORDER BY id DESC LIMIT 1`)
		}}
	}
	return append(rules,
		refuses("PrefixWithDomain", "Names begin with the domain: finance_*, travel_*", "no domain", object{"action": "create", "table": "accounts", "columns": columnsOf("id integer")}),
		refuses("LowercaseWithUnderscores", "Names are lower case with underscores", "no lower case", object{"action": "create", "table": "finance_Accounts", "columns": columnsOf("id integer")}),
		refuses("PrimaryKey", "Tables have primary keys", "no key", object{"action": "create", "table": "finance_keyless", "columns": columnsOf("amount real")}),
		rule{section: section, name: "ForeignKeyIsEnforced", asks: "Foreign keys hold for relationships", holds: refuses("", "", "no such account",
			object{"action": "insert", "table": "finance_transactions", "rows": []object{{"account_id": 4711, "amount": 1}}}).holds},
		rule{section: section, name: "Indexes", asks: "Tables have relevant indexes", holds: func(c *check) {
			c.projects().is("account_id\ndate", `SELECT x.name FROM pragma_index_list('finance_transactions') i, pragma_index_info(i.name) x`)
		}},
		rule{section: section, name: "NotInTheCore", asks: "They are no part of the core schema", holds: func(c *check) {
			c.is("0", c.on(`SELECT count(*) FROM sqlite_master WHERE name LIKE 'finance%'`, `SELECT count(*) FROM pg_class WHERE relname LIKE 'finance%'`))
		}},
		rule{section: section, name: "Persist", asks: "They outlive sessions", holds: func(c *check) {
			p := c.the("keeper")
			p.says("/new", "new session")
			c.model.says("read the tables", openai.Calls(toolCall("sqlite3_reader", object{"query": "SELECT name FROM sqlite_master WHERE name LIKE 'travel%' ORDER BY 1", "limit": 100})), openai.Text("I read them."))
			p.says("read the tables", "I read them.")
			p.rests()
			if result := c.lastResult("read the tables"); !strings.Contains(result, "travel_destinations") {
				c.Errorf("the tables of the next session: %s", result)
			}
		}},
	)
}

// lastResult is what the last tool of a turn returned to the model.
func (c *check) lastResult(text string) string {
	c.Helper()
	request, ok := c.model.asked(text)
	if !ok || request.Messages[len(request.Messages)-1].Role != "tool" {
		c.Fatalf("the model got no result in %q", text)
	}
	return request.Messages[len(request.Messages)-1].Text()
}

const running003 = "SELECT * FROM agent_sessions WHERE status = 'running'"

func querying003() []rule {
	const section = "Queries"
	return []rule{
		{section: section, name: "RunningSessions", asks: running003 + ", by whoever opens the database: the sessions in which something runs, and no others",
			holds: func(c *check) {
				busy := c.one(c.the("busy").sessions())
				var ids []string
				for _, row := range c.query(running003).rows {
					ids = append(ids, row[0])
				}
				for _, id := range ids {
					// A call that waits for a person is still under way.
					if id != busy && id != c.one(c.the("asks").sessions()) {
						c.Errorf("%s is found", id)
					}
				}
				if !strings.Contains(strings.Join(ids, " "), busy) {
					c.Errorf("the session at work is not found")
				}
			}},
		{section: section, name: "sqlite3_reader", asks: "The seed's call of sqlite3_reader, with its query and its limit, by the agent itself",
			differs: "an agent sees the sessions of its own conversation and nobody else's; it is the same tool on PostgreSQL",
			holds: func(c *check) {
				p := c.person()
				var call struct {
					Tool       string `json:"tool"`
					Parameters object `json:"parameters"`
				}
				c.decode(&call, `{
  "tool": "sqlite3_reader",
  "parameters": {
    "query": "SELECT * FROM agent_sessions WHERE status = 'running'",
    "limit": 100
  }
}`)
				c.model.says("what runs", openai.Calls(toolCall(call.Tool, call.Parameters)), openai.Text("I do."))
				p.says("what runs", "I do.")
				p.rests()
				var result struct {
					Columns []string `json:"columns"`
					Rows    [][]any  `json:"rows"`
				}
				if err := json.Unmarshal([]byte(c.lastResult("what runs")), &result); err != nil || len(result.Rows) != 1 || len(result.Columns) != 12 || result.Rows[0][0] != c.one(p.sessions()) {
					c.Errorf("the agent reads %+v, %v", result, err)
				}
			}},
		{section: section, name: "ByID", asks: "SELECT * FROM agent_sessions WHERE id = ?, with the id bound", differs: "PostgreSQL writes $1 for ?",
			holds: func(c *check) {
				id := c.one(c.the("done").sessions())
				found := c.query("SELECT * FROM agent_sessions WHERE id = "+c.on("?", "$1"), id)
				if len(found.rows) != 1 || found.rows[0][0] != id {
					c.Errorf("found %q", found.rows)
				}
			}},
		{section: section, name: "StatusByAPI", asks: "The API finds sessions by their status, as the query does",
			holds: func(c *check) {
				c.statuses("busy", "running")
				c.statuses("done", "completed")
				c.statuses("failed", "failed")
			}},
		{section: section, name: "API", asks: "The API gives a session, its messages and its tool calls",
			holds: func(c *check) {
				p := c.the("wrong")
				id := c.one(p.sessions())
				status, body := c.calls("sessions:read", http.MethodGet, "/sessions/"+id)
				if status != http.StatusOK || body["id"] != id || body["title"] != "read nothing" {
					c.Errorf("%d %v", status, body)
				}
				if calls := c.items("sessions:read", "/tool-calls?session="+id); len(calls) != 1 || calls[0]["tool_name"] != "read_file" || calls[0]["status"] != "failed" {
					c.Errorf("tool calls: %v", calls)
				}
				if said := c.items("sessions:read", "/messages?conversation="+url.QueryEscape(p.place())); len(said) == 0 || said[0]["text"] != "read nothing" {
					c.Errorf("messages: %v", said)
				}
			}},
	}
}

// statuses fails unless the API's filter finds a person's session under one status only.
func (c *check) statuses(who, want string) {
	c.Helper()
	id := c.one(c.the(who).sessions())
	for _, status := range []string{"running", "completed", "failed"} {
		found := slices.ContainsFunc(c.items("sessions:read", "/sessions?limit=200&status="+status), func(s map[string]any) bool { return s["id"] == id })
		if found != (status == want) {
			c.Errorf("%s found under %s: %v", who, status, found)
		}
	}
}

func lifecycle003() []rule {
	const section = "DataLifecycle"
	return []rule{
		{section: section, name: "SessionCreation", asks: "While the agent executes there are the session, with status running, and the person's message",
			holds: func(c *check) {
				c.is("running|NULL|user|a long question", `SELECT s.status, s.ended_at, m.role, m.content FROM agent_sessions s JOIN agent_messages m ON m.session_id = s.id WHERE s.id IN (`+c.the("busy").sessions()+`)`)
			}},
		{section: section, name: "DuringExecution", asks: "Messages are appended and tool calls tracked while it goes on",
			holds: func(c *check) {
				c.is("user|run it\nassistant|", `SELECT role, content FROM agent_messages WHERE session_id IN (`+c.the("asks").sessions()+`) ORDER BY seq, part`)
				c.is("pending", `SELECT status FROM agent_tool_calls WHERE session_id IN (`+c.the("asks").sessions()+`)`)
			}},
		{section: section, name: "Completion", asks: "At the end there are the status, ended_at, and the result", differs: "a session goes on for further messages, so ended_at is of its reset; when each turn ended is in agent_runs",
			holds: func(c *check) {
				c.is("completed|1|1", `SELECT s.status, r.finished_ms >= r.started_ms, COALESCE(s.result, '') <> ''
					FROM agent_sessions s JOIN agent_runs r ON r.session_id = s.id WHERE s.id IN (`+c.the("done").sessions()+`)`)
			}},
		{section: section, name: "AuditTrail", asks: "Messages and tool calls stay after the session has ended",
			holds: func(c *check) {
				p := c.person()
				c.model.says("note it", openai.Calls(toolCall("remember", object{"text": "Likes coffee"})), openai.Text("Noted."))
				p.says("note it", "Noted.")
				p.says("/reset", "new session")
				p.rests()
				c.is("1|completed", `SELECT ended_at >= started_at, status FROM agent_sessions WHERE id IN (`+p.sessions()+`)`)
				c.is("4|1", `SELECT (SELECT count(*) FROM agent_messages WHERE session_id IN (`+p.sessions()+`)), (SELECT count(*) FROM agent_tool_calls WHERE session_id IN (`+p.sessions()+`))`)
			}},
		{section: section, name: "KeptByDefault", asks: "Sessions are kept indefinitely by default",
			holds: func(c *check) {
				printed := c.command("retention", func(ctx context.Context, cfg config.Config, env app.Env) error {
					return app.Retention(ctx, cfg, env, true)
				})
				if !strings.Contains(printed, "sessions are kept") {
					c.Errorf("bot retention says %q", printed)
				}
			}},
		{section: section, name: "DeletedByAPI", asks: "Old sessions are deleted through the API, with what belongs to them; project tables stay",
			holds: func(c *check) {
				p := c.person()
				p.says("soon gone", "echo: soon gone")
				p.rests()
				id := c.one(p.sessions())
				var status int
				waittest.Until(c.T, "the session can be deleted", func() bool {
					status, _ = c.calls("sessions:write", http.MethodDelete, "/sessions/"+id)
					return status != http.StatusConflict
				})
				if status != http.StatusOK {
					c.Errorf("deleting answers %d", status)
				}
				c.is("0|0", `SELECT (SELECT count(*) FROM agent_sessions WHERE id = '`+id+`'), (SELECT count(*) FROM agent_messages WHERE session_id = '`+id+`')`)
				c.projects().is("1", `SELECT count(*) FROM sqlite_master WHERE name = 'finance_accounts'`)
			}},
	}
}

func care003() []rule {
	const section = "BackupAndExport"
	return []rule{
		{section: "Migrations", name: "AtStart", asks: "Migrations run at start, and once more does no harm",
			holds: func(c *check) {
				for range 2 {
					printed := c.command("migrate", func(ctx context.Context, cfg config.Config, env app.Env) error {
						return app.Migrate(ctx, cfg, env, false)
					})
					if !strings.Contains(printed, "applied  00002_create_messages\n") {
						c.Errorf("bot migrate says %q", printed)
					}
				}
			}},
		{section: section, name: "Backup", asks: "cp dwata.db makes a backup", differs: "bot backup create does, while the daemon runs and on both databases; a plain copy is whole only when it is stopped",
			holds: func(c *check) {
				c.command("backup", app.BackupCreate)
				made, err := os.ReadDir(c.env["BACKUP_DIR"])
				if err != nil || len(made) != 1 {
					c.Fatalf("there are %v, %v", made, err)
				}
				c.command("verify", func(ctx context.Context, cfg config.Config, env app.Env) error {
					return app.BackupVerify(ctx, cfg, env, made[0].Name())
				})
			}},
		{section: section, name: "ExportToSQL", on: onSQLite, asks: "sqlite3 dwata.db .dump writes SQL that makes the database again", differs: "bot export --format sql does; on PostgreSQL pg_dump, which bot backup create calls",
			holds: func(c *check) {
				again := &check{T: c.T, world: &world{database: "sqlite", sql: c.opens("sqlite", "file:"+filepath.Join(c.TempDir(), "again.db"))}}
				if _, err := again.sql.ExecContext(c.Context(), c.exports("sql")); err != nil {
					c.Fatalf("the dump is not taken: %v", err)
				}
				const query = `SELECT status, user_prompt FROM agent_sessions WHERE user_prompt = 'a question'`
				again.is(c.query(query).lines(), query)
			}},
		{section: section, name: "ExportATable", asks: `"SELECT * FROM agent_sessions" -header -csv writes a table`, differs: "bot export --format csv, without system_prompt and config, and with the conversation; the query works, too",
			holds: func(c *check) {
				header, _, _ := strings.Cut(c.exports("csv"), "\n")
				if !strings.HasPrefix(header, "id,agent_name,provider,model,user_prompt,status,started_at,ended_at,result,error") {
					c.Errorf("the header is %q", header)
				}
			}},
		{section: "FutureEnhancements", name: "Ideas", asks: "Projects, users, tags, attachments, relationships, an audit log: potential additions", apart: "the seed leaves them open; codebases, identities, attachments and an audit log exist"},
	}
}

// exports is what bot export prints.
func (c *check) exports(format string) string {
	c.Helper()
	var out bytes.Buffer
	c.command("export", func(ctx context.Context, cfg config.Config, env app.Env) error {
		return app.Export(ctx, cfg, env, &out, app.ExportQuery{Format: format})
	})
	return out.String()
}
