package conformance_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/store/storetest"
)

// web002 chooses the repository that the owner cloned.
const web002 = `WHERE name LIKE '%/acme/web'`

// active is a query for columns of the active session of a person.
func (p person) active(columns string) string {
	return `SELECT ` + columns + ` FROM remote_agent_sessions WHERE active AND conversation_id IN (` + p.conversation() + `)`
}

// lastCommand reads it from the metadata of a session.
func (c *check) lastCommand() string {
	return c.on(`metadata ->> '$.lastCommand'`, `metadata ->> 'lastCommand'`)
}

// The seed's functions are what a person does in a chat here; what they leave is read
// in SQL, as its program would read it.
func operations002() []rule {
	const section = "DatabaseOperations"
	return []rule{
		{section: section, name: "createCodebase", asks: "A codebase is made of a name, a URL and a folder; the assistant is optional",
			holds: func(c *check) {
				c.is("1|1|1|1", `SELECT name LIKE '%/acme/web', repository_url LIKE 'http%/acme/web%', default_cwd <> '', ai_assistant_type <> '' FROM remote_agent_codebases `+web002)
			}},
		{section: section, name: "getCodebase", asks: "A codebase is found by its id, and none is null",
			holds: func(c *check) {
				id := c.one(`SELECT id FROM remote_agent_codebases ` + web002)
				c.is("1", c.on(`SELECT name LIKE '%/acme/web' FROM remote_agent_codebases WHERE id = ?`, `SELECT name LIKE '%/acme/web' FROM remote_agent_codebases WHERE id = $1`), id)
				if found := c.query(`SELECT name FROM remote_agent_codebases WHERE id = '00000000-0000-4000-8000-000000000000'`); len(found.rows) != 0 {
					c.Errorf("found %q", found.rows)
				}
			}},
		{section: section, name: "registerCommand", asks: "A command is registered by name with path and description",
			holds: func(c *check) {
				p := c.inRepository()
				p.says("/command-set fresh prompts/new.md", "fresh")
				p.rests()
				c.is("prompts/new.md|New command", c.on(
					`SELECT commands ->> '$.fresh.path', commands ->> '$.fresh.description' FROM remote_agent_codebases `+web002,
					`SELECT commands -> 'fresh' ->> 'path', commands -> 'fresh' ->> 'description' FROM remote_agent_codebases `+web002))
			}},
		{section: section, name: "updateCodebaseCommands", asks: "Many commands are registered at once",
			holds: func(c *check) {
				p := c.inRepository()
				p.says("/load-commands prompts", "1")
				p.rests()
				c.is("prompts/new.md", c.on(`SELECT commands ->> '$.new.path' FROM remote_agent_codebases `+web002, `SELECT commands -> 'new' ->> 'path' FROM remote_agent_codebases `+web002))
			}},
		{section: section, name: "getCodebaseCommands", asks: "The registry is read; each command runs",
			holds: func(c *check) {
				p := c.inRepository()
				p.says("/commands", "/prime", "Research codebase", "/execute")
				p.says("/command-invoke prime", "echo: Look around.")
			}},
		{section: section, name: "getOrCreateConversation", asks: "Idempotent: creates the conversation, or returns the one that is there",
			holds: func(c *check) {
				p := c.person()
				for _, text := range []string{"one", "two"} {
					p.says(text, "echo: "+text)
				}
				p.rests()
				c.is("1", `SELECT count(*) FROM (`+p.conversation()+`) x`)
			}},
		{section: section, name: "updateConversation", asks: "A conversation's codebase and folder can be changed",
			holds: func(c *check) {
				p := c.inRepository()
				c.is("1", `SELECT b.name LIKE '%/acme/web' FROM remote_agent_codebases b JOIN remote_agent_conversations v ON v.codebase_id = b.id WHERE v.id IN (`+p.conversation()+`)`)
				p.says("/setcwd prompts", "prompts")
				p.rests()
				c.is("prompts", `SELECT cwd FROM remote_agent_conversations WHERE id IN (`+p.conversation()+`)`)
			}},
		{section: section, name: "createSession", asks: "A session has a conversation, maybe a codebase, and an assistant",
			holds: func(c *check) {
				p := c.inRepository()
				p.says("hello", "echo: hello")
				p.rests()
				c.is("openai|1", p.active("ai_assistant_type, codebase_id = (SELECT id FROM remote_agent_codebases "+web002+")"))
			}},
		{section: section, name: "getActiveSession", asks: "The active session of a conversation, or null",
			holds: func(c *check) {
				p := c.person()
				p.says("/status")
				p.rests()
				c.is("0", p.active("count(*)"))
				p.says("hello", "echo: hello")
				p.rests()
				c.is("1", p.active("count(*)"))
			}},
		{section: section, name: "updateSession", asks: "assistant_session_id is stored, so that the assistant's own session is resumed",
			differs: "for assistants that have sessions of their own, which are external agents; a model API has none, and gets the messages",
			holds: func(c *check) {
				c.is("1", `SELECT count(*) FROM remote_agent_sessions WHERE ai_assistant_type = 'robot' AND assistant_session_id <> ''`)
			}},
		{section: section, name: "updateSessionMetadata", asks: "metadata remembers the last command",
			holds: func(c *check) {
				p := c.inRepository()
				p.says("/command-invoke prime", "echo: Look around.")
				p.rests()
				c.is("prime", p.active(c.lastCommand()))
			}},
		{section: section, name: "deactivateSession", asks: "A session is ended: not active, with the time",
			holds: func(c *check) {
				p := c.person()
				p.says("hello", "echo: hello")
				p.says("/reset", "new session")
				p.rests()
				c.is("0|1", `SELECT active, ended_at IS NOT NULL FROM remote_agent_sessions WHERE id IN (`+p.sessions()+`)`)
			}},
	}
}

