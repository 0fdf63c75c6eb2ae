-- 00016, works with binaries from 00001: memories of many are found fast
-- Embeddings are summarized in sketches of 112 bytes (internal/memory/sketch),
-- stored in chunks. A memory that is in a chunk has its number and place; one that
-- is in none is compared by its whole embedding. The triggers take a memory out of
-- its chunk whatever changes it, so that a chunk never says something outdated.

-- +goose Up
CREATE TABLE memory_sketches (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind VARCHAR(20) NOT NULL CHECK (kind IN ('semantic', 'episodic')),
  user_id VARCHAR(300) NOT NULL REFERENCES memory_people(user_id) ON DELETE CASCADE,
  codebase_id UUID REFERENCES remote_agent_codebases(id) ON DELETE CASCADE,
  embedding_model VARCHAR(200) NOT NULL,
  -- How many of its places are taken; the others are zeros.
  live INTEGER NOT NULL,
  data BYTEA NOT NULL
);

-- A chunk fits into a page and cannot be compressed: in a table of its own it
-- would take five more steps to read.
ALTER TABLE memory_sketches ALTER COLUMN data SET STORAGE PLAIN;

CREATE INDEX idx_memory_sketches_person
  ON memory_sketches(user_id, kind, embedding_model) INCLUDE (codebase_id, live, id);

CREATE INDEX idx_memory_sketches_codebase
  ON memory_sketches(codebase_id);

ALTER TABLE semantic_memories ADD COLUMN sketch_id BIGINT, ADD COLUMN sketch_place INTEGER;
ALTER TABLE episodic_memories ADD COLUMN sketch_id BIGINT, ADD COLUMN sketch_place INTEGER;

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
CREATE FUNCTION memory_leaves_sketch() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  UPDATE memory_sketches
  SET live = live - 1, data = overlay(data PLACING decode(repeat('00', 112), 'hex') FROM OLD.sketch_place * 112 + 1 FOR 112)
  WHERE id = OLD.sketch_id;
  DELETE FROM memory_sketches WHERE id = OLD.sketch_id AND live <= 0;
  IF TG_OP = 'UPDATE' THEN
    NEW.sketch_id := NULL;
    NEW.sketch_place := NULL;
    RETURN NEW;
  END IF;
  RETURN OLD;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER semantic_sketch_removed AFTER DELETE ON semantic_memories
  FOR EACH ROW WHEN (OLD.sketch_id IS NOT NULL) EXECUTE FUNCTION memory_leaves_sketch();
CREATE TRIGGER episodic_sketch_removed AFTER DELETE ON episodic_memories
  FOR EACH ROW WHEN (OLD.sketch_id IS NOT NULL) EXECUTE FUNCTION memory_leaves_sketch();

CREATE TRIGGER semantic_sketch_outdated BEFORE UPDATE ON semantic_memories
  FOR EACH ROW WHEN (OLD.sketch_id IS NOT NULL AND (
    OLD.embedding IS DISTINCT FROM NEW.embedding OR OLD.embedding_model <> NEW.embedding_model
    OR OLD.user_id <> NEW.user_id OR OLD.codebase_id IS DISTINCT FROM NEW.codebase_id))
  EXECUTE FUNCTION memory_leaves_sketch();
CREATE TRIGGER episodic_sketch_outdated BEFORE UPDATE ON episodic_memories
  FOR EACH ROW WHEN (OLD.sketch_id IS NOT NULL AND (
    OLD.embedding IS DISTINCT FROM NEW.embedding OR OLD.embedding_model <> NEW.embedding_model OR OLD.user_id <> NEW.user_id
    OR OLD.codebase_id IS DISTINCT FROM NEW.codebase_id OR OLD.expires_at <> NEW.expires_at))
  EXECUTE FUNCTION memory_leaves_sketch();
