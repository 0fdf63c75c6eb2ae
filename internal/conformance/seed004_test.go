package conformance_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/memory/memorytest"
)

// profile004 has what the seed's agents have.
const profile004 = `
name: snak
description: answers
lore: made in a test
objectives: be short
knowledge: tea is green
system_prompt: Be snak.
plugins: [remember, recall]
max_iterations: 7
`

// tell004 makes a profile, and lets somebody talk with it about a plan and with tools.
func tell004(c *check) {
	person{c, owner}.says("/clone "+c.repo, "Cloned")
	c.command("create a profile", func(ctx context.Context, cfg config.Config, env app.Env) error {
		return app.AgentImport(ctx, cfg, env, app.ProfileFile{Text: []byte(profile004)})
	})
	p := c.casts("snak")
	p.says("/agent snak", "snak is in use here")
	c.model.says("remember my tea", openai.Calls(toolCall("remember", object{"text": "Likes green tea"})), openai.Text("Green it is."))
	p.says("remember my tea", "Green it is.")
	c.model.says("It", openai.Text("1. Drink it."))
	p.says("/plan drink tea", "p-1")
	p.rests()
}

func rules004() []rule {
	return slices.Concat(types004(), tables004(), functions004(), indexes004(), memories004(), vectors004(), flow004(), care004())
}

// needsVectors skips a check where the PostgreSQL server has no pgvector.
func (c *check) needsVectors() {
	c.Helper()
	if c.one(`SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'`) == "1" {
		return
	}
	if os.Getenv("REQUIRE_PGVECTOR") == "1" {
		c.Fatal("REQUIRE_PGVECTOR=1, but no pgvector")
	}
	c.Skip("the PostgreSQL server has no pgvector")
}

// vector is an embedding of a text, as somebody would type it.
func vector(text string) string {
	numbers := make([]string, 0, 384)
	for _, x := range memorytest.Vector(text) {
		numbers = append(numbers, fmt.Sprint(x))
	}
	return "'[" + strings.Join(numbers, ",") + "]'"
}

const (
	anybody004 = "telegram/4711"
	run004     = "11111111-1111-4111-8111-111111111111"
)

// has fails unless a table has columns in this order, among others.
func (c *check) has(table string, columns ...string) {
	c.Helper()
	var got []string
	for _, column := range c.columnsOf(c.sql, "public", table) {
		if slices.Contains(columns, column.name) {
			got = append(got, column.name)
		}
	}
	c.same("columns of "+table, columns, got)
}

func types004() []rule {
	const section = "ExtensionsAndTypes"
	const lite = "SQLite has no types of one's own; there the columns are JSON with the same members"
	return []rule{
		{section: section, name: "uuid-ossp", on: onPostgres, asks: "UUIDs are made by the database", differs: "by gen_random_uuid(), which PostgreSQL has itself; uuid-ossp is not needed, and does no harm",
			holds: func(c *check) { c.is("36", `SELECT length(CAST(gen_random_uuid() AS TEXT))`) }},
		{section: section, name: "vector", on: onPostgres, asks: "The extension vector is there", differs: "the program makes it at start where the server has it, and works without",
			holds: func(c *check) {
				c.needsVectors()
				c.is("vector", `SELECT extname FROM pg_extension WHERE extname = 'vector'`)
			}},
		{section: section, name: "memory", on: onPostgres, asks: "The type memory: enabled, short_term_memory_size, memory_size", differs: "the columns are JSONB, for both databases; a cast makes either of the other",
			holds: func(c *check) {
				c.is("1|5|20", `SELECT (m).enabled, (m).short_term_memory_size, (m).memory_size FROM (SELECT ROW(TRUE, 5, 20)::memory AS m) x`)
				c.is("1", `SELECT (memory::memory).enabled FROM agents WHERE name = 'snak'`)
			}},
		{section: section, name: "rag", on: onPostgres, asks: "The type rag: enabled, embedding_model", differs: "the columns are JSONB, for both databases; a cast makes either of the other",
			holds: func(c *check) {
				c.is("1|m", `SELECT (r).enabled, (r).embedding_model FROM (SELECT ROW(TRUE, 'm')::rag AS r) x`)
			}},
		{section: section, name: "model", on: onPostgres, asks: "The type model: provider, model_name, description", differs: "the columns are JSONB, for both databases; a cast makes either of the other",
			holds: func(c *check) {
				c.is("openai|gpt|d", `SELECT (m).provider, (m).model_name, (m).description FROM (SELECT ROW('openai', 'gpt', 'd')::model AS m) x`)
				c.is("openai|quick-model", `SELECT (fast::model).provider, (fast::model).model_name FROM models_config`)
			}},
		{section: section, name: "Members", on: onSQLite, asks: "The members of memory, rag and model", differs: lite,
			holds: func(c *check) {
				c.is("1|0|0|1|", `SELECT memory ->> '$.enabled', memory ->> '$.short_term_memory_size', memory ->> '$.memory_size', rag ->> '$.enabled', rag ->> '$.embedding_model' FROM agents WHERE name = 'snak'`)
				c.is("openai|quick-model", `SELECT fast ->> '$.provider', fast ->> '$.model_name' FROM models_config`)
			}},
	}
}

