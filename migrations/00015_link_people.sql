-- 00015, works with binaries from 00001: one person with several accounts, and what is to be learned
-- An account without a row in memory_accounts is a person of its own, whose
-- user_id is the account's name. Joined accounts share a user_id of its own kind,
-- "person/" and a UUID, so that any of them can leave.

-- +goose Up
CREATE TABLE memory_accounts (
  account VARCHAR(300) PRIMARY KEY,
  user_id VARCHAR(300) NOT NULL REFERENCES memory_people(user_id) ON DELETE CASCADE,
  -- Where the account was linked, so that it can be told what becomes of it.
  conversation_id UUID REFERENCES remote_agent_conversations(id) ON DELETE SET NULL,
  whispered BOOLEAN NOT NULL DEFAULT false,
  -- The message that linked it, which may be handled twice.
  last_key VARCHAR(200) NOT NULL DEFAULT '',
  linked_ms BIGINT NOT NULL
);

CREATE INDEX idx_memory_accounts_person
  ON memory_accounts(user_id);

CREATE INDEX idx_memory_accounts_conversation
  ON memory_accounts(conversation_id);

-- SHA-256 of the one code that an account may show to another one.
CREATE TABLE link_codes (
  account VARCHAR(300) PRIMARY KEY,
  code_hash VARCHAR(64) NOT NULL UNIQUE,
  conversation_id UUID REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  whispered BOOLEAN NOT NULL DEFAULT false,
  expires_ms BIGINT NOT NULL
);

CREATE INDEX idx_link_codes_conversation
  ON link_codes(conversation_id);

-- Wrong codes that an account tried since a time.
CREATE TABLE link_tries (
  account VARCHAR(300) PRIMARY KEY,
  tries BIGINT NOT NULL,
  since_ms BIGINT NOT NULL,
  last_key VARCHAR(200) NOT NULL DEFAULT ''
);

-- Messages from which something may be learned of who wrote them. A row is
-- deleted in the transaction that stores what was learned. next_ms is when it is
-- due, or until when the holder of claim has it to itself.
CREATE TABLE memory_lessons (
  entry_id UUID PRIMARY KEY REFERENCES inbound_events(id) ON DELETE CASCADE,
  account VARCHAR(300) NOT NULL,
  conversation_id UUID NOT NULL REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  attempts BIGINT NOT NULL DEFAULT 0,
  next_ms BIGINT NOT NULL,
  claim VARCHAR(64) NOT NULL DEFAULT ''
);

CREATE INDEX idx_memory_lessons_due
  ON memory_lessons(next_ms);

CREATE INDEX idx_memory_lessons_account
  ON memory_lessons(account, conversation_id);

CREATE INDEX idx_memory_lessons_conversation
  ON memory_lessons(conversation_id);

CREATE INDEX idx_memory_lessons_claim
  ON memory_lessons(claim);
