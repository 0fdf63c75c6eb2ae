-- 00034, works with binaries from 00001: people who ask to be let in, and people who may only ask
-- Columns that end in _ms are Unix milliseconds; 0 is never.

-- +goose Up
-- Who may ask and change nothing is a stranger whose questions are answered: so a
-- binary from before refuses them.
ALTER TABLE identities ADD COLUMN reads BOOLEAN NOT NULL DEFAULT false;

-- One row for a person who asks, and what owners said. cards are the ids of the
-- deliveries that ask owners, with spaces between them; empty: nobody was asked yet.
CREATE TABLE pairings (
  number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  platform_type VARCHAR(20) NOT NULL,
  user_id VARCHAR(255) NOT NULL,
  name TEXT NOT NULL DEFAULT '',
  platform_conversation_id VARCHAR(255) NOT NULL,
  code VARCHAR(16) NOT NULL,
  state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'allowed', 'denied')),
  cards TEXT NOT NULL DEFAULT '',
  asked_ms BIGINT NOT NULL,
  decided_by VARCHAR(300) NOT NULL DEFAULT '',
  decided_ms BIGINT NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX idx_pairings_person
  ON pairings(platform_type, user_id);

CREATE UNIQUE INDEX idx_pairings_code
  ON pairings(code);
