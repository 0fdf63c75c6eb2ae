package conformance_test

import (
	"database/sql"
	"fmt"
	"slices"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/waittest"
)

// ddl003 is the seed's core schema, without the comments, and with the indexes that
// it names in words.
const ddl003 = `
CREATE TABLE agent_sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_name TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    system_prompt TEXT,
    user_prompt TEXT NOT NULL,
    config TEXT,
    status TEXT NOT NULL DEFAULT 'running'
        CHECK (status IN ('running', 'completed', 'failed')),
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    result TEXT,
    error TEXT
);
CREATE TABLE agent_messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id INTEGER NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'system', 'tool')),
    content TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    FOREIGN KEY (session_id) REFERENCES agent_sessions (id) ON DELETE CASCADE
);
CREATE INDEX idx_agent_messages_session_created ON agent_messages (session_id, created_at);
CREATE TABLE agent_tool_calls (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id INTEGER NOT NULL,
    message_id INTEGER,
    tool_call_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    request TEXT NOT NULL,
    response TEXT,
    status TEXT NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'executing', 'completed', 'failed')),
    created_at INTEGER NOT NULL,
    completed_at INTEGER,
    execution_time_ms INTEGER,
    error_details TEXT,
    FOREIGN KEY (session_id) REFERENCES agent_sessions (id) ON DELETE CASCADE,
    FOREIGN KEY (message_id) REFERENCES agent_messages (id) ON DELETE SET NULL
);
CREATE INDEX idx_agent_tool_calls_session ON agent_tool_calls (session_id);
CREATE INDEX idx_agent_tool_calls_status ON agent_tool_calls (session_id, status);
`

// tell003 fills the database with what the rules are about: somebody whose turn runs,
// somebody whose turn failed, somebody who was answered, and somebody whose assistant
// keeps tables.
func tell003(c *check) {
	person{c, owner}.says("/clone "+c.repo, "Cloned")

	done := c.casts("done")
	done.says("a question", "echo: a question")
	done.rests()

	failed := c.casts("failed")
	c.model.says("a wrong question", openai.Fail(400, "invalid_request_error", "", "The model is not for this."))
	failed.says("a wrong question", "✖")
	failed.rests()

	busy := c.casts("busy")
	c.model.says("a long question", openai.Reply(openai.Delta("This takes"), openai.Gate(emulator.NewGate())))
	c.tg.Person(busy.id).Says("a long question")
	waittest.Until(c.T, "the long question is asked", func() bool { _, ok := c.model.asked("a long question"); return ok })

	keeps := c.casts("keeper")
	keeps.says("/repo web", "web")
	keeps.says("/mode auto", "auto")
	calls := make([]openai.Call, len(project003))
	for i, p := range project003 {
		calls[i] = toolCall("project_table", p.create)
	}
	c.model.says("make the tables", openai.Calls(calls...), openai.Text("They are made."))
	keeps.says("make the tables", "They are made.")
	keeps.rests()

	asks := c.casts("asks")
	asks.says("/repo web", "web")
	c.model.says("run it", openai.Calls(toolCall("bash", map[string]string{"command": "echo hi"})), openai.Text("It ran."))
	asks.says("run it", "✋")

	wrong := c.casts("wrong")
	wrong.says("/repo web", "web")
	c.model.says("read nothing", openai.Calls(toolCall("read_file", map[string]string{"path": "none.txt"})), openai.Text("There is none."))
	wrong.says("read nothing", "There is none.")
	wrong.rests()
}

func rules003() []rule {
	return slices.Concat(tables003(), status003(), configuration003(), dynamic003(), querying003(), lifecycle003(), care003())
}

// seed003 is a database in memory with the seed's tables, made of its own DDL, on
// which ours are compared whatever database ours is.
func (c *check) seed003() *sql.DB {
	c.Helper()
	db := c.opens("sqlite", "file::memory:?_pragma=foreign_keys(1)")
	db.SetMaxOpenConns(1)
	for _, statement := range statements(ddl003) {
		if _, err := db.ExecContext(c.Context(), statement); err != nil {
			c.Fatalf("the seed's DDL: %v", err)
		}
	}
	return db
}