func lifecycle002() []rule {
	const section = "SessionLifecycle"
	return []rule{
		{section: section, name: "NormalFlow", asks: "The first message makes conversation and session, the next goes on in them, /reset ends, the next message begins anew",
			holds: func(c *check) {
				p := c.person()
				p.says("the first", "echo: the first [1 messages]")
				p.rests()
				first := c.one(p.active("id"))
				p.says("the second", "echo: the second [3 messages]")
				p.rests()
				c.is(first, p.active("id"))
				p.says("/reset", "new session")
				p.rests()
				c.is("0", p.active("count(*)"))
				p.says("the third", "echo: the third [1 messages]")
				p.rests()
				c.is("2", `SELECT count(*) FROM (`+p.sessions()+`) x`)
				if c.one(p.active("id")) == first {
					c.Errorf("the session that was reset goes on")
				}
			}},
		{section: section, name: "PlanExecute", asks: `/command-invoke plan-feature "Add dark mode", then /command-invoke execute: a fresh session, and metadata.lastCommand says plan-feature in between`,
			holds: func(c *check) {
				p := c.inRepository()
				c.model.says(`Write a plan for: "Add dark mode"`, openai.Text("1. Add a switch."))
				p.says(`/command-invoke plan-feature "Add dark mode"`, "Add a switch", "p-1")
				p.rests()
				planned := c.one(p.active("id"))
				c.is("plan-feature", p.active(c.lastCommand()))
				p.says("/command-invoke execute", "echo: Execute the plan.")
				p.rests()
				c.is("0", `SELECT active FROM remote_agent_sessions WHERE id = '`+planned+`'`)
				if c.one(p.active("id")) == planned {
					c.Errorf("executing goes on in the session of the plan")
				}
				request, _ := c.model.asked("Execute the plan.")
				if roles := strings.Join(request.Roles(), " "); roles != "system user" || !strings.Contains(request.LastUserText(), "1. Add a switch.") {
					c.Errorf("executing was told %s: %q", roles, request.LastUserText())
				}
			}},
		{section: section, name: "OnlyTransition", asks: "No other pair of commands needs a new session",
			holds: func(c *check) {
				p := c.inRepository()
				p.says("/command-invoke prime", "echo: Look around.")
				p.rests()
				first := c.one(p.active("id"))
				p.says("/command-invoke prime again", "echo: Look around.")
				p.rests()
				p.says("/command-invoke odd-plan", "echo: Say something odd.")
				p.rests()
				c.is(first, p.active("id"))
			}},
		{section: section, name: "FrontMatterWins", asks: "A file whose front matter contradicts its name does what the front matter says, and /commands says so (beyond the seed)",
			holds: func(c *check) {
				p := c.inRepository()
				p.says("/commands", "/plan_nothing (⚠ does not use plans according to its front matter, although by its name it writes a plan)")
				p.says("/plan-nothing", "echo: Make no plan.")
				p.rests()
				c.is("0", `SELECT count(*) FROM plans WHERE conversation_id IN (`+p.conversation()+`)`)
			}},
		{section: section, name: "SurvivesRestart", asks: "Sessions survive restarts: the assistant's own session is resumed",
			holds: func(c *check) {
				// Said before and after a restart; see tell002.
				c.is("1", `SELECT count(*) FROM remote_agent_sessions WHERE ai_assistant_type = 'robot'`)
				c.is("2", `SELECT count(*) FROM agent_messages m JOIN remote_agent_sessions s ON s.id = m.session_id WHERE s.ai_assistant_type = 'robot' AND m.role = 'user'`)
			}},
	}
}

