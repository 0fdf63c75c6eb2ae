-- 00017, works with binaries from 00001: keys of the HTTP API
-- Columns that end in _ms are Unix milliseconds; 0 is never.

-- +goose Up
-- The token itself is not kept, only its SHA-256. A name is free again when its
-- key is revoked; the row stays, for the audit log.
CREATE TABLE api_keys (
  id VARCHAR(16) PRIMARY KEY,
  name VARCHAR(64) NOT NULL,
  secret_hash VARCHAR(64) NOT NULL CHECK (length(secret_hash) = 64),
  scopes VARCHAR(500) NOT NULL,
  created_ms BIGINT NOT NULL,
  expires_ms BIGINT NOT NULL DEFAULT 0,
  revoked_ms BIGINT NOT NULL DEFAULT 0,
  last_used_ms BIGINT NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX idx_api_keys_name
  ON api_keys(name) WHERE revoked_ms = 0;

-- Lists of sessions by agent and by status, the newest first.
CREATE INDEX idx_remote_agent_sessions_agent_started
  ON remote_agent_sessions(agent_name, started_at, id);

CREATE INDEX idx_remote_agent_sessions_status_started
  ON remote_agent_sessions(status, started_at, id);