// hasColumns003 fails unless a table or view of ours has the seed's columns, first
// among its own or in the same order.
func (c *check) hasColumns003(name string, notNull bool) {
	c.Helper()
	lite := &check{T: c.T, world: &world{database: "sqlite"}, open: c.open}
	var want, ours []string
	for _, column := range lite.columnsOf(c.seed003(), "", name) {
		if column.name != "id" && notNull { // SQLite says of a primary key that it may be null
			want = append(want, column.String())
		} else {
			want = append(want, column.name)
		}
	}
	for _, column := range c.columnsOf(c.sql, "public", name) {
		column.kind, column.standard = "", ""
		if column.name == "id" || !notNull {
			column.nullable = ""
		}
		if slices.Contains(want, column.String()) {
			ours = append(ours, column.String())
		}
	}
	c.same("columns of "+name, want, ours)
}

func tables003() []rule {
	const section = "CoreSystemTables"
	const number = "ids of sessions are UUIDs, not numbers, so that databases can be merged"
	return []rule{
		{section: section, name: "agent_sessions", asks: "agent_sessions has the seed's columns in its order", differs: "it is a view of remote_agent_sessions; " + number,
			holds: func(c *check) { c.hasColumns003("agent_sessions", false) }},
		{section: section, name: "agent_messages", asks: "agent_messages has the seed's columns, in its order, none of them less strict", differs: number,
			holds: func(c *check) { c.hasColumns003("agent_messages", true) }},
		{section: section, name: "agent_tool_calls", asks: "agent_tool_calls likewise", differs: number,
			holds: func(c *check) { c.hasColumns003("agent_tool_calls", true) }},
		{section: section, name: "SelectAll", asks: "SELECT * of agent_sessions gives what the seed's program reads: id first, then agent_name",
			holds: func(c *check) {
				found := c.query(`SELECT * FROM agent_sessions`)
				if len(found.columns) < 12 || found.columns[0] != "id" || found.columns[1] != "agent_name" || len(found.rows) == 0 {
					c.Errorf("%q, %d rows", found.columns, len(found.rows))
				}
			}},
		{section: section, name: "UnixTimes", asks: "Times are Unix seconds, as numbers",
			holds: func(c *check) {
				p := c.the("done")
				for _, query := range []string{`SELECT started_at FROM agent_sessions WHERE id IN (` + p.sessions() + `)`, `SELECT min(created_at) FROM agent_messages`, `SELECT min(created_at) FROM agent_tool_calls`} {
					if at := c.one(query); len(at) != 10 || at < "1700000000" {
						c.Errorf("%s is %s", query, at)
					}
				}
			}},
		{section: section, name: "WhoAnswered", asks: "A session says provider, model, system prompt, first request, configuration as JSON",
			holds: func(c *check) {
				p := c.the("done")
				c.is("openai|test-model|1|a question|1", `SELECT provider, model, length(system_prompt) > 100, user_prompt, config LIKE '{%}' FROM agent_sessions WHERE id IN (`+p.sessions()+`)`)
			}},
		{section: section, name: "MessageOrder", asks: "idx_agent_messages_session_created is on (session_id, created_at)",
			holds: func(c *check) { c.indexed("idx_agent_messages_session_created", "session_id,created_at") }},
		{section: section, name: "ToolCallsOfASession", asks: "idx_agent_tool_calls_session is on session_id",
			holds: func(c *check) { c.indexed("idx_agent_tool_calls_session", "session_id") }},
		{section: section, name: "ToolCallsByStatus", asks: "idx_agent_tool_calls_status is on (session_id, status)",
			holds: func(c *check) { c.indexed("idx_agent_tool_calls_status", "session_id,status") }},
		{section: section, name: "Roles", asks: "role is user, assistant, system or tool, and the database refuses others",
			holds: func(c *check) {
				p := c.the("done")
				c.try(func(t trial) {
					for i, role := range []string{"user", "assistant", "system", "tool"} {
						t.exec(fmt.Sprintf(`INSERT INTO agent_messages (session_id, role, content, created_at, seq, kind) SELECT id, '%s', 'x', 1, %d, 'text' FROM (%s) s`, role, 100+i, p.sessions()))
					}
					t.refuses(`INSERT INTO agent_messages (session_id, role, content, created_at, seq, kind) SELECT id, 'function', 'x', 1, 200, 'text' FROM (`+p.sessions()+`) s`, "check")
				})
			}},
		{section: section, name: "ToolResultsAreRoleTool", asks: "user is what the person said, assistant the answer, tool the result of a call",
			differs: "notices of the system go to the chat and are kept as deliveries, so no message has the role system",
			holds: func(c *check) {
				c.is("user|text\nassistant|call\ntool|result\nassistant|text", `SELECT role, CASE kind WHEN 'tool_call' THEN 'call' WHEN 'tool_result' THEN 'result' ELSE 'text' END
					FROM agent_messages WHERE session_id IN (`+c.the("wrong").sessions()+`) ORDER BY seq, part`)
			}},
		{section: section, name: "MessageOfACall", asks: "A tool call says with which message it came",
			holds: func(c *check) {
				c.is("tool_call|read_file", `SELECT m.kind, t.tool_name FROM agent_tool_calls t JOIN agent_messages m ON m.id = t.message_id WHERE t.session_id IN (`+c.the("wrong").sessions()+`)`)
			}},
	}
}

