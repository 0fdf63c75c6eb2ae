-- 00014, works with binaries from 00001: agent profiles and their standing tasks
-- Tables of seed 004, with its names and columns. Lists and composites are JSON, so
-- that one form serves both databases. Columns that the seed does not have follow
-- in each table after a comment. Columns that end in _ms are Unix milliseconds.

-- +goose Up
CREATE TABLE agents (
  id TEXT PRIMARY KEY DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
  name TEXT NOT NULL CHECK (length(name) <= 63),
  "group" TEXT NOT NULL DEFAULT 'default_group' CHECK (length("group") <= 63),
  description TEXT NOT NULL DEFAULT '',
  lore TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(lore)),
  objectives TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(objectives)),
  knowledge TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(knowledge)),
  system_prompt TEXT NOT NULL DEFAULT '',
  "interval" BIGINT NOT NULL DEFAULT 0 CHECK ("interval" >= 0),
  plugins TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(plugins)),
  memory TEXT NOT NULL DEFAULT '{"enabled":true,"short_term_memory_size":0,"memory_size":0}' CHECK (json_valid(memory)),
  rag TEXT NOT NULL DEFAULT '{"enabled":true,"embedding_model":""}' CHECK (json_valid(rag)),
  mode TEXT NOT NULL DEFAULT 'interactive' CHECK (length(mode) <= 50),
  max_iterations BIGINT NOT NULL DEFAULT 15 CHECK (max_iterations > 0),
  mcp_servers TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(mcp_servers)),
  avatar_image BLOB,
  avatar_mime_type TEXT NOT NULL DEFAULT '' CHECK (length(avatar_mime_type) <= 50),
  -- One of them at most: a tier of models_config, or the name of a model.
  model_tier TEXT NOT NULL DEFAULT '' CHECK (length(model_tier) <= 20),
  model TEXT NOT NULL DEFAULT '' CHECK (length(model) <= 100),
  version BIGINT NOT NULL DEFAULT 1,
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  UNIQUE ("group", name)
);

CREATE INDEX idx_agents_name
  ON agents(name);

-- Which profile a conversation uses, and which one a session began with. Without
-- one it is the default.
ALTER TABLE remote_agent_conversations ADD COLUMN agent_id TEXT REFERENCES agents(id) ON DELETE SET NULL;
ALTER TABLE remote_agent_sessions ADD COLUMN agent_id TEXT REFERENCES agents(id) ON DELETE SET NULL;

CREATE INDEX idx_remote_agent_conversations_agent
  ON remote_agent_conversations(agent_id) WHERE agent_id IS NOT NULL;

CREATE INDEX idx_remote_agent_sessions_agent
  ON remote_agent_sessions(agent_id) WHERE agent_id IS NOT NULL;

-- The standing task of a profile in a conversation, which has one at most. origin
-- is the message that switched it on, as JSON: each run is a message from there.
CREATE TABLE agent_schedules (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  agent_id TEXT NOT NULL REFERENCES agents(id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL UNIQUE REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  created_by TEXT NOT NULL CHECK (length(created_by) <= 300),
  origin TEXT NOT NULL,
  event_id TEXT REFERENCES inbound_events(id) ON DELETE SET NULL,
  runs BIGINT NOT NULL DEFAULT 0,
  last_ms BIGINT NOT NULL DEFAULT 0,
  next_ms BIGINT NOT NULL,
  created_ms BIGINT NOT NULL
);

CREATE INDEX idx_agent_schedules_agent
  ON agent_schedules(agent_id);

CREATE INDEX idx_agent_schedules_next
  ON agent_schedules(next_ms);

CREATE INDEX idx_agent_schedules_event
  ON agent_schedules(event_id);

-- Seed 004's message. Ours belong to conversations and not to profiles: when a
-- profile is deleted its messages stay, with agent_id NULL, where the seed deletes
-- them. A thread is a conversation; a checkpoint is the state that /undo goes back
-- to. tools, plan and metadata are JSON as text.
CREATE VIEW message AS
SELECT
  m.id,
  s.agent_id,
  m.kind AS event,
  m.run_id,
  s.conversation_id AS thread_id,
  (SELECT c.event_id FROM checkpoints c
    WHERE c.session_id = m.session_id AND c.seq <= m.seq ORDER BY c.seq DESC LIMIT 1) AS checkpoint_id,
  m.role AS "from",
  m.content,
  CASE WHEN m.kind IN ('tool_call', 'tool_result') THEN m.data_json END AS tools,
  (SELECT json_object('number', p.number, 'version', p.version, 'state', p.state, 'goal', p.goal) FROM plans p
    WHERE p.session_id = m.session_id AND p.event_id = m.run_id ORDER BY p.number DESC, p.version DESC LIMIT 1) AS plan,
  m.provider_metadata AS metadata,
  strftime('%Y-%m-%dT%H:%M:%fZ', m.created_at, 'unixepoch') AS "timestamp"
FROM agent_messages m
JOIN remote_agent_sessions s ON s.id = m.session_id;

-- Seed 004's processing cycles of agents: here, what was used step by step.
CREATE VIEW agent_iterations AS
SELECT
  u.id,
  json_object('agent_id', s.agent_id, 'session_id', u.session_id, 'run_id', u.event_id, 'actor', u.actor, 'model', u.model,
    'input_tokens', u.input_tokens, 'output_tokens', u.output_tokens, 'cost_micros', u.cost_micros) AS data,
  strftime('%Y-%m-%dT%H:%M:%fZ', u.at_ms / 1000.0, 'unixepoch') AS created_at
FROM usage_records u
JOIN remote_agent_sessions s ON s.id = u.session_id
WHERE s.agent_id IS NOT NULL;

-- Seed 004's threads of agents: the conversations that use a profile.
CREATE VIEW thread_id AS
SELECT
  id,
  agent_id,
  platform_type || '/' || platform_conversation_id AS name,
  id AS thread_id,
  created_at
FROM remote_agent_conversations
WHERE agent_id IS NOT NULL;