func tables004() []rule {
	const section = "CoreTables"
	member := func(c *check, column, key string) string {
		return c.on(column+" ->> '$."+key+"'", column+" ->> '"+key+"'")
	}
	return []rule{
		{section: section, name: "Agents", asks: "agents has the seed's columns", differs: "lists and composites are JSON, for both databases",
			holds: func(c *check) {
				c.has("agents", "id", "name", "group", "description", "lore", "objectives", "knowledge", "system_prompt", "interval", "plugins", "memory", "rag",
					"mode", "max_iterations", "mcp_servers", "avatar_image", "avatar_mime_type")
			}},
		{section: section, name: "AgentDefaults", asks: "group is default_group, mode interactive, max_iterations 15",
			holds: func(c *check) {
				c.try(func(t trial) {
					t.exec(`INSERT INTO agents (name) VALUES ('by-hand')`)
					t.is("36|default_group|interactive|15|{}", `SELECT length(CAST(id AS TEXT)), "group", mode, max_iterations, CAST(mcp_servers AS TEXT) FROM agents WHERE name = 'by-hand'`)
				})
			}},
		{section: section, name: "AgentIsUsed", asks: "A row configures who answers: prompt, plugins, iterations",
			holds: func(c *check) {
				c.is("Be snak.|7|answers", `SELECT system_prompt, max_iterations, description FROM agents WHERE name = 'snak'`)
				request, ok := c.model.asked("remember my tea")
				if !ok || !strings.Contains(request.Messages[0].Text(), "Be snak.") || !strings.Contains(request.Messages[0].Text(), "tea is green") || len(request.Tools) == 0 {
					c.Errorf("the model was told %+v", request)
				}
			}},
		{section: section, name: "AgentIterations", asks: "agent_iterations: data as JSON and created_at, of every cycle of an agent",
			holds: func(c *check) {
				c.has("agent_iterations", "data", "created_at")
				got := c.query(`SELECT ` + member(c, "data", "model") + `, created_at IS NOT NULL FROM agent_iterations LIMIT 1`)
				if got.lines() != "test-model|1" {
					c.Errorf("a cycle is %q", got.rows)
				}
			}},
		{section: section, name: "IterationsAreJSONB", on: onPostgres, asks: "data->>'model' works as written",
			holds: func(c *check) {
				c.is("test-model", `SELECT data->>'model' FROM agent_iterations LIMIT 1`)
			}},
		{section: section, name: "ThreadID", asks: "thread_id: an agent's threads, with a name and the thread's own id",
			holds: func(c *check) {
				p := c.the("snak")
				c.is(p.place()+"|1", `SELECT name, thread_id = (SELECT CAST(id AS TEXT) FROM (`+p.conversation()+`) v) FROM thread_id WHERE agent_id = (SELECT id FROM agents WHERE name = 'snak')`)
			}},
		{section: section, name: "ThreadCascade", asks: "An agent's threads go with it", differs: "the list does; the conversation stays and goes on with the default",
			holds: func(c *check) {
				c.try(func(t trial) {
					t.exec(`DELETE FROM agents WHERE name = 'snak'`)
					t.is("0", `SELECT count(*) FROM thread_id WHERE name = '`+c.the("snak").place()+`'`)
				})
			}},
		{section: section, name: "Message", asks: "message has the seed's columns, from quoted", differs: "it is a view of the messages of sessions",
			holds: func(c *check) {
				c.has("message", "agent_id", "event", "run_id", "thread_id", "checkpoint_id", "from", "content", "tools", "plan", "metadata", "timestamp")
				c.is("user|remember my tea|1|1|1", `SELECT "from", content, run_id <> '', checkpoint_id <> '', "timestamp" IS NOT NULL FROM message WHERE content = 'remember my tea' AND thread_id = (SELECT CAST(id AS TEXT) FROM (`+c.the("snak").conversation()+`) v)`)
			}},
		{section: section, name: "tools", on: onPostgres, asks: "tools is JSONB: tools->>'name' finds what was used",
			holds: func(c *check) {
				c.is("remember", `SELECT DISTINCT tools->>'name' FROM message WHERE tools IS NOT NULL`)
			}},
		{section: section, name: "plan", on: onPostgres, asks: "plan is JSONB",
			holds: func(c *check) {
				c.is("drink tea", `SELECT DISTINCT plan->>'goal' FROM message WHERE plan IS NOT NULL`)
			}},
		{section: section, name: "metadata", on: onPostgres, asks: "metadata is JSONB",
			holds: func(c *check) { c.is("jsonb", `SELECT DISTINCT CAST(pg_typeof(metadata) AS TEXT) FROM message`) }},
		{section: section, name: "JSONOnSQLite", on: onSQLite, asks: "tools, plan and metadata are JSON", differs: "as text, which the same operators take: tools->>'name'",
			holds: func(c *check) {
				c.is("remember", `SELECT DISTINCT tools->>'name' FROM message WHERE tools IS NOT NULL`)
				c.is("drink tea", `SELECT DISTINCT plan->>'goal' FROM message WHERE plan IS NOT NULL`)
				c.is("0", `SELECT count(*) FROM message WHERE metadata IS NOT NULL AND NOT json_valid(metadata)`)
			}},
		{section: section, name: "MessageCascade", asks: "An agent's messages go with it", differs: "they belong to the conversation and stay, with agent_id NULL; deleting the conversation deletes them",
			holds: func(c *check) {
				c.try(func(t trial) {
					t.exec(`DELETE FROM agents WHERE name = 'snak'`)
					t.is("1|1", `SELECT count(*), min(CASE WHEN agent_id IS NULL THEN 1 ELSE 0 END) FROM message WHERE content = 'remember my tea'`)
				})
			}},
		{section: section, name: "ModelsConfig", asks: "models_config: fast, smart, cheap, each with provider and model_name",
			holds: func(c *check) {
				c.has("models_config", "fast", "smart", "cheap")
				c.is("openai|quick-model", `SELECT `+member(c, "fast", "provider")+`, `+member(c, "fast", "model_name")+` FROM models_config`)
			}},
	}
}

