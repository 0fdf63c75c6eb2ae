package conformance_test

import (
	"fmt"
	"slices"
	"strings"
)

// ddl002 is the seed's schema. SQLite takes it too but for the default of ids, which
// needs parentheses there; see ddl002For.
const ddl002 = `
CREATE TABLE remote_agent_codebases (
  id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
  name VARCHAR(255) NOT NULL,
  repository_url VARCHAR(500),
  default_cwd VARCHAR(500) NOT NULL,
  ai_assistant_type VARCHAR(20) NOT NULL DEFAULT 'claude',
  commands JSONB DEFAULT '{}',
  created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE remote_agent_conversations (
  id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
  platform_type VARCHAR(20) NOT NULL,
  platform_conversation_id VARCHAR(255) NOT NULL,
  codebase_id UUID REFERENCES remote_agent_codebases(id),
  cwd VARCHAR(500),
  ai_assistant_type VARCHAR(20) NOT NULL DEFAULT 'claude',
  created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  UNIQUE(platform_type, platform_conversation_id)
);
CREATE INDEX idx_remote_agent_conversations_codebase
  ON remote_agent_conversations(codebase_id);
CREATE TABLE remote_agent_sessions (
  id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
  conversation_id UUID NOT NULL REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  codebase_id UUID REFERENCES remote_agent_codebases(id),
  ai_assistant_type VARCHAR(20) NOT NULL,
  assistant_session_id VARCHAR(255),
  active BOOLEAN DEFAULT true,
  metadata JSONB DEFAULT '{}',
  started_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  ended_at TIMESTAMP
);
CREATE INDEX idx_remote_agent_sessions_conversation
  ON remote_agent_sessions(conversation_id, active);
CREATE INDEX idx_remote_agent_sessions_codebase
  ON remote_agent_sessions(codebase_id);
`

func ddl002For(c *check) string {
	return c.on(strings.ReplaceAll(ddl002, "DEFAULT gen_random_uuid()", "DEFAULT (gen_random_uuid())"), ddl002)
}

// differs002 is how columns of a table may differ: times have a zone, so that nobody
// has to guess it.
func differs002(c *check, times ...string) map[string][2]string {
	all := make(map[string][2]string)
	for _, name := range times {
		standard := " CURRENT_TIMESTAMP"
		if name == "ended_at" {
			standard = ""
		}
		all[name] = [2]string{name + " timestamp without time zone" + standard, name + " timestamp with time zone" + standard}
	}
	if c.database == "sqlite" {
		return map[string][2]string{}
	}
	return all
}

func rules002() []rule {
	return slices.Concat(schema002(), operations002(), lifecycle002(), patterns002(), constraints002(), migrations002(), importing002())
}

// tell002 lets the owner clone the repository, and somebody talk with an external
// agent before and after the bot is stopped and started.
func tell002(c *check) {
	person{c, owner}.says("/clone "+c.repo, "Cloned")
	p := c.person()
	p.says("/handoff robot", "robot now answers here")
	p.says("before the restart", "before the restart")
	p.rests()
	c.end(c.T)
	c.begin(c.T)
	p.says("after the restart", "after the restart")
	p.rests()
}

// inRepository is somebody who works on the repository.
func (c *check) inRepository() person {
	c.Helper()
	p := c.person()
	p.says("/repo web", "web")
	p.rests()
	return p
}