func patterns002() []rule {
	const section = "CommonPatterns"
	return []rule{
		{section: section, name: "IdempotentConversation", asks: "Two messages that come at once get one conversation and one session",
			holds: func(c *check) {
				p := c.person()
				for i := range 4 {
					c.tg.Person(p.id).Says(fmt.Sprint("at once, ", i))
				}
				p.says("and last", "and last")
				p.rests()
				c.is("1|1", `SELECT (SELECT count(*) FROM (`+p.conversation()+`) v), (SELECT count(*) FROM (`+p.sessions()+`) s)`)
			}},
		{section: section, name: "SafeSessionHandling", asks: "The old session is ended before a new one is made: there is never a second active one",
			holds: func(c *check) {
				p := c.person()
				for i := range 3 {
					text := fmt.Sprintf("session %d of %d", i, p.id)
					p.says(text, "echo: "+text)
					p.says("/new", "new session")
				}
				p.says("the last", "echo: the last")
				p.rests()
				c.is("4|1|3", `SELECT count(*), sum(CASE WHEN active THEN 1 ELSE 0 END), count(ended_at) FROM remote_agent_sessions WHERE id IN (`+p.sessions()+`)`)
			}},
		{section: section, name: "CommandRegistryUpdates", asks: "A command that another program writes into commands is one: commands['new-command'] = {path, description}",
			differs: "a name is found whether it has - or _",
			holds: func(c *check) {
				p := c.inRepository()
				c.change(c.on(`UPDATE remote_agent_codebases SET commands = json_set(commands, '$."new-command"', json('{"path": "prompts/new.md", "description": "New command"}')) `+web002,
					`UPDATE remote_agent_codebases SET commands = jsonb_set(commands, '{new-command}', '{"path": "prompts/new.md", "description": "New command"}') `+web002))
				p.says("/command-invoke new-command", "echo: Say new.")
			}},
		{section: section, name: "MetadataTracking", asks: "lastCommand that another program wrote decides: plan-feature there, then execute, is a new session",
			holds: func(c *check) {
				p := c.inRepository()
				p.says("hello", "echo: hello")
				p.rests()
				first := c.one(p.active("id"))
				c.change(`UPDATE remote_agent_sessions SET metadata = '{"lastCommand": "plan-feature"}' WHERE id = '` + first + `'`)
				p.says("/command-invoke execute", "[1 messages]")
				p.rests()
				if c.one(p.active("id")) == first {
					c.Errorf("it goes on in the same session")
				}
			}},
	}
}

func migrations002() []rule {
	const section = "Migrations"
	return []rule{
		{section: section, name: "WithDB", on: inCode, asks: "docker compose --profile with-db up -d starts PostgreSQL",
			differs: "it starts the bot, too; the check is that the file has the profile, no container is started",
			holds: func(c *check) {
				text, err := os.ReadFile("../../docker-compose.yml")
				if err != nil || !strings.Contains(string(text), "profiles: [with-db]") {
					c.Errorf("docker-compose.yml has no profile with-db: %v", err)
				}
			}},
		{section: section, name: "SchemaByPSQL", on: onPostgres, asks: "psql $DATABASE_URL < migrations/001_initial_schema.sql makes the tables",
			differs: "the program makes them when it starts (bot migrate shows it), with a record of what was applied",
			holds: func(c *check) {
				printed := c.command("migrate", func(ctx context.Context, cfg config.Config, env app.Env) error {
					return app.Migrate(ctx, cfg, env, false)
				})
				if !strings.Contains(printed, "applied  00001_create_conversations\n") || strings.Contains(printed, "\npending") {
					c.Errorf("bot migrate says %q", printed)
				}
			}},
		{section: section, name: "ListTables", asks: `psql -c "\dt" shows the three tables`, differs: "and the others; .tables of sqlite3 on SQLite",
			holds: func(c *check) {
				for _, name := range []string{"remote_agent_codebases", "remote_agent_conversations", "remote_agent_sessions"} {
					c.is(name, c.on(`SELECT name FROM sqlite_master WHERE type = 'table' AND name = '`+name+`'`, // what .tables asks
						`SELECT c.relname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
						WHERE c.relkind IN ('r', 'p') AND n.nspname <> 'pg_catalog' AND pg_catalog.pg_table_is_visible(c.oid) AND c.relname = '`+name+`'`)) // what \dt asks
				}
			}},
		{section: "ReferenceFiles", name: "TypeScript", asks: "src/db/*.ts, src/orchestrator/orchestrator.ts", apart: "the program is written in Go; what those functions do is above"},
	}
}

