-- 00006, works with binaries from 00001: plans, buttons, checkpoints, undone messages
-- Columns that end in _ms are Unix milliseconds.

-- +goose Up
-- A codebase is found by its name and by its repository. Rows that a person made
-- by hand may stand in the way of that: the oldest keeps both.
UPDATE remote_agent_codebases
SET name = substr(name, 1, 218) || '-' || CAST(id AS TEXT)
WHERE EXISTS (
  SELECT 1 FROM remote_agent_codebases older
  WHERE older.name = remote_agent_codebases.name AND older.id < remote_agent_codebases.id);

UPDATE remote_agent_codebases
SET repository_url = NULL
WHERE EXISTS (
  SELECT 1 FROM remote_agent_codebases older
  WHERE older.repository_url = remote_agent_codebases.repository_url AND older.id < remote_agent_codebases.id);

CREATE UNIQUE INDEX idx_remote_agent_codebases_name
  ON remote_agent_codebases(name) WHERE name <> '';

CREATE UNIQUE INDEX idx_remote_agent_codebases_repository
  ON remote_agent_codebases(repository_url) WHERE repository_url <> '';

ALTER TABLE deliveries ADD COLUMN buttons JSONB NOT NULL DEFAULT '[]';
ALTER TABLE deliveries ADD COLUMN only_for VARCHAR(255) NOT NULL DEFAULT '';

-- Messages of turns that were taken back stay here and leave the message array.
ALTER TABLE agent_messages ADD COLUMN undone BOOLEAN NOT NULL DEFAULT false;

-- Where plans get their numbers: each is given once and never again, whatever is
-- deleted, so that no button or "/approve p-9" can mean another plan.
CREATE TABLE plan_numbers (
  number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  conversation_id UUID NOT NULL REFERENCES remote_agent_conversations(id) ON DELETE CASCADE
);

CREATE INDEX idx_plan_numbers_conversation
  ON plan_numbers(conversation_id);

-- One row is one version of a plan.
CREATE TABLE plans (
  id UUID PRIMARY KEY,
  number BIGINT NOT NULL REFERENCES plan_numbers(number) ON DELETE CASCADE,
  version BIGINT NOT NULL CHECK (version > 0),
  conversation_id UUID NOT NULL REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  session_id UUID REFERENCES remote_agent_sessions(id) ON DELETE SET NULL,
  event_id UUID REFERENCES inbound_events(id) ON DELETE SET NULL,
  goal TEXT NOT NULL DEFAULT '',
  body TEXT NOT NULL,
  sha256 VARCHAR(64) NOT NULL CHECK (length(sha256) = 64),
  author VARCHAR(300) NOT NULL DEFAULT '',
  requester VARCHAR(300) NOT NULL DEFAULT '',
  state TEXT NOT NULL DEFAULT 'proposed'
    CHECK (state IN ('proposed', 'approved', 'rejected', 'expired', 'superseded', 'executing', 'done')),
  head VARCHAR(64) NOT NULL DEFAULT '',
  delivery_id VARCHAR(64) NOT NULL DEFAULT '',
  decided_by VARCHAR(300) NOT NULL DEFAULT '',
  decided_ms BIGINT NOT NULL DEFAULT 0,
  note TEXT NOT NULL DEFAULT '',
  created_ms BIGINT NOT NULL,
  expires_ms BIGINT NOT NULL,
  UNIQUE (number, version)
);

CREATE UNIQUE INDEX idx_plans_one_open
  ON plans(conversation_id) WHERE state IN ('proposed', 'approved');

CREATE INDEX idx_plans_conversation
  ON plans(conversation_id, number);

CREATE INDEX idx_plans_session
  ON plans(session_id);

CREATE INDEX idx_plans_event
  ON plans(event_id);

-- What pressing a button means. The id says nothing by itself.
CREATE TABLE buttons (
  id VARCHAR(40) PRIMARY KEY,
  conversation_id UUID NOT NULL REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  decision TEXT NOT NULL,
  plan_number BIGINT NOT NULL DEFAULT 0,
  sha256 VARCHAR(64) NOT NULL DEFAULT '',
  expires_ms BIGINT NOT NULL
);

CREATE INDEX idx_buttons_conversation
  ON buttons(conversation_id);

-- The state before a turn; inbox_seq is the place of its entry in the inbox.
CREATE TABLE checkpoints (
  event_id UUID PRIMARY KEY REFERENCES inbound_events(id) ON DELETE CASCADE,
  conversation_id UUID NOT NULL REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  session_id UUID REFERENCES remote_agent_sessions(id) ON DELETE SET NULL,
  inbox_seq BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  ref VARCHAR(255) NOT NULL DEFAULT '',
  undone BOOLEAN NOT NULL DEFAULT false,
  created_ms BIGINT NOT NULL
);

CREATE INDEX idx_checkpoints_conversation
  ON checkpoints(conversation_id, inbox_seq);

CREATE INDEX idx_checkpoints_session
  ON checkpoints(session_id);
