-- 00009, works with binaries from 00001: approvals, allow rules, usage, settings, model tiers
-- Columns that end in _ms are Unix milliseconds; cost is in millionths of a US dollar.

-- +goose Up
-- What a person was asked to allow. The number is what people call it: a-7.
CREATE TABLE approvals (
  number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  conversation_id UUID NOT NULL REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  session_id UUID REFERENCES remote_agent_sessions(id) ON DELETE SET NULL,
  event_id UUID REFERENCES inbound_events(id) ON DELETE SET NULL,
  codebase_id UUID REFERENCES remote_agent_codebases(id) ON DELETE SET NULL,
  tool_call_id TEXT NOT NULL,
  tool_name TEXT NOT NULL,
  request TEXT NOT NULL,
  sha256 VARCHAR(64) NOT NULL CHECK (length(sha256) = 64),
  kind TEXT NOT NULL,
  title TEXT NOT NULL,
  detail TEXT NOT NULL DEFAULT '',
  rule TEXT NOT NULL DEFAULT '',
  requester VARCHAR(300) NOT NULL,
  state TEXT NOT NULL DEFAULT 'waiting'
    CHECK (state IN ('waiting', 'allowed', 'denied', 'expired', 'canceled')),
  delivery_id VARCHAR(64) NOT NULL DEFAULT '',
  decided_by VARCHAR(300) NOT NULL DEFAULT '',
  decided_ms BIGINT NOT NULL DEFAULT 0,
  note TEXT NOT NULL DEFAULT '',
  created_ms BIGINT NOT NULL,
  expires_ms BIGINT NOT NULL
);

CREATE INDEX idx_approvals_event
  ON approvals(event_id, tool_call_id);

CREATE INDEX idx_approvals_waiting
  ON approvals(conversation_id, number) WHERE state = 'waiting';

CREATE INDEX idx_approvals_conversation
  ON approvals(conversation_id);

CREATE INDEX idx_approvals_session
  ON approvals(session_id);

CREATE INDEX idx_approvals_codebase
  ON approvals(codebase_id);

-- What a person allowed from now on, in one codebase.
CREATE TABLE allow_rules (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  codebase_id UUID NOT NULL REFERENCES remote_agent_codebases(id) ON DELETE CASCADE,
  tool_name TEXT NOT NULL,
  rule TEXT NOT NULL,
  created_by VARCHAR(300) NOT NULL,
  created_ms BIGINT NOT NULL,
  UNIQUE (codebase_id, tool_name, rule)
);

-- What turns used. It outlives conversations, for the sums of a person and a day.
CREATE TABLE usage_records (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event_id UUID REFERENCES inbound_events(id) ON DELETE SET NULL,
  conversation_id UUID REFERENCES remote_agent_conversations(id) ON DELETE SET NULL,
  session_id UUID REFERENCES remote_agent_sessions(id) ON DELETE SET NULL,
  codebase_id UUID REFERENCES remote_agent_codebases(id) ON DELETE SET NULL,
  actor VARCHAR(300) NOT NULL,
  ai_assistant_type VARCHAR(20) NOT NULL,
  model TEXT NOT NULL DEFAULT '',
  input_tokens BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  cached_tokens BIGINT NOT NULL DEFAULT 0,
  written_tokens BIGINT NOT NULL DEFAULT 0,
  -- NULL where the model's price is not known.
  cost_micros BIGINT,
  at_ms BIGINT NOT NULL
);

CREATE INDEX idx_usage_records_event
  ON usage_records(event_id);

CREATE INDEX idx_usage_records_actor
  ON usage_records(actor, at_ms);

CREATE INDEX idx_usage_records_at
  ON usage_records(at_ms);

CREATE INDEX idx_usage_records_conversation
  ON usage_records(conversation_id, at_ms);

CREATE INDEX idx_usage_records_session
  ON usage_records(session_id);

CREATE INDEX idx_usage_records_codebase
  ON usage_records(codebase_id, at_ms);

-- What people chose for a conversation: mode, model, verbosity.
ALTER TABLE remote_agent_conversations ADD COLUMN settings JSONB NOT NULL DEFAULT '{}';

-- Seed 004's model tiers: each a JSON object of provider, model_name and description.
CREATE TABLE models_config (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  fast JSONB NOT NULL DEFAULT '{}',
  smart JSONB NOT NULL DEFAULT '{}',
  cheap JSONB NOT NULL DEFAULT '{}'
);

-- Up to where a platform was read, for adapters that ask for what is new.
CREATE TABLE platform_cursors (
  name VARCHAR(255) PRIMARY KEY,
  position VARCHAR(255) NOT NULL,
  updated_ms BIGINT NOT NULL
);