func schema002() []rule {
	const section = "SchemaDefinition"
	const zoned = "times have a time zone (TIMESTAMPTZ, UTC)"
	return []rule{
		{section: section, name: "Codebases", asks: "remote_agent_codebases has the seed's columns, types and defaults, in its order", differs: zoned,
			holds: func(c *check) {
				c.hasColumns(ddl002For(c), "remote_agent_codebases", differs002(c, "created_at", "updated_at"))
			}},
		{section: section, name: "Conversations", asks: "remote_agent_conversations likewise", differs: zoned + "; columns of the inbox and of leases follow",
			holds: func(c *check) {
				c.hasColumns(ddl002For(c), "remote_agent_conversations", differs002(c, "created_at", "updated_at"))
			}},
		{section: section, name: "Sessions", asks: "remote_agent_sessions likewise", differs: zoned + "; active is never NULL; columns of seed 003 follow",
			holds: func(c *check) {
				differs := differs002(c, "started_at", "ended_at")
				differs["active"] = [2]string{c.on("active", "active boolean true"), c.on("active not null", "active boolean not null true")}
				c.hasColumns(ddl002For(c), "remote_agent_sessions", differs)
			}},
		{section: section, name: "Defaults", asks: "Rows that name only what they must get the seed's defaults: an id, claude, {}, active, now",
			holds: func(c *check) {
				c.try(func(t trial) {
					t.exec(`INSERT INTO remote_agent_codebases (name, default_cwd) VALUES ('by-hand', '/w')`)
					t.exec(`INSERT INTO remote_agent_conversations (platform_type, platform_conversation_id, codebase_id)
						SELECT 'telegram', 'by-hand', id FROM remote_agent_codebases WHERE name = 'by-hand'`)
					t.exec(`INSERT INTO remote_agent_sessions (conversation_id, ai_assistant_type)
						SELECT id, ai_assistant_type FROM remote_agent_conversations WHERE platform_conversation_id = 'by-hand'`)
					t.is("36|claude|{}|1|1", `SELECT length(CAST(id AS TEXT)), ai_assistant_type, CAST(commands AS TEXT), created_at IS NOT NULL, updated_at IS NOT NULL
						FROM remote_agent_codebases WHERE name = 'by-hand'`)
					t.is("36|claude|NULL|1", `SELECT length(CAST(id AS TEXT)), ai_assistant_type, cwd, created_at IS NOT NULL
						FROM remote_agent_conversations WHERE platform_conversation_id = 'by-hand'`)
					t.is("36|1|{}|1|NULL", `SELECT length(CAST(s.id AS TEXT)), s.active, CAST(s.metadata AS TEXT), s.started_at IS NOT NULL, s.ended_at
						FROM remote_agent_sessions s JOIN remote_agent_conversations c ON c.id = s.conversation_id WHERE c.platform_conversation_id = 'by-hand'`)
				})
			}},
		{section: section, name: "Prefix", asks: "Three tables with the prefix remote_agent_",
			differs: "other tables, of the other seeds and of ours, stand beside them under names without the prefix",
			holds: func(c *check) {
				c.is("remote_agent_codebases\nremote_agent_conversations\nremote_agent_sessions", c.on(
					`SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'remote\_agent\_%' ESCAPE '\' ORDER BY 1`,
					`SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename LIKE 'remote\_agent\_%' ORDER BY 1`))
			}},
		{section: section, name: "CommandsArePaths", asks: "commands is JSON by name: path and description; the text stays in git",
			differs: "what a command has to do with plans is kept besides (produces, consumes), and names have _ for -",
			holds: func(c *check) {
				c.inRepository()
				c.is(".claude/commands/prime.md|Research codebase|.claude/commands/plan-feature.md", c.on(
					`SELECT commands ->> '$.prime.path', commands ->> '$.prime.description', commands ->> '$.plan_feature.path' FROM remote_agent_codebases `+web002,
					`SELECT commands -> 'prime' ->> 'path', commands -> 'prime' ->> 'description', commands -> 'plan_feature' ->> 'path' FROM remote_agent_codebases `+web002))
				if text := c.one(`SELECT CAST(commands AS TEXT) FROM remote_agent_codebases ` + web002); strings.Contains(text, "Look around") {
					c.Errorf("the text of a file is in the database: %s", text)
				}
			}},
		{section: section, name: "Telegram", asks: "platform_type is telegram, and the conversation's id that of its chat", differs: "topics and the threads of Slack are conversations of their own; the thread follows in the id",
			holds: func(c *check) {
				p := c.person()
				p.says("who am I here", "echo: who am I here")
				c.is("telegram|"+fmt.Sprint(p.id), `SELECT platform_type, platform_conversation_id FROM remote_agent_conversations WHERE id IN (`+p.conversation()+`)`)
			}},
		{section: section, name: "GitHub", asks: "platform_type is github, and the conversation's id owner/repo#42",
			holds: func(c *check) {
				number := c.issue("what is this")
				c.is("1", fmt.Sprintf(`SELECT count(*) FROM remote_agent_conversations WHERE platform_type = 'github' AND platform_conversation_id = 'owner/repo#%d'`, number))
			}},
		{section: section, name: "AssistantIsLocked", asks: "ai_assistant_type is locked at creation", differs: "/handoff goes on with another assistant in a new row; the old row keeps its own",
			holds: func(c *check) {
				p := c.person()
				p.says("hello", "echo: hello")
				c.try(func(t trial) {
					t.refuses(`UPDATE remote_agent_conversations SET ai_assistant_type = 'codex' WHERE id IN (`+p.conversation()+`)`, "locked")
				})
				c.is("openai", `SELECT ai_assistant_type FROM remote_agent_conversations WHERE id IN (`+p.conversation()+`)`)
			}},
		{section: section, name: "Assistants", asks: "The assistant is claude or codex", differs: "also openai, anthropic, demo and any agent by its name; claude and codex are external agents",
			holds: func(c *check) {
				c.try(func(t trial) {
					for _, name := range []string{"claude", "codex", "openai"} {
						t.exec(`INSERT INTO remote_agent_conversations (platform_type, platform_conversation_id, ai_assistant_type) VALUES ('telegram', 'is ` + name + `', '` + name + `')`)
					}
				})
			}},
	}
}

