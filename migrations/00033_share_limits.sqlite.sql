-- 00033, works with binaries from 00001: limits on calls that replicas share
-- On PostgreSQL; on SQLite one process works, and counts by itself.

-- +goose Up
ALTER TABLE replicas ADD COLUMN joined_us BIGINT NOT NULL DEFAULT 0;

CREATE TABLE call_limits (
  account TEXT NOT NULL,
  bucket TEXT NOT NULL,
  full_us BIGINT NOT NULL DEFAULT 0,
  silent_us BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (account, bucket)
);