// indexed fails unless an index is on columns.
func (c *check) indexed(name, columns string) {
	c.Helper()
	c.is(columns, c.on(`SELECT group_concat(name) FROM (SELECT name FROM pragma_index_info('`+name+`') ORDER BY seqno)`,
		`SELECT string_agg(a.attname, ',' ORDER BY k.ord) FROM pg_index x, unnest(x.indkey) WITH ORDINALITY AS k(num, ord), pg_attribute a
		WHERE x.indexrelid = to_regclass('`+name+`') AND a.attrelid = x.indrelid AND a.attnum = k.num`))
}

func status003() []rule {
	const section = "StatusValues"
	status := func(c *check, who, want string) {
		c.is(want, `SELECT status FROM agent_sessions WHERE id IN (`+c.the(who).sessions()+`)`)
	}
	return []rule{
		{section: section, name: "SessionCheck", asks: "A session's status is running, completed or failed, and the database refuses others",
			holds: func(c *check) {
				p := c.the("done")
				c.try(func(t trial) {
					for _, ok := range []string{"running", "completed", "failed"} {
						t.exec(`UPDATE remote_agent_sessions SET status = '` + ok + `' WHERE id IN (` + p.sessions() + `)`)
					}
					t.refuses(`UPDATE remote_agent_sessions SET status = 'stopped' WHERE id IN (`+p.sessions()+`)`, "check")
				})
			}},
		{section: section, name: "Running", asks: "running: the agent is executing", holds: func(c *check) { status(c, "busy", "running") }},
		{section: section, name: "Completed", asks: "completed: the agent finished", holds: func(c *check) { status(c, "done", "completed") }},
		{section: section, name: "Failed", asks: "failed: the agent met an error, and error says which",
			holds: func(c *check) {
				c.is("failed|1", `SELECT status, error <> '' FROM agent_sessions WHERE id IN (`+c.the("failed").sessions()+`)`)
			}},
		{section: section, name: "CallCheck", asks: "A tool call's status is pending, executing, completed or failed, and the database refuses others",
			holds: func(c *check) {
				p := c.the("wrong")
				c.try(func(t trial) {
					for _, ok := range []string{"pending", "executing", "completed", "failed"} {
						t.exec(`UPDATE agent_tool_calls SET status = '` + ok + `' WHERE session_id IN (` + p.sessions() + `)`)
					}
					t.refuses(`UPDATE agent_tool_calls SET status = 'denied' WHERE session_id IN (`+p.sessions()+`)`, "check")
				})
			}},
		{section: section, name: "CallPending", asks: "pending: queued and not started, such as one that waits for a person's yes",
			holds: func(c *check) {
				c.is("bash|pending|NULL|NULL", `SELECT tool_name, status, completed_at, response FROM agent_tool_calls WHERE session_id IN (`+c.the("asks").sessions()+`)`)
			}},
		{section: section, name: "CallExecuting", asks: "executing: running now",
			holds: func(c *check) {
				p := c.person()
				p.says("/repo web", "web")
				p.says("/mode auto", "auto")
				c.model.says("wait a minute", openai.Calls(toolCall("bash", map[string]string{"command": "sleep 60"})))
				c.tg.Person(p.id).Says("wait a minute")
				waittest.Until(c.T, "the call is executing", func() bool {
					return c.query(`SELECT status FROM agent_tool_calls WHERE session_id IN (`+p.sessions()+`)`).lines() == "executing"
				})
				p.says("/stop", "Stopped")
				p.rests()
				c.is("failed", `SELECT status FROM agent_tool_calls WHERE session_id IN (`+p.sessions()+`)`)
			}},
		{section: section, name: "CallCompleted", asks: "completed: with the time, the milliseconds it took and the result",
			holds: func(c *check) {
				c.is(fmt.Sprint(len(project003)), `SELECT count(*) FROM agent_tool_calls WHERE status = 'completed' AND tool_name = 'project_table' AND completed_at >= created_at
					AND execution_time_ms >= 0 AND response <> '' AND error_details IS NULL AND session_id IN (`+c.the("keeper").sessions()+`)`)
			}},
		{section: section, name: "CallFailed", asks: "failed: with error_details",
			holds: func(c *check) {
				c.is("read_file|failed|1", `SELECT tool_name, status, error_details <> '' FROM agent_tool_calls WHERE session_id IN (`+c.the("wrong").sessions()+`)`)
			}},
		{section: section, name: "RequestIsJSON", asks: "request is the call's parameters as JSON",
			holds: func(c *check) {
				c.is("none.txt", c.on(`SELECT request ->> '$.path' FROM agent_tool_calls`, `SELECT CAST(request AS jsonb) ->> 'path' FROM agent_tool_calls`)+` WHERE session_id IN (`+c.the("wrong").sessions()+`)`)
			}},
	}
}