func constraints002() []rule {
	const section = "Constraints"
	insert := `INSERT INTO remote_agent_conversations (platform_type, platform_conversation_id) VALUES ('telegram', '`
	return []rule{
		{section: section, name: "OneConversationPerChat", asks: "platform_type and platform_conversation_id are unique together",
			holds: func(c *check) {
				c.try(func(t trial) {
					t.exec(insert + `twice')`)
					t.refuses(insert+`twice')`, "unique")
					t.exec(`INSERT INTO remote_agent_conversations (platform_type, platform_conversation_id) VALUES ('slack', 'twice')`)
				})
			}},
		{section: section, name: "OneActiveSession", asks: "A conversation has one active session at most", differs: "the database refuses a second one, where the seed leaves that to the program",
			holds: func(c *check) {
				p := c.person()
				p.says("hello", "echo: hello")
				p.rests()
				c.try(func(t trial) {
					t.refuses(`INSERT INTO remote_agent_sessions (conversation_id, ai_assistant_type) SELECT id, 'openai' FROM remote_agent_conversations WHERE id IN (`+p.conversation()+`)`, "unique")
				})
			}},
		{section: section, name: "CodebaseWithConversations", asks: "A codebase with conversations cannot be deleted",
			holds: func(c *check) {
				c.inRepository()
				c.try(func(t trial) { t.refuses(`DELETE FROM remote_agent_codebases `+web002, "foreign key") })
			}},
		{section: section, name: "ForeignKeys", asks: "Conversations and sessions refer to codebases that exist, sessions to conversations that exist",
			holds: func(c *check) {
				const nobody = "'00000000-0000-4000-8000-000000000000'"
				p := c.person()
				p.says("hello", "echo: hello")
				c.try(func(t trial) {
					t.refuses(`UPDATE remote_agent_conversations SET codebase_id = `+nobody+` WHERE id IN (`+p.conversation()+`)`, "foreign key")
				})
				c.try(func(t trial) {
					t.refuses(`UPDATE remote_agent_sessions SET codebase_id = `+nobody+` WHERE id IN (`+p.sessions()+`)`, "foreign key")
				})
				c.try(func(t trial) {
					t.refuses(`INSERT INTO remote_agent_sessions (conversation_id, ai_assistant_type) VALUES (`+nobody+`, 'claude')`, "foreign key")
				})
			}},
		{section: section, name: "Cascade", asks: "Deleting a conversation deletes its sessions",
			holds: func(c *check) {
				p := c.person()
				p.says("hello", "echo: hello")
				p.rests()
				sessions := c.one(p.sessions())
				c.try(func(t trial) {
					t.is("1", `SELECT count(*) FROM remote_agent_sessions WHERE id = '`+sessions+`'`)
					t.exec(`DELETE FROM remote_agent_conversations WHERE id IN (` + p.conversation() + `)`)
					t.is("0", `SELECT count(*) FROM remote_agent_sessions WHERE id = '`+sessions+`'`)
				})
			}},
		{section: section, name: "IndexesOfConversations", asks: "Conversations are indexed by codebase",
			holds: func(c *check) { c.hasIndexes(ddl002For(c), "remote_agent_conversations") }},
		{section: section, name: "IndexesOfSessions", asks: "Sessions are indexed by conversation and active, and by codebase",
			holds: func(c *check) { c.hasIndexes(ddl002For(c), "remote_agent_sessions") }},
	}
}
