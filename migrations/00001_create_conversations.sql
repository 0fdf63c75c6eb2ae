-- 00001, works with binaries from 00001: codebases, conversations and sessions
-- Tables of seed 002, with its names, columns, defaults and indexes. Columns
-- that the seed does not have follow in each table after a comment.

-- +goose Up
CREATE TABLE remote_agent_codebases (
  id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
  name VARCHAR(255) NOT NULL,
  repository_url VARCHAR(500),
  default_cwd VARCHAR(500) NOT NULL,
  ai_assistant_type VARCHAR(20) NOT NULL DEFAULT 'claude',
  commands JSONB DEFAULT '{}',
  created_at TIMESTAMPTZ DEFAULT CURRENT_TIMESTAMP,
  updated_at TIMESTAMPTZ DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE remote_agent_conversations (
  id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
  platform_type VARCHAR(20) NOT NULL,
  platform_conversation_id VARCHAR(255) NOT NULL,
  codebase_id UUID REFERENCES remote_agent_codebases(id),
  cwd VARCHAR(500),
  ai_assistant_type VARCHAR(20) NOT NULL DEFAULT 'claude',
  created_at TIMESTAMPTZ DEFAULT CURRENT_TIMESTAMP,
  updated_at TIMESTAMPTZ DEFAULT CURRENT_TIMESTAMP,
  -- The last numbers given out, and the last one that a person stopped.
  inbox_seq BIGINT NOT NULL DEFAULT 0,
  stop_seq BIGINT NOT NULL DEFAULT 0,
  delivery_seq BIGINT NOT NULL DEFAULT 0,
  -- The lease. lease_until is in Unix milliseconds; lease_epoch only grows.
  lease_owner VARCHAR(255),
  lease_until BIGINT NOT NULL DEFAULT 0,
  lease_epoch BIGINT NOT NULL DEFAULT 0,
  UNIQUE (platform_type, platform_conversation_id)
);

CREATE INDEX idx_remote_agent_conversations_codebase
  ON remote_agent_conversations(codebase_id);

CREATE TABLE remote_agent_sessions (
  id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
  conversation_id UUID NOT NULL REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  codebase_id UUID REFERENCES remote_agent_codebases(id),
  ai_assistant_type VARCHAR(20) NOT NULL,
  assistant_session_id VARCHAR(255),
  active BOOLEAN NOT NULL DEFAULT true,
  metadata JSONB DEFAULT '{}',
  started_at TIMESTAMPTZ DEFAULT CURRENT_TIMESTAMP,
  ended_at TIMESTAMPTZ,
  -- What seed 003 keeps about a session; the view agent_sessions shows it.
  agent_name TEXT NOT NULL DEFAULT '',
  model TEXT NOT NULL DEFAULT '',
  system_prompt TEXT,
  user_prompt TEXT NOT NULL DEFAULT '',
  config TEXT,
  status TEXT NOT NULL DEFAULT 'running'
    CHECK (status IN ('running', 'completed', 'failed')),
  result TEXT,
  error TEXT,
  input_tokens BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  last_seq BIGINT NOT NULL DEFAULT 0,
  parent_session_id UUID REFERENCES remote_agent_sessions(id) ON DELETE SET NULL
);

CREATE INDEX idx_remote_agent_sessions_conversation
  ON remote_agent_sessions(conversation_id, active);

CREATE INDEX idx_remote_agent_sessions_codebase
  ON remote_agent_sessions(codebase_id);

CREATE INDEX idx_remote_agent_sessions_parent
  ON remote_agent_sessions(parent_session_id);

CREATE UNIQUE INDEX idx_remote_agent_sessions_one_active
  ON remote_agent_sessions(conversation_id) WHERE active;

CREATE VIEW agent_sessions AS
SELECT
  id,
  agent_name,
  ai_assistant_type AS provider,
  model,
  system_prompt,
  user_prompt,
  config,
  status,
  extract(epoch FROM started_at)::bigint AS started_at,
  extract(epoch FROM ended_at)::bigint AS ended_at,
  result,
  error
FROM remote_agent_sessions;