func functions004() []rule {
	const section = "Functions"
	const lite = "SQLite has no functions in its schema"
	thread := func(c *check) (agent, thread string) {
		return c.one(`SELECT id FROM agents WHERE name = 'snak'`), c.one(c.the("snak").conversation())
	}
	contents := func(c *check, call string, args ...any) []string {
		var all []string
		for _, row := range c.query(`SELECT id FROM `+call, args...).rows {
			all = append(all, row[0])
		}
		return all
	}
	return []rule{
		{section: section, name: "get_messages_optimized", on: onPostgres, asks: "get_messages_optimized(agent, thread) gives a thread's messages in order, the columns of message",
			holds: func(c *check) {
				agent, id := thread(c)
				found := c.query(`SELECT * FROM get_messages_optimized($1::uuid, $2)`, agent, id)
				if len(found.rows) < 5 || found.columns[0] != "id" || !slices.Contains(found.columns, "from") {
					c.Errorf("%q, %d rows", found.columns, len(found.rows))
				}
				c.same("order", contents(c, `message WHERE thread_id = '`+id+`' AND agent_id = '`+agent+`' ORDER BY id`), contents(c, `get_messages_optimized('`+agent+`', '`+id+`')`))
			}},
		{section: section, name: "Order", on: onPostgres, asks: "p_order_desc turns the order",
			holds: func(c *check) {
				agent, id := thread(c)
				forward := contents(c, `get_messages_optimized('`+agent+`', '`+id+`', FALSE)`)
				backward := contents(c, `get_messages_optimized('`+agent+`', '`+id+`', TRUE)`)
				slices.Reverse(backward)
				c.same("backward", forward, backward)
			}},
		{section: section, name: "Pages", on: onPostgres, asks: "p_limit and p_offset give pages, by name as by place",
			holds: func(c *check) {
				agent, id := thread(c)
				all := contents(c, `get_messages_optimized('`+agent+`', '`+id+`')`)
				var pages []string
				for i := range all {
					pages = append(pages, contents(c, fmt.Sprintf(`get_messages_optimized(p_agent_id => '%s', p_thread_id => '%s', p_limit => 1, p_offset => %d)`, agent, id, i))...)
				}
				c.same("pages", all, pages)
			}},
		{section: section, name: "Signature", on: onPostgres, asks: "Its parameters have the seed's names, types and defaults", differs: "without p_limit it is 100 rows, and NULL is all, so that nobody reads 100,000 by mistake",
			holds: func(c *check) {
				c.is("p_agent_id uuid, p_thread_id text, p_order_desc boolean DEFAULT false, p_limit integer DEFAULT 100, p_offset integer DEFAULT 0",
					`SELECT pg_get_function_arguments('get_messages_optimized'::regproc)`)
			}},
		{section: section, name: "MessagesByAPI", on: onSQLite, asks: "Messages of an agent and a thread in either order, by pages", differs: lite + "; the API lists in the same order, with offset and limit",
			holds: func(c *check) {
				path := "/messages?agent=snak&conversation=telegram%2F" + fmt.Sprint(c.the("snak").id)
				all := c.items("sessions:read", path)
				if len(all) < 4 {
					c.Fatalf("%d messages", len(all))
				}
				if second := c.items("sessions:read", path+"&limit=1&offset=1"); len(second) != 1 || fmt.Sprint(second[0]) != fmt.Sprint(all[1]) {
					c.Errorf("the second page is %v", second)
				}
				if last := c.items("sessions:read", path+"&order=desc&limit=1"); len(last) != 1 || fmt.Sprint(last[0]) != fmt.Sprint(all[len(all)-1]) {
					c.Errorf("backward it begins with %v", last)
				}
			}},
		{section: section, name: "delete_all_agents", on: onPostgres, asks: "delete_all_agents() deletes agents and says how many", differs: "those of one group, default_group if none is named",
			holds: func(c *check) {
				c.try(func(t trial) {
					t.is("1|1", `SELECT deleted_count, message LIKE '%1%' FROM delete_all_agents()`)
					t.is("0", `SELECT count(*) FROM agents`)
				})
				c.is("deleted_count integer, message text", `SELECT substring(pg_get_function_result('delete_all_agents'::regproc) FROM 'TABLE.(.*).$')`)
			}},
		{section: section, name: "DeleteByCommand", on: onSQLite, asks: "All agents are deleted at once, and it says how many", differs: lite + "; bot agent rm --group does it",
			holds: func(c *check) {
				c.command("create", func(ctx context.Context, cfg config.Config, env app.Env) error {
					return app.AgentImport(ctx, cfg, env, app.ProfileFile{Text: []byte("name: soon-gone\ngroup: gone\n")})
				})
				printed := c.command("remove", func(ctx context.Context, cfg config.Config, env app.Env) error {
					return app.AgentRemove(ctx, cfg, env, "", "gone", func(string) bool { return true })
				})
				if !strings.Contains(printed, "1 profile") {
					c.Errorf("it says %q", printed)
				}
				c.is("0", `SELECT count(*) FROM agents WHERE "group" = 'gone'`)
			}},
	}
}

