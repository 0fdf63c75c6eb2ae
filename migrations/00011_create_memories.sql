-- 00011, works with binaries from 00001: what the bot remembers of people
-- Tables of seed 004, with its names and columns. Lists are JSON and vectors are
-- 384 little-endian 32-bit floats, so that one form serves both databases; a
-- memory without a vector is found by its words. Columns that the seed does not
-- have follow in each table after a comment.

-- +goose Up
-- A row for everybody of whom something is remembered. It is locked by whoever
-- changes that person's memories.
CREATE TABLE memory_people (
  user_id VARCHAR(300) PRIMARY KEY,
  enabled BOOLEAN NOT NULL DEFAULT true,
  -- The last number given out. Numbers are not used again.
  seq BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE episodic_memories (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id VARCHAR(300) NOT NULL REFERENCES memory_people(user_id) ON DELETE CASCADE,
  run_id UUID NOT NULL,
  content TEXT NOT NULL,
  embedding BYTEA,
  sources JSONB NOT NULL DEFAULT '[]',
  access_count BIGINT NOT NULL DEFAULT 0,
  created_at TIMESTAMPTZ NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at TIMESTAMPTZ NOT NULL DEFAULT CURRENT_TIMESTAMP,
  confidence FLOAT NOT NULL DEFAULT 1.0 CHECK (confidence >= 0 AND confidence <= 10),
  expires_at TIMESTAMPTZ NOT NULL,
  -- The number that people use, and where the memory holds: NULL is everywhere.
  seq BIGINT NOT NULL,
  codebase_id UUID REFERENCES remote_agent_codebases(id) ON DELETE CASCADE,
  origin VARCHAR(20) NOT NULL DEFAULT 'assistant'
    CHECK (origin IN ('person', 'assistant', 'learned')),
  content_hash VARCHAR(64) NOT NULL,
  terms TEXT NOT NULL DEFAULT '',
  embedding_model VARCHAR(200) NOT NULL DEFAULT '',
  last_key VARCHAR(200) NOT NULL DEFAULT '',
  CHECK (embedding IS NULL OR length(embedding) = 1536),
  UNIQUE (user_id, seq)
);

CREATE INDEX episodic_time_idx
  ON episodic_memories(user_id, created_at DESC);

CREATE INDEX idx_episodic_memories_expires
  ON episodic_memories(expires_at);

CREATE INDEX idx_episodic_memories_codebase
  ON episodic_memories(codebase_id);

-- Which memories of a person are compared by vector, and which by their words.
CREATE INDEX idx_episodic_memories_model
  ON episodic_memories(user_id, embedding_model);

CREATE INDEX idx_episodic_memories_bare
  ON episodic_memories(embedding_model, id);

CREATE TABLE semantic_memories (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id VARCHAR(300) NOT NULL REFERENCES memory_people(user_id) ON DELETE CASCADE,
  run_id UUID NOT NULL,
  fact TEXT NOT NULL,
  embedding BYTEA,
  confidence FLOAT NOT NULL DEFAULT 0.5 CHECK (confidence >= 0 AND confidence <= 0.99),
  access_count BIGINT NOT NULL DEFAULT 1,
  created_at TIMESTAMPTZ NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at TIMESTAMPTZ NOT NULL DEFAULT CURRENT_TIMESTAMP,
  category VARCHAR(50)
    CHECK (category IN ('preference', 'fact', 'skill', 'relationship')),
  source_events JSONB NOT NULL DEFAULT '[]',
  -- As in episodic_memories; history is what the fact said before.
  seq BIGINT NOT NULL,
  codebase_id UUID REFERENCES remote_agent_codebases(id) ON DELETE CASCADE,
  origin VARCHAR(20) NOT NULL DEFAULT 'assistant'
    CHECK (origin IN ('person', 'assistant', 'learned')),
  content_hash VARCHAR(64) NOT NULL,
  terms TEXT NOT NULL DEFAULT '',
  embedding_model VARCHAR(200) NOT NULL DEFAULT '',
  last_key VARCHAR(200) NOT NULL DEFAULT '',
  history JSONB NOT NULL DEFAULT '[]',
  CHECK (embedding IS NULL OR length(embedding) = 1536),
  UNIQUE (user_id, seq)
);

CREATE INDEX semantic_category_idx
  ON semantic_memories(user_id, category);

CREATE INDEX idx_semantic_memories_codebase
  ON semantic_memories(codebase_id);

-- Which memories of a person are compared by vector, and which by their words.
CREATE INDEX idx_semantic_memories_model
  ON semantic_memories(user_id, embedding_model);

CREATE INDEX idx_semantic_memories_bare
  ON semantic_memories(embedding_model, id);

-- The same text twice in one place is the same fact.
CREATE UNIQUE INDEX idx_semantic_memories_same
  ON semantic_memories(user_id, COALESCE(CAST(codebase_id AS TEXT), ''), content_hash);
