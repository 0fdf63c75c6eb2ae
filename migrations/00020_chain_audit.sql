-- 00020, works with binaries from 00001: the audit log is a chain of hashes
-- See the package audit for what a hash is made of.

-- +goose Up
-- Rows from before have no seq; the row audit.begin vouches for them. An effect is
-- named where it has to be on record once, however often it was begun.
ALTER TABLE audit_log ADD COLUMN seq BIGINT;
ALTER TABLE audit_log ADD COLUMN hash TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_log ADD COLUMN effect TEXT;

CREATE UNIQUE INDEX idx_audit_log_seq ON audit_log(seq);
CREATE UNIQUE INDEX idx_audit_log_effect ON audit_log(effect);

-- The end of the chain. Whoever appends locks this row first.
CREATE TABLE audit_head (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  seq BIGINT NOT NULL DEFAULT 0,
  hash TEXT NOT NULL DEFAULT ''
);

INSERT INTO audit_head (id) VALUES (1);
