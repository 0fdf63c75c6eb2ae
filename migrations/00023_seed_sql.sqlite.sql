-- 00023, works with binaries from 00001: SQL of seed 004 as its users write it
-- SQLite has no types, casts and functions of a database's own: JSON is text there,
-- which tools->>'name' takes as well.

-- +goose Up
-- Listings leave messages of the role system out without looking at the others.
CREATE INDEX idx_agent_messages_system
  ON agent_messages(session_id, seq) WHERE role = 'system';

-- A default does not change what is stored, so that the table need not be copied.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'expires_at TEXT NOT NULL',
  'expires_at TEXT NOT NULL DEFAULT (strftime(''%Y-%m-%dT%H:%M:%fZ'', ''now'', ''+30 days''))')
WHERE type = 'table' AND name = 'episodic_memories';
PRAGMA writable_schema = RESET;