func configuration003() []rule {
	const section = "DatabaseConfiguration"
	return []rule{
		{section: section, name: "ForeignKeysOn", on: onSQLite, asks: "PRAGMA foreign_keys = ON for every connection of the program", differs: "SQLite keeps that setting with a connection and not with the file: whoever opens the file sets it for themselves, as the seed's program does",
			holds: func(c *check) {
				c.is("1", "PRAGMA foreign_keys")
				c.is("0", "SELECT count(*) FROM pragma_foreign_key_check")
			}},
		{section: section, name: "DeletingASession", asks: "Deleting a session deletes its messages and tool calls",
			holds: func(c *check) {
				id := c.one(c.the("wrong").sessions())
				c.try(func(t trial) {
					t.exec(`DELETE FROM remote_agent_sessions WHERE id = '` + id + `'`)
					t.is("0|0", `SELECT (SELECT count(*) FROM agent_messages WHERE session_id = '`+id+`'), (SELECT count(*) FROM agent_tool_calls WHERE session_id = '`+id+`')`)
				})
			}},
		{section: section, name: "DeletingAMessage", asks: "Deleting a message sets message_id of its tool calls to NULL",
			holds: func(c *check) {
				p := c.the("wrong")
				c.try(func(t trial) {
					t.is("0", `SELECT message_id IS NULL FROM agent_tool_calls WHERE session_id IN (`+p.sessions()+`)`)
					t.exec(`DELETE FROM agent_messages WHERE id IN (SELECT message_id FROM agent_tool_calls WHERE session_id IN (` + p.sessions() + `))`)
					t.is("1", `SELECT message_id IS NULL FROM agent_tool_calls WHERE session_id IN (`+p.sessions()+`)`)
				})
			}},
	}
}