func indexes004() []rule {
	const section = "PerformanceOptimization"
	missing := func(names ...string) func(c *check) {
		return func(c *check) {
			for _, name := range names {
				if c.one(`SELECT count(*) FROM `+c.on(`sqlite_master WHERE name = '`, `pg_class WHERE relname = '`)+name+`'`) != "1" {
					c.Errorf("no index %s", name)
				}
			}
		}
	}
	return []rule{
		{section: section, name: "ByRun", asks: "Messages of a run are found by an index (idx_message_run_id)", differs: "message is a view; the index is idx_agent_messages_run of its table",
			holds: func(c *check) { c.indexed("idx_agent_messages_run", "run_id") }},
		{section: section, name: "ByThread", asks: "Messages of an agent and a thread in order are found by an index (idx_message_agent_thread_timestamp)",
			differs: "by the sessions of the conversation, and in each by the number of the message, which is the order; times are no order",
			holds: func(c *check) {
				c.indexed("idx_remote_agent_sessions_conversation", "conversation_id,active")
				c.indexed(c.on("sqlite_autoindex_agent_messages_1", "agent_messages_session_id_seq_part_key"), "session_id,seq,part")
			}},
		{section: section, name: "Standard", asks: "The seed's five indexes by their names",
			open:  "message is a view, which has none; nothing finds a checkpoint's messages by index",
			holds: missing("idx_message_agent_id", "idx_message_run_id", "idx_message_thread_id", "idx_message_checkpoint_id", "idx_message_timestamp")},
		{section: section, name: "JSONB", on: onPostgres, asks: "GIN indexes on metadata, tools and plan",
			open:  "message is a view, which has none: a search for a key in tools reads all messages",
			holds: missing("idx_message_metadata", "idx_message_tools", "idx_message_plan")},
	}
}
