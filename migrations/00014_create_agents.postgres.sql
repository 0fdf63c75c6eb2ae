-- 00014, works with binaries from 00001: agent profiles and their standing tasks
-- Tables of seed 004, with its names and columns. Lists and composites are JSON, so
-- that one form serves both databases. Columns that the seed does not have follow
-- in each table after a comment. Columns that end in _ms are Unix milliseconds.

-- +goose Up
CREATE TABLE agents (
  id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
  name VARCHAR(63) NOT NULL,
  "group" VARCHAR(63) NOT NULL DEFAULT 'default_group',
  description TEXT NOT NULL DEFAULT '',
  lore JSONB NOT NULL DEFAULT '[]',
  objectives JSONB NOT NULL DEFAULT '[]',
  knowledge JSONB NOT NULL DEFAULT '[]',
  system_prompt TEXT NOT NULL DEFAULT '',
  "interval" BIGINT NOT NULL DEFAULT 0 CHECK ("interval" >= 0),
  plugins JSONB NOT NULL DEFAULT '[]',
  memory JSONB NOT NULL DEFAULT '{"enabled":true,"short_term_memory_size":0,"memory_size":0}',
  rag JSONB NOT NULL DEFAULT '{"enabled":true,"embedding_model":""}',
  mode VARCHAR(50) NOT NULL DEFAULT 'interactive',
  max_iterations BIGINT NOT NULL DEFAULT 15 CHECK (max_iterations > 0),
  mcp_servers JSONB NOT NULL DEFAULT '{}',
  avatar_image BYTEA,
  avatar_mime_type VARCHAR(50) NOT NULL DEFAULT '',
  -- One of them at most: a tier of models_config, or the name of a model.
  model_tier VARCHAR(20) NOT NULL DEFAULT '',
  model VARCHAR(100) NOT NULL DEFAULT '',
  version BIGINT NOT NULL DEFAULT 1,
  created_at TIMESTAMPTZ NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at TIMESTAMPTZ NOT NULL DEFAULT CURRENT_TIMESTAMP,
  UNIQUE ("group", name)
);

CREATE INDEX idx_agents_name
  ON agents(name);

-- Which profile a conversation uses, and which one a session began with. Without
-- one it is the default.
ALTER TABLE remote_agent_conversations ADD COLUMN agent_id UUID REFERENCES agents(id) ON DELETE SET NULL;
ALTER TABLE remote_agent_sessions ADD COLUMN agent_id UUID REFERENCES agents(id) ON DELETE SET NULL;

CREATE INDEX idx_remote_agent_conversations_agent
  ON remote_agent_conversations(agent_id) WHERE agent_id IS NOT NULL;

CREATE INDEX idx_remote_agent_sessions_agent
  ON remote_agent_sessions(agent_id) WHERE agent_id IS NOT NULL;

-- The standing task of a profile in a conversation, which has one at most. origin
-- is the message that switched it on, as JSON: each run is a message from there.
CREATE TABLE agent_schedules (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id UUID NOT NULL REFERENCES agents(id) ON DELETE CASCADE,
  conversation_id UUID NOT NULL UNIQUE REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  created_by VARCHAR(300) NOT NULL,
  origin TEXT NOT NULL,
  event_id UUID REFERENCES inbound_events(id) ON DELETE SET NULL,
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
  CAST(s.conversation_id AS TEXT) AS thread_id,
  (SELECT CAST(c.event_id AS TEXT) FROM checkpoints c
    WHERE c.session_id = m.session_id AND c.seq <= m.seq ORDER BY c.seq DESC LIMIT 1) AS checkpoint_id,
  m.role AS "from",
  m.content,
  CASE WHEN m.kind IN ('tool_call', 'tool_result') THEN m.data_json END AS tools,
  (SELECT CAST(json_build_object('number', p.number, 'version', p.version, 'state', p.state, 'goal', p.goal) AS TEXT) FROM plans p
    WHERE p.session_id = m.session_id AND CAST(p.event_id AS TEXT) = m.run_id ORDER BY p.number DESC, p.version DESC LIMIT 1) AS plan,
  m.provider_metadata AS metadata,
  to_timestamp(m.created_at) AS "timestamp"
FROM agent_messages m
JOIN remote_agent_sessions s ON s.id = m.session_id;

-- Seed 004's processing cycles of agents: here, what was used step by step.
CREATE VIEW agent_iterations AS
SELECT
  u.id,
  CAST(json_build_object('agent_id', s.agent_id, 'session_id', u.session_id, 'run_id', u.event_id, 'actor', u.actor, 'model', u.model,
    'input_tokens', u.input_tokens, 'output_tokens', u.output_tokens, 'cost_micros', u.cost_micros) AS TEXT) AS data,
  to_timestamp(u.at_ms / 1000.0) AS created_at
FROM usage_records u
JOIN remote_agent_sessions s ON s.id = u.session_id
WHERE s.agent_id IS NOT NULL;

-- Seed 004's threads of agents: the conversations that use a profile.
CREATE VIEW thread_id AS
SELECT
  id,
  agent_id,
  platform_type || '/' || platform_conversation_id AS name,
  CAST(id AS TEXT) AS thread_id,
  created_at
FROM remote_agent_conversations
WHERE agent_id IS NOT NULL;

-- Seed 004's function, with a scope: one group. What profiles wrote into the
-- memories of people by themselves goes with them; what people said to remember
-- stays. Conversations go on with the default.
-- +goose StatementBegin
CREATE FUNCTION delete_all_agents(p_group TEXT DEFAULT 'default_group')
  RETURNS TABLE (deleted_count INTEGER, message TEXT) LANGUAGE sql AS $$
  WITH gone AS (
    DELETE FROM agents a WHERE a."group" = p_group RETURNING a.id
  ), runs AS (
    SELECT e.id FROM inbound_events e JOIN remote_agent_sessions s ON s.id = e.session_id WHERE s.agent_id IN (SELECT g.id FROM gone g)
  ), facts AS (
    DELETE FROM semantic_memories m WHERE m.origin <> 'person' AND m.run_id IN (SELECT r.id FROM runs r)
  ), episodes AS (
    DELETE FROM episodic_memories m WHERE m.origin <> 'person' AND m.run_id IN (SELECT r.id FROM runs r)
  )
  SELECT count(*)::integer, format('Deleted %s agents of the group %s', count(*), p_group) FROM gone
$$;
-- +goose StatementEnd
