-- 00004, works with binaries from 00001: identities, owner codes, audit log
-- Columns that end in _ms are Unix milliseconds.

-- +goose Up
CREATE TABLE identities (
  platform_type VARCHAR(20) NOT NULL,
  user_id VARCHAR(255) NOT NULL,
  name TEXT NOT NULL DEFAULT '',
  role TEXT NOT NULL DEFAULT 'stranger' CHECK (role IN ('stranger', 'user', 'owner')),
  refused_ms BIGINT,
  created_ms BIGINT NOT NULL,
  PRIMARY KEY (platform_type, user_id)
);

CREATE INDEX idx_identities_owner
  ON identities(platform_type) WHERE role = 'owner';

-- The SHA-256 of the one-time code that makes its sender the owner.
CREATE TABLE owner_codes (
  platform_type VARCHAR(20) PRIMARY KEY,
  code_hash VARCHAR(64) NOT NULL,
  expires_ms BIGINT NOT NULL
);

-- Append-only. conversation_id is no foreign key: the log outlives what it is about.
CREATE TABLE audit_log (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at_ms BIGINT NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  conversation_id TEXT NOT NULL DEFAULT '',
  target TEXT NOT NULL DEFAULT '',
  detail TEXT NOT NULL DEFAULT ''
);

CREATE INDEX idx_audit_log_conversation
  ON audit_log(conversation_id, id);
