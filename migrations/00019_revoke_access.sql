-- 00019, works with binaries from 00001: who let a person in, who was removed, and a halt
-- Columns that end in _ms are Unix milliseconds; 0 is never.

-- +goose Up
-- granted_by is who gave the role: 'code' for a one-time code, 'cli', or an owner
-- such as 'telegram/42'; empty for rows from before, whose owners used a code. Who
-- is removed is a stranger, whatever the configuration says of them.
ALTER TABLE identities ADD COLUMN granted_by TEXT NOT NULL DEFAULT '';
ALTER TABLE identities ADD COLUMN granted_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE identities ADD COLUMN removed_ms BIGINT NOT NULL DEFAULT 0;

-- One row: whether the service is halted, and how often access has changed, by
-- which every process sees that running turns have to be judged again.
CREATE TABLE service_state (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  access_seq BIGINT NOT NULL DEFAULT 0,
  halted_ms BIGINT NOT NULL DEFAULT 0,
  halted_by TEXT NOT NULL DEFAULT '',
  halt_reason TEXT NOT NULL DEFAULT ''
);

INSERT INTO service_state (id) VALUES (1);
