-- 00035, works with binaries from 00001: people who are signed in to the pages in the browser
-- Columns that end in _ms are Unix milliseconds; 0 is never.

-- +goose Up
-- A link that signs somebody in once. The token itself is not kept, only its SHA-256;
-- a link that was used is gone.
CREATE TABLE sign_in_links (
  token_hash VARCHAR(64) PRIMARY KEY CHECK (length(token_hash) = 64),
  platform_type VARCHAR(20) NOT NULL,
  user_id VARCHAR(255) NOT NULL,
  expires_ms BIGINT NOT NULL
);

-- What somebody may do is not kept here: it is looked up for every request.
CREATE TABLE web_sessions (
  id VARCHAR(16) PRIMARY KEY,
  token_hash VARCHAR(64) NOT NULL CHECK (length(token_hash) = 64),
  platform_type VARCHAR(20) NOT NULL,
  user_id VARCHAR(255) NOT NULL,
  client VARCHAR(200) NOT NULL DEFAULT '',
  created_ms BIGINT NOT NULL,
  last_used_ms BIGINT NOT NULL,
  expires_ms BIGINT NOT NULL,
  revoked_ms BIGINT NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX idx_web_sessions_token
  ON web_sessions(token_hash);