// foreign is a database that is made of the seed's DDL and its examples, and a bot of
// its own that has never run.
func (c *check) foreign() (source string, own config.Config) {
	c.Helper()
	dir := c.TempDir()
	source = filepath.Join(dir, "seed.db")
	if c.database == "postgres" {
		source = storetest.PostgresURL(c.T)
	}
	c.fills(source, ddl002For(c)+`
		INSERT INTO remote_agent_codebases (id, name, default_cwd, commands) VALUES ('11111111-1111-4111-8111-111111111111', 'web', '/workspace/web',
			'{"prime": {"path": ".claude/commands/prime.md", "description": "Research codebase"}}');
		INSERT INTO remote_agent_conversations (id, platform_type, platform_conversation_id, codebase_id)
			VALUES ('22222222-2222-4222-8222-222222222222', 'github', 'owner/repo#42', '11111111-1111-4111-8111-111111111111');
		INSERT INTO remote_agent_sessions (id, conversation_id, codebase_id, ai_assistant_type, assistant_session_id, metadata)
			VALUES ('33333333-3333-4333-8333-333333333333', '22222222-2222-4222-8222-222222222222', '11111111-1111-4111-8111-111111111111', 'claude', 'resume-me', '{"lastCommand": "plan-feature"}');`)
	alone := &world{env: maps.Clone(c.env)}
	alone.env["DATA_DIR"] = filepath.Join(dir, "data")
	delete(alone.env, "DATABASE_URL")
	return source, alone.config(c.T)
}

// imports runs bot import --from and returns what it prints.
func (c *check) imports(own config.Config, q app.SeedImport) string {
	c.Helper()
	var out strings.Builder
	if err := app.ImportSeed(c.Context(), own, c.environment(c.T, &out), q); err != nil {
		c.Fatalf("import: %v", err)
	}
	return out.String()
}

// imported is the database of the bot that has imported.
func (c *check) imported(own config.Config) *check {
	c.Helper()
	return &check{T: c.T, open: c.open, world: &world{database: "sqlite", sql: c.opens("sqlite", "file:"+filepath.Join(own.DataDir, "bot.db"))}}
}

const counted002 = `SELECT (SELECT count(*) FROM remote_agent_codebases), (SELECT count(*) FROM remote_agent_conversations), (SELECT count(*) FROM remote_agent_sessions)`

func importing002() []rule {
	const section = "Import"
	return []rule{
		{section: section, name: "Takes", asks: "A database made of the seed's own DDL is taken over, with names, ids, resumable session and last command (beyond the seed)",
			holds: func(c *check) {
				source, own := c.foreign()
				printed := c.imports(own, app.SeedImport{From: source})
				for _, part := range []string{"1 codebase", "1 conversation", "1 session"} {
					if !strings.Contains(printed, part) {
						c.Errorf("the import says %q, want %q", printed, part)
					}
				}
				taken := c.imported(own)
				taken.is("web|Research codebase", `SELECT name, commands ->> '$.prime.description' FROM remote_agent_codebases`)
				taken.is("github|owner/repo#42|claude", `SELECT platform_type, platform_conversation_id, ai_assistant_type FROM remote_agent_conversations`)
				taken.is("resume-me|1|plan-feature", `SELECT assistant_session_id, active, metadata ->> '$.lastCommand' FROM remote_agent_sessions`)
			}},
		{section: section, name: "Again", asks: "A second import changes nothing (beyond the seed)",
			holds: func(c *check) {
				source, own := c.foreign()
				c.imports(own, app.SeedImport{From: source})
				c.imports(own, app.SeedImport{From: source})
				c.imported(own).is("1|1|1", counted002)
			}},
		{section: section, name: "DryRun", asks: "--dry-run reports the folder that is not here, and takes nothing (beyond the seed)",
			holds: func(c *check) {
				source, own := c.foreign()
				if printed := c.imports(own, app.SeedImport{From: source, Dry: true}); !strings.Contains(printed, "/workspace/web") {
					c.Errorf("the report is %q", printed)
				}
				if _, err := os.Stat(filepath.Join(own.DataDir, "bot.db")); err == nil {
					c.imported(own).is("0|0|0", counted002)
				}
			}},
	}
}
