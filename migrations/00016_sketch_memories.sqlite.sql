-- 00016, works with binaries from 00001: memories of many are found fast
-- Embeddings are summarized in sketches of 112 bytes (internal/memory/sketch),
-- stored in chunks. A memory that is in a chunk has its number and place; one that
-- is in none is compared by its whole embedding. The triggers take a memory out of
-- its chunk whatever changes it, so that a chunk never says something outdated.

-- +goose Up
CREATE TABLE memory_sketches (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL CHECK (kind IN ('semantic', 'episodic')),
  user_id TEXT NOT NULL REFERENCES memory_people(user_id) ON DELETE CASCADE,
  codebase_id TEXT REFERENCES remote_agent_codebases(id) ON DELETE CASCADE,
  embedding_model TEXT NOT NULL,
  -- How many of its places are taken; the others are zeros.
  live INTEGER NOT NULL,
  data BLOB NOT NULL
);

CREATE INDEX idx_memory_sketches_person
  ON memory_sketches(user_id, kind, embedding_model, codebase_id, live);

CREATE INDEX idx_memory_sketches_codebase
  ON memory_sketches(codebase_id);

ALTER TABLE semantic_memories ADD COLUMN sketch_id INTEGER;
ALTER TABLE semantic_memories ADD COLUMN sketch_place INTEGER;
ALTER TABLE episodic_memories ADD COLUMN sketch_id INTEGER;
ALTER TABLE episodic_memories ADD COLUMN sketch_place INTEGER;

-- They begin as the indexes that they replace do, and tell who is in no chunk.
DROP INDEX idx_semantic_memories_model;
DROP INDEX idx_episodic_memories_model;
CREATE INDEX idx_semantic_memories_model ON semantic_memories(user_id, embedding_model, sketch_id);
CREATE INDEX idx_episodic_memories_model ON episodic_memories(user_id, embedding_model, sketch_id);

CREATE INDEX idx_episodic_memories_same ON episodic_memories(user_id, content_hash);

-- What came in by another way than the program, which has to index its words.
CREATE INDEX idx_semantic_memories_wordless ON semantic_memories(id) WHERE terms = '';
CREATE INDEX idx_episodic_memories_wordless ON episodic_memories(id) WHERE terms = '';

-- +goose StatementBegin
CREATE TRIGGER semantic_sketch_removed AFTER DELETE ON semantic_memories WHEN OLD.sketch_id IS NOT NULL
BEGIN
  UPDATE memory_sketches SET live = live - 1, data = CAST(
    substr(data, 1, OLD.sketch_place * 112) || zeroblob(112) || substr(data, OLD.sketch_place * 112 + 113) AS BLOB)
  WHERE id = OLD.sketch_id;
  DELETE FROM memory_sketches WHERE id = OLD.sketch_id AND live <= 0;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER semantic_sketch_outdated AFTER UPDATE OF embedding, embedding_model, user_id, codebase_id ON semantic_memories
WHEN OLD.sketch_id IS NOT NULL AND NEW.sketch_id IS NOT NULL AND (
  OLD.embedding IS NOT NEW.embedding OR OLD.embedding_model <> NEW.embedding_model
  OR OLD.user_id <> NEW.user_id OR OLD.codebase_id IS NOT NEW.codebase_id)
BEGIN
  UPDATE semantic_memories SET sketch_id = NULL, sketch_place = NULL WHERE id = NEW.id;
  UPDATE memory_sketches SET live = live - 1, data = CAST(
    substr(data, 1, OLD.sketch_place * 112) || zeroblob(112) || substr(data, OLD.sketch_place * 112 + 113) AS BLOB)
  WHERE id = OLD.sketch_id;
  DELETE FROM memory_sketches WHERE id = OLD.sketch_id AND live <= 0;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER episodic_sketch_removed AFTER DELETE ON episodic_memories WHEN OLD.sketch_id IS NOT NULL
BEGIN
  UPDATE memory_sketches SET live = live - 1, data = CAST(
    substr(data, 1, OLD.sketch_place * 112) || zeroblob(112) || substr(data, OLD.sketch_place * 112 + 113) AS BLOB)
  WHERE id = OLD.sketch_id;
  DELETE FROM memory_sketches WHERE id = OLD.sketch_id AND live <= 0;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER episodic_sketch_outdated AFTER UPDATE OF embedding, embedding_model, user_id, codebase_id, expires_at ON episodic_memories
WHEN OLD.sketch_id IS NOT NULL AND NEW.sketch_id IS NOT NULL AND (
  OLD.embedding IS NOT NEW.embedding OR OLD.embedding_model <> NEW.embedding_model OR OLD.user_id <> NEW.user_id
  OR OLD.codebase_id IS NOT NEW.codebase_id OR OLD.expires_at <> NEW.expires_at)
BEGIN
  UPDATE episodic_memories SET sketch_id = NULL, sketch_place = NULL WHERE id = NEW.id;
  UPDATE memory_sketches SET live = live - 1, data = CAST(
    substr(data, 1, OLD.sketch_place * 112) || zeroblob(112) || substr(data, OLD.sketch_place * 112 + 113) AS BLOB)
  WHERE id = OLD.sketch_id;
  DELETE FROM memory_sketches WHERE id = OLD.sketch_id AND live <= 0;
END;
-- +goose StatementEnd
